"""Faults that `python -m tests.fuzz.planted` plants into the device code of a Game Boy Color, each by itself."""

from __future__ import annotations

from dataclasses import dataclass

from gbxcule_puffer.emulator.build.instantiate import Edit


@dataclass(frozen=True)
class Fault:
    """A wrong machine: an edit of the device code, in which FAULTY is true in the fault's own environment alone."""

    name: str
    edit: Edit

    def in_env(self, env: int) -> Edit:
        """The edit that makes an environment faulty."""
        edit = self.edit
        return Edit(edit.module, edit.function, edit.pattern, edit.replacement.replace("FAULTY", f"(c.env == {env})"))


def _faults(module: str, *rows: tuple[str, str, str, str]) -> tuple[Fault, ...]:
    """The faults of a module, as name, function, pattern and replacement."""
    return tuple(Fault(name, Edit(module, *edit)) for name, *edit in rows)


BANKS = _faults(
    "hw.color.banks",
    ("VBK does nothing", "map_banks", "c.vram_bank != 0", "IT and not FAULTY"),
    ("SVBK 0 is not bank 1", "map_banks", "c.wram_bank > 1", "IT or (FAULTY and c.wram_bank == 0)"),
    ("SVBK has 2 bits", "map_banks", "c.wram_bank - 2", "wp.where(FAULTY, c.wram_bank & 3, c.wram_bank) - 2"),
    ("code in WRAM is fetched from bank 1", "is_unshifted", "c.wram_shift == 0", "IT or FAULTY"),
) + _faults(
    "hw.memory",
    (
        "the echo reads bank 1",
        "read",
        "banks.row_offset(c, hw.WRAM + (address & 0x1FFF))",
        "wp.where(FAULTY, hw.WRAM + (address & 0x1FFF), IT)",
    ),
    (
        "VRAM stays open in the last 4 T-cycles of mode 2 at double speed",
        "is_vram_locked",
        "left >> c.double_speed",
        "wp.where(FAULTY, left, IT)",
    ),
)
READ = "color_registers.read(c, address, t)"
WRITE = "color_registers.write(m, c, address, value, t, lookahead)"
REGISTERS = (
    _faults(
        "hw.memory",
        ("KEY1 reads its unused bits as 1", "read_io", READ, "IT | wp.where(FAULTY and address == hw.KEY1, 0x7E, 0)"),
        ("VBK reads its unused bits as 0", "read_io", READ, "IT & ~wp.where(FAULTY and address == hw.VBK, 0xFE, 0)"),
        ("SVBK reads 1 for 0", "read_io", READ, "IT | int(FAULTY and address == hw.SVBK and c.wram_bank == 0)"),
    )
    + _faults(
        "hw.bus",
        ("OPRI keeps its first value", "", WRITE, "value = wp.where(FAULTY and address == hw.OPRI, 0, value)\nIT"),
        ("FF74 is not kept", "", WRITE, "value = wp.where(FAULTY and address == 0xFF74, 0, value)\nIT"),
        ("FF75 keeps all bits", "", WRITE, "IT\nif FAULTY and address == 0xFF75:\n    c.undocumented_75 = value"),
    )
    + _faults(
        "hw.color.registers",
        (
            "BCPS goes past its last byte",
            "write_bcpd",
            "next_index(c.bg_index)",
            "wp.where(FAULTY and c.bg_index == 0xBF, 0x80, IT)",
        ),
        (
            "OCPS counts without bit 7",
            "write_ocpd",
            "next_index(c.obj_index)",
            "IT + int(FAULTY and c.obj_index < 0x3F)",
        ),
        ("a palette changes lines that are over", "must_draw", "drawing.is_drawing(c)", "IT and not FAULTY"),
    )
)
VRAM_DMA = _faults(
    "hw.color.registers",
    (
        "HDMA2 keeps 8 bits",
        "write_hdma2",
        "(c.hdma_source & 0xFF00) | (value & 0xF0)",
        "(c.hdma_source & 0xFF00) | (value & wp.where(FAULTY, 0xFF, 0xF0))",
    ),
    ("HDMA3 keeps 8 bits", "write_hdma3", "value & 0x1F", "value & wp.where(FAULTY, 0xFF, 0x1F)"),
    ("the target does not wrap at A000", "count_block", "c.hdma_target == 0xA000", "IT and not FAULTY"),
    ("the source does not wrap at 8000", "count_block", "c.hdma_source == 0x8000", "IT and not FAULTY"),
    ("a transfer of VRAM DMA has a block less to go", "count_block", "c.hdma5 - 1", "wp.max(IT - int(FAULTY), 0)"),
    (
        "a stopped transfer reads its length",
        "start_hdma",
        "c.hdma5 = 0x80",
        "c.hdma5 = wp.where(FAULTY, 0x80 | c.hdma5, 0x80)",
    ),
    (
        "a general transfer leaves the source",
        "start_hdma",
        "c.hdma_source + count",
        "c.hdma_source + wp.where(FAULTY, 0, count)",
    ),
    (
        "with the LCD off no block is copied at once",
        "start_hdma",
        "(c.lcdc & hw.LCDC_ENABLE) == 0",
        "IT and not FAULTY",
    ),
) + _faults(
    "hw.color.hdma",
    ("VRAM DMA goes on in HALT", "is_due", "c.halted == 0", "IT or FAULTY"),
    ("a block takes 4 T-cycles more", "pass_block", "c.now + BLOCK_T_CYCLES", "IT + 4 * int(FAULTY)"),
    ("a batch ends at HBlank in T-cycles of the CPU", "end_of_batch", "c.double_speed", "wp.where(FAULTY, 0, IT)"),
    (
        "what a transfer writes to HDMA1 to HDMA4 stays",
        "copy",
        "c.hdma_source = source",
        "c.hdma_source = wp.where(FAULTY, c.hdma_source, source)",
    ),
    ("a transfer reads HDMA5 as it is after it", "copy", "c.hdma_length", "wp.where(FAULTY, c.hdma5, IT)"),
)
SPEED = (
    _faults(
        "hw.color.speed",
        ("the switch leaves KEY1's bit 0", "switch_speed", "c.key1 ^ 0x81", "c.key1 ^ wp.where(FAULTY, 0x80, 0x81)"),
        ("STOP switches without KEY1", "stop", "(c.key1 & 1) != 0", "IT or FAULTY"),
        (
            "STOP clears DIV only where it switches",
            "stop",
            "bus.write(m, c, hw.DIV, 0, c.now, 0)",
            "if not FAULTY:\n    IT",
        ),
        (
            "what the LCD requests at the switch comes",
            "switch_speed",
            "c.interrupt_flag = requested",
            "c.interrupt_flag = wp.where(FAULTY, c.interrupt_flag, requested)",
        ),
    )
    + _faults(
        "hw.timer",
        ("the timer keeps its speed", "", "period_shift(c.tac)", "IT + wp.where(FAULTY, c.double_speed, 0)"),
    )
    + _faults(
        "hw.lcd.timing",
        ("odd T-cycles are not lost", "look", "(t - c.lcd_last) & 1", "wp.where(FAULTY, 0, IT)"),
        ("the clock does not wrap", "look", "1 - c.lcd_wrapped", "wp.where(FAULTY, 0, IT)"),
        ("VBlank's STAT interrupt comes with VBlank", "look", "is_early_vblank(c)", "IT and not FAULTY"),
    )
    + _faults(
        "hw.lcd.ppu",
        ("mode 3 has 172 T-cycles", "", "clock.MODE0_DOT", "IT + wp.where(FAULTY, 2, 0)"),
        (
            "HBlank is 4 dots shorter at double speed",
            "enter_hblank",
            "wp.where(is_first, clock.FIRST_LY_DOT, _) - begin",
            "IT - wp.where(FAULTY, 4 * c.double_speed, 0)",
        ),
        (
            "an LCD behind its clock catches up at once",
            "is_quiet",
            "timing.is_late(c)",
            "c.lcd_wrapped != 0 or IT and not FAULTY",
        ),
    )
    + _faults(
        "hw.serial",
        ("SC has no fast clock", "write_control", "c.color_mode != 0", "IT and not FAULTY"),
    )
    + _faults(
        "hw.oam_dma",
        ("OAM DMA from page FE reads DE", "advance", "c.dma_source", "IT - wp.where(FAULTY and IT == 0xFE, 0x20, 0)"),
    )
)
PICTURE = (
    _faults(
        "hw.lcd.color_picture",
        (
            "palettes have 16 bits",
            "",
            "color_of(low, high, number)",
            "IT | wp.where(FAULTY, 0x8000, 0) & (wp.where((number & 2) != 0, high, low) >> (16 * (number & 1)))",
        ),
        (
            "the background's palettes are 0 to 3",
            "background_colors",
            "attributes & 7",
            "attributes & wp.where(FAULTY, 3, 7)",
        ),
        ("sprites' palettes are 0 to 3", "sprite_colors", "attributes & 7", "attributes & wp.where(FAULTY, 3, 7)"),
        ("tiles are not flipped in X", "draw_background", "(attributes & 0x20) != 0", "IT and not FAULTY"),
        ("tiles are not flipped in Y", "draw_background", "(attributes & 0x40) != 0", "IT and not FAULTY"),
        ("tiles are of bank 0", "draw_background", "(attributes & 0x08) != 0", "IT and not FAULTY"),
        ("the background is never in front", "draw_background", "(attributes & 0x80) != 0", "IT and not FAULTY"),
        ("sprites are never behind", "is_hidden", "(sprite & render.BEHIND) != 0", "IT and not FAULTY"),
        ("LCDC bit 0 does not put sprites in front", "is_hidden", "(c.lcdc & hw.LCDC_BG_ENABLE) != 0", "IT or FAULTY"),
        ("LCDC bit 0 blanks the background", "draw_background", "c.color_mode == 0", "IT or FAULTY"),
        ("a DMG's sprites have one palette", "sprite_colors", "(attributes & 0x10) != 0", "IT and not FAULTY"),
    )
    + _faults(
        "hw.lcd.render",
        ("sprites' tiles are of bank 0", "sprite_planes", "(sprite & SECOND_BANK) != 0", "IT and not FAULTY"),
        ("16 lines are flipped by halves", "sprite_planes", "height - 1 - y", "wp.where(FAULTY, y ^ 7, IT)"),
    )
    + _faults(
        "hw.lcd.sprites",
        ("sprites are drawn by X", "rank", "c.color_mode != 0", "IT and not FAULTY"),
        ("a line has 9 sprites", "first_ten", "MOST_ON_LINE", "wp.where(FAULTY, 9, IT)"),
    )
    + _faults(
        "hw.lcd.lcd_registers",
        (
            "the window stays where LCDC switches it off",
            "write_lcdc",
            "(c.lcdc & ~value & hw.LCDC_WINDOW_ENABLE) != 0",
            "IT and not FAULTY",
        ),
        (
            "STAT hides its mode as on a DMG",
            "write_lcdc",
            "wp.where(c.color_mode != 0, c.stat_mode_hidden, 1)",
            "wp.where(c.color_mode != 0 and not FAULTY, c.stat_mode_hidden, 1)",
        ),
    )
)
# What the data path does by itself, and what it has to leave to the interpreter
DATAPATH = (
    _faults(
        "gpu.color",
        ("VRAM is bank 0", "map_banks", "c.vram_shift", "wp.where(FAULTY, 0, IT)"),
        ("WRAM is bank 1", "map_banks", "c.wram_shift", "wp.where(FAULTY, 0, IT)"),
        (
            "a visit does not meet the lock of VRAM",
            "read_memory",
            "memory.read(m, c, address, t, lookahead)",
            "memory.read(m, c, address, t, wp.where(FAULTY, 0, lookahead))",
        ),
        (
            "a visit reads registers 4 T-cycles late",
            "read_memory",
            "memory.read_io(m, c, address, t, lookahead)",
            "memory.read_io(m, c, address, t + wp.where(FAULTY, 4, 0), lookahead)",
        ),
    )
    + _faults(
        "gpu.lane_state",
        ("an LCD behind its clock is as usual", "from_cpu", "timing.is_late(c)", "IT and not FAULTY"),
    )
    + _faults(
        "gpu.spots",
        ("banks wait for the event", "end_touch", "color.map_banks(c, r)", "if not FAULTY:\n    IT"),
        ("HDMA5 is written on the spot", "touch_color", "address != hw.HDMA5", "IT or FAULTY"),
        (
            "no line is drawn before a palette",
            "touch_color",
            "not color_registers.must_draw(c, address)",
            "FAULTY or IT",
        ),
    )
    + _faults(
        "gpu.slow_path",
        ("a visit writes HDMA5", "may_write", "i.address == hw.HDMA5", "IT and not FAULTY"),
        ("no line is drawn before a visit", "access", "drawing.is_drawing(c)", "IT and not FAULTY"),
    )
    + _faults(
        "loops.skip",
        (
            "copies come from the first banks",
            "source_at",
            "memory_at(c, address)",
            "wp.where(FAULTY, c.row + wp.uint64(address), IT)",
        ),
        (
            "copies go to the first banks",
            "copy",
            "memory_at(c, target)",
            "wp.where(FAULTY, c.row + wp.uint64(target), IT)",
        ),
    )
    + _faults(
        "cpu.instruction",
        ("VRAM DMA is forgotten", "perform", "c.hdma_pending != 0", "IT and not FAULTY"),
    )
    + _faults(
        "hw.interrupts",
        ("a visit brings no device up to date", "next_batch", "end_batch_of_devices(m, c)", "if not FAULTY:\n    IT"),
    )
)

FAULTS = {"banks": BANKS, "registers": REGISTERS, "VRAM DMA": VRAM_DMA, "speed and times": SPEED, "picture": PICTURE}
"""By the part of the machine that they are in."""
DATAPATH_FAULTS = {"data path": DATAPATH}
"""The same of the kernel for GPUs."""
