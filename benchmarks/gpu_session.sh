#!/usr/bin/env bash
# Everything that this project shows on one NVIDIA GPU, in parts: its GPU tests, its speed beside PyBoy on all cores, an
# agent trained from nothing.
#
#   benchmarks/gpu_session.sh OUT_FOLDER [tests] [memcheck] [bench] [many] [train]      (default: all of them)
#
# Variables: ROMS and SIZES pick what is measured, WARMUP STEPS REPEAT how long; PYTHON names the interpreter;
# GBXCULE_SHARED the folder of shared ROMs (default: ../shared, then .shared); GBXCULE_GIT_SHA the commit, where the copy
# on the GPU machine has no repository. Records are written one by one: what a time limit cuts off is only the rest.
set -u
cd "$(dirname "$0")/.."
out=${1:?give the folder to write to}
shift
parts=${*:-tests memcheck bench many train}
python=${PYTHON:-python3}
names=${ROMS:-homeward 2048 libbet tobu snake}
mkdir -p "$out"

# A test that is skipped shows nothing: without the shared ROMs there is no session.
# shellcheck disable=SC2086  # the lists are meant to split
roms=$("$python" -c 'import sys; from benchmarks.workload import find_rom; print(*map(find_rom, sys.argv[1:]))' $names) \
  || exit 1
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv
status=0

bench() {  # with pictures, exactly as docs/performance.md has it
  # shellcheck disable=SC2086
  "$python" -m gbxcule_puffer bench gbxcule --device cuda --stage obs_only --rom $roms --warmup "${WARMUP:-100}" \
    --steps "${STEPS:-10}" --repeat "${REPEAT:-3}" --max-mem-delta 0 "$@" || status=1
}

for part in $parts; do
  case $part in
  tests)  # files side by side where pytest-xdist is there: most of them keep only a part of the GPU busy
    side_by_side=$("$python" -c 'import xdist; print("-n 4 --dist loadfile")' 2>/dev/null)
    # shellcheck disable=SC2086
    "$python" -m pytest -m gpu tests/gpu -rfEs --durations=10 $side_by_side --junitxml="$out/gpu_tests.xml" || status=1
    ;;
  memcheck)  # a few random ROMs with every memory access checked
    compute-sanitizer --tool memcheck --error-exitcode 9 "$python" -m tests.fuzz --device cuda --seeds 0:2 --envs 33 \
      --frames 8 >"$out/memcheck.txt" 2>&1 || status=1
    tail -n 3 "$out/memcheck.txt"
    ;;
  bench) bench --vs pyboy_puffer_vec --num-envs "${SIZES:-16384}" --out "$out/bench" ;;
  many) bench --num-envs "${MANY:-1024,4096,65536,131072}" --out "$out/many" ;;
  train)
    "$python" cleanrl_style/a2c_streaming.py --env gbxcule --run-dir "$out/a2c" || status=1
    ;;
  *)
    echo "no part '$part'" >&2
    exit 2
    ;;
  esac
done
exit $status
