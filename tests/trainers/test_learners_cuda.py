"""PPO, PQN and DQN on a GPU: no host synchronisation in their loops, the same replay as on the CPU, whole runs."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import dqn_nstep, ppo_lite, ppo_recurrent, pqn, pqn_recurrent
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks import Adam, Novelty, Replayed, ReturnScale
from gbxcule_puffer.trainers.blocks.replay import Replay
from gbxcule_puffer.trainers.distributed import World
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.training_runs import last_value, read, words

pytestmark = pytest.mark.gpu


@contextmanager
def no_synchronisation() -> Iterator[None]:
    """Whatever makes the host wait for the device is an error."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def toy(num_envs: int, device: str, **options: Any) -> ToyEnv:
    env = ToyEnv(num_envs, device, info_mode="none", **options)
    env.reset(seed=1)
    return env


def test_the_toy_is_the_same_on_the_gpu(cuda_device: str) -> None:
    gpu, cpu = toy(64, cuda_device, stack_k=2), toy(64, "cpu", stack_k=2)
    generator = torch.Generator().manual_seed(1)
    for _ in range(60):
        actions = torch.randint(8, (64,), generator=generator)
        for part, other in zip(gpu.step(actions.to(cuda_device))[:4], cpu.step(actions)[:4], strict=True):
            assert torch.equal(part.cpu(), other)
        assert torch.equal(gpu.final_observation.cpu(), cpu.final_observation)


@pytest.mark.parametrize("rnd_coef", [0.0, 1.0])
def test_ppo_never_waits(cuda_device: str, rnd_coef: float) -> None:
    env = toy(32, cuda_device, stack_k=2)
    args = ppo_lite.Args(env="toy", num_envs=32, num_steps=16, rnd_coef=rnd_coef)
    model = ppo_lite.Agent(shades_layout(2, 20, 20), 8).to(env.device)
    optimizer = Adam(model.parameters(), lr=1e-4)
    rollout, clock = ppo_lite.empty_rollout(args, env.layout, env.device), Stopwatch(env.device, False)
    gradients = partial(ppo_lite.backward, model, optimizer, rollout, args)
    step = partial(ppo_lite.take_step, model, optimizer, args)
    scale = ReturnScale(32, args.gamma, World(), env.device)
    lr = optimizer.param_groups[0]["lr"]
    novelty = Novelty(env.layout, rollout, args.gamma, World(), env.device) if rnd_coef else None

    def iterate() -> torch.Tensor:
        ppo_lite.collect(model, env, rollout, clock)
        if novelty is not None:
            novelty.look(env.observations)
        ppo_lite.estimate(rollout, args, scale, model.value)
        losses = ppo_lite.learn(model, rollout, gradients, step, args, World(), novelty=novelty)
        lr.copy_(ppo_lite.next_lr(lr, losses[ppo_lite.LOSSES.index("approx_kl")], args))
        return losses

    iterate()
    with no_synchronisation():
        for _ in range(3):
            losses = iterate()
    assert losses.isfinite().all()


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("script", [ppo_recurrent, pqn_recurrent], ids=["ppo_recurrent", "pqn_recurrent"])
def test_a_memory_never_waits(cuda_device: str, script: Any, kind: str) -> None:
    env = toy(32, cuda_device)
    args = script.Args(env="toy", num_envs=32, num_steps=16, recurrent=kind)
    network = script.Agent if script is ppo_recurrent else script.QNetwork
    model = network(shades_layout(1, 20, 20), 8, kind).to(env.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    rollout = script.empty_rollout(args, env.layout, env.device)
    memory, clock = torch.zeros_like(rollout["memory"]), Stopwatch(env.device, False)
    own = () if script is ppo_recurrent else (torch.full((), 0.3, device=env.device),)
    gradients = partial(script.backward, model.unroll, optimizer, rollout, args)

    def iterate() -> torch.Tensor:
        script.collect(model, env, rollout, memory, *own, clock)
        if script is pqn_recurrent:
            return script.learn(model, optimizer, rollout, gradients, args, World())
        script.estimate(rollout, args, None, model.value)
        step = partial(script.take_step, model, optimizer, args)
        return script.learn(model, rollout, gradients, step, args, World())

    iterate()
    with no_synchronisation():
        for _ in range(3):
            losses = iterate()
    assert losses.isfinite().all()


def test_pqn_never_waits(cuda_device: str) -> None:
    env = toy(32, cuda_device)
    args = pqn.Args(env="toy", num_envs=32, num_steps=16)
    model = pqn.QNetwork(shades_layout(1, 20, 20), 8).to(env.device)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-4)
    rollout = pqn.empty_rollout(args, env.layout, env.device)
    clock, epsilon = Stopwatch(env.device, False), torch.full((), 0.3, device=env.device)
    gradients = partial(pqn.backward, model, optimizer, rollout, args)

    def iterate() -> torch.Tensor:
        pqn.collect(model, env, rollout, epsilon, clock)
        return pqn.learn(model, optimizer, rollout, gradients, args, World())

    iterate()
    with no_synchronisation():
        for _ in range(3):
            losses = iterate()
    assert losses.isfinite().all()


def test_recorded_gradients_are_those_of_a_batch(cuda_device: str) -> None:
    """Of a smaller last minibatch, too, which is not recorded, and after it."""
    torch.manual_seed(1)
    model = ppo_lite.Agent(shades_layout(2, 20, 20), 8).to(cuda_device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sizes = ppo_lite.Args(env="toy", num_steps=9, num_envs=15)
    rollout = ppo_lite.empty_rollout(sizes, shades_layout(2, 20, 20), torch.device(cuda_device))
    rollout["obs"].random_(4)
    for name in ("logprobs", "values", "advantages", "returns"):
        rollout[name].normal_()
    torch.cuda.synchronize()  # the stream below does not wait for this one
    of_kind = []
    for as_graph in (False, True):
        args, found = ppo_lite.Args(env="toy", cuda_graph=as_graph), []
        backward: Any = partial(ppo_lite.backward, model, optimizer, rollout, args)
        backward = Replayed(backward) if as_graph else backward
        torch.manual_seed(2)
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                for index in torch.randperm(9 * 15, device=cuda_device).chunk(4):
                    losses = backward(index)
                    gradients = [part.grad.clone() for part in model.parameters() if part.grad is not None]
                    found.append([losses.clone(), *gradients])
        assert not as_graph or backward.graph is not None
        torch.cuda.synchronize()
        of_kind.append(found)
        optimizer.zero_grad()
    assert len(of_kind[1]) == 12
    for plain, recorded in zip(*of_kind, strict=True):
        for part, other in zip(plain, recorded, strict=True):
            torch.testing.assert_close(other, part, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("script", [ppo_lite, ppo_recurrent], ids=["ppo_lite", "ppo_recurrent"])
def test_recorded_updates_learn_as_others_do(cuda_device: str, script: Any) -> None:
    """Advantages, gradients, clipping, optimizer steps, and a learning rate that changes between them."""
    device, layout = torch.device(cuda_device), shades_layout(1, 20, 20)
    of_kind = []
    for as_graph in (False, True):
        args = script.Args(env="toy", num_steps=9, num_envs=12, num_minibatches=4, cuda_graph=as_graph)
        torch.manual_seed(1)
        model = (ppo_lite.Agent(layout, 8) if script is ppo_lite else ppo_recurrent.Agent(layout, 8, "gru")).to(device)
        optimizer, scale = Adam(model.parameters(), lr=1e-3, eps=1e-5), ReturnScale(12, args.gamma, World(), device)
        rollout, lr = script.empty_rollout(args, layout, device), optimizer.param_groups[0]["lr"]
        forward = model if script is ppo_lite else model.unroll
        parts: list[Any] = [
            partial(script.backward, forward, optimizer, rollout, args),
            partial(script.take_step, model, optimizer, args),
            partial(script.estimate, rollout, args, scale, model.value),
        ]
        gradients, step, prepare = map(Replayed, parts) if as_graph else parts
        torch.cuda.synchronize()  # the stream below does not wait for this one
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(8):
                rollout["obs"].random_(4)
                rollout["actions"].random_(8)
                rollout["terminals"].bernoulli_(0.1)
                for name in ("rewards", "values", "next_values"):
                    rollout[name].normal_()
                rollout["logprobs"].fill_(-2.08)
                prepare()
                losses = script.learn(model, rollout, gradients, step, args, World())
                lr.copy_(script.next_lr(lr, losses[script.LOSSES.index("approx_kl")], args))
        torch.cuda.synchronize()
        assert not as_graph or all(part.graph is not None for part in (gradients, step, prepare))
        steps = optimizer.state[next(model.parameters())]["step"]
        of_kind.append([losses, lr, steps, scale.moments, *rollout.values(), *model.parameters()])
    assert float(of_kind[1][2]) == 8 * 2 * 4 and float(of_kind[1][1]) != pytest.approx(1e-3)
    for plain, recorded in zip(*of_kind, strict=True):
        torch.testing.assert_close(recorded, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("cuda_device")
@pytest.mark.parametrize("flags", ["", "--cuda-graph", "--cuda-graph --compile"])
@pytest.mark.parametrize(
    ("script", "own"),
    [
        pytest.param(ppo_lite, "--num-minibatches 6", id="ppo_lite"),
        pytest.param(ppo_lite, "--num-minibatches 6 --rnd-coef 0.1", id="ppo_lite --rnd-coef"),
        pytest.param(ppo_recurrent, "--num-minibatches 6", id="ppo_recurrent"),
        pytest.param(ppo_recurrent, "--num-minibatches 4 --recurrent lstm --bf16", id="ppo_recurrent --recurrent lstm"),
        pytest.param(pqn, "--num-minibatches 8 --eps-steps 8000", id="pqn"),
        pytest.param(pqn_recurrent, "--num-minibatches 8 --eps-steps 8000", id="pqn_recurrent"),
    ],
)
def test_it_learns_the_toy(script: Any, own: str, flags: str, tmp_path: Path) -> None:
    """Also where the last minibatch is smaller."""
    size = "--env toy --device cuda --num-envs 64 --num-steps 16 --max-steps 16 --lr 1e-3 --gamma 0.9"
    ends = "--total-env-steps 40960 --eval-every-steps 8192 --eval-episodes 20"
    assert script.main([*words(f"{size} {own} {ends} {flags}"), "--run-dir", str(tmp_path)]) == 0
    assert last_value(tmp_path, "eval/success_rate") >= 0.95


@pytest.mark.parametrize("recurrent", ["none", "gru", "lstm"])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_dqn_never_waits(cuda_device: str, recurrent: str, alpha: float) -> None:
    if recurrent != "none" and alpha:
        pytest.skip("priorities are of transitions, not of sequences")
    env = toy(32, cuda_device)
    flags = {"recurrent": recurrent, "burn_in": 2, "sequence_length": 4, "batch_size": 64, "priority_alpha": alpha}
    args = dqn_nstep.Args(env="toy", **flags)
    model = dqn_nstep.QNetwork(shades_layout(1, 20, 20), 8, recurrent).to(env.device)
    target, optimizer = copy.deepcopy(model), torch.optim.Adam(model.parameters(), lr=1e-4)
    replay = Replay(30, 32, shades_layout(1, 20, 20), env.device, n_step=args.n_step, alpha=alpha)
    memory, obs = torch.zeros((32, model.state_size), device=env.device), env.observations.clone()
    clock = Stopwatch(env.device, False)

    def loss_of(model: Any, target: Any, batch: Any) -> tuple[torch.Tensor, ...]:
        if recurrent == "none":
            return dqn_nstep.transition_loss(model, target, batch)
        return dqn_nstep.sequence_loss(model, target, batch, args.burn_in, args.n_step, args.gamma)

    def iterate(learns: bool) -> None:
        obs.copy_(env.observations)
        actions, after = dqn_nstep.act(model, obs, memory, 0.3)
        _, rewards, terminals, truncations, _ = env.step(actions)
        replay.add(obs, actions, rewards, terminals, truncations)
        torch.mul(after, ~(terminals | truncations)[:, None], out=memory)
        if learns:
            dqn_nstep.learn(model, target, optimizer, replay, args, loss_of, clock)
            target.load_state_dict(model.state_dict())

    for step in range(20):
        iterate(step > 15)
    with no_synchronisation():
        for _ in range(20):
            iterate(True)
    assert all(p.isfinite().all() for p in model.parameters())


def test_the_replay_is_the_same_on_the_gpu(cuda_device: str) -> None:
    env, replays = toy(8, "cpu", stack_k=3), []
    for device in ("cpu", cuda_device):
        replays.append(Replay(20, 8, shades_layout(3, 20, 20), torch.device(device), n_step=3, alpha=0.5))
    generator = torch.Generator().manual_seed(1)
    for _ in range(50):
        before, actions = env.observations.clone(), torch.randint(8, (8,), generator=generator)
        parts = (before, actions, *env.step(actions)[1:4])
        for replay in replays:
            replay.add(*(part.to(replay.device) for part in parts))  # pyright: ignore[reportArgumentType]
    one, other = (replay.state_dict() for replay in replays)
    assert all(torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name]).cpu()) for name in one)
    row, lane = torch.arange(20).repeat_interleave(8), torch.arange(8).repeat(20)
    on_gpu = replays[1].observations(row.to(cuda_device), lane.to(cuda_device))
    assert torch.equal(replays[0].observations(row, lane), on_gpu.cpu())
    batch = replays[1].sample(500, beta=0.4)
    assert (batch.weights <= 1).all() and (batch.weights > 0).any()


@pytest.mark.usefixtures("cuda_device")
@pytest.mark.parametrize("compiled", ["--no-compile", "--compile"])
@pytest.mark.parametrize("trainer", [ppo_lite, dqn_nstep], ids=["ppo_lite", "dqn_nstep"])
def test_they_learn_the_toy(trainer: Any, compiled: str, tmp_path: Path) -> None:
    flags = words("--env toy --device cuda --num-envs 64 --max-steps 16 --lr 1e-3 --gamma 0.9 --eval-episodes 20")
    flags += words("--total-env-steps 40960 --eval-every-steps 8192 --media-every 100000")
    if trainer is ppo_lite:
        flags += words("--num-steps 32 --log-interval 2")
    else:
        flags += words("--eps-steps 8000 --learning-starts 1000 --target-every 50 --batch-size 64 --train-every 1")
        flags += words("--buffer-size 20000 --log-interval 64")
    assert trainer.main([*flags, compiled, "--run-dir", str(tmp_path)]) == 0
    assert last_value(tmp_path, "eval/success_rate") >= 0.95
    # On a GPU a resumed run begins with new episodes and, for DQN, with an empty replay.
    more = [*words("--stop-at-success 2 --keep-checkpoints 1 --resume"), str(tmp_path)]
    begun = read(tmp_path / "checkpoint.pt")["counters"]["global_step"]
    if begun < 40960:
        assert trainer.main(more) == 0
        assert last_value(tmp_path, "eval/success_rate") >= 0.8


@pytest.mark.usefixtures("cuda_device")
def test_two_gpus_learn_together(tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    script = Path(ppo_lite.__file__)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    flags = words("--env toy --device cuda --num-envs 64 --num-steps 32 --total-env-steps 8192 --eval-every-steps 4096")
    subprocess.run([*command, *flags, "--run-dir", str(tmp_path)], check=True, cwd=script.parents[1])
    assert read(tmp_path / "checkpoint.pt")["counters"]["global_step"] == 8192
