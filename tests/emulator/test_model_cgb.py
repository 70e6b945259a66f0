"""Model cgb: choosing it, what it refuses, its memory by bank, snapshots, pools, PyBoy's states, pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer.apps.verify.verify import differences
from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.arrays import memory_needed
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.emulator.saves import pyboy_state
from gbxcule_puffer.emulator.saves.state_files import load_state_file, write_pyboy_state
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError, StateError
from gbxcule_puffer.integrations.pyboy_api import GameBoys
from tests.conformance.test_game_boy_color import rom_of
from tests.fuzz.generator import make_rom
from tests.fuzz.lockstep import random_buttons

# SVBK 3, a byte to D010; SVBK 5, another; VBK 1, a byte to 8010; a palette and the picture in its first colour.
PROGRAM = """
    3E03 E070 3E33 EA10D0 3E05 E070 3E55 EA10D0  AF E040 3E01 E04F 3E88 EA1080 AF E04F
    3E80 E068 0640 3E1F E069 05 20F9 3E91 E040
"""
RED_AND_GREEN = 0x1F1F  # what 1F in both bytes of a colour is


def test_the_header_chooses() -> None:
    dual, only, plain = (rom_of("", flag) for flag in (0x80, 0xC0, 0x00))
    assert [Emulator(rom, model="auto").model for rom in (dual, only, plain)] == ["cgb", "cgb", "dmg"]
    assert Emulator(dual).model == "dmg"
    assert Emulator(plain, model="cgb").registers()["color_mode"] == 0
    assert Emulator(load_cartridge(only, model="auto")).model == "cgb"


def test_a_cartridge_for_color_only_is_no_warning_there(recwarn: pytest.WarningsRecorder) -> None:
    load_cartridge(rom_of("", 0xC0), model="auto")
    assert not recwarn.list
    with pytest.warns(UserWarning, match="Game Boy Color only"):
        load_cartridge(rom_of("", 0xC0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "sgb"}, "model is 'sgb'"),
        ({"model": "cgb", "frames_per_step": 20_000}, "at most 15,000"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Emulator(rom_of(""), **options)
    assert "\n" not in str(caught.value)


def test_a_dmg_has_no_colours_and_no_more_memory_than_before() -> None:
    emulator = Emulator(rom_of("", 0x00))
    with pytest.raises(ConfigError, match="this is a DMG"):
        _ = emulator.colors
    with pytest.raises(ConfigError, match="this is a DMG"):
        emulator.render("rgb")
    assert emulator.memory.shape[1] == 0x8000 and "vram_bank" not in emulator.registers()
    color = load_cartridge(rom_of(""), model="cgb")
    more = memory_needed(color, 1, with_descriptors=False) - memory_needed(
        emulator.cartridge, 1, with_descriptors=False
    )
    assert more > 0x8000 + 2 * 72 * 80


def test_memory_by_bank() -> None:
    emulator = Emulator(rom_of(PROGRAM), 2, model="cgb")
    emulator.step(torch.zeros(2, dtype=torch.uint8))
    read = emulator.read_memory
    assert [int(read(1, 0xD010, 1, bank)[0]) for bank in (None, 1, 3, 5)] == [0x55, 0, 0x33, 0x55]
    assert [int(read(1, 0x8010, 1, bank)[0]) for bank in (None, 0, 1)] == [0, 0, 0x88]
    emulator.write_memory(1, 0xD010, b"\x77", 3)
    emulator.write_memory(1, 0xF010, b"\x66")  # the echo, of the bank that is selected
    assert [int(read(1, 0xD010, 1, bank)[0]) for bank in (3, 5)] == [0x77, 0x66]
    assert int(read(0, 0xD010, 1, 3)[0]) == 0x33, "env 0 has changed as well"
    with pytest.raises(ConfigError, match="bank 8 of WRAM"):
        read(0, 0xD010, 1, 8)
    with pytest.raises(ConfigError, match="bank 1 of WRAM"):
        read(0, 0xC010, 1, 1)


def test_colours_and_shades() -> None:
    emulator = Emulator(rom_of(PROGRAM), screen="full", model="cgb")
    emulator.step(torch.zeros(1, dtype=torch.uint8))
    colors = emulator.colors
    assert colors.dtype == torch.uint16 and colors.shape == (1, 144, 160)
    assert np.unique(colors.numpy()).tolist() == [RED_AND_GREEN]
    rgb = emulator.render("rgb")
    assert rgb.shape == (1, 144, 160, 3) and rgb[0, 0, 0].tolist() == [0xF8, 0xC0, 0x38]
    assert emulator.screen.unique().tolist() == [1]


def both(seed: int, steps: int) -> Emulator:
    """A full-screen emulator after some steps of a random program."""
    emulator = Emulator(
        make_rom(seed, "color").data, screen="full", model="cgb", frames_per_step=4, release_after_frames=2
    )
    for buttons in random_buttons(seed, steps, 1):
        emulator.step(torch.from_numpy(buttons))
    return emulator


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_snapshot_goes_on(seed: int, tmp_path: Path) -> None:
    """From a file, in an emulator with the whole picture and in one with half of it."""
    emulator = both(seed, 5)
    emulator.save().to_file(tmp_path / "x.state")
    snapshot = Snapshot.from_file(tmp_path / "x.state")
    assert snapshot.model == "cgb"
    assert np.array_equal(snapshot.colors, emulator.colors.numpy())
    options = {"model": "cgb", "frames_per_step": 4, "release_after_frames": 2}
    again, half = (Emulator(emulator.cartridge, screen=screen, **options) for screen in ("full", "half"))
    for one in (again, half):
        one.load(snapshot)
    assert np.array_equal(half.colors.numpy(), emulator.colors.numpy()[:, ::2, ::2])
    for buttons in random_buttons(seed + 1, 5, 1):
        for one in (emulator, again, half):
            one.step(torch.from_numpy(buttons))
    assert emulator.state_hash() == again.state_hash()
    assert np.array_equal(half.colors.numpy(), emulator.colors.numpy()[:, ::2, ::2])
    assert np.array_equal(half.screen.numpy(), emulator.screen.numpy()[:, ::2, ::2])


def test_a_pool_of_snapshots() -> None:
    emulator = both(0, 5)
    envs = Emulator(emulator.cartridge, 3, frames_per_step=4, release_after_frames=2)
    pool = envs.pool([emulator.save()], spare=1)
    pool.reset(torch.tensor([False, True, True]), torch.zeros(3, dtype=torch.int32))
    assert np.array_equal(envs.colors[2].numpy(), emulator.colors[0, ::2, ::2].numpy())
    assert envs.registers(1)["pc"] == emulator.registers()["pc"] != envs.registers(0)["pc"]


def test_a_snapshot_of_the_other_model_is_refused() -> None:
    dmg, color = Emulator(rom_of(""), model="dmg"), Emulator(rom_of(""), model="cgb")
    for one, other in ((dmg, color), (color, dmg)):
        with pytest.raises(StateError, match=f"is of model '{other.model}', this Game Boy of '{one.model}'"):
            one.load(other.save())


@pytest.mark.parametrize("field", ["wram_bank", "vram_bank", "double_speed", "hdma_source"])
def test_a_state_with_values_that_no_machine_has_is_refused(field: str) -> None:
    emulator = Emulator(rom_of(""), model="cgb")
    snapshot = emulator.save()
    snapshot.state[INDEX[field]] = 0x10000
    with pytest.raises(StateError, match=f"{field} of env 0 is 65536"):
        emulator.load(snapshot)


def same(one: Emulator, oracle: PyBoyEmulator) -> list[str]:
    """Fields and memory that differ between an emulator and a PyBoy."""
    found, expected = one.save(), oracle.save()
    names = {name for name, index in INDEX.items() if found.state[index] != expected.state[index]}
    # As of the last look, or of nothing that a PyBoy shows
    names -= {"timer_last", "tima", "lcd_last", "mode3_extra", "window_line", "window_first", "instructions",
              "dma_start", "dma_index", "serial_count", "next_line", "lyc_written_off", "stat_mode_hidden",
              "frames_left", "release_at", "halted_after_ei", "rtc_last", "ram_bank"}  # fmt: skip
    names -= {f"undocumented_{number}" for number in range(72, 76)}  # not in PyBoy's files
    offsets = np.flatnonzero(found.memory != expected.memory)
    offsets = offsets[(offsets < 0x6000) | (offsets >= 0x7E00)]  # the captured serial output
    offsets = offsets[(offsets < 0x7F00) | (offsets >= 0x7F80)]  # where the kernels keep P1
    if one.cartridge.type == 0:  # stores in PyBoy what can never be read
        offsets = offsets[(offsets < 0x2000) | (offsets >= 0x4000)]
    return sorted(names) + [f"memory {offset:04X}" for offset in offsets[:4]]


@pytest.mark.parametrize("seed", [4, 10, 13, *(pytest.param(seed, marks=pytest.mark.long) for seed in (5, 7, 11))])
def test_states_of_pyboy(seed: int, tmp_path: Path) -> None:
    """PyBoy goes on from a file that the emulator wrote, and the emulator from one that PyBoy wrote."""
    emulator = both(seed, 5)
    assert emulator.cartridge.is_for_color and not emulator.cartridge.has_rtc, "PyBoy sets its clock anew"
    options = {"screen": "full", "model": "cgb", "frames_per_step": 4, "release_after_frames": 2}
    write_pyboy_state(tmp_path / "x.state", emulator.save(), emulator.cartridge)
    oracle = PyBoyEmulator(emulator.cartridge, **options)
    with (tmp_path / "x.state").open("rb") as file:
        oracle.machines[0].pyboy.load_state(file)
    assert not same(emulator, oracle)
    again = Emulator(emulator.cartridge, **options)
    again.load(load_state_file(tmp_path / "x.state", emulator.cartridge))
    assert not same(again, oracle)
    again.load(pyboy_state.from_bytes(oracle.machines[0].state(), emulator.cartridge))
    for buttons in random_buttons(seed + 1, 4, 1):
        for one in (again, oracle):
            one.step(torch.from_numpy(buttons))
        assert not same(again, oracle)


def test_a_state_of_another_machine_is_refused_with_one_line(tmp_path: Path) -> None:
    for flag, model, other in ((0xC0, "cgb", "dmg"), (0xC0, "dmg", "cgb"), (0x00, "cgb", "dmg")):
        emulator = Emulator(rom_of(PROGRAM, flag), model=model)
        write_pyboy_state(tmp_path / "x.state", emulator.save(), emulator.cartridge)
        with pytest.raises(StateError, match=f"give model='{model}'") as caught:
            load_state_file(tmp_path / "x.state", load_cartridge(rom_of(PROGRAM, flag), model=other))
        assert "x.state" in str(caught.value) and "\n" not in str(caught.value)
    data = bytearray((tmp_path / "x.state").read_bytes())
    data[0] = 28
    (tmp_path / "x.state").write_bytes(data)
    with pytest.raises(StateError, match="of version 28: save it"):
        load_state_file(tmp_path / "x.state", load_cartridge(rom_of(PROGRAM, 0x00), model="cgb"))


def test_bank_1_of_vram_of_a_dmgs_cartridge() -> None:
    """PyBoy's states lack it, and that it is selected; its bus does not."""
    code = "AF E040 3E01 E04F 3E88 EA1080 AF E04F 3E22 EA1080 3E01 E04F 2130C0 34"
    emulator, oracle = (kind(rom_of(code, 0), screen="full", model="cgb") for kind in (Emulator, PyBoyEmulator))
    for _ in range(2):
        for one in (emulator, oracle):
            one.step(torch.zeros(1, dtype=torch.uint8))
        found, expected = emulator.save(), oracle.save()
        assert found.fields()["vram_bank"] == expected.fields()["vram_bank"] == 1
        assert not differences(expected, found, emulator.cartridge)
        for one in (emulator, oracle):
            assert [int(one.read_memory(0, 0x8010, 1, bank)[0]) for bank in (None, 0, 1)] == [0x88, 0x22, 0x88]
    oracle.reset()
    oracle.load(emulator.save())
    assert not differences(oracle.save(), emulator.save(), emulator.cartridge)


def test_vram_is_locked_before_mode_3_in_both_kernels() -> None:
    """At double speed that takes twice as many T-cycles. Reads come at all distances from mode 3."""
    # ld hl,$9800 / ld de,$C000 / ld a,1 / ldh [KEY1],a / stop / loop: nop / nop / ld a,[hl] / ld [de],a / inc de / jr
    rom = rom_of("21 00 98 11 00 C0 3E 01 E0 4D 10 00 00 00 7E 12 13 18 F9", 0xC0)
    memories = []
    for kernel in ("interpreter", "datapath"):
        emulator = Emulator(rom, kernel=kernel, model="cgb", frames_per_step=2, release_after_frames=1)
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        assert emulator.registers()["double_speed"] == 1
        memories.append(emulator.memory[0, 0x4000:0x6000].clone())
    assert (memories[0] == 0xFF).any() and (memories[0] != 0xFF).any()
    assert torch.equal(*memories)


ALL_WHITE = "AF E040 3E80 E068 0620 3EFF E069 3E7F E069 05 20F5 3E91 E040"  # the palettes, and the LCD on


@pytest.mark.parametrize(("code", "theirs"), [("AF E040", 255), (ALL_WHITE, 248)])
def test_white_is_255_in_pyboy_where_the_lcd_is_off(code: str, theirs: int) -> None:
    """And 248 where a picture is drawn. Here it is 248 for both, wherever colours are given (docs/color.md)."""
    rom, no_buttons = rom_of(code), torch.zeros(1, dtype=torch.uint8)
    emulator, machine = Emulator(rom, screen="full", model="cgb"), PyBoyMachine(rom, model="cgb")
    boys, env = GameBoys(rom, model="cgb"), GBxCuLEEnv(rom, model="cgb", obs="rgb_full")
    env.reset()
    for _ in range(3):
        emulator.step(no_buttons)
        machine.step(0)
        env.step(np.zeros(1, int))
        boys.tick(24)
    screen = machine.pyboy.screen.ndarray[..., :3]
    assert (screen == theirs).all()
    for ours in (
        emulator.render("rgb")[0].numpy(),
        boys.screen.ndarray[0, ..., :3],
        env.observations[0].transpose(1, 2, 0),
    ):
        np.testing.assert_array_equal(ours, screen & 0xF8)
