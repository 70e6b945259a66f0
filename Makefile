# Everything a developer types. `make train` and `make test` set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Idle threads of torch sleep instead of spinning: on a busy machine training and tests are several times faster.
export OMP_WAIT_POLICY ?= PASSIVE
# Tests start some hundred processes: each would compile all files of the package again, for half a second.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup train test test-long test-quick test-fast test-newest test-gpu docs lint type roms fuzz fuzz-files fuzz-memory bench bench-cpu bench-gpu puffer wheel size clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.stamp  ## make .venv with the pinned dependencies (once)

# --no-compile: imports compile what they need, which is a tenth of all that is installed.
$(VENV)/.stamp: setup.py constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if v >= (3, 11) else f"Python {v[0]}.{v[1]} is too old: give 3.11 or newer, e.g. make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

train: setup  ## train the agent to leave the house (ARGS="--seed 2 ..." for flags)
	$(BIN)/python cleanrl_style/a2c_streaming.py --env gbxcule $(ARGS)

test: setup  ## run the tests that need no GPU, on up to 8 cores (ARGS="-n 0 ..." for one)
	@echo "8 to 12 minutes on two cores, by their speed, with the kernels that are compiled; at the end stand the skipped tests with their reasons"
	$(BIN)/python -m pytest -m "not gpu and not long" -rs -n logical --maxprocesses 8 --dist worksteal $(ARGS)

test-long: setup  ## run the tests that repeat at length what make test shows in part, in some minutes
	$(BIN)/python -m pytest -m "not gpu and long" -rs -n logical --maxprocesses 8 --dist worksteal $(ARGS)

test-fast: setup  ## run the tests that load no kernel, in about a minute on two cores
	$(BIN)/python -m pytest -m "not gpu and not kernel" -n logical --maxprocesses 8 --dist worksteal $(ARGS)

test-quick: setup  ## run the tests that find most faults, in two minutes on two cores once the kernels are compiled
	$(BIN)/python -m pytest -m "not gpu and not slow and not long" -n logical --maxprocesses 8 --dist worksteal $(ARGS)

test-gpu: setup  ## run the tests that need an NVIDIA GPU
	$(BIN)/python -m pytest -m gpu $(ARGS)

fuzz: setup  ## compare random ROMs with PyBoy, some minutes (ARGS="--seeds 0:500 --out DIR")
	$(BIN)/python -m tests.fuzz --seeds 0:1500 --frames 60 $(ARGS)

fuzz-files: setup  ## read damaged files of every format (ARGS="--mutants 10000 --out DIR")
	$(BIN)/python -m tests.hostile $(ARGS)

fuzz-memory: setup  ## random ROMs and states between guard pages, minutes (ARGS="--roms 2000")
	$(BIN)/python -m tests.hostile.roms $(ARGS)
	$(BIN)/python -m tests.hostile.states $(ARGS)

docs: $(VENV)/.docs  ## build the documentation site, build/site/index.html (ARGS=serve to read it while you write)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --quiet)  # news of mkdocs-material, not of the pages

$(VENV)/.docs: $(VENV)/.stamp
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

lint: setup  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: setup  ## check types
	$(BIN)/pyright --pythonpath $(BIN)/python

roms:  ## rebuild roms/*.gb from their sources (needs sdcc 4.2)
	$(MAKE) -C roms PYTHON=$(PYTHON)

bench: setup  ## measure environment steps per second (ARGS="--vs pyboy_puffer_vec ...")
	$(BIN)/python -m gbxcule_puffer bench $(ARGS)

bench-cpu: setup  ## both suites beside PyBoy on the CPU
	$(BIN)/python -m gbxcule_puffer bench --device cpu --vs pyboy_puffer_vec --suite micro --num-envs 16,64 --warmup 10 --steps 20 $(ARGS)
	$(BIN)/python -m gbxcule_puffer bench --device cpu --vs pyboy_puffer_vec --num-envs 16,64 $(ARGS)

bench-gpu: setup  ## both suites beside PyBoy, on a GPU
	$(BIN)/python -m gbxcule_puffer bench --device cuda --vs pyboy_puffer_vec --suite micro $(ARGS)
	$(BIN)/python -m gbxcule_puffer bench --device cuda --vs pyboy_puffer_vec --max-mem-delta 0 $(ARGS)

PUFFER := .venv-puffer
puffer: $(PUFFER)/.stamp  ## PufferLib's own trainer in .venv-puffer: the env's contract, and a short training
	$(PUFFER)/bin/python -m pytest tests/env/test_env.py tests/integrations/pufferl $(ARGS)

$(PUFFER)/.stamp: setup.py tests/integrations/pufferl/install.py tests/integrations/pufferl/constraints.txt
	$(PYTHON) -m venv $(PUFFER)
	$(PUFFER)/bin/python tests/integrations/pufferl/install.py
	@touch $@

NEWEST := .venv-newest
test-newest: $(NEWEST)/.stamp  ## run the tests with the newest release of everything, in .venv-newest (gigabytes)
	$(NEWEST)/bin/python -m pytest -m "not gpu" -rs -n logical --maxprocesses 8 --dist worksteal $(ARGS)

$(NEWEST)/.stamp: setup.py tests/support/newest.py
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python tests/support/newest.py
	@touch $@

wheel: setup  ## build a wheel that has compiled kernels for CPUs and GPUs, minutes (ARGS="--arch 90")
	$(BIN)/python -m gbxcule_puffer warm --archive gbxcule_puffer/kernels.zip $(ARGS)
	$(BIN)/python -m build

size: setup  ## print what the kernels compile to: code bytes, registers, stack, spills, seconds
	$(BIN)/python -m gbxcule_puffer size $(ARGS)

clean:  ## remove the environments, caches and build outputs; runs/ stays
	rm -rf $(VENV) $(PUFFER) $(NEWEST) build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
