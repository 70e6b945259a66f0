"""Emulator and PyBoy side by side, live: random buttons, the picture compared after each step, all after some."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from benchmarks.references import HRAM, WRAM
from benchmarks.workload import find_rom, random_buttons, seed_of
from gbxcule_puffer.emulator import Emulator
from tests.support.oracle import CART_RAM, MachineView, PyBoyOracle

# MBC1 with scrolling and sprites, no mapper, MBC5. totp-gb (MBC3 with a clock) is left out: PyBoy's clock chip follows
# the host's time.
GAMES = ("tobu", "snake", "rex-runner")
NUM_ENVS = 2
STEPS = 60
CHECK_EVERY = 4  # steps between two comparisons of everything
REGIONS = {"VRAM": (0x8000, 0x2000), "cartridge RAM": CART_RAM, "WRAM": WRAM, "OAM": (0xFE00, 0xA0), "HRAM": HRAM}
# IO register -> (field of the state, bits that read as 1). SB always reads FF in PyBoy and is left out.
IO_FIELDS = {
    0xFF00: ("p1", 0x00),
    0xFF02: ("serial_control", 0x00),
    0xFF06: ("tma", 0x00),
    0xFF07: ("tac", 0xF8),
    0xFF0F: ("interrupt_flag", 0xE0),
    0xFF40: ("lcdc", 0x00),
    0xFF41: ("stat", 0x00),
    0xFF42: ("scy", 0x00),
    0xFF43: ("scx", 0x00),
    0xFF44: ("ly", 0x00),
    0xFF45: ("lyc", 0x00),
    0xFF47: ("bgp", 0x00),
    0xFF48: ("obp0", 0x00),
    0xFF49: ("obp1", 0x00),
    0xFF4A: ("wy", 0x00),
    0xFF4B: ("wx", 0x00),
    0xFFFF: ("interrupt_enable", 0x00),
}


def button_streams(game: str, steps: int, num_envs: int) -> np.ndarray:
    """Mostly one button or none, as an agent plays; one step in eight any mix of the eight buttons, SELECT too."""
    generator = np.random.default_rng(seed_of(game))
    single = random_buttons(seed_of(game), steps, num_envs)
    mixed = generator.integers(0, 256, size=single.shape, dtype=np.uint8)
    return np.where(generator.random(single.shape) < 1 / 8, mixed, single)


@contextmanager
def oracles(rom: bytes, num_envs: int, frames_per_step: int, release_after_frames: int) -> Iterator[list[PyBoyOracle]]:
    machines = [PyBoyOracle(rom, frames_per_step, release_after_frames) for _ in range(num_envs)]
    try:
        yield machines
    finally:
        for machine in machines:
            machine.close()


def emulator_view(emulator: Emulator, env: int, keys: list[str]) -> MachineView:
    fields = emulator.registers(env)
    memory = {name: (start, emulator.read_memory(env, start, size)) for name, (start, size) in REGIONS.items()}
    io_values = {address: fields[name] | high_bits for address, (name, high_bits) in IO_FIELDS.items()}
    io_values[0xFF04] = -fields["div_zero"] >> 8 & 0xFF  # after a step the clock is 0
    io_values[0xFF05] = tima(fields)
    picture = emulator.screen[env].cpu().numpy()
    return MachineView({key: fields[key] for key in keys}, memory, io_values, picture)


def tima(fields: dict[str, int]) -> int:
    """TIMA now: the state holds it as of `timer_last`, and it counts the divider's whole periods since."""
    if not fields["tac"] & 4 or fields["tima_reload"]:
        return fields["tima"]
    period = (1024, 16, 64, 256)[fields["tac"] & 3]
    counted = -fields["div_zero"] // period - (fields["timer_last"] - fields["div_zero"]) // period
    return fields["tima"] + counted & 0xFF


def differences(expected: MachineView, found: MachineView) -> list[str]:
    """One line for each part that differs, first what explains the rest."""
    lines = []
    wrong = {key: value for key, value in expected.registers.items() if found.registers[key] != value}
    if wrong:
        lines.append("registers: " + ", ".join(f"{k} {v:04X}, not {found.registers[k]:04X}" for k, v in wrong.items()))
    wrong_io = [address for address, value in found.io.items() if expected.io[address] != value]
    if wrong_io:
        lines.append("IO: " + ", ".join(f"{a:04X} {expected.io[a]:02X}, not {found.io[a]:02X}" for a in wrong_io))
    for name, (start, values) in expected.memory.items():
        other = found.memory[name][1]
        at = np.flatnonzero(values != other)
        if len(at):
            first = ", ".join(f"{start + i:04X} {values[i]:02X}, not {other[i]:02X}" for i in at[:6])
            lines.append(f"{name}: {len(at)} bytes differ: {first}")
    assert expected.picture is not None and found.picture is not None
    pixels = np.argwhere(expected.picture != found.picture)
    if len(pixels):
        (top, left), (bottom, right) = pixels.min(axis=0), pixels.max(axis=0)
        lines.append(f"picture: {len(pixels)} pixels differ, lines {top}..{bottom}, columns {left}..{right}")
    return lines


def run_lockstep(
    game: str, num_envs: int, steps: int, frames_per_step: int = 24, release_after_frames: int = 8
) -> None:
    """Raises: AssertionError at the first step at which an environment differs from its PyBoy."""
    rom = find_rom(game).read_bytes()
    buttons = button_streams(game, steps, num_envs)
    emulator = Emulator(
        rom,
        num_envs,
        "cpu",
        screen="full",
        frames_per_step=frames_per_step,
        release_after_frames=release_after_frames,
    )
    played = [set() for _ in range(num_envs)]
    with oracles(rom, num_envs, frames_per_step, release_after_frames) as machines:
        for step in range(steps):
            emulator.step(torch.from_numpy(buttons[step]))
            report = []
            for env, machine in enumerate(machines):
                machine.step(int(buttons[step, env]))
                pixels = emulator.screen[env].numpy()
                if step % CHECK_EVERY:
                    assert np.array_equal(machine.picture(), pixels), f"{game}, env {env}: picture after step {step}"
                    continue
                expected = machine.view()
                found = emulator_view(emulator, env, list(expected.registers))
                report += [f"env {env}: {line}" for line in differences(expected, found)]
                played[env].add(found.memory["WRAM"][1].tobytes())
            masks = " ".join(f"{mask:02X}" for mask in buttons[step])
            assert not report, "\n".join([f"{game}: first difference after step {step}, buttons {masks}", *report])
    assert not any(played[0] >= other for other in played[1:]), f"{game}: the buttons do not make the games diverge"


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("game", GAMES)
def test_random_play_stays_in_lockstep_with_pyboy(game: str) -> None:
    run_lockstep(game, NUM_ENVS, STEPS)


def test_homeward_stays_in_lockstep_with_pyboy() -> None:
    run_lockstep("homeward", NUM_ENVS, STEPS)


@pytest.mark.usefixtures("shared")
def test_another_schedule_stays_in_lockstep_with_pyboy() -> None:
    """frames_per_step and release_after_frames are not built in as 24 and 8."""
    run_lockstep("2048", 2, 60, frames_per_step=5, release_after_frames=2)
