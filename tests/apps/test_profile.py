"""`puffer profile`: counts change nothing and add up, and loops that wait are found and described."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.workload import ROOT
from gbxcule_puffer.apps.profile.loops import find_loops
from gbxcule_puffer.apps.profile.measure import CountingEmulator, measure
from gbxcule_puffer.apps.profile.names import AddressNames, cause_text
from gbxcule_puffer.apps.profile.report import report
from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.gpu import stop_counters
from gbxcule_puffer.emulator.gpu.descriptors import KIND_POP_AF
from gbxcule_puffer.emulator.hw import counters
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.tasks.ram import Symbols
from tests.support.roms import tiny_rom

HOMEWARD = ROOT / "roms/homeward.gb"
CODEC = get_codec("pokemonred_puffer_v1")
# 0150 wait: ld a,$20 / ldh [P1],a / ldh a,[P1] / inc a / jr wait
WAITS_FOR_BUTTONS = bytes.fromhex("3E20 E000 F000 3C 18F7")
# 0150 ld hl,$FFFB / ld a,$3C / ld [hl+],a / ld a,$18 / ld [hl+],a / ld [hl],$FD / jp $FFFB: `inc a / jr $FFFB` there
ENDS_IN_HIGH_RAM = bytes.fromhex("21FBFF 3E3C 22 3E18 22 36FD C3FBFF")
# 0150 again: ld b,0 / 0152 delay: dec b / ld a,b / cp a,$00 / jr nz,delay / inc [hl] / jr again
DELAYS = bytes.fromhex("0600 05 78 FE00 20FA 34 18F5")


@pytest.mark.parametrize("kernel", ["interpreter", pytest.param("datapath", marks=pytest.mark.long)])
def test_counts_change_nothing_and_add_up(kernel: str) -> None:
    plain, counting = Emulator(HOMEWARD, 3, kernel=kernel), CountingEmulator(HOMEWARD, 3, kernel=kernel)
    for buttons in ([0x80, 0x10, 0], [0, 0x80, 0x10], [0x01, 0x02, 0x04]):
        counting.counts.zero_()
        plain.step(torch.tensor(buttons, dtype=torch.uint8))
        counting.step(torch.tensor(buttons, dtype=torch.uint8))
    assert np.array_equal(plain.state_hash(), counting.state_hash())
    rows, executed = counting.counts.numpy(), counting.machine.state.numpy()
    causes = rows[counters.CAUSES]
    instructions = sum(counting.registers(env)["instructions"] for env in range(3))
    if kernel == "interpreter":
        assert rows[counters.EXECUTED].sum() + rows[counters.SKIPPED].sum() == instructions
        assert rows[counters.SKIPPED].sum() == counting.skipped.sum()
        halted = causes[counters.HALT_T_CYCLES]
        assert 0 < rows[counters.T_CYCLES].sum() + halted < 3 * 24 * 70_224 + executed.shape[1] * 456
    else:
        by_cause = causes[counters.STOP_CAUSE : counters.STOP_CAUSE + stop_counters.MOST]
        assert 0 < rows[counters.STOPS].sum() == by_cause.sum()
        assert rows[counters.INTERPRETED].sum() <= rows[counters.STOPS].sum()
        assert causes[counters.ROUNDS] > 0


def test_a_loop_that_repeats_what_changes_nothing(tmp_path: Path) -> None:
    rom = tiny_rom(tmp_path / "buttons.gb", WAITS_FOR_BUTTONS)
    counts = measure(rom, "interpreter", CODEC, num_envs=1, warmup=1, steps=2)
    (loop,) = find_loops(counts)
    assert (loop.begin, loop.end) == (0x150, 0x157)
    assert loop.what_it_does == "waits, reading FF00 (P1)"
    assert loop.repeated > 0.95 * counts.rows[counters.EXECUTED].sum()
    assert [text for _, text in loop.lines] == [
        *("ld a,$20", "ldh [$FF00],a", "ldh a,[$FF00]", "inc a", "jr $0150"),
    ]


def test_a_loop_that_counts_and_one_that_works(tmp_path: Path) -> None:
    counts = measure(tiny_rom(tmp_path / "delay.gb", DELAYS), "interpreter", CODEC, num_envs=1, warmup=1, steps=2)
    delay, *_ = find_loops(counts)
    assert (delay.begin, delay.end, delay.what_it_does) == (0x152, 0x156, "only counts: a delay")
    assert delay.repeated == delay.executed > 0
    text = report("delay.gb", counts, None, AddressNames())
    assert "in a loop at 00:0152 that is not skipped: it only counts: a delay" in text


def test_code_at_the_end_of_ram_is_counted_where_it_stands(tmp_path: Path) -> None:
    rom = tiny_rom(tmp_path / "high.gb", ENDS_IN_HIGH_RAM)
    interpreted, datapath = (
        measure(rom, kernel, CODEC, num_envs=1, warmup=1, steps=1) for kernel in ("interpreter", "datapath")
    )
    begin = len(interpreted.cartridge.data) + 0xFFFB - 0x8000
    executed, stops = interpreted.rows[counters.EXECUTED], datapath.rows[counters.STOPS]
    assert executed[begin : begin + 2].sum() == executed.sum() > 1_000
    assert stops[begin : begin + 2].sum() == stops.sum() > 100
    assert "FFFB in RAM" in report("high.gb", interpreted, datapath, AddressNames())


def test_causes_and_addresses_in_words(tmp_path: Path) -> None:
    assert cause_text(stop_counters.REGISTER_READ + 0x44) == "FF44 (LY) is read"
    assert cause_text(stop_counters.REGISTER_WRITE + 0x12) == "a sound register is written"
    assert cause_text(stop_counters.PREPARED + KIND_POP_AF) == "POP AF"
    path = tmp_path / "game.sym"
    path.write_text("; made by rgblink\n00:0150 main\n01:4000 draw\n")
    symbols = AddressNames(Symbols.load(path))
    assert symbols.text(0, 0x0150) == "00:0150 main" and symbols.text(1, 0x4003) == "01:4003 draw+3"
    assert symbols.text(2, 0x4000) == "02:4000"
    path.write_text("02:4000 twice\n03:4000 twice\n")
    assert AddressNames(Symbols.load(path)).text(3, 0x4001) == "03:4001 twice+1"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rom = tiny_rom(tmp_path / "buttons.gb", WAITS_FOR_BUTTONS)
    (tmp_path / "buttons.sym").write_text("00:0150 wait_for_buttons\n")
    words = ["profile", rom, "--num-envs", "1", "--warmup", "1", "--steps", "1"]
    assert main([*words, "--action-codec", "SELECT,A+B"]) == 0, "with the symbols beside the ROM"
    text = capsys.readouterr().out
    assert "In short: " in text and "00:0150 wait_for_buttons that is not skipped" in text
    assert "FF00 (P1) is written" in text
    assert main([*words, "--start-state", rom]) == 2
    assert main(["profile", str(tmp_path / "missing.gb")]) == 2
    assert main([*words, "--symbols", str(tmp_path / "missing.sym")]) == 2
    assert main([*words, "--action-codec", "multi_binary"]) == 2
    assert main([*words[:-1], "1000000000000"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 5 and "--steps 1,000,000,000,000 and --warmup 1 needs" in error
