"""The project's micro-ROMs beside PyBoy: random buttons, registers and picture compared after each step."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.fuzz.lockstep import compare, random_buttons

ROMS = Path(__file__).resolve().parents[2] / "roms"
MICRO = sorted(path.stem for path in (ROMS / "micro").glob("*.gb"))
EXPECTED = {
    "alu_loop", "ei_halt", "joy_diverge_persist", "mbc1_banks", "mbc2_banks", "mbc3_banks", "mbc5_banks", "mem_rwb",
    "midframe", "rtc", "timer_interrupt", "window_sprite",
}  # fmt: skip


def test_no_micro_rom_is_missing() -> None:
    assert set(MICRO) == EXPECTED


@pytest.mark.parametrize("name", MICRO)
@pytest.mark.parametrize(("frames_per_step", "steps"), [(1, 24), (24, 6)])
def test_micro_rom_stays_in_lockstep_with_pyboy(name: str, frames_per_step: int, steps: int) -> None:
    rom = (ROMS / "micro" / f"{name}.gb").read_bytes()
    buttons = random_buttons(len(name), steps, 1)
    result = compare(rom, buttons, check_every=steps // 3, frames_per_step=frames_per_step)
    assert not result.difference, f"{name}, step {result.frames}:\n" + "\n".join(result.difference)
    assert not result.locked and result.frames == steps
    assert result.instructions > 100 * steps, f"{name} sleeps most of the time: it tests little"


@pytest.mark.gpu
@pytest.mark.parametrize("name", MICRO)
def test_micro_rom_stays_in_lockstep_with_pyboy_on_a_gpu(name: str) -> None:
    """33 Game Boys with buttons of their own, each beside a PyBoy: every state after every step."""
    rom = (ROMS / "micro" / f"{name}.gb").read_bytes()
    buttons = random_buttons(len(name), 12, 33)
    result = compare(rom, buttons, check_every=1, frames_per_step=24, device="cuda")
    assert not result.difference, f"{name}, step {result.frames}:\n" + "\n".join(result.difference)
    assert not result.locked and result.frames == 12


def test_buttons_send_environments_different_ways_for_good() -> None:
    """JOY_DIVERGE_PERSIST: after one step with different buttons, and the same ones from then on, states stay apart."""
    import torch

    from gbxcule_puffer.emulator import Emulator

    rom = (ROMS / "micro" / "joy_diverge_persist.gb").read_bytes()
    emulator = Emulator(rom, 9, frames_per_step=2, release_after_frames=1)
    emulator.step(torch.tensor([0, *(1 << bit for bit in range(8))], dtype=torch.uint8))
    for _ in range(10):
        emulator.step(torch.zeros(9, dtype=torch.uint8))
    signatures = {emulator.read_memory(env, 0xC000, 0x11).tobytes() for env in range(9)}
    assert len(signatures) == 9


def test_the_manifest_lists_each_image_with_its_checksum() -> None:
    entries = {entry["file"]: entry for entry in json.loads((ROMS / "manifest.json").read_text())}
    for name in MICRO:
        entry = entries[f"micro/{name}.gb"]
        image = (ROMS / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(image).hexdigest()
        assert entry["purpose"] and entry["licence"] == "MIT"
        assert image[0x134:0x144].rstrip(b"\0").decode() == entry["title"]
        checksum = sum(image) - image[0x14E] - image[0x14F] & 0xFFFF
        assert checksum == int.from_bytes(image[0x14E:0x150], "big")
