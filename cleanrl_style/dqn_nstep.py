"""Double DQN with n-step returns from a replay on the device. Run it with --help to see the flags."""

from __future__ import annotations

import copy
import itertools
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

# Before torch: its idle threads must not spin on the cores that the emulator uses; on a busy machine that costs 10x.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch import Tensor, nn
from torch.nn import functional

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers import flags
from gbxcule_puffer.trainers.checkpoints import load_weights, rng_state, save_checkpoint, set_rng_state, to_host
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.evaluation import Policy, assess, evaluate, lowest_success, random_policy
from gbxcule_puffer.trainers.media import record_media
from gbxcule_puffer.trainers.memory import describe_memory
from gbxcule_puffer.trainers.replay import Replay, Sequences, Transitions
from gbxcule_puffer.trainers.returns import n_step_returns
from gbxcule_puffer.trainers.run import Stopwatch, env_state, exit_code, open_run, report
from gbxcule_puffer.trainers.runlog import RunLog, merge_infos

EXP_NAME = Path(__file__).stem
HIDDEN = 256
# None in Args means: by device.
CPU = {"num_envs": 32, "buffer_size": 100_000, "batch_size": 128, "learning_starts": 2_000, "eps_steps": 40_000}
CPU |= {"total_env_steps": 1_000_000, "eval_every_steps": 16_384, "media_every": 131_072, "keep_replay": True}
GPU = {"num_envs": 256, "buffer_size": 2_000_000, "batch_size": 512, "learning_starts": 50_000, "eps_steps": 500_000}
GPU |= {"total_env_steps": 20_000_000, "eval_every_steps": 524_288, "media_every": 4_194_304, "keep_replay": False}
SMOKE = {"num_envs": 4, "buffer_size": 512, "batch_size": 32, "learning_starts": 64, "total_env_steps": 512}
SMOKE |= {"max_steps": 16, "log_interval": 16, "eval_every_steps": 256, "eval_envs": 2, "eval_episodes": 2}
SMOKE |= {"checkpoint_every": 256, "media_every": 512}
LOSSES = ("td_loss", "td_error", "value", "grad_norm")
EVERY = ("eval_every_steps", "checkpoint_every", "media_every")
# What a resumed run may change; everything else has to be as in the checkpoint.
FREE_ON_RESUME = (*flags.FREE_ON_RESUME, *EVERY, "total_env_steps", "log_interval", "compile", "keep_replay")


@dataclass
class Args(flags.TaskFlags):
    num_envs: int | None = None
    """Game Boys in parallel (default: 32 on the CPU, 256 on a GPU)"""
    vec: Literal["batched", "serial"] = "batched"
    """serial: act and write the replay one environment at a time, for debugging"""
    recurrent: Literal["none", "gru", "lstm"] = "none"
    """a memory of 256 numbers behind the CNN, learned on sequences"""
    sequence_length: int = 16
    """steps of a sequence that are learned from, with --recurrent"""
    burn_in: int = 8
    """steps before them that only fill the memory, with --recurrent"""
    lr: float = 5e-4
    """learning rate"""
    gamma: float = 0.99
    """discount factor"""
    n_step: int = 5
    """rewards of a target"""
    buffer_size: int | None = None
    """transitions in the replay (default: 100,000 on the CPU, 2,000,000 on a GPU)"""
    batch_size: int | None = None
    """transitions of an update (default: 128 on the CPU, 512 on a GPU)"""
    learning_starts: int | None = None
    """transitions in the replay before the first update (default: 2,000 on the CPU, 50,000 on a GPU)"""
    train_every: int = 4
    """steps of all environments between updates"""
    target_every: int = 50
    """updates between two copies of the network into the target network"""
    priority_alpha: float = 0.0
    """above 0: draw transitions in proportion to their TD error to the power of this"""
    priority_beta: float = 0.6
    """how much of the bias of --priority-alpha the weights of the losses correct"""
    eps_start: float = 1.0
    """share of random actions at first"""
    eps_end: float = 0.05
    """share of random actions in the end"""
    eps_steps: int | None = None
    """steps over all environments until then (default: 40,000 on the CPU, 500,000 on a GPU)"""
    grad_clip: float = 10.0
    """maximum norm of the gradient"""
    compile: bool = False
    """torch.compile of acting and of the loss"""
    keep_replay: bool | None = None
    """checkpoints hold the replay too, so that --resume is exact; else it fills up anew (default: on the CPU)"""
    total_env_steps: int | None = None
    """steps over all environments, at most (default: 1e6 on the CPU, 2e7 on a GPU)"""
    log_interval: int = 128
    """environment steps between two records of metrics"""
    eval_every_steps: int | None = None
    """steps between two evaluations (default: 16,384 on the CPU, 524,288 on a GPU)"""
    checkpoint_every: int | None = None
    """steps between two checkpoints (default: as --eval-every-steps)"""
    media_every: int | None = None
    """steps between two sheets of pictures and GIFs of an episode (default: 131,072 on the CPU, 4,194,304 on a GPU)"""


def layer_init(layer: Any, std: float = 2**0.5) -> Any:
    """Orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, std)
    nn.init.zeros_(layer.bias)
    return layer


class QNetwork(nn.Module):
    """Two strided convolutions on shades / 3 (8x8, stride 4 as 2x2 over 4x4 blocks, which is faster), a hidden layer,
    a memory cell if there is one, and the actions' values. The cell's state is one tensor (batch, state_size), zeros
    at an episode's start; without a cell its size is 0.
    """

    def __init__(self, shape: tuple[int, int, int], num_actions: int, recurrent: str) -> None:
        super().__init__()
        convolutions = layer_init(nn.Conv2d(16 * shape[0], 16, 2)), layer_init(nn.Conv2d(16, 32, 4, stride=2))
        trunk = [nn.PixelUnshuffle(4), convolutions[0], nn.ReLU(), convolutions[1], nn.ReLU(), nn.Flatten()]
        features = nn.Sequential(*trunk)(torch.zeros(1, *shape)).shape[1]
        self.trunk = nn.Sequential(*trunk, layer_init(nn.Linear(features, HIDDEN)), nn.ReLU())
        self.recurrent, self.state_size = recurrent, {"none": 0, "gru": HIDDEN, "lstm": 2 * HIDDEN}[recurrent]
        self.cell = {"none": nn.Identity, "gru": nn.GRUCell, "lstm": nn.LSTMCell}[recurrent](HIDDEN, HIDDEN)
        self.head = layer_init(nn.Linear(HIDDEN, num_actions), 0.01)

    def forward(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(values (batch, num_actions), next state) of uint8 shades (batch, stack_k, rows, columns)."""
        hidden, state = self.remember(self.trunk(obs.float() / 3), state)
        return self.head(hidden), state

    def remember(self, features: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        if self.recurrent == "none":
            return features, state
        if self.recurrent == "gru":
            return (self.cell(features, state),) * 2
        both = self.cell(features, state.chunk(2, 1))
        return both[0], torch.cat(both, 1)

    def unroll(self, obs: Tensor, ended: Tensor, burn_in: int) -> Tensor:
        """Values (length, batch, num_actions) along sequences, from an empty state, which starts anew after an end.

        The first `burn_in` steps only fill the state: no gradient goes through them.
        """
        features = self.trunk(obs.flatten(0, 1).float() / 3).unflatten(0, obs.shape[:2])
        state, outputs = features.new_zeros(obs.shape[1], self.state_size), []
        for step in range(len(obs)):
            state = state.detach() if step == burn_in else state
            hidden, state = self.remember(features[step], state)
            outputs.append(hidden)
            state = state * ~ended[step][:, None]
        return self.head(torch.stack(outputs))


@torch.no_grad()
def act(
    model: Any, obs: Tensor, state: Tensor, epsilon: float, serial: bool = False, generator: Any = None
) -> tuple[Tensor, Tensor]:
    """Epsilon-greedy (actions, next state) of all envs by one call of the model, or by one for each (`serial`)."""
    rows = [slice(env, env + 1) for env in range(len(obs))] if serial else [slice(None)]
    parts = [model(obs[row], state[row]) for row in rows]
    values, state = (torch.cat(part) for part in zip(*parts, strict=True)) if serial else parts[0]
    anything = torch.randint(values.shape[1], (len(obs),), generator=generator, device=obs.device)
    explores = torch.rand(len(obs), generator=generator, device=obs.device) < epsilon
    return torch.where(explores, anything, values.argmax(1)), state


def double_dqn_loss(
    values: Tensor, actions: Tensor, returns: Tensor, discounts: Tensor, following: Sequence[Tensor], weights: Tensor
) -> tuple[Tensor, Tensor]:
    """(loss, TD errors): of the `following` values, the online network's pick the next action, the target's judge it.

    Values are (..., num_actions), the rest (...). A weight of 0 leaves a transition out of the mean.
    """
    best = following[0].argmax(-1, keepdim=True)
    target = returns + discounts * following[1].gather(-1, best).squeeze(-1)
    chosen = values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    losses = functional.smooth_l1_loss(chosen, target.detach(), reduction="none")
    return (weights * losses).sum() / (weights > 0).sum().clamp(min=1), (target - chosen).detach()


def transition_loss(model: QNetwork, target: QNetwork, batch: Transitions) -> tuple[Tensor, ...]:
    """(loss, TD errors, mean value) of n-step transitions."""
    empty = torch.zeros(len(batch.obs), 0, device=batch.obs.device)
    values = model(batch.obs, empty)[0]
    with torch.no_grad():
        following = model(batch.next_obs, empty)[0], target(batch.next_obs, empty)[0]
    parts = (batch.actions, batch.returns, batch.discounts, following, batch.weights)
    return *double_dqn_loss(values, *parts), values.detach().mean()


def sequence_loss(
    model: QNetwork, target: QNetwork, batch: Sequences, burn_in: int, n_step: int, gamma: float
) -> tuple[Tensor, ...]:
    """(loss, TD errors, mean value) of every step of the sequences between the burn-in and the last n_step."""
    ended = batch.terminals | batch.truncations
    values = model.unroll(batch.obs, ended, burn_in)
    with torch.no_grad():
        target_values = target.unroll(batch.obs, ended, burn_in)
    part = slice(burn_in, -1)
    returns, discounts, lengths = n_step_returns(
        batch.rewards[part], batch.terminals[part], batch.truncations[part], n_step, gamma
    )
    learned = slice(burn_in, burn_in + len(returns))
    later = torch.arange(burn_in, burn_in + len(returns), device=lengths.device)[:, None] + lengths
    later = later.unsqueeze(-1).expand(*later.shape, values.shape[-1])
    following = values.detach().gather(0, later), target_values.gather(0, later)
    weights = (lengths > 0).float()
    parts = (batch.actions[learned], returns, discounts, following, weights)
    return *double_dqn_loss(values[learned], *parts), values[learned].detach().mean()


def learn(
    model: QNetwork, target: QNetwork, optimizer: Any, replay: Replay, args: Any, loss_of: Any, clock: Stopwatch
) -> Tensor:
    """One update from a batch of the replay; returns LOSSES, on the device."""
    if args.recurrent == "none":
        batch: Any = replay.draw(args.batch_size, args.priority_beta)
    else:
        batch = replay.draw_sequences(max(1, args.batch_size // args.sequence_length), steps_drawn(args))
    clock.mark("time/draw")
    loss, errors, value = loss_of(model, target, batch)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    if args.priority_alpha:
        replay.update_priorities(batch.index, errors, batch.weights)
    clock.mark("time/learn")
    return torch.stack([loss.detach(), errors.abs().mean(), value, norm])


def steps_drawn(args: Any) -> int:
    """Consecutive steps that an update takes: a transition's, or a sequence's with the burn-in and what lies ahead."""
    return args.n_step + (1 if args.recurrent == "none" else args.burn_in + args.sequence_length)


def play(model: Any, env: Any, epsilon: float, seed: int) -> Policy:
    """A copy of the model as a policy for `env`, with `epsilon` random actions from its own random stream."""
    model = copy.deepcopy(model).to(env.device)
    generator = torch.Generator(env.device).manual_seed(seed)
    states = [torch.zeros((env.num_envs, model.state_size), device=env.device)]

    def policy(obs: Tensor, starts: Tensor | None = None) -> Tensor:
        before = states.pop() * ~(env.final_mask if starts is None else starts)[:, None]
        actions, after = act(model, obs, before, epsilon, generator=generator)
        states.append(after)
        return actions

    return policy


def load_policy(checkpoint: dict[str, Any], env: Any, seed: int, greedy: bool = False) -> Policy:
    """The policy of a checkpoint of this script in `env`, for evaluate.py and `puffer record`."""
    flags, shape = checkpoint["args"], env.single_observation_space.shape
    model = QNetwork(shape, int(env.single_action_space.n), flags["recurrent"])
    load_weights(model, checkpoint["model"])
    return play(model, env, 0.0 if greedy else flags["eps_end"], seed)


def settle(args: Any, world: World) -> None:
    """Fills in and checks the flags. Raises: ConfigError or DeviceError."""
    if world.size > 1:
        raise ConfigError("dqn_nstep runs in one process: start it without torchrun")
    flags.settle_flags(args, {"cpu": CPU, "cuda": GPU}, world, SMOKE)
    args.checkpoint_every = args.eval_every_steps if args.checkpoint_every is None else args.checkpoint_every
    counts = ("num_envs", "n_step", "batch_size", "train_every", "target_every", "eps_steps", "sequence_length")
    flags.check_at_least_one(args, (*counts, *EVERY, "buffer_size", "total_env_steps", "log_interval"))
    if args.recurrent != "none" and args.priority_alpha:
        raise ConfigError("--priority-alpha weighs transitions, not sequences: leave --recurrent out, or give 0")
    least = max(args.learning_starts, args.num_envs * (steps_drawn(args) + 2 * args.stack_k))
    if args.buffer_size < least:
        raise ConfigError(f"--buffer-size {args.buffer_size} must be at least {least} with these flags")


def train(args: Any) -> None:
    """One run, from the flags to its report."""
    per_log = max(1, args.log_interval // args.train_every)
    options = {"info_mode": "full", "log_interval": per_log * args.train_every}
    run = open_run(args, EXP_NAME, World(), FREE_ON_RESUME, **options)
    env, device, shape = run.envs[0], run.envs[0].device, run.envs[0].single_observation_space.shape
    torch.manual_seed(args.seed)
    model = QNetwork(shape, int(env.single_action_space.n), args.recurrent).to(device)
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, eps=1.5e-4)
    sequences = partial(sequence_loss, burn_in=args.burn_in, n_step=args.n_step, gamma=args.gamma)
    loss_of: Any = transition_loss if args.recurrent == "none" else sequences
    forward, loss_of = (torch.compile(model), torch.compile(loss_of)) if args.compile else (model, loss_of)
    sizes = {"n_step": args.n_step, "gamma": args.gamma, "alpha": args.priority_alpha}
    replay = Replay(args.buffer_size // env.num_envs, env.num_envs, shape, device, **sizes)
    env.reset()
    obs = torch.zeros_like(env.observations)  # of the step before: the next one overwrites the env's
    memory, sums = torch.zeros((env.num_envs, model.state_size), device=device), torch.zeros(len(LOSSES), device=device)
    counters = dict.fromkeys(("global_step", "rounds", "updates", "logged", "logged_updates", "passed"), 0)
    total, resumed_at = args.total_env_steps, None
    if run.resumed:
        counters, own = run.resumed["counters"], run.resumed["processes"][0]
        resumed_at = counters["global_step"]
        if resumed_at >= total:
            raise ConfigError(f"checkpoint {args.resume} is at step {resumed_at}: give more --total-env-steps")
        for name, part in {"model": model, "target": target, "optimizer": optimizer}.items():
            load_weights(part, run.resumed[name])
        env.load_state_dict(own["env"])
        sums.copy_(own["sums"])
        continues = own["env"].get("machines", True) is not None  # without, all envs begin new episodes
        memory.copy_(own["memory"] * continues)
        if own["replay"] is not None:
            replay.load_state_dict(own["replay"], continues)
        set_rng_state(own["rng"], device)
    log = RunLog(run.run_dir, args, resumed_at=resumed_at)

    steps = args.train_every * env.num_envs
    start = logged_at = time.time()
    infos: list[dict[str, float]] = []
    profile: dict[str, float] = {}
    for rounds in itertools.count(counters["rounds"] + 1):
        step, timed = rounds * steps, rounds % per_log == 0
        clock = Stopwatch(device, timed)
        epsilon = args.eps_start + (args.eps_end - args.eps_start) * min(1.0, (step - steps) / args.eps_steps)
        for _ in range(args.train_every):
            obs.copy_(env.observations)
            actions, after = act(forward, obs, memory, epsilon, args.vec == "serial")
            clock.mark("time/infer")
            _, rewards, terminals, truncations, step_infos = env.step(actions)
            infos += step_infos
            clock.mark("time/env")
            replay.add(obs, actions, rewards, terminals, truncations, serial=args.vec == "serial")
            torch.mul(after, ~(terminals | truncations)[:, None], out=memory)
            clock.mark("time/replay")
        if replay.count * env.num_envs >= args.learning_starts and replay.has(steps_drawn(args)):
            sums += learn(model, target, optimizer, replay, args, loss_of, clock)
            counters["updates"] += 1
            if counters["updates"] % args.target_every == 0:
                target.load_state_dict(model.state_dict())
        counters |= {"global_step": step, "rounds": rounds}
        if timed:
            means = (sums / max(1, counters["updates"] - counters["logged_updates"])).tolist()
            metrics = {f"losses/{name}": mean for name, mean in zip(LOSSES, means, strict=True)} | clock.seconds
            metrics["charts/SPS"] = (step - counters["logged"]) / (time.time() - logged_at)
            metrics |= {"charts/epsilon": epsilon, "charts/updates": counters["updates"]}
            log.record(step, metrics | merge_infos(infos))
            profile = {name: profile.get(name, 0.0) + value for name, value in clock.seconds.items()}
            counters |= {"logged": step, "logged_updates": counters["updates"]}
            sums.zero_()
            infos, logged_at = [], time.time()
        log.progress(step, total, time.time() - start)

        began, last, seed = time.time(), step >= total, args.seed + step
        due = {name for name in EVERY if step // getattr(args, name) > (step - steps) // getattr(args, name)}
        if last or "eval_every_steps" in due:
            sampled, greedy = (play(model, run.eval_env, share, seed) for share in (args.eps_end, 0.0))
            result = assess(sampled, greedy, run.eval_env, args.eval_episodes, seed)
            log.record(step, result)
            counters["passed"] = counters["passed"] + 1 if lowest_success(result) >= args.stop_at_success else 0
            last = last or counters["passed"] == 2
        if last or "media_every" in due:
            policy = play(model, run.eval_env, args.eps_end, seed)
            record_media(log, step, env.observations, policy, run.eval_env, seed)
        if last or "checkpoint_every" in due:
            log.check_weights(step, model)
            own = {"env": env_state(env), "sums": sums, "memory": memory, "rng": rng_state(device)}
            own["replay"] = replay.state_dict() if args.keep_replay else None
            state = {"exp_name": EXP_NAME, "counters": counters, "env_config": env.config, "processes": [to_host(own)]}
            state |= {"model": model.state_dict(), "target": target.state_dict(), "optimizer": optimizer.state_dict()}
            save_checkpoint(run.run_dir / "checkpoint.pt", state, args, args.keep_checkpoints)
        logged_at += time.time() - began  # SPS is the training's
        if last:
            break
    seconds, policy = time.time() - start, random_policy(run.eval_env, args.seed)
    log.progress(step, total, seconds, last=True)
    random = evaluate(policy, run.eval_env, args.eval_episodes, args.seed)["success_rate"]
    log.record(step, {"eval/random_success_rate": random})
    log.close()
    report(run.run_dir, step, result, random, seconds)
    shares = sorted(((value / sum(profile.values()), name) for name, value in profile.items()), reverse=True)
    print("a step's time  " + ", ".join(f"{name.removeprefix('time/')} {share:.0%}" for share, name in shares))


def start(args: Any) -> None:
    """Settles the flags and trains."""
    settle(args, World.from_environment())
    shape = (args.stack_k, 20, 20) if args.env == "toy" else (args.stack_k, 72, 80)
    size = Replay.bytes_needed(args.buffer_size // args.num_envs, args.num_envs, shape, args.priority_alpha)
    print(describe_memory({"replay": size}, torch.device(args.device), "lower --buffer-size"))
    print("preparing (the first start compiles the emulator, which takes up to a minute)", flush=True)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    train(args)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one training; bad input is one line on stderr and exit code 2."""
    args = flags.parse_flags(Args, EXP_NAME, __doc__, argv)
    return exit_code(EXP_NAME, partial(start, args))


if __name__ == "__main__":
    sys.exit(main())
