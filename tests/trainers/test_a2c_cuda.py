"""Streaming A2C on a GPU: no host synchronisation in a round; streams, groups and graphs change no result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from cleanrl_style import a2c_overlap, a2c_streaming
from cleanrl_style.a2c_overlap import Agent, Args, play_round, td_losses
from gbxcule_puffer.commandline import as_words
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.trainers.blocks import Group, Replayed, unsettled
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.meters import Stopwatch
from tests.support.envs import Task, make_test_task
from tests.support.training_runs import merged

ROUNDS, SETTLED = 26, 22  # of 4 steps


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"), device="cuda")


@pytest.fixture(autouse=True)
def reproducible() -> Any:
    """cuDNN and cuBLAS choose kernels that give the same bits each time."""
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    yield
    torch.backends.cudnn.deterministic = False


def play_rounds(
    task: Task, device: str, groups: int = 2, recurrent: str = "none", overlap: bool = True, graph: bool = False
) -> dict[str, torch.Tensor]:
    """What ROUNDS rounds with an optimizer step after each leave behind. After SETTLED of them, in which the first
    trial of launch shapes ends and a graph is recorded, a round that makes the host wait for the GPU is an error."""
    args = Args(env_groups=groups, recurrent=recurrent, overlap=overlap)  # pyright: ignore[reportArgumentType]
    options = {**task.kwargs, "device": device, "io": "torch", "max_steps": 9, "log_interval": 2**62}
    with torch.cuda.stream(torch.cuda.Stream(device)):
        envs = [GBxCuLEEnv(**options, num_envs=64, seed=seed) for seed in range(groups)]
        torch.manual_seed(1)
        model = Agent(shades_layout(1, 72, 80), 8, recurrent == "gru").to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for env in envs:
            env.reset()
        members = [Group(env, model.state_size, overlap) for env in envs]
        sums, coef = torch.zeros(5, device=device), torch.full((), 0.02, device=device)

        def work() -> None:
            play_round(model, members, td_losses, args, coef, sums, Stopwatch(torch.device(device), False))

        recorded = Replayed(work, unsettled=partial(unsettled, envs))
        try:
            for number in range(ROUNDS):
                if number < SETTLED:
                    torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("error" if number >= SETTLED else "default")
                (recorded if graph else work)()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert not graph or recorded.graph is not None
        torch.cuda.synchronize()
        state = {f"model.{name}": tensor.clone() for name, tensor in model.state_dict().items()}
        state["sums"] = sums.clone()
        for i, member in enumerate(members):
            state |= {f"obs{i}": member.env.observations.clone(), f"memory{i}": member.memory.clone()}
            state[f"rewards{i}"] = member.env.rewards.clone()
            assert member.env.emulator is not None
            state[f"machines{i}"] = torch.as_tensor(member.env.emulator.state_hash().astype("int64"))
    return state


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], exact: bool = True) -> None:
    for name, tensor in one.items():
        if exact:
            assert torch.equal(tensor, other[name]), name
        else:
            torch.testing.assert_close(tensor, other[name], rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.gpu
@pytest.mark.parametrize("recurrent", ["none", "gru"])
def test_groups_on_streams_of_their_own_change_nothing(task: Task, cuda_device: str, recurrent: str) -> None:
    side_by_side = play_rounds(task, cuda_device, recurrent=recurrent, overlap=True)
    assert_same(side_by_side, play_rounds(task, cuda_device, recurrent=recurrent, overlap=False))
    assert side_by_side["sums"].isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("recurrent", ["none", "gru"])
def test_a_graph_changes_nothing(task: Task, cuda_device: str, recurrent: str, groups: int) -> None:
    eager = play_rounds(task, cuda_device, groups, recurrent)
    assert_same(eager, play_rounds(task, cuda_device, groups, recurrent, graph=True))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (a2c_streaming, {}),
        (a2c_streaming, {"bf16": True, "cuda_graph": True, "update_every": 4}),
        (a2c_overlap, {"env_groups": 2, "cuda_graph": True}),
        (a2c_overlap, {"env_groups": 2, "compile": True, "cuda_graph": True}),
        (a2c_overlap, {"bf16": True, "recurrent": "gru", "cuda_graph": True, "env_groups": 2}),
    ],
    ids=lambda part: part.EXP_NAME if isinstance(part, ModuleType) else "+".join(part) or "plain",
)
def test_it_learns_and_resumes(
    task: Task, cuda_device: str, tmp_path: Path, script: ModuleType, flags: dict[str, Any]
) -> None:
    """HOMEWARD's first steps with 256 Game Boys: the return rises; a resumed run goes on from its step."""
    options: dict[str, Any] = {**task.kwargs, "num_envs": 256, "max_steps": 64, "lr": 5e-4, "device": cuda_device}
    options |= {"total_env_steps": 102_400, "eval_every_steps": 102_400, "eval_episodes": 8, "eval_envs": 8}
    options |= {
        "eval_device": cuda_device,
        "stop_at_success": 2.0,
        "run_dir": str(tmp_path),
        "log_interval": 64,
        **flags,
    }
    assert script.main(as_words(options)) == 0
    metrics = merged(tmp_path)
    assert {"charts/SPS", "time/env", "time/infer", "time/learn", "env/dist_p50", "env/action_hist/NOOP"} <= set(
        metrics
    )
    assert metrics["losses/entropy"] < 2.07, "the policy has moved from uniform, ln 8"
    checkpoint = tmp_path / "checkpoint.pt"
    assert read_checkpoint(checkpoint)["counters"]["global_step"] == 102_400
    assert script.main(["--resume", str(tmp_path), "--total-env-steps", "120000"]) == 0
    assert read_checkpoint(checkpoint)["counters"]["global_step"] >= 120_000


@pytest.mark.gpu
def test_a_graph_is_recorded_again_after_a_trial(cuda_device: str) -> None:
    """While steps may still change their shape, nothing is recorded; what was recorded before is given up."""
    with torch.cuda.stream(torch.cuda.Stream(cuda_device)):
        total, graphs, under_way = torch.zeros((), device=cuda_device), [], [False]

        def add() -> None:
            total.add_(1)

        work = Replayed(add, warm_up=1, unsettled=lambda: under_way[0])
        for under_way[0] in (False, False, True, True, False, False, True, False):
            work()
            graphs.append(work.graph)
        assert total.item() == 8
    assert [graph is None for graph in graphs] == [True, False, True, True, False, False, True, False]
    assert graphs[4] is graphs[5] and len({id(graph) for graph in graphs if graph}) == 3
