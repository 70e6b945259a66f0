"""Buttons that steps hold (release_after_frames is frames_per_step): what goes on being held is not pressed anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import differences, verify
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import BUTTON_NAMES, PyBoyMachine
from gbxcule_puffer.baselines.pyboy_puffer_single import PyBoyPufferSingle
from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.protocol import EmulatorLike
from gbxcule_puffer.emulator.saves import pyboy_state
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.integrations.pyboy_api import GameBoys
from tests.support.roms import joypad_rom

START, A, B, RIGHT = 0x80, 0x10, 0x20, 0x01
COUNT = 0xC100
FRAMES = 10
HELD: dict[str, Any] = {"frames_per_step": FRAMES, "release_after_frames": FRAMES}
STEPS = 40


ROM = joypad_rom()


class Player:
    """A PyBoy whose buttons are pressed and released as by a thumb: only where what is held changes."""

    def __init__(self, rom: bytes, model: str = "dmg", state: bytes | None = None, held: int = 0) -> None:
        self.machine, self.held = PyBoyMachine(rom, model=model), held
        if state is not None:
            self.machine.load_state(state)

    def step(self, buttons: int, frames: int = FRAMES) -> None:
        pyboy: Any = self.machine.pyboy
        for bit, name in enumerate(BUTTON_NAMES):
            if (buttons ^ self.held) >> bit & 1:
                (pyboy.button_press if buttons >> bit & 1 else pyboy.button_release)(name)
        self.held = buttons
        pyboy.tick(frames, True, False)

    def save(self, emulator: EmulatorLike) -> Snapshot:
        return pyboy_state.from_bytes(self.machine.state(), emulator.cartridge, running=True)

    @property
    def count(self) -> int:
        return self.machine.pyboy.memory[COUNT]


def masks(seed: int, steps: int = STEPS) -> list[int]:
    """Buttons of each step, each kind held over several: none, one, several, some of them let go."""
    generator = np.random.default_rng(seed)
    kinds = generator.choice([0, A, START, RIGHT, A | RIGHT, A | B, 0xFF, 0x3C], steps)
    return np.repeat(kinds, generator.integers(1, 4, steps))[:steps].tolist()


def count(emulator: Any) -> int:
    return int(emulator.read_memory(0, COUNT, 1)[0])


def one(buttons: int, device: str = "cpu") -> torch.Tensor:
    return torch.tensor([buttons], dtype=torch.uint8, device=device)


KINDS: dict[str, Callable[..., Any]] = {
    "interpreter": lambda **options: Emulator(ROM, 1, kernel="interpreter", screen="full", **options),
    "datapath": lambda **options: Emulator(ROM, 1, kernel="datapath", screen="full", **options),
    "pyboy": lambda **options: PyBoyEmulator(ROM, 1, screen="full", **options),
}


CUDA = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.mark.parametrize("kind", [*KINDS, CUDA])
def test_a_button_is_pressed_once(kind: str) -> None:
    """START for three steps, A for two, START."""
    emulator = Emulator(ROM, 1, "cuda", **HELD) if kind == "cuda" else KINDS[kind](**HELD)
    seen = []
    for buttons in (START, START, START, A, A, START):
        emulator.step(one(buttons, emulator.device))
        seen.append(count(emulator))
    assert seen == [1, 1, 1, 2, 2, 3]


def test_on_hardware_too() -> None:
    """With both rows selected: a line that is low goes on being low."""
    rom = joypad_rom("AF E0 00 18 FE")
    emulator, seen = Emulator(rom, 1, accuracy="hardware", **HELD), []
    for buttons in (START, START, START, A, A, A | B, B, 0, 0, B):
        emulator.step(one(buttons))
        seen.append(count(emulator))
    assert seen == [1, 1, 1, 2, 2, 3, 3, 3, 3, 4]


@pytest.mark.parametrize("model", ["dmg", "cgb"])
@pytest.mark.parametrize("kernel", ["interpreter", "datapath", CUDA])
def test_it_is_pyboy_with_the_buttons_held(kernel: str, model: str) -> None:
    """All of the state, after steps of frames_per_step and of their own frames; another schedule presses anew."""
    options: dict[str, Any] = {"device": "cuda"} if kernel == "cuda" else {"kernel": kernel}
    options |= {"model": model, "screen": "full"}
    emulator = Emulator(ROM, 1, **options, **HELD)
    other = Emulator(ROM, 1, **options, frames_per_step=FRAMES, release_after_frames=FRAMES - 1)
    player = Player(ROM, model)
    for step, buttons in enumerate(masks(1)):
        frames = None if step % 3 else 1 + step % 7
        own = None if frames is None else torch.tensor([frames], dtype=torch.int32, device=emulator.device)
        emulator.step(one(buttons, emulator.device), own)
        other.step(one(buttons, emulator.device))
        player.step(buttons, frames or FRAMES)
        assert emulator.registers()["buttons"] == buttons
        if step % 8 == 0 or step == STEPS - 1:
            assert not differences(player.save(emulator), emulator.save(0), emulator.cartridge), step
    assert 10 < player.count == count(emulator) < count(other) > 30


@pytest.mark.parametrize("kind", ["interpreter", "datapath", "pyboy"])
def test_a_state_has_what_is_held(kind: str, tmp_path: Path) -> None:
    """As a snapshot, a file, and a state of PyBoy: the step after it presses nothing that is held."""
    source, player = KINDS[kind](**HELD), Player(ROM)
    for buttons in (START, START, A | RIGHT):
        source.step(one(buttons))
        player.step(buttons)
    snapshot = source.save(0)
    snapshot.to_file(tmp_path / "own.state")
    states = [
        snapshot,
        Snapshot.from_file(tmp_path / "own.state"),
        pyboy_state.from_bytes(pyboy_state.to_bytes(snapshot, source.cartridge), source.cartridge),
        pyboy_state.from_bytes(player.machine.state(), source.cartridge),
    ]
    for state in states:
        emulator, held = KINDS[kind](**HELD), Player(ROM, state=player.machine.state(), held=A | RIGHT)
        emulator.step(one(B))
        emulator.load(state)
        assert emulator.registers()["buttons"] == A | RIGHT
        for buttons in (A | RIGHT, A, A, 0, A):
            emulator.step(one(buttons))
            held.step(buttons)
            assert not differences(held.save(emulator), emulator.save(0), emulator.cartridge), buttons
        assert count(emulator) == held.count == 3, "START, A and RIGHT, A again"


class Recorder:
    """A PyBoy that keeps the calls which press and release."""

    def __init__(self, pyboy: Any) -> None:
        self._pyboy, self.calls = pyboy, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pyboy, name)

    def button_press(self, name: str) -> None:
        self.calls.append(f"+{name}")
        self._pyboy.button_press(name)

    def button_release(self, name: str) -> None:
        self.calls.append(f"-{name}")
        self._pyboy.button_release(name)


def test_the_baselines_release_nothing_between_equal_steps() -> None:
    options: dict[str, Any] = {"rom": ROM, "num_envs": 1, "max_steps": 1000, **HELD}
    single, vec = PyBoyPufferSingle(**options), PyBoyPufferVec(**options, backend="serial")
    for env in (single, vec):
        env.reset()
    for env, machines in ((single, single.emulator.machines), (vec, vec._run().vec.envs[0].emulator.machines)):
        recorder: Any = Recorder(machines[0].pyboy)
        machines[0].pyboy = recorder
        for names in (["START"], ["START"] * 9, ["A"], ["A"] * 9, ["NOOP"] * 3):
            recorder.calls.clear()
            for action in env.codec.parse(names):
                env.step(np.array([action]))
            if len(names) > 3:
                assert not recorder.calls
        assert recorder.calls == ["-a"]
        env.close()


@pytest.mark.parametrize(
    "codec",
    ["NOOP,RIGHT/NOOP,A,START", "NOOP:3,A:7,A+B,START:12"],
)
def test_an_env_with_any_codec(codec: str, tmp_path: Path) -> None:
    """Beside both baselines and a player: from a start that holds a button, after resets, and after load_state_dict."""
    source = Emulator(ROM, screen="full", **HELD)
    for _ in range(2):
        source.step(one(A))
    source.save(0).to_file(tmp_path / "held.state")
    start = pyboy_state.to_bytes(source.save(0), source.cartridge)
    options: dict[str, Any] = {"rom": ROM, "num_envs": 1, "max_steps": 15, "sticky_actions": 0.3, "seed": 4, **HELD}
    options |= {"obs": "full", "action_codec": codec, "start_state": str(tmp_path / "held.state")}
    env, copy = GBxCuLEEnv(**options), GBxCuLEEnv(**options)
    single, vec = PyBoyPufferSingle(**options), PyBoyPufferVec(**options, backend="serial")
    all_envs = (env, copy, single, vec)
    for each in all_envs:
        each.reset()
    player, played = Player(ROM, state=start, held=A), []
    generator, number = np.random.default_rng(2), np.zeros(1, np.int64)
    for step in range(40):
        if step % 3 != 1:
            number = generator.integers(0, env.codec.num_actions, 1)
        action = np.stack(env.codec.split(torch.from_numpy(number)), 1) if env.codec.factors else number
        copy.load_state_dict(env.state_dict())
        ends = [bool(each.step(action)[3][0]) for each in all_envs]
        taken = int(env.taken_actions[0])
        played.append((env.codec.to_buttons(taken), (env.codec.frames or {taken: 0})[taken] or FRAMES))
        player.step(*played[-1])
        assert ends == [step % 15 == 14] * 4
        if ends[0]:
            assert 2 < player.count < sum(mask != 0 for mask, _ in played)
            player, played = Player(ROM, state=start, held=A), []
        assert [count(each.emulator) for each in (env, copy)] == [player.count] * 2
        baselines = single.emulator.machines[0], vec._run().vec.envs[0].emulator.machines[0]
        assert [machine.pyboy.memory[COUNT] for machine in baselines] == [player.count] * 2
        assert env.emulator.state_hash() == copy.emulator.state_hash()
        if step % 8 == 7:
            assert not differences(player.save(env.emulator), env.emulator.save(0), env.cartridge)
    for each in all_envs:
        each.close()


def test_a_button_of_game_boys_is_pressed_once() -> None:
    """In one of two: held over ticks, pressed again while it is held, after the step of an emulator that holds it."""
    games = GameBoys(ROM, 2, **HELD)
    games.tick(2)
    games.button_press("start", torch.tensor([False, True]))
    seen = []
    for again in (False, True, True, False):
        if again:
            games.button_press("start")
        games.tick(3)
        seen.append(games.memory[COUNT].tolist())
    assert seen == [[0, 1], [1, 1], [1, 1], [1, 1]]
    games.emulator.step(torch.full((2,), START, dtype=torch.uint8))
    games.tick()
    assert games.memory[COUNT].tolist() == [1, 1]


class LetsGo(Emulator):
    """The mistake: the buttons of a step are released at its end, or, hidden, before the next step."""

    late = False

    def step(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        if self.late:
            self.set_registers(0, buttons=0)
        super().step(buttons, frames)
        if not self.late:
            self.set_registers(0, buttons=0)


class LetsGoLate(LetsGo):
    late = True


def test_verify_finds_a_button_that_is_pressed_anew(tmp_path: Path) -> None:
    """In what is held, or in what the game does where that looks right."""
    rom, actions = tmp_path / "joypad.gb", tmp_path / "actions.txt"
    rom.write_bytes(ROM)
    actions.write_text("START NOOP A B B NOOP RIGHT")
    options = Verify(rom=str(rom), actions=str(actions), frames_per_step=6, release_after_frames=6)
    assert verify(options).equal
    result = verify(options, make_emulator=LetsGo)
    assert len(result.trace) == 1 and result.differences == {"buttons": {"oracle": START, "emulator": 0}}
    result = verify(options, make_emulator=LetsGoLate)
    assert len(result.trace) == 5 and result.differences["C000:E000"]["at"]["C100"] == {"oracle": 3, "emulator": 4}
