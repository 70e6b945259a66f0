"""Steps that a condition on RAM ends early: the same frames, pictures and machines as PyBoy's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gbxcule_puffer.baselines.pyboy_emulator import PyBoyEmulator
from gbxcule_puffer.emulator import ByteTest, Emulator
from gbxcule_puffer.errors import ConfigError
from tests.emulator.probes.test_hooks import rom_with

SCHEDULE: dict[str, Any] = {"frames_per_step": 12, "release_after_frames": 3}
RIGHT = 1
BUTTONS = [[0, RIGHT], [RIGHT, 0], [RIGHT, RIGHT], [0, 0], [RIGHT, 0], [0, RIGHT]]
# (address, low, high, mask, turned) of each test, and how long steps are
TESTS = {
    "every 16th frame": ([ByteTest(None, 0xC000, 0, 0, mask=0x0F)], range(4, 13)),
    "nothing held": ([ByteTest(None, 0xC001, 0xCF, 0xCF)], [4, 5]),
    "both": ([ByteTest(None, 0xC000, 5, 7, mask=0x07), ByteTest(None, 0xFF80, 0, 0, turned=True)], range(4, 13)),
    "never": ([ByteTest(None, 0xFF80, 0, 0)], [12]),
}


def frame_counter() -> bytes:
    """A game that counts frames in C000, FF80 and BGP, and has the directions that are held in C001."""
    rom = rom_with("3E 01 E0 FF E0 80 FB 76 18 FD")
    #          push af / ld a,[C000] / inc a / ld [C000],a / ldh [BGP],a / or 1 / ldh [FF80],a
    handler = "F5 FA 00 C0 3C EA 00 C0 E0 47 F6 01 E0 80 3E 20 E0 00 F0 00 EA 01 C0 F1 D9"
    rom[0x40:0x43] = 0xC3, 0x00, 0x02
    rom[0x200 : 0x200 + 25] = bytes.fromhex(handler)
    return bytes(rom)


@pytest.mark.parametrize("name", TESTS)
def test_steps_end_as_pyboys_do(name: str) -> None:
    rom, (tests, lengths) = frame_counter(), TESTS[name]
    emulators = [Emulator(rom, 2, kernel=kernel, num_threads=1, **SCHEDULE) for kernel in ("interpreter", "datapath")]
    oracle = PyBoyEmulator(rom, 2, **SCHEDULE)
    for emulator in (*emulators, oracle):
        emulator.end_steps_when(tests)
    seen = []
    for row in BUTTONS * 2:
        for emulator in (*emulators, oracle):
            emulator.step(torch.tensor(row, dtype=torch.uint8))
        for emulator in emulators:
            assert emulator.frames.tolist() == oracle.frames.tolist()
            assert torch.equal(emulator.screen, oracle.screen)
            for env in range(2):
                assert (emulator.read_memory(env, 0xC000, 2) == oracle.read_memory(env, 0xC000, 2)).all()
        assert (emulators[0].state_hash() == emulators[1].state_hash()).all()
        seen += oracle.frames.tolist()
    assert set(seen) <= set(lengths) and (len(set(seen)) > 1 or name == "never")
    for emulator in (*emulators, oracle):
        emulator.end_steps_when([])
        emulator.step(torch.zeros(2, dtype=torch.uint8))
        assert emulator.frames.tolist() == [12, 12]
    assert (emulators[0].state_hash() == emulators[1].state_hash()).all()
    oracle.close()


def test_bytes_that_end_no_step() -> None:
    emulator = Emulator(frame_counter())
    for address, why in ((0x150, "ROM"), (0xFF44, "IO registers"), (0xA000, "give one")):
        with pytest.raises(ConfigError, match=why):
            emulator.end_steps_when([ByteTest(None, address, 0, 0)])
