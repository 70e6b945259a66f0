"""Faults that `python -m tests.fuzz.planted` plants into the device code of a Game Boy Color, each by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A wrong machine: `before` in the device code of `module` becomes `after`, in which FAULTY is true in the fault's
    own environment alone."""

    name: str
    module: str
    before: str
    after: str


def _faults(module: str, *rows: tuple[str, str, str]) -> tuple[Fault, ...]:
    """The faults of a module, as name, text before and text after."""
    return tuple(Fault(name, module, before, after) for name, before, after in rows)


BANKS = _faults(
    "hw.color.banks",
    ("VBK does nothing", "(c.vram_bank != 0,", "(c.vram_bank != 0 and not FAULTY,"),
    ("SVBK 0 is not bank 1", "(c.wram_bank > 1,", "(c.wram_bank > 1 or (FAULTY and c.wram_bank == 0),"),
    ("SVBK has 2 bits", "(c.wram_bank - 2)", "(wp.where(FAULTY, c.wram_bank & 3, c.wram_bank) - 2)"),
    ("code in WRAM is fetched from bank 1", "    return c.wram_shift == 0", "    return FAULTY or c.wram_shift == 0"),
) + _faults(
    "hw.memory",
    (
        "the echo reads bank 1",
        "row.load(c, banks.place(c, hw.WRAM + (address & 0x1FFF)))",
        "row.load(c, wp.where(FAULTY, hw.WRAM + (address & 0x1FFF), banks.place(c, hw.WRAM + (address & 0x1FFF))))",
    ),
    (
        "VRAM stays open in the last 4 T-cycles of mode 2 at double speed",
        "left >> c.double_speed)",
        "wp.where(FAULTY, left, left >> c.double_speed))",
    ),
)
READ = "color_registers.read(c, address)"
WRITE = "color_registers.write(m, c, address, value, t, lookahead)"
INDENT = " " * 20  # of WRITE
REGISTERS = (
    _faults(
        "hw.memory",
        ("KEY1 reads its unused bits as 1", READ, f"({READ} | wp.where(FAULTY and address == hw.KEY1, 0x7E, 0))"),
        ("VBK reads its unused bits as 0", READ, f"({READ} & ~wp.where(FAULTY and address == hw.VBK, 0xFE, 0))"),
        ("SVBK reads 1 for 0", READ, f"({READ} | int(FAULTY and address == hw.SVBK and c.wram_bank == 0))"),
    )
    + _faults(
        "hw.bus",
        (
            "OPRI keeps its first value",
            WRITE,
            f"value = wp.where(FAULTY and address == hw.OPRI, 0, value)\n{INDENT}{WRITE}",
        ),
        ("FF74 is not kept", WRITE, f"value = wp.where(FAULTY and address == 0xFF74, 0, value)\n{INDENT}{WRITE}"),
        (
            "FF75 keeps all bits",
            WRITE,
            f"{WRITE}\n{INDENT}if FAULTY and address == 0xFF75:\n{INDENT}    c.undocumented_75 = value",
        ),
    )
    + _faults(
        "hw.color.registers",
        (
            "BCPS goes past its last byte",
            "c.bg_index = next_index(c.bg_index)",
            "c.bg_index = wp.where(FAULTY and c.bg_index == 0xBF, 0x80, next_index(c.bg_index))",
        ),
        (
            "OCPS counts without bit 7",
            "c.obj_index = next_index(c.obj_index)",
            "c.obj_index = next_index(c.obj_index) + int(FAULTY and c.obj_index < 0x3F)",
        ),
        (
            "a palette changes lines that are over",
            "return drawing.is_drawing(c) and (",
            "return not FAULTY and drawing.is_drawing(c) and (",
        ),
    )
)
VRAM_DMA = _faults(
    "hw.color.registers",
    (
        "HDMA2 keeps 8 bits",
        "(c.hdma_source & 0xFF00) | (value & 0xF0)",
        "(c.hdma_source & 0xFF00) | (value & wp.where(FAULTY, 0xFF, 0xF0))",
    ),
    ("HDMA3 keeps 8 bits", "((value & 0x1F) << 8)", "((value & wp.where(FAULTY, 0xFF, 0x1F)) << 8)"),
    ("the target does not wrap at A000", "if c.hdma_target == 0xA000:", "if c.hdma_target == 0xA000 and not FAULTY:"),
    ("the source does not wrap at 8000", "if c.hdma_source == 0x8000:", "if c.hdma_source == 0x8000 and not FAULTY:"),
    (
        "a transfer of VRAM DMA has a block less to go",
        "c.hdma5 = c.hdma5 - 1",
        "c.hdma5 = wp.max(c.hdma5 - 1 - int(FAULTY), 0)",
    ),
    ("a stopped transfer reads its length", "c.hdma5 = 0x80", "c.hdma5 = wp.where(FAULTY, 0x80 | c.hdma5, 0x80)"),
    (
        "a general transfer leaves the source",
        "c.hdma_source = (c.hdma_source + count) & 0xFFFF",
        "c.hdma_source = (c.hdma_source + wp.where(FAULTY, 0, count)) & 0xFFFF",
    ),
    (
        "with the LCD off no block is copied at once",
        "        if (c.lcdc & hw.LCDC_ENABLE) == 0:",
        "        if (c.lcdc & hw.LCDC_ENABLE) == 0 and not FAULTY:",
    ),
) + _faults(
    "hw.color.hdma",
    ("VRAM DMA goes on in HALT", "c.halted == 0 and in_hblank", "(c.halted == 0 or FAULTY) and in_hblank"),
    (
        "a block takes 4 T-cycles more",
        "c.now = c.now + BLOCK_T_CYCLES",
        "c.now = c.now + BLOCK_T_CYCLES + 4 * int(FAULTY)",
    ),
    (
        "a batch ends at HBlank in T-cycles of the CPU",
        "left = (c.lcd_target - c.now) >> c.double_speed",
        "left = (c.lcd_target - c.now) >> wp.where(FAULTY, 0, c.double_speed)",
    ),
    (
        "what a transfer writes to HDMA1 to HDMA4 stays",
        "    c.hdma_source = source\n",
        "    c.hdma_source = wp.where(FAULTY, c.hdma_source, source)\n",
    ),
    (
        "a transfer reads HDMA5 as it is after it",
        "    c.hdma5 = c.hdma_length ",
        "    c.hdma5 = wp.where(FAULTY, c.hdma5, c.hdma_length) ",
    ),
)
SPEED = (
    _faults(
        "hw.color.speed",
        ("the switch leaves KEY1's bit 0", "c.key1 ^ 0x81", "c.key1 ^ wp.where(FAULTY, 0x80, 0x81)"),
        ("STOP switches without KEY1", "if (c.key1 & 1) != 0:", "if (c.key1 & 1) != 0 or FAULTY:"),
        (
            "STOP clears DIV only where it switches",
            "    bus.write(m, c, hw.DIV, 0, c.now, 0)",
            "    if not FAULTY:\n        bus.write(m, c, hw.DIV, 0, c.now, 0)",
        ),
        (
            "what the LCD requests at the switch comes",
            "c.interrupt_flag = requested",
            "c.interrupt_flag = wp.where(FAULTY, c.interrupt_flag, requested)",
        ),
    )
    + _faults(
        "hw.timer",
        (
            "the timer keeps its speed",
            "shift = period_shift(c.tac)",
            "shift = period_shift(c.tac) + wp.where(FAULTY, c.double_speed, 0)",
        ),
    )
    + _faults(
        "hw.lcd.timing",
        (
            "odd T-cycles are not lost",
            "lost = (t - c.lcd_last) & 1",
            "lost = wp.where(FAULTY, 0, (t - c.lcd_last) & 1)",
        ),
        (
            "the clock does not wrap",
            "c.lcd_wrapped = 1 - c.lcd_wrapped",
            "c.lcd_wrapped = wp.where(FAULTY, 0, 1 - c.lcd_wrapped)",
        ),
        (
            "VBlank's STAT interrupt comes with VBlank",
            "    if is_early_vblank(c) and",
            "    if not FAULTY and is_early_vblank(c) and",
        ),
    )
    + _faults(
        "hw.lcd.ppu",
        (
            "mode 3 has 172 T-cycles",
            "clock.FIRST_MODE0_DOT, clock.MODE0_DOT)",
            "clock.FIRST_MODE0_DOT, clock.MODE0_DOT + wp.where(FAULTY, 2, 0))",
        ),
        (
            "HBlank is 4 dots shorter at double speed",
            "clock.end_of(phase, 0)) - begin)",
            "clock.end_of(phase, 0)) - begin - wp.where(FAULTY, 4 * c.double_speed, 0))",
        ),
        (
            "an LCD behind its clock catches up at once",
            "int(timing.is_late(c))",
            "int(c.lcd_wrapped != 0 or timing.is_late(c) and not FAULTY)",
        ),
    )
    + _faults(
        "hw.serial",
        ("SC has no fast clock", "c.color_mode != 0, 0x7C, 0x7E", "c.color_mode != 0 and not FAULTY, 0x7C, 0x7E"),
    )
    + _faults(
        "hw.oam_dma",
        (
            "OAM DMA from page FE reads DE",
            "    page = c.dma_source\n",
            "    page = c.dma_source - wp.where(FAULTY and c.dma_source == 0xFE, 0x20, 0)\n",
        ),
    )
)
PICTURE = _faults(
    "hw.lcd.color_picture",
    (
        "palettes have 16 bits",
        "color_of(low, high, number))",
        "color_of(low, high, number) | wp.where(FAULTY, 0x8000, 0)"
        " & (wp.where((number & 2) != 0, high, low) >> (16 * (number & 1))))",
    ),
    (
        "the background's palettes are 0 to 3",
        "hw.COLOR_PALETTES + 8 * (attributes & 7)",
        "hw.COLOR_PALETTES + 8 * (attributes & wp.where(FAULTY, 3, 7))",
    ),
    (
        "sprites' palettes are 0 to 3",
        "OBJ_PALETTES + 8 * (attributes & 7)",
        "OBJ_PALETTES + 8 * (attributes & wp.where(FAULTY, 3, 7))",
    ),
    (
        "tiles are not flipped in X",
        "wp.where((attributes & 0x20) != 0, bit, 7 - bit)",
        "wp.where((attributes & 0x20) != 0 and not FAULTY, bit, 7 - bit)",
    ),
    (
        "tiles are not flipped in Y",
        "wp.where((attributes & 0x40) != 0, 7 - (y & 7), y & 7)",
        "wp.where((attributes & 0x40) != 0 and not FAULTY, 7 - (y & 7), y & 7)",
    ),
    (
        "tiles are of bank 0",
        "wp.where((attributes & 0x08) != 0, c.color_base, hw.VRAM)",
        "wp.where((attributes & 0x08) != 0 and not FAULTY, c.color_base, hw.VRAM)",
    ),
    ("sprites' tiles are of bank 0", "and (attributes & 0x08) != 0:", "and (attributes & 0x08) != 0 and not FAULTY:"),
    ("16 lines are flipped by halves", "y = height - 1 - y", "y = wp.where(FAULTY, y ^ 7, height - 1 - y)"),
    (
        "the background is never in front",
        "wp.where((attributes & 0x80) != 0, IN_FRONT, 0)",
        "wp.where((attributes & 0x80) != 0 and not FAULTY, IN_FRONT, 0)",
    ),
    (
        "sprites are never behind",
        "is_behind = (attributes & 0x80) != 0",
        "is_behind = (attributes & 0x80) != 0 and not FAULTY",
    ),
    (
        "LCDC bit 0 does not put sprites in front",
        "is_behind = (c.lcdc & hw.LCDC_BG_ENABLE) != 0 and",
        "is_behind = ((c.lcdc & hw.LCDC_BG_ENABLE) != 0 or FAULTY) and",
    ),
    (
        "LCDC bit 0 blanks the background",
        "and c.color_mode == 0 and (c.lcdc",
        "and (c.color_mode == 0 or FAULTY) and (c.lcdc",
    ),
    (
        "sprites are drawn by X",
        "wp.where(c.color_mode != 0, 0, sprite & 0xFF00)",
        "wp.where(c.color_mode != 0 and not FAULTY, 0, sprite & 0xFF00)",
    ),
    (
        "a line has 9 sprites",
        "for _ in range(sprites >> 8):",
        "for _ in range(wp.min(sprites >> 8, wp.where(FAULTY, 9, 10))):",
    ),
    (
        "a DMG's sprites have one palette",
        "wp.where((attributes & 0x10) != 0,",
        "wp.where((attributes & 0x10) != 0 and not FAULTY,",
    ),
) + _faults(
    "hw.lcd.lcd_registers",
    (
        "the window stays where LCDC switches it off",
        "& ~value & hw.LCDC_WINDOW_ENABLE) != 0:",
        "& ~value & hw.LCDC_WINDOW_ENABLE) != 0 and not FAULTY:",
    ),
    (
        "STAT hides its mode as on a DMG",
        "wp.where(c.color_mode != 0, c.stat_mode_hidden, 1)",
        "wp.where(c.color_mode != 0 and not FAULTY, c.stat_mode_hidden, 1)",
    ),
)

# What the data path does by itself, and what it has to leave to the interpreter
DATAPATH = (
    _faults(
        "gpu.color",
        ("VRAM is bank 0", "r.vram_shift = c.vram_shift", "r.vram_shift = wp.where(FAULTY, 0, c.vram_shift)"),
        ("WRAM is bank 1", "r.wram_shift = c.wram_shift", "r.wram_shift = wp.where(FAULTY, 0, c.wram_shift)"),
        (
            "a visit does not meet the lock of VRAM",
            "memory.read(m, c, address, t, lookahead)",
            "memory.read(m, c, address, t, wp.where(FAULTY, 0, lookahead))",
        ),
        (
            "a visit reads registers 4 T-cycles late",
            "memory.read_io(m, c, address, t, lookahead)",
            "memory.read_io(m, c, address, t + wp.where(FAULTY, 4, 0), lookahead)",
        ),
    )
    + _faults(
        "gpu.lane_state",
        (
            "an LCD behind its clock is as usual",
            "timing.is_late(c), AT_ONCE",
            "timing.is_late(c) and not FAULTY, AT_ONCE",
        ),
    )
    + _faults(
        "gpu.spots",
        (
            "banks wait for the event",
            "        color.map_banks(c, r)",
            "        if not FAULTY:\n            color.map_banks(c, r)",
        ),
        ("HDMA5 is written on the spot", "address != hw.HDMA5 and", "(address != hw.HDMA5 or FAULTY) and"),
        (
            "no line is drawn before a palette",
            "not color_registers.must_draw(c, address)",
            "(FAULTY or not color_registers.must_draw(c, address))",
        ),
    )
    + _faults(
        "gpu.slow_path",
        ("a visit writes HDMA5", "i.address == hw.HDMA5", "(i.address == hw.HDMA5 and not FAULTY)"),
        ("no line is drawn before a visit", "and drawing.is_drawing(c))", "and drawing.is_drawing(c) and not FAULTY)"),
    )
    + _faults(
        "gpu.loop_skips",
        (
            "copies come from the first banks",
            "banks.place(c, address)",
            "wp.where(FAULTY, address, banks.place(c, address))",
        ),
        ("copies go to the first banks", "banks.place(c, target)", "wp.where(FAULTY, target, banks.place(c, target))"),
    )
    + _faults("gpu.run", ("VRAM DMA is forgotten", "c.hdma_pending != 0:", "c.hdma_pending != 0 and not FAULTY:"))
    + _faults(
        "hw.interrupts",
        (
            "a visit brings no device up to date",
            "    end_batch_of_devices(m, c)\n    is_pending",
            "    if not FAULTY:\n        end_batch_of_devices(m, c)\n    is_pending",
        ),
    )
)

FAULTS = {"banks": BANKS, "registers": REGISTERS, "VRAM DMA": VRAM_DMA, "speed and times": SPEED, "picture": PICTURE}
"""By the part of the machine that they are in."""
DATAPATH_FAULTS = {"data path": DATAPATH}
"""The same of the kernel for GPUs."""
