"""pyboy_puffer_vec: each backend gives what gbxcule and pyboy_puffer_single give, element by element; no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pufferlib.vector
import pytest
import torch

from gbxcule_puffer import env_creator
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.baselines.pyboy_workers import PyBoyWorker, Split
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ActionError, ConfigError, DeviceError, GoalError, StateError
from tests.support.browser import PATIENCE
from tests.support.envs import NUM_ACTIONS, Task, host, make_test_task, random_actions

STEPS = 60
NUM_ENVS = 4
STICKY = {"sticky_actions": 0.25, "start_waits": 2, "max_steps": 29, "k_consecutive": 1, "log_interval": 30}
History = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="module")
def actions() -> np.ndarray:
    return random_actions(STEPS, NUM_ENVS, seed=3)  # of which one reaches the goal


@pytest.fixture(scope="module")
def expected(task: Task, actions: np.ndarray) -> tuple[History, list[dict[str, float]]]:
    """What `gbxcule` gives."""
    env = env_creator("gbxcule")(num_envs=NUM_ENVS, **task.kwargs, **STICKY, info_mode="full")
    result = play_in_steps(env, actions)
    env.close()
    return result


def play_in_steps(env: Any, actions: np.ndarray) -> tuple[History, list[dict[str, float]]]:
    """All that `reset` and each `step` give, [step, env, ...], and the infos."""

    def take() -> tuple[np.ndarray, ...]:
        parts = (env.observations, env.rewards, env.terminals, env.truncations, env.final_observation, env.final_mask)
        return tuple(host(part) for part in parts)

    env.reset(seed=3)
    rows, infos = [take()], []
    for row in actions:
        given = torch.from_numpy(row) if getattr(env, "io", "numpy") == "torch" else row
        answer = env.step(given)
        for part, name in zip(answer[:4], ("observations", "rewards", "terminals", "truncations"), strict=True):
            np.testing.assert_array_equal(host(part), host(getattr(env, name)))
        infos += answer[4]
        rows.append(take())
    return named(rows), infos


def named(rows: list[tuple[np.ndarray, ...]]) -> History:
    names = ("observations", "rewards", "terminals", "truncations", "final_observation", "final_mask")
    return {name: np.stack(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def play_in_batches(env: Any, actions: np.ndarray) -> History:
    """The same by async_reset, recv and send, put together by env ids."""
    env.async_reset(seed=3)
    rows: list[list[tuple[np.ndarray, ...]]] = [[] for _ in range(NUM_ENVS)]
    while min(len(row) for row in rows) <= len(actions):
        *answer, _, ids, _ = env.recv()
        for place, index in enumerate(ids):
            final = env.final_observation[index], env.final_mask[index]
            rows[index].append(tuple(host(part) for part in (*(part[place] for part in answer), *final)))
        steps = [len(rows[index]) - 1 for index in ids]
        sent = np.array([actions[min(step, len(actions) - 1), i] for step, i in zip(steps, ids, strict=True)])
        env.send(torch.from_numpy(sent) if env.io == "torch" else sent)
    columns = [named(row[: len(actions) + 1]) for row in rows]
    return {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}


def assert_equal(found: History, expected: History) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_the_reference_has_every_kind_of_step(expected: Any) -> None:
    history, infos = expected
    assert history["terminals"].any() and history["truncations"].any()
    ended = history["final_mask"]
    assert np.array_equal(ended, history["terminals"] | history["truncations"])
    assert (history["final_observation"][ended] != history["observations"][ended]).any()
    assert len(infos) == STEPS // STICKY["log_interval"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pyboy_puffer_single", {"io": "torch"}),
        ("pyboy_puffer_vec", {"backend": "serial", "num_workers": 2}),
        ("pyboy_puffer_vec", {"backend": "mp_sync", "num_workers": 2, "io": "torch"}),
        ("pyboy_puffer_vec", {"backend": "mp_async", "num_workers": 2}),
    ],
    ids=lambda value: value.get("backend", "") if isinstance(value, dict) else value,
)
def test_equals_gbxcule(name: str, options: dict, task: Task, actions: np.ndarray, expected: Any) -> None:
    env = env_creator(name)(num_envs=NUM_ENVS, **task.kwargs, **STICKY, info_mode="full", **options)
    try:
        if options.get("backend") == "mp_async":
            assert env.agents_per_batch == NUM_ENVS // 2
            assert_equal(play_in_batches(env, actions), expected[0])
        else:
            history, infos = play_in_steps(env, actions)
            assert_equal(history, expected[0])
            assert infos == expected[1]
    finally:
        env.close()


def test_a_saved_state_continues_in_other_processes(task: Task, tmp_path: Path) -> None:
    rows = torch.from_numpy(random_actions(24, NUM_ENVS))
    make = env_creator("pyboy_puffer_vec")
    options = {**task.kwargs, "max_steps": 9, "log_interval": 4, "num_workers": 2, "io": "torch"}
    first, second = (make(num_envs=NUM_ENVS, **options) for _ in range(2))
    try:
        first.reset(seed=1)
        for row in rows[:11]:
            first.step(row)
        torch.save(first.state_dict(), tmp_path / "state.pt")
        second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        assert torch.equal(first.observations, second.observations)
        for row in rows[11:]:
            for one, other in zip(first.step(row), second.step(row), strict=True):
                assert one == other if isinstance(one, list) else torch.equal(one, other)
    finally:
        first.close()
        second.close()


def test_states_of_something_else_are_refused(task: Task) -> None:
    options = {**task.kwargs, "backend": "serial"}
    env, single = env_creator("pyboy_puffer_vec")(num_envs=2, **options), GBxCuLEEnv(**task.kwargs, num_envs=2)
    try:
        env.reset()
        single.reset()
        state = env.state_dict()
        cut = {name: tensor[:1] for name, tensor in state["tensors"].items()}
        for other, message in (
            ({}, "not a saved env state"),
            (single.state_dict(), "not a saved env state"),
            ({**state, "workers": state["workers"] * 2}, "has 2 workers, not 1"),
            ({**state, "workers": [{}]}, "not a saved env state"),
            ({**state, "tensors": cut}, "does not fit in age"),
            ({**state, "tensors": {}}, "does not fit in age"),
        ):
            with pytest.raises(StateError, match=message):
                env.load_state_dict(other)
    finally:
        env.close()


def test_chosen_envs_begin_anew_in_their_workers(task: Task) -> None:
    """As in gbxcule: the others play on, and what the chosen ones left counts for no statistics."""
    options = {**task.kwargs, "num_envs": NUM_ENVS, "max_steps": 6, "log_interval": 6}
    envs = [env_creator("gbxcule")(**options), env_creator("pyboy_puffer_vec")(**options, num_workers=2)]
    mask = np.array([True, False, False, True])
    try:
        with pytest.raises(ConfigError, match="call reset first"):
            envs[1].reset_envs(mask)
        for env in envs:
            env.reset(seed=1)
        for number, row in enumerate(random_actions(9, NUM_ENVS)):
            if number == 3:
                np.testing.assert_array_equal(*(env.reset_envs(mask) for env in envs))
                np.testing.assert_array_equal(*(env.final_observation for env in envs))
            for part, other in zip(*(env.step(row) for env in envs), strict=True):
                np.testing.assert_array_equal(part, other)
    finally:
        envs[1].close()


def test_pufferlib_vectorises_it_again(task: Task) -> None:
    """A given buf is filled in place, and the env that PufferLib makes for its spaces starts no process."""
    kwargs = {**task.kwargs, "num_envs": 2, "num_workers": 2}
    before = len(psutil.Process().children(recursive=True))
    outer: Any = pufferlib.vector.make(env_creator("pyboy_puffer_vec"), num_envs=2, backend="Serial", env_kwargs=kwargs)
    assert len(psutil.Process().children(recursive=True)) == before
    inner = env_creator("gbxcule")(**task.kwargs, num_envs=2)
    try:
        outer.reset(seed=0)
        inner.reset(seed=0)
        for row in random_actions(3, 2):
            outer.step(np.tile(row, 2))
            inner.step(row)
        np.testing.assert_array_equal(outer.observations[:2], inner.observations)
        np.testing.assert_array_equal(outer.rewards[2:], inner.rewards)
    finally:
        outer.close()
        inner.close()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"backend": "threads"}, ConfigError, "backend 'threads' is unknown: give one of serial, mp_sync, mp_async"),
        ({"num_workers": 3}, ConfigError, "num_workers 3 must divide num_envs 4"),
        ({"batch_size": 2}, ConfigError, "batch_size 2: mp_sync answers for all 4 envs"),
        ({"backend": "mp_async", "num_workers": 2, "batch_size": 1}, ConfigError, "multiple of the 2 envs"),
        ({"device": "cuda"}, DeviceError, "CPU only"),
        ({"io": "jax"}, ConfigError, "io 'jax' is unknown"),
        ({"frames_per_step": 20}, GoalError, "frames_per_step"),
        ({"archive_slots": 4}, ConfigError, "archive_slots 4: PyBoy cannot"),
        ({"visit_bonus": 0.5, "num_workers": 2}, ConfigError, "give num_workers=1"),
        ({"max_steps": 0}, ConfigError, "max_steps 0 must be from 1"),
    ],
)
def test_bad_options_are_named_before_a_process_starts(task: Task, options: dict, error: type, message: str) -> None:
    before = len(psutil.Process().children())
    with pytest.raises(error, match=message):
        env_creator("pyboy_puffer_vec")(**task.kwargs, num_envs=4, **options)
    assert len(psutil.Process().children()) == before


def test_bad_actions_and_order_are_named(task: Task) -> None:
    env = env_creator("pyboy_puffer_vec")(**task.kwargs, num_envs=2, num_workers=1)
    try:
        with pytest.raises(ConfigError, match="call reset first"):
            env.step(np.zeros(2, np.int32))
        with pytest.raises(StateError, match="call reset first"):
            env.state_dict()
        env.reset()
        with pytest.raises(ActionError, match="shape"):
            env.step(np.zeros(3, np.int32))
        with pytest.raises(ActionError, match="out of range"):
            env.step(np.full(2, NUM_ACTIONS))
        env.step(np.zeros(2, np.int32))
        env.send(np.zeros(2, np.int32))
        with pytest.raises(ConfigError, match="twice without recv"):
            env.send(np.zeros(2, np.int32))
    finally:
        env.close()


def test_splits() -> None:
    assert Split.make("mp_async", 64, 16, None).batch_size == 32
    assert Split.make("mp_async", 12, 4, 3).workers_per_batch == 1
    assert Split.make("serial", 6, None, None).num_workers == 1
    assert Split.make("mp_async", 3, 3, None).batch_size == 1


def test_a_dead_worker_is_an_error_and_leaves_no_process(task: Task) -> None:
    env = env_creator("pyboy_puffer_vec")(**task.kwargs, num_envs=2, num_workers=2)
    env.reset()
    workers = [psutil.Process(pid) for pid in env.worker_pids()]
    os.kill(workers[-1].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker 1 has died \(exit code -9\)"):
        env.step(np.zeros(2, np.int32))
    env.close()
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]


def test_a_program_that_never_closes_its_env_ends(task: Task) -> None:
    code = (
        "import sys; from gbxcule_puffer import env_creator\n"
        "env = env_creator('pyboy_puffer_vec')(sys.argv[1], num_envs=2, num_workers=1); env.reset(); print('done')"
    )
    command = [sys.executable, "-c", code, task.kwargs["rom"]]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_a_script_that_each_worker_would_run_is_refused(task: Task, tmp_path: Path) -> None:
    """Python 3.14 has a fork server by default."""
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing; multiprocessing.set_start_method('forkserver', force=True)\n"
        "import sys; from gbxcule_puffer import env_creator\n"
        "env_creator('pyboy_puffer_vec')(sys.argv[1], num_envs=2, num_workers=1).reset()"
    )
    command = [sys.executable, str(script), task.kwargs["rom"]]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1
    assert "put what it does under" in result.stderr.splitlines()[-1], result.stderr


def test_workers_end_with_a_killed_parent(task: Task) -> None:
    code = (
        "import sys, psutil; from gbxcule_puffer import env_creator\n"
        "env = env_creator('pyboy_puffer_vec')(sys.argv[1], num_envs=2, num_workers=1, io='torch'); env.reset()\n"
        "print(*[child.pid for child in psutil.Process().children()], flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, task.kwargs["rom"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 1
        parent.kill()
    deadline = time.monotonic() + PATIENCE
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)


def test_answers_of_newer_releases_are_understood(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """pufferlib-core 3.0.23 gives one value more before the infos; `make test-newest` runs with it."""
    env: Any = env_creator("pyboy_puffer_vec")(num_envs=2, num_workers=2, backend="serial", io="torch", **task.kwargs)
    recv = env._workers.vec.recv

    def newer() -> tuple[Any, ...]:
        answer = recv()
        return (*answer[:4], None, *answer[4:])

    monkeypatch.setattr(env._workers.vec, "recv", newer)
    env.reset(seed=3)
    env.send(torch.zeros(2, dtype=torch.int64))
    assert [int(index) for index in env.recv()[5]] == [0, 1]
    env.close()


class LateWorker(PyBoyWorker):
    """Lowers its flag long behind its answer, as on a busy machine."""

    def notify(self) -> None:
        super().notify()
        time.sleep(0.1)


class LateVec(PyBoyPufferVec):
    worker_class = LateWorker


def test_calls_behind_each_other_are_all_answered(task: Task) -> None:
    env = LateVec(task.kwargs["rom"], 2, num_workers=2)
    env.reset()
    answers: list[Any] = []
    calls = threading.Thread(target=lambda: answers.extend(env.call("may_succeed") for _ in range(3)), daemon=True)
    calls.start()
    calls.join(PATIENCE)
    assert len(answers) == 3
    env.close()
