"""Actions whose steps have a number of frames of their own: in both kernels and with PyBoy to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.apps.record.film import Camera
from gbxcule_puffer.apps.verify.verify import differences
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ActionError
from tests.support.envs import STAGE, assert_same, assert_same_in_a_graph, play

ROM = STAGE.parent.parent / "homeward.gb"
CODEC = "NOOP:60,UP,DOWN:17,LEFT:4,RIGHT:1,A:8"
FRAMES = np.array([60, 24, 17, 4, 1, 8])
N, STEPS = 6, 14


def rows(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, len(FRAMES), (STEPS, N), dtype=np.int32)


@pytest.mark.parametrize(("kernel", "release_after"), [("interpreter", 24), ("datapath", 8)])
def test_machines_are_pyboys(kernel: str, release_after: int) -> None:
    """Released after 8 frames or at the step's end; a step without frames of its own has frames_per_step again."""
    schedule: dict[str, Any] = {"frames_per_step": 24, "release_after_frames": release_after, "screen": "full"}
    own, oracle = Emulator(ROM, N, kernel=kernel, **schedule), PyBoyEmulator(ROM, N, **schedule)
    buttons = torch.tensor([0, 4, 8, 2, 1, 16], dtype=torch.uint8)
    for step, row in enumerate(rows(3)):
        frames = None if step % 4 == 3 else torch.from_numpy(FRAMES[row]).int()
        for emulator in (own, oracle):
            emulator.step(buttons[row], frames)
        wanted = torch.full((N,), 24, dtype=torch.int32) if frames is None else frames
        assert torch.equal(own.frames, wanted) and torch.equal(oracle.frames, wanted)
        assert torch.equal(own.screen, oracle.screen)
        for env in range(N if step in (3, 6, STEPS - 1) else 0):  # PyBoy's whole state is slow to read
            assert not differences(oracle.save(env), own.save(env), own.cartridge), (step, env, row[env])
    oracle.close()


@pytest.mark.parametrize(
    "options", [{}, {"until": "C0A4==0,C0A3&FC==0", "sticky_actions": 0.3, "release_after_frames": 3}]
)
def test_an_env_is_pyboys(options: dict[str, Any]) -> None:
    kwargs = {"rom": str(ROM), "num_envs": N, "action_codec": CODEC, "max_steps": 9, "log_interval": STEPS, **options}
    own, others = GBxCuLEEnv(**kwargs), (PyBoyPufferSingle(**kwargs), PyBoyPufferVec(**kwargs, backend="serial"))
    mine = play(own, rows())
    lengths = own.frames.copy()
    for other in others:
        assert_same(mine, play(other, rows()))
        np.testing.assert_array_equal(other.frames, lengths)
        assert other.infos == own.infos and 1 < own.infos[0]["step_frames"] < 60
        other.close()
    if not options:
        np.testing.assert_array_equal(lengths, FRAMES[rows()[-1]])
        assert own.infos[0]["step_frames"] == pytest.approx(FRAMES[rows()].mean())
    assert own.config["action_codec"] == CODEC


def test_films_show_what_each_step_ended_with() -> None:
    env = GBxCuLEEnv(ROM, num_envs=N, action_codec=CODEC, io="torch", max_steps=1000)
    env.reset()
    camera = Camera(env)
    for row in torch.from_numpy(rows(5)).long():
        pictures = camera.shoot(row)
        env.step(row)
        np.testing.assert_array_equal(pictures[:, ::2, ::2], env.emulator.screen.numpy())


@pytest.mark.parametrize("kernel", ["interpreter", "datapath"])
def test_buttons_may_be_left_to_the_next_step(kernel: str) -> None:
    """As `puffer play` has an agent's steps, a frame at a time."""
    emulator = Emulator(ROM, kernel=kernel)
    emulator.frames_per_step, emulator.release_after_frames = 1, 2
    for frames, pressed in ((None, 16), (torch.ones(1, dtype=torch.int32), 0)):
        emulator.step(torch.tensor([16], dtype=torch.uint8), frames)
        assert emulator.registers()["buttons"] & 0xFF == pressed


def test_a_wait_is_as_long_as_its_frames() -> None:
    waits = GBxCuLEEnv(ROM, num_envs=1, action_codec="NOOP:72,A")
    steps = GBxCuLEEnv(ROM, num_envs=1)
    for env, count in ((waits, 2), (steps, 6)):
        env.reset()
        for _ in range(count):
            env.step(np.zeros(1, int))
    first, second = (env.emulator.save(0) for env in (waits, steps))
    np.testing.assert_array_equal(first.memory, second.memory)
    np.testing.assert_array_equal(waits.observations, steps.observations)
    assert first.fields()["pc"] == second.fields()["pc"]


def test_frames_that_an_emulator_refuses() -> None:
    own, oracle = Emulator(ROM, 2), PyBoyEmulator(ROM, 2)
    for emulator in (own, oracle):
        for frames in (torch.ones(2), torch.ones(3, dtype=torch.int32)):
            with pytest.raises(ActionError, match=r"frames are .*: give torch.int32 of shape \(2,\)"):
                emulator.step(torch.zeros(2, dtype=torch.uint8), frames)
        emulator.step(torch.zeros(2, dtype=torch.uint8), torch.tensor([0, -7], dtype=torch.int32))
        assert emulator.frames.tolist() == [1, 1]
    oracle.close()


@pytest.mark.gpu
def test_a_gpu_gives_the_same_from_a_graph(cuda_device: str) -> None:
    kwargs: dict[str, Any] = {"num_envs": 64, "action_codec": CODEC, "io": "torch", "info_mode": "none", "max_steps": 7}
    actions = np.random.default_rng(4).integers(0, len(FRAMES), (20, 64), dtype=np.int32)
    eager, captured = (GBxCuLEEnv(ROM, device=cuda_device, **kwargs) for _ in range(2))
    assert_same_in_a_graph(eager, captured, actions)
    cpu, gpu = GBxCuLEEnv(ROM, **kwargs), GBxCuLEEnv(ROM, device=cuda_device, **kwargs)
    for env in (cpu, gpu):
        env.reset(seed=2)
    for row in torch.from_numpy(actions).long():
        cpu.step(row)
        gpu.step(row.to(cuda_device))
        for name in ("observations", "truncations", "frames"):
            assert torch.equal(getattr(gpu, name).cpu(), getattr(cpu, name)), name
