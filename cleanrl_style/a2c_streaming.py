"""Streaming A2C: one TD(0) loss a step, from pixels, without a rollout buffer. Run it with --help to see the flags.

On several GPUs: torchrun --nproc_per_node=N cleanrl_style/a2c_streaming.py ...
"""

from __future__ import annotations

import copy
import itertools
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

# Before torch: its idle threads must not spin on the cores that the emulator uses; on a busy machine that costs 10x.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import nn

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers import flags
from gbxcule_puffer.trainers.checkpoints import load_weights, rng_state, save_checkpoint, set_rng_state, to_host
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import Policy, assess, evaluate, lowest_success, random_policy
from gbxcule_puffer.trainers.graphs import Replayed
from gbxcule_puffer.trainers.media import record_media
from gbxcule_puffer.trainers.returns import td_target
from gbxcule_puffer.trainers.run import Stopwatch, env_state, exit_code, open_run, report
from gbxcule_puffer.trainers.runlog import RunLog, merge_infos

EXP_NAME = Path(__file__).stem
# None in Args means: by device.
CPU = {"num_envs": 64, "total_env_steps": 2_000_000, "eval_every_steps": 50_000, "media_every": 100_000}
GPU = {"num_envs": 8192, "total_env_steps": 100_000_000, "eval_every_steps": 4_000_000, "media_every": 20_000_000}
SMOKE = {"num_envs": 8, "total_env_steps": 512, "eval_every_steps": 256, "eval_episodes": 2, "eval_envs": 2}
SMOKE |= {"log_interval": 16, "checkpoint_every": 128, "media_every": 256, "max_steps": 16}
LOSSES = ("policy_loss", "value_loss", "entropy", "value", "grad_norm")
EVERY = ("total_env_steps", "eval_every_steps", "log_interval", "checkpoint_every", "media_every")
# What a resumed run may change; everything else has to be as in the checkpoint.
FREE_ON_RESUME = (*flags.FREE_ON_RESUME, *EVERY, "compile", "cuda_graph", "overlap")


@dataclass
class Args(flags.TaskFlags):
    num_envs: int | None = None
    """Game Boys in parallel, of each process (default: 64 on the CPU, 8192 on a GPU)"""
    env_groups: int = 1
    """parts that the Game Boys are split into: one part's run while the others' losses are computed"""
    overlap: bool = True
    """on a GPU, run each group on a CUDA stream of its own; --no-overlap gives the same results, one after the other"""
    lr: float = 1e-4
    """learning rate"""
    gamma: float = 0.99
    """discount factor"""
    value_coef: float = 0.5
    """weight of the value loss"""
    entropy_coef: float = 0.02
    """weight of the entropy bonus"""
    entropy_end: float | None = None
    """weight of the entropy bonus after --entropy-steps, reached in a straight line (default: it stays)"""
    entropy_steps: int = 1_000_000
    """steps over all environments until the weight is --entropy-end"""
    grad_clip: float = 0.5
    """maximum norm of the gradient"""
    update_every: int = 4
    """environment steps whose gradients are summed into one optimizer step"""
    recurrent: Literal["none", "gru"] = "none"
    """gru: a memory of 128 numbers behind the CNN; its gradient reaches back through --update-every steps"""
    compile: bool = False
    """torch.compile of the model and the loss"""
    cuda_graph: bool = False
    """acting, stepping and the losses of --update-every steps as one CUDA graph"""
    bf16: bool = False
    """run the model in bfloat16 where torch.autocast does"""
    total_env_steps: int | None = None
    """steps over all environments and processes, at most (default: 2e6 on the CPU, 1e8 on a GPU)"""
    eval_every_steps: int | None = None
    """steps between two evaluations (default: 5e4 on the CPU, 4e6 on a GPU)"""
    log_interval: int = 128
    """environment steps between two records of metrics"""
    checkpoint_every: int | None = None
    """steps between two checkpoints (default: as --eval-every-steps)"""
    media_every: int | None = None
    """steps between two sheets of pictures and GIFs of an episode (default: 1e5 on the CPU, 2e7 on a GPU)"""


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class PixelActorCriticCNN(nn.Module):
    """Two strided convolutions on shades / 3, a hidden layer, a GRU if asked for, and a policy and a value head."""

    def __init__(self, shape: tuple[int, int, int], num_actions: int, gru: bool = False, bf16: bool = False) -> None:
        super().__init__()
        trunk = [
            nn.PixelUnshuffle(4),  # 4x4 blocks as channels: with it 2x2 is 8x8 with stride 4, and faster
            layer_init(nn.Conv2d(16 * shape[0], 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.ReLU(),
            nn.Flatten(),
        ]
        features = nn.Sequential(*trunk)(torch.zeros(1, *shape)).shape[1]
        self.trunk = nn.Sequential(*trunk, layer_init(nn.Linear(features, 256)), nn.ReLU())
        self.gru = nn.GRUCell(256, 128) if gru else None
        self.state_size, self.bf16 = 128 if gru else 0, bf16
        self.policy = layer_init(nn.Linear(128 if gru else 256, num_actions), 0.01)
        self.value = layer_init(nn.Linear(128 if gru else 256, 1), 1.0)

    def forward(self, obs: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits (batch, num_actions), values (batch,) and the next state (batch, state_size) of uint8 shades (batch,
        stack_k, rows, columns) and the state before; state_size is 0 without a GRU."""
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.bf16):
            hidden = self.trunk(obs.float() / 3)
            if self.gru is not None:
                hidden = state = self.gru(hidden, state)
            return self.policy(hidden).float(), self.value(hidden).float().squeeze(1), state.float()


def sample(logits: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """One action a row by the Gumbel trick: no host synchronisation, and no probabilities that could be invalid."""
    return (logits - torch.empty_like(logits).exponential_(generator=generator).log()).argmax(1)


def td_losses(
    logits: torch.Tensor, value: torch.Tensor, actions: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(policy loss, value loss, entropy) of one step; the advantage is the TD(0) error."""
    logprobs = logits.log_softmax(1)
    advantage = target - value.detach()
    policy_loss = -(advantage * logprobs.gather(1, actions[:, None]).squeeze(1)).mean()
    return policy_loss, 0.5 * (target - value).square().mean(), -(logprobs.exp() * logprobs).sum(1).mean()


class Group:
    """A share of the Game Boys: on a GPU they run on a stream of their own, beside the model's work for the others."""

    def __init__(self, env: Any, state_size: int, overlap: bool) -> None:
        self.env, self.device = env, env.device
        self.state = torch.zeros((env.num_envs, state_size), device=env.device)  # the GRU's, where a round begins
        self.stream = torch.cuda.Stream(env.device) if overlap and env.device.type == "cuda" else None
        self.infos: list[dict[str, float]] = []

    def begin_step(self, actions: torch.Tensor) -> None:
        """Presses the buttons once they are known; `actions` are held until `end_step`, when they have been read."""
        self.actions = actions
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream) if self.stream else nullcontext():
            _, self.rewards, self.terminals, _, infos = self.env.step(actions)
        self.infos += infos

    def end_step(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(rewards, terminals, final observation) of the step begun last, copied: the next step overwrites them."""
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
        return self.rewards.clone(), self.terminals.clone(), self.env.final_observation.clone()

    def take_infos(self) -> list[dict[str, float]]:
        """The episodes' statistics since the last call; the only place where the host waits for the device."""
        infos, self.infos = self.infos or [self.env.read_infos()], []
        return infos


def collect(groups: Sequence[Group], model: Any, losses: Any, args: Args, coef: Any, sums: Any, clock: Any) -> None:
    """update_every steps of all groups and the gradients of their losses, which are added to the model's.

    The next step begins before the losses of the last one are computed, so that the Game Boys run meanwhile. All the
    model's work is in one order with the same weights: streams do not change a result. `coef` is the entropy's weight
    and `sums` the sums of LOSSES, both on the device, where they keep their place.
    """
    share = 1 / (args.update_every * len(groups))
    acted: list[Any] = []  # (logits, value, actions, memory after them) of each group
    through_time = torch.zeros((), device=sums.device)  # losses whose gradient the GRU carries back
    for step in range(args.update_every + 1):
        before, acted, outcomes = acted, [], []
        for number, group in enumerate(groups):
            state = group.state.clone()
            if step:
                outcomes.append(group.end_step())
                state = before[number][3] * ~group.env.final_mask[:, None]
                clock.mark("time/env")
            if step == args.update_every:
                group.state.copy_(state.detach())
                continue
            # A copy: the backward pass may read it after the Game Boys have drawn over the original.
            logits, value, after = model(group.env.observations.clone(), state)
            actions = sample(logits.detach())
            acted.append((logits, value, actions, after))
            clock.mark("time/infer")
            group.begin_step(actions)
            clock.mark("time/env")
        for (logits, value, actions, after), outcome in zip(before, outcomes, strict=True):
            rewards, terminals, final_observation = outcome
            # Where the action led, also in envs that have begun a new episode meanwhile: a truncated episode is
            # bootstrapped from it, a terminal one from zero.
            with torch.no_grad():
                target = td_target(rewards, model(final_observation, after.detach())[1], terminals, args.gamma)
            policy_loss, value_loss, entropy = losses(logits, value, actions, target)
            loss = (policy_loss + args.value_coef * value_loss - coef * entropy) * share
            if args.recurrent == "none":
                loss.backward()
            else:
                through_time = through_time + loss
            sums[:4] += torch.stack([policy_loss, value_loss, entropy, value.mean()]).detach() * share
        clock.mark("time/learn")
    if args.recurrent != "none":
        through_time.backward()
        clock.mark("time/learn")


def play(model: Any, env: Any, greedy: bool, seed: int) -> Policy:
    """A copy of the model as a policy in `env`: its likeliest actions, or samples from a random stream of its own."""
    model = copy.deepcopy(model).to(env.device)
    generator = torch.Generator(env.device).manual_seed(seed)
    states = [torch.zeros((env.num_envs, model.state_size), device=env.device)]

    def policy(obs: torch.Tensor, starts: torch.Tensor | None = None) -> torch.Tensor:
        new = env.final_mask if starts is None else starts
        logits, _, after = model(obs, states.pop() * ~new[:, None])
        states.append(after)
        return logits.argmax(1) if greedy else sample(logits, generator)

    return policy


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    gru = checkpoint["args"]["recurrent"] == "gru"
    model = PixelActorCriticCNN(env.single_observation_space.shape, int(env.single_action_space.n), gru)
    load_weights(model, checkpoint["model"])
    return play(model, env, greedy, seed)


def entropy_weight(args: Args, step: int) -> float:
    """A straight line from --entropy-coef to --entropy-end over --entropy-steps."""
    end = args.entropy_coef if args.entropy_end is None else args.entropy_end
    return args.entropy_coef + (end - args.entropy_coef) * min(1.0, step / args.entropy_steps)


def settle(args: Args, world: World) -> None:
    """Fills in and checks the flags. Raises: ConfigError or DeviceError."""
    flags.settle_flags(args, {"cpu": CPU, "cuda": GPU}, world, SMOKE)
    args.checkpoint_every = args.checkpoint_every or args.eval_every_steps
    flags.check_at_least_one(args, ("env_groups", "update_every", "entropy_steps", *EVERY))
    if args.cuda_graph and (args.device == "cpu" or args.env.startswith("pyboy")):
        raise ConfigError("--cuda-graph needs an env on a GPU: give --device cuda and --env gbxcule, or leave it out")


def saved_state(model: nn.Module, optimizer: Any, groups: list[Group], sums: Any, world: World) -> dict[str, Any]:
    """What a checkpoint holds beside flags and counters; every process calls it, the first one's result counts."""
    parts = [{"env": env_state(group.env), "state": group.state} for group in groups]
    processes = world.gather(to_host({"groups": parts, "sums": sums, "rng": rng_state(sums.device)}))
    whole = {"exp_name": EXP_NAME, "env_config": groups[0].env.config, "processes": processes}
    return whole | {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def restore(saved: dict[str, Any], model: nn.Module, optimizer: Any, groups: list[Group], sums: Any, rank: int) -> None:
    """Goes back to where `saved_state` was taken."""
    load_weights(model, saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    own = saved["processes"][rank]
    for group, part in zip(groups, own["groups"], strict=True):
        group.env.load_state_dict(part["env"])
        if part["env"].get("machines", True) is not None:  # else new episodes begin
            group.state.copy_(part["state"])
    sums.copy_(own["sums"])
    set_rng_state(own["rng"], sums.device)


def train(args: Args, world: World) -> None:
    """One run, from the flags to its report."""
    # A graph cannot hold what the host reads: with one, the env never reads its infos by itself.
    per_log = max(1, args.log_interval // args.update_every)
    interval = 2**62 if args.cuda_graph else per_log * args.update_every
    run = open_run(args, EXP_NAME, world, FREE_ON_RESUME, args.env_groups, info_mode="full", log_interval=interval)
    env, device = run.envs[0], run.envs[0].device
    torch.manual_seed(args.seed)
    shape, num_actions = env.single_observation_space.shape, env.single_action_space.n
    model = PixelActorCriticCNN(shape, num_actions, args.recurrent == "gru", args.bf16)
    model = model.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    world.share_weights(model)
    if world.rank:
        torch.manual_seed(args.seed + world.rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1e-5)
    groups = [Group(env, model.state_size, args.overlap) for env in run.envs]
    for group in groups:
        group.env.reset()
    sums, coef = torch.zeros(len(LOSSES), device=device), torch.zeros((), device=device)
    counters = dict.fromkeys(("global_step", "rounds", "logged", "evaluations", "passed", "checkpoints", "media"), 0)
    total, resumed_at = args.total_env_steps or 0, None
    if run.resumed:
        counters = run.resumed["counters"]
        resumed_at = counters["global_step"]
        if resumed_at >= total:
            raise ConfigError(f"checkpoint {args.resume} is at step {resumed_at}: give more --total-env-steps")
        restore(run.resumed, model, optimizer, groups, sums, world.rank)
    log = RunLog(run.run_dir, args, processes=world.size, resumed_at=resumed_at) if world.rank == 0 else None

    # The one spot where a round is compiled and recorded.
    forward, losses = (torch.compile(model), torch.compile(td_losses)) if args.compile else (model, td_losses)
    work = partial(collect, groups, forward, losses, args, coef, sums)
    recorded = Replayed(partial(work, Stopwatch(device, False))) if args.cuda_graph else None

    round_steps = args.update_every * len(groups) * env.num_envs * world.size
    start = logged_at = time.time()
    step, result, counted = 0, {}, counters["rounds"]
    for rounds in itertools.count(counters["rounds"] + 1):
        step, timed = rounds * round_steps, rounds % per_log == 0
        clock = Stopwatch(device, timed)
        coef.fill_(entropy_weight(args, step))
        if recorded and not timed:
            recorded()
        else:
            work(clock)
        world.average_gradients(model)
        sums[4] += nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)  # a recorded round adds to the same tensors
        clock.mark("time/learn")

        if timed:
            world.average(sums)
            means = (sums / (rounds - counters["logged"])).tolist()
            infos = world.gather([info for group in groups for info in group.take_infos()])
            if log:
                metrics = {f"losses/{name}": mean for name, mean in zip(LOSSES, means, strict=True)}
                metrics |= {name: seconds / args.update_every for name, seconds in clock.seconds.items()}
                metrics["charts/SPS"] = (rounds - counted) * round_steps / (time.time() - logged_at)
                metrics["charts/entropy_coef"] = entropy_weight(args, step)
                log.record(step, metrics | merge_infos(list(itertools.chain(*infos))))
            sums.zero_()
            counters["logged"], counted, logged_at = rounds, rounds, time.time()
        if log:
            log.progress(step, total, time.time() - start)

        last, began, seed = step >= total, time.time(), args.seed + step
        counters |= {"global_step": step, "rounds": rounds}
        if last or step // args.eval_every_steps > counters["evaluations"]:
            if log:
                sampled, greedy = (play(model, run.eval_env, greedy, seed) for greedy in (False, True))
                result = assess(sampled, greedy, run.eval_env, args.eval_episodes, seed)
                log.record(step, result)
            result = world.tell(result)
            passed = counters["passed"] + 1 if lowest_success(result) >= args.stop_at_success else 0
            counters |= {"evaluations": step // args.eval_every_steps, "passed": passed}
            last = last or passed == 2
        if log and (last or step // args.media_every > counters["media"]):
            counters["media"] = step // args.media_every
            record_media(log, step, env.observations, play(model, run.eval_env, False, seed), run.eval_env, seed)
        if last or step // args.checkpoint_every > counters["checkpoints"]:
            counters["checkpoints"] = step // args.checkpoint_every
            state = saved_state(model, optimizer, groups, sums, world) | {"counters": counters}
            if log:
                log.check_weights(step, model)
                save_checkpoint(run.run_dir / "checkpoint.pt", state, args, args.keep_checkpoints)
        logged_at += time.time() - began  # SPS is the training's
        if last:
            break
    if log:
        seconds = time.time() - start
        log.progress(step, total, seconds, last=True)
        random = evaluate(random_policy(env, args.seed), env, args.eval_episodes, args.seed)["success_rate"]
        log.record(step, {"eval/random_success_rate": random})
        log.close()
        report(run.run_dir, step, result, random, seconds)


def start(args: Args) -> None:
    """Settles the flags, meets the other processes and trains."""
    world = World.from_environment()
    settle(args, world)
    if world.rank == 0:
        print("preparing (the first start compiles the emulator, which takes up to a minute)", flush=True)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    world.join(args.device)
    # Not the default stream, on which no graph can be recorded; on a CPU there are no streams.
    with torch.cuda.stream(torch.cuda.Stream(args.device)) if args.device != "cpu" else nullcontext():
        train(args, world)
    world.leave()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    args = flags.parse_flags(Args, EXP_NAME, __doc__, argv)
    return exit_code(EXP_NAME, partial(start, args))


if __name__ == "__main__":
    sys.exit(main())
