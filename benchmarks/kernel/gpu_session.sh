#!/usr/bin/env bash
# Everything that this project shows on one NVIDIA GPU, in parts: its GPU tests, its speed beside PyBoy on all cores, what
# a step's parts cost, agents trained from nothing.
#
#   benchmarks/kernel/gpu_session.sh OUT_FOLDER [PART ...]      (default: tests memcheck bench many train)
#
# Parts: tests, memcheck, autotune, bench (beside PyBoy), corpus (59 games beside PyBoy), color (games for both models, as
# each of them, beside PyBoy), micro (small programs, all of a step, beside PyBoy), many (other numbers of envs), stages
# (parts of a step, resets),
# exploration (and other options), sps (the trainer's variants), two (GPUs), train, ppo, dqn, curriculum,
# from_the_first (without one), whole (all stages in one episode, by the agents of these two).
#
# Variables: CHECKED is the number of ROMs of memcheck; ROMS and SIZES pick what is measured, WARMUP STEPS REPEAT how long, SEEDS the runs of
# a trainer, FLAGS what else its command has; DEVICE is cuda or, to try a part, cpu; PYTHON names the interpreter;
# GBXCULE_SHARED the folder of shared ROMs (default: ../shared, then .shared); GBXCULE_GIT_SHA the commit, where the copy
# on the GPU machine has no repository. Records are written one by one: what a time limit cuts off is only the rest.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:?give the folder to write to}
shift
parts=${*:-tests memcheck bench many train}
device=${DEVICE:-cuda}
python=${PYTHON:-python3}
names=${ROMS:-homeward 2048 libbet tobu snake}
mkdir -p "$out"

# A test that is skipped shows nothing: without the shared ROMs there is no session, but for the parts that need none.
# shellcheck disable=SC2086  # the lists are meant to split
[ "$parts" = memcheck ] \
  || roms=$("$python" -c 'import sys; from benchmarks.workload import find_rom; print(*map(find_rom, sys.argv[1:]))' $names) \
  || exit 1
[ "$device" = cpu ] || nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv
status=0

bench() {  # with pictures, exactly as docs/performance.md has it
  # shellcheck disable=SC2086
  measure --stage obs_only --rom $roms --max-mem-delta 0 "$@"
}

measure() {
  "$python" -m gbxcule_puffer bench gbxcule --device "$device" --warmup "${WARMUP:-100}" --steps "${STEPS:-10}" \
    --repeat "${REPEAT:-3}" "$@" || status=1
}

train() {  # a script, the name of its runs, its flags; each seed's run is a folder of its own
  local script=$1 name=$2
  shift 2
  for seed in ${SEEDS:-1}; do
    # shellcheck disable=SC2086
    "$python" "cleanrl_style/$script.py" --env gbxcule --device "$device" --seed "$seed" --run-dir "$out/$name$seed" "$@" \
      ${FLAGS:-} || status=1
  done
}

train_stages() {  # all three stages; four pictures tell an agent who has just arrived from one who is to go on
  # shellcheck disable=SC2046
  train ppo_lite "$@" --stages roms/homeward/stages.json --stack-k 4 --num-envs 1024 --num-steps 16 \
    --num-minibatches 32 --update-epochs 3 --entropy-coef 0.02 --stagger --bf16 --reuse-values \
    $([ "$device" = cpu ] || echo --cuda-graph) --total-env-steps "${TOTAL:-48000000}" --eval-every-steps 250000 \
    --eval-envs 192 --eval-episodes 192 --checkpoint-every 24000000 --media-every 1000000000
}

for part in $parts; do
  case $part in
  tests)  # files side by side where pytest-xdist is there: most of them keep only a part of the GPU busy
    side_by_side=$("$python" -c 'import xdist; print("-n 4 --dist loadfile")' 2>/dev/null)
    # shellcheck disable=SC2086
    "$python" -m pytest -m gpu tests -rfEs --durations=10 $side_by_side --junitxml="$out/gpu_tests.xml" || status=1
    ;;
  memcheck)  # some random ROMs (CHECKED=50) with every memory access checked
    compute-sanitizer --tool memcheck --error-exitcode 9 "$python" -m tests.hostile.roms --device cuda --roms "${CHECKED:-2}" \
      --envs 33 --frames 8 >"$out/memcheck.txt" 2>&1 || status=1
    tail -n 3 "$out/memcheck.txt"
    ;;
  bench) bench --vs pyboy_puffer_vec --num-envs "${SIZES:-16384}" --out "$out/bench" ;;
  corpus)  # as docs/bench.md has it
    "$python" -m gbxcule_puffer bench --suite corpus --stage obs_only --device "$device" --num-envs "${SIZES:-16384}" \
      --warmup "${WARMUP:-24}" --steps "${STEPS:-8}" --repeat "${REPEAT:-3}" --out "$out/corpus" || status=1
    ;;
  color)
    dual="144p-test-suite airaki big2small corrib75 deep-scan gb-corp gb-pda-2 gb-pda gb-wordyl gbccardgame gbcirviewer"
    names=${ROMS:-$dual gbcjkit gbcpdc gbcshell rorecon tuff unstoppable-knight}
    # shellcheck disable=SC2086
    roms=$("$python" -c 'import sys; from benchmarks.workload import find_rom; print(*map(find_rom, sys.argv[1:]))' $names) || exit 1
    for model in dmg cgb; do
      WARMUP=${WARMUP:-24} bench --model "$model" --vs pyboy_puffer_vec --num-envs "${SIZES:-16384}" --out "$out/color_$model"
    done
    ;;
  micro)
    measure --suite micro --stage full_step --vs pyboy_puffer_vec --num-envs "${MICRO:-1024,4096,16384,65536,131072}" \
      --out "$out/micro"
    ;;
  many) bench --num-envs "${MANY:-1024,4096,65536,131072}" --out "$out/many" ;;
  autotune) "$python" -m gbxcule_puffer bench --autotune --device "$device" --num-envs "${SIZES:-8192,16384,65536}" || status=1 ;;
  stages)
    for stage in emulate_only reward_only obs_only full_step; do
      measure --stage "$stage" --num-envs "${SIZES:-16384}" --out "$out/$stage"
    done
    measure --reset-every 0,1,8 --num-envs "${SIZES:-16384}" --out "$out/resets"
    ;;
  exploration)
    "$python" -m benchmarks.training.option_cost --device "$device" --num-envs "${SIZES:-16384}" --out "$out/option_cost.json" \
      || status=1
    ;;
  sps)
    # shellcheck disable=SC2086
    "$python" -m benchmarks.training.training_sps --device "$device" --num-envs ${SIZES:-8192 16384} --run-dir "$out/sps" \
      --out "$out/training_sps.json" || status=1
    ;;
  two)  # the same on two GPUs, and their test
    "$python" -m torch.distributed.run --nproc_per_node=2 -m benchmarks.training.training_sps --device cuda --num-envs 16384 \
      --variants plain overlap --run-dir "$out/two" --out "$out/training_sps_two.json" || status=1
    "$python" -m pytest -m gpu tests/trainers/test_learners_cuda.py -k two || status=1
    ;;
  train) train a2c_streaming a2c ;;
  ppo) train ppo_lite ppo ;;
  dqn) train dqn_nstep dqn ;;
  curriculum)  # HOMEWARD's three stages from nothing
    train_stages curriculum --curriculum progress --archive-slots 32768 --archive-share 0.8 --archive-steps 64 \
      --visit-key pixels
    ;;
  from_the_first) train_stages from_the_first --curriculum first --chain ;;
  whole)
    for run in "$out"/curriculum? "$out"/from_the_first?; do
      [ ! -e "$run" ] || "$python" cleanrl_style/evaluate.py "$run/checkpoint.pt" --chain --episodes 400 --num-envs 400 \
        --device "$device" --json "$run/whole.json" || status=1
    done
    ;;
  *)
    echo "no part '$part'" >&2
    exit 2
    ;;
  esac
done
exit $status
