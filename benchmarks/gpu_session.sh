#!/usr/bin/env bash
# Everything that this project shows on one NVIDIA GPU: the GPU tests, then its speed beside PyBoy on all cores.
#
#   benchmarks/gpu_session.sh OUT_FOLDER
#
# Variables: ROMS and SIZES pick what is measured, WARMUP STEPS REPEAT how long; PYTHON names the interpreter;
# GBXCULE_SHARED the folder of shared ROMs (default: ../shared, then .shared); GBXCULE_GIT_SHA the commit, where the copy
# on the GPU machine has no repository. Records are written one by one: what a time limit cuts off is only the rest.
set -u
cd "$(dirname "$0")/.."
out=${1:?give the folder to write to}
python=${PYTHON:-python3}
names=${ROMS:-homeward 2048 libbet tobu shocklobster snake PostBot rex-runner totp-gb}
mkdir -p "$out"

# A test that is skipped shows nothing: without the shared ROMs there is no session.
# shellcheck disable=SC2086  # the lists are meant to split
roms=$("$python" -c 'import sys; from benchmarks.workload import find_rom; print(*map(find_rom, sys.argv[1:]))' $names) \
  || exit 1
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv
status=0
"$python" -m pytest -m gpu tests/gpu -rs --junitxml="$out/gpu_tests.xml" || status=1
# Thousands of instructions of random ROMs beside PyBoy, then a few with every memory access checked.
"$python" -m tests.fuzz --device cuda --seeds "${FUZZ:-0:40}" --envs 3 --frames 60 --record "$out/fuzz_cuda.json" || status=1
if command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --tool memcheck --error-exitcode 9 "$python" -m tests.fuzz --device cuda --seeds 0:2 --envs 33 \
    --frames 8 >"$out/memcheck.txt" 2>&1 || status=1
  tail -n 3 "$out/memcheck.txt"
fi
# shellcheck disable=SC2086
"$python" -m gbxcule_puffer bench gbxcule --vs pyboy_puffer_vec --device cuda --rom $roms --obs packed \
  --num-envs "${SIZES:-1024,4096,8192,16384}" --warmup "${WARMUP:-40}" --steps "${STEPS:-20}" --repeat "${REPEAT:-3}" \
  --max-mem-delta 0 --out "$out/bench" || status=1
exit $status
