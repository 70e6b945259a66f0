#!/usr/bin/env bash
# Everything that this project shows on one NVIDIA GPU: the GPU tests, then the emulator's speed. JSON goes to a folder.
#
#   benchmarks/gpu_session.sh OUT_FOLDER
#
# Variables: ROMS and SIZES pick what is measured, WARMUP STEPS REPEAT how long; PYTHON names the interpreter;
# GBXCULE_SHARED the folder of shared ROMs (default: ../shared, then .shared); GBXCULE_GIT_SHA the commit, where the copy
# on the GPU machine has no repository. Measurements are written one by one: what a time limit cuts off is only the rest.
set -u
cd "$(dirname "$0")/.."
out=${1:?give the folder to write to}
python=${PYTHON:-python3}
roms=${ROMS:-homeward 2048 libbet tobu shocklobster snake PostBot rex-runner totp-gb}
sizes=${SIZES:-1024 4096 8192 16384}
mkdir -p "$out"

# A test that is skipped shows nothing: without the shared ROMs there is no session.
"$python" -c 'from benchmarks.workload import find_rom; find_rom("2048")' || exit 1
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv
status=0
"$python" -m pytest -m gpu tests/gpu -rs --junitxml="$out/gpu_tests.xml" || status=1
# shellcheck disable=SC2086  # the lists are meant to split
"$python" benchmarks/env_sps.py --device cuda:0 --rom $roms --num-envs $sizes \
  --warmup "${WARMUP:-40}" --steps "${STEPS:-20}" --repeat "${REPEAT:-3}" --out "$out/env_sps.json" || status=1
exit $status
