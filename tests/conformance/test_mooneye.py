"""mooneye's acceptance and mapper ROMs: each has PyBoy's verdict, which is a pass for all but three, and passes where
accuracy is that of hardware."""

from pathlib import Path
from typing import Any

import pytest
import torch

from gbxcule_puffer.emulator import Emulator

PASSING = (
    "acceptance/add_sp_e_timing.gb",
    "acceptance/bits/reg_f.gb",
    "acceptance/call_cc_timing2.gb",
    "acceptance/call_timing2.gb",
    "acceptance/div_timing.gb",
    "acceptance/ei_timing.gb",
    "acceptance/halt_ime0_nointr_timing.gb",
    "acceptance/halt_ime1_timing2-GS.gb",
    "acceptance/instr/daa.gb",
    "acceptance/intr_timing.gb",
    "acceptance/jp_timing.gb",
    "acceptance/oam_dma/basic.gb",
    "acceptance/oam_dma/sources-GS.gb",
    "acceptance/oam_dma_start.gb",
    "acceptance/pop_timing.gb",
    "acceptance/ppu/intr_1_2_timing-GS.gb",
    "acceptance/ppu/intr_2_mode0_timing.gb",
    "acceptance/ppu/intr_2_mode3_timing.gb",
    "acceptance/ppu/lcdon_timing-GS.gb",
    "acceptance/ppu/stat_irq_blocking.gb",
    "acceptance/ppu/vblank_stat_intr-GS.gb",
    "acceptance/rapid_di_ei.gb",
    "acceptance/ret_timing.gb",
    "acceptance/reti_timing.gb",
    "acceptance/timer/rapid_toggle.gb",
    "acceptance/timer/tim00_div_trigger.gb",
    "acceptance/timer/tim01_div_trigger.gb",
    "acceptance/timer/tim10_div_trigger.gb",
    "acceptance/timer/tim11_div_trigger.gb",
    "acceptance/timer/tima_write_reloading.gb",
    "emulator-only/mbc1/bits_bank1.gb",
    "emulator-only/mbc1/ram_64Kb.gb",
    "emulator-only/mbc1/rom_512Kb.gb",
    "emulator-only/mbc5/rom_512kb.gb",
)
# They look at the state that the boot ROM leaves; the default profile starts from PyBoy's, which is not a DMG's.
FAILING = (
    "acceptance/boot_div-dmgABCmgb.gb",
    "acceptance/boot_regs-dmgABC.gb",
    "acceptance/serial/boot_sclk_align-dmgABCmgb.gb",
)
PASS = (3, 5, 8, 13, 21, 34)
FAIL = (0x42,) * 6


def mooneye_entries(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {test["name"]: test for test in manifest["tests"] if test["suite"].startswith("mooneye")}


def verdict(emulator: Emulator, max_frames: int) -> str:
    """`pass`, `fail`, or the registers that a ROM without a result was left with (roms/README.md, kind `fib`)."""
    found: tuple[int, ...] = ()
    for _ in range(max_frames // 10):
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        registers = emulator.registers(0)
        found = tuple(int(registers[name]) for name in "bcdehl")
        if found == PASS:
            return "pass"
        if found == FAIL:
            return "fail"
    return f"no result after {max_frames} frames: BCDEHL = {found}, PC = {emulator.registers(0)['pc']:04X}"


@pytest.mark.parametrize("name", PASSING + FAILING)
def test_the_verdict_is_the_written_one(shared: Path, manifest: dict[str, Any], name: str) -> None:
    entry = mooneye_entries(manifest)[name]
    assert entry["check"]["kind"] == "fib"
    rom = shared / "roms" / entry["file"]
    emulator = Emulator(rom, 1, "cpu", frames_per_step=10, release_after_frames=5)
    assert verdict(emulator, entry["max_frames"]) == ("pass" if name in PASSING else "fail")


@pytest.mark.parametrize("name", PASSING + FAILING)
def test_hardware_accuracy_passes(shared: Path, manifest: dict[str, Any], name: str) -> None:
    entry = mooneye_entries(manifest)[name]
    options = {"frames_per_step": 10, "release_after_frames": 5, "accuracy": "hardware"}
    emulator = Emulator(shared / "roms" / entry["file"], 1, "cpu", **options)
    assert verdict(emulator, entry["max_frames"]) == "pass"


def test_the_written_verdicts_are_those_of_the_oracle(manifest: dict[str, Any]) -> None:
    entries = mooneye_entries(manifest)
    assert set(PASSING) == {name for name, entry in entries.items() if entry["oracle"] == "pass"}
    assert set(FAILING) == set(entries) - set(PASSING)
    assert len(PASSING) >= 25
