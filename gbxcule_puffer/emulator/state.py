"""The machine's state, declared once: the Machine and Cpu structs, allocation and snapshots derive from this list.

Scalars are int32 rows of one array `state` (NUM_FIELDS, num_envs), so that a warp loads a row in one transaction. A
step copies the `hot` ones into a Cpu struct and back; the others are read in place. Times are T-cycles since the
start of the step. Memory is one row of uint8 for each env (hardware.py, "memory row").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge


@dataclass(frozen=True)
class Field:
    """One scalar of the state: `hot` fields live in the Cpu struct during a step, `is_time` ones are rebased."""

    name: str
    meaning: str
    hot: bool = True
    is_time: bool = False


def _fields(text: str, *, hot: bool = True, is_time: bool = False) -> list[Field]:
    """Fields from lines `name: meaning`."""
    pairs = (line.split(":", 1) for line in text.strip().splitlines())
    return [Field(name.strip(), meaning.strip(), hot, is_time) for name, meaning in pairs]


CPU_FIELDS = _fields("""
a: register A
f: flags, Z N H C in bits 7-4
b: register B
c: register C
d: register D
e: register E
h: register H
l: register L
sp: stack pointer
pc: program counter (on HALT while halted)
ime: interrupt master enable
ei_delay: instructions until EI takes effect, 0 if none is pending
halted: 1 in HALT, 2 if the next byte will be read twice (hardware's halt bug)
halted_after_ei: 1 if HALT followed EI directly, so that an interrupt returns to the HALT
locked: 1 after an illegal opcode
interrupt_flag: IF, 5 bits
interrupt_enable: IE, 8 bits
""")
LCD_FIELDS = _fields("""
lcdc: LCDC
stat: STAT with mode and coincidence bits, bit 7 set
ly: LY
lyc: LYC
scy: SCY
scx: SCX
wy: WY
wx: WX
bgp: BGP
obp0: OBP0
obp1: OBP1
lcd_next_mode: mode that the next mode change enters
lcd_transition: 0 mode change, 1 LY increases, 2 mode 2 starts 4 T-cycles after LY increased
lcd_first_frame: 1 during the first frame after switching on
lcd_restart: 1 from switching on until the LCD restarts
stat_mode_hidden: 1 if the next STAT read returns mode 0 (LYC was changed while the LCD was off)
lyc_written_off: 1 if LYC was written while the LCD was off
stat_line: level of the STAT interrupt line
mode3_extra: T-cycles by which mode 3 of this line differs from 172
window_hit: 1 once LY was equal to WY in this frame
window_first: line at which that was so
window_line: the window's own line counter, -1 before its first line
frame_done: 1 from the end of a frame until the step takes notice
""")
TIMER_FIELDS = _fields("""
tima: TIMA
tma: TMA
tac: TAC, 3 bits
tima_reload: 0 idle, 1 TIMA overflowed and reads 00, 2 TMA is being loaded
tima_reload_count: T-cycles left in that state, at timer_last
""")
OTHER_FIELDS = _fields("""
serial_control: SC
serial_count: bytes written to SB so far
dma_active: 1 while an OAM DMA is under way
dma_source: last value written to DMA
dma_index: bytes copied
p1: P1 as worked out at its last write
buttons: buttons held, as in Emulator.step; during a step in bits 8-15 those that it pressed
rom_low: index in the ROM of address 0000
rom_high: index in the ROM of address 4000, minus 4000h
ram_enabled: 1 if cartridge RAM is readable
ram_bank: selected cartridge RAM bank, or RTC register 08-0C
ram_offset: place of that bank in the memory row, -1 if no such bank exists
bank1: MBC1's 5-bit and MBC5's 9-bit bank register
bank2: MBC1's 2-bit bank register
banking_mode: MBC1's banking mode
""")
STEP_FIELDS = _fields("""
frames_left: frames until the step is over
release_at: frames left when the buttons are released
render: 1 in the frame that is drawn
next_line: first line of that frame that is not drawn yet
drawing: 1 while the step waits at VBlank for the picture to be drawn
executed: instructions executed in this step
now: time in the step while it waits
""")
TIME_FIELDS = _fields(
    """
lcd_zero: when the LCD's frame clock was 0
lcd_target: when the LCD's next change is due
lcd_last: when the LCD was last brought up to date
timer_last: when the timer was last brought up to date
timer_next: when TIMA overflows or is reloaded, NEVER if the timer is off
div_zero: when the 16-bit divider was 0
serial_end: when the serial transfer ends, NEVER if none is under way
dma_start: reference time of the OAM DMA
""",
    is_time=True,
)
RTC_FIELDS = _fields(
    """
rtc_t_cycles: T-cycles into the current second
rtc_seconds: seconds
rtc_minutes: minutes
rtc_hours: hours
rtc_day_low: day counter bits 7-0
rtc_day_high: day counter bit 8
rtc_halt: 1 if the clock is stopped
rtc_day_carry: day counter overflowed
rtc_latched: 1 after 01 was written to the latch
rtc_latch_seconds: latched seconds
rtc_latch_minutes: latched minutes
rtc_latch_hours: latched hours
rtc_latch_day_low: latched day bits 7-0
rtc_latch_day_high: latched day bit 8
cycles_low: T-cycles since power-on, bits 29-0
cycles_high: T-cycles since power-on, from bit 30
instructions: instructions executed in the last step
""",
    hot=False,
)
RTC_TIME_FIELDS = _fields("rtc_last: when the RTC was last brought up to date", hot=False, is_time=True)

FIELDS: list[Field] = [
    *CPU_FIELDS, *LCD_FIELDS, *TIMER_FIELDS, *OTHER_FIELDS, *STEP_FIELDS, *TIME_FIELDS, *RTC_FIELDS, *RTC_TIME_FIELDS,
]  # fmt: skip
INDEX: dict[str, int] = {field.name: index for index, field in enumerate(FIELDS)}
NUM_FIELDS = len(FIELDS)
HOT_FIELDS = [field for field in FIELDS if field.hot]
# The last visit to a loop that polls RAM: where, with which registers, and when (cpu/wait_loops.py).
POLL_FIELDS = ("poll_pc", "poll_af", "poll_low", "poll_hl", "poll_event", "poll_now")
# What only lives during a step: not part of the state. overrun: a register was written, but PyBoy's batch went on, so
# that the LCD may have changes pending, or a frame be over, within the batch. changes: of memory (hw/counters.py).
SCRATCH_FIELDS = ("env", "previous", "next_event", "batch_end", "ei_end", "settle_from", "overrun", "code", "skipped",
                  "changes", *POLL_FIELDS)  # fmt: skip
POINTERS = ("row", "rom", "words")
"""Addresses: of the env's memory row (minus 8000h), of the ROM, and of Machine.code."""


def _struct(name: str, members: dict[str, object]):
    """A Warp struct from member types."""
    return wp.struct(type(name, (), {"__annotations__": members, "__module__": __name__}))


_CPU_MEMBERS: dict[str, object] = dict.fromkeys((*(f.name for f in HOT_FIELDS), *SCRATCH_FIELDS), wp.int32)
Cpu = _struct("Cpu", _CPU_MEMBERS | dict.fromkeys(POINTERS, wp.uint64))
"""Registers and per-step scratch of one env; passed as wp.ref[Cpu]."""

Machine = _struct(
    "Machine",
    {
        "rom": wp.array(dtype=wp.uint8),
        "code": wp.array(dtype=wp.int32),
        "waits": wp.array(dtype=wp.int32),
        "descriptors": wp.array(dtype=wp.vec4i),
        "op_length": wp.array(dtype=wp.uint8),
        "memory": wp.array2d(dtype=wp.uint8),
        "state": wp.array2d(dtype=wp.int32),
        "screen": wp.array3d(dtype=wp.uint8),
        "skipped": wp.array(dtype=wp.int32),
        "order": wp.array(dtype=wp.int32),
        "counts": wp.array2d(dtype=wp.int64),
        "marks": wp.array2d(dtype=wp.int32),
        "mapper": wp.int32,
        "rom_banks": wp.int32,
        "ram_banks": wp.int32,
        "has_rtc": wp.int32,
        "has_plain_ram": wp.int32,
        "pixel_step": wp.int32,
        "draw_later": wp.int32,
    },
)
"""Arrays of all envs: rom (bytes), code (3 bytes a word, by ROM index, and a
mark where a loop of `waits` begins: its number from 1 in bits 24-30), descriptors (of the ROM, for the data path),
memory (num_envs, row), state (fields, num_envs), screen (num_envs, 144 / pixel_step, 160 / pixel_step), skipped
(num_envs; instructions of the last step that were skipped with their loops, not part of the state), order (num_envs;
the env of each lane, for the data path), counts and marks (hw/counters.py; empty where nothing is counted); sizes and
kinds of the cartridge; has_plain_ram: A000-BFFF is memory without side effects where it shows bank 0; draw_later: the
picture is drawn by a kernel of its own while the step waits at VBlank."""


def describe(machine: Any, cartridge: Cartridge) -> None:
    """Set what the kernels know of a cartridge."""
    machine.mapper, machine.rom_banks = cartridge.mapper.number, cartridge.rom_banks
    machine.ram_banks, machine.has_rtc = cartridge.ram_banks, int(cartridge.has_rtc)
    machine.has_plain_ram = int(cartridge.mapper.has_plain_ram and not cartridge.has_rtc)


def row_size(ram_banks: int) -> int:
    """Bytes of an env's memory row: bank 0 of the cartridge RAM lies at A000, the others follow FFFF."""
    return hw.ROW_SIZE + max(0, ram_banks - 1) * hw.RAM_BANK_SIZE
