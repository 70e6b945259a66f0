"""The machine's state, declared once. Structs, allocation, snapshots and the limits of files follow from this list.

Scalars are int32 rows of one array `state` (NUM_FIELDS, num_envs), so that a warp loads a row in one transaction. A
step copies the `hot` fields into a Cpu struct and back; the others are read in place. Times are T-cycles since the
start of the step. Memory is one row of uint8 per env (hardware.py, "memory row").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.errors import ConfigError

# Values of a field between two steps, by the names that the fields below use. Kernels use fields as addresses and as
# ends of loops, so a state from outside is loaded only if its fields are in range (snapshot.py).
RANGES = {
    "bit": (0, 1),
    "byte": (0, 0xFF),
    "word": (0, 0xFFFF),
    "zero": (0, 0),  # of use during a step only
    "count": (0, 0x7FFF_FFFF),
    "any": (-0x8000_0000, 0x7FFF_FFFF),
    "past": (-0x10_0000, 0),  # the slowest timer overflows in a quarter of that
    "near": (-0x10_0000, 0x10_0000),
    "bank": (-hw.ROM_BANK_SIZE, 0x7FFF_FFFF),  # of this cartridge: see allowed_banks
}
OR_NEVER = "?"  # suffix of the range of a time that may also be NEVER


@dataclass(frozen=True)
class Field:
    """One scalar of the state. `hot` fields are in the Cpu struct during a step; `is_time` fields are made relative to
    each step. Between two steps the value is from `low` to `high`, or NEVER if `may_be_never`."""

    name: str
    meaning: str
    low: int
    high: int
    hot: bool = True
    is_time: bool = False
    may_be_never: bool = False


def fields_of(text: str, *, hot: bool = True, is_time: bool = False) -> list[Field]:
    """Fields from lines `name range: meaning`; a range is one of RANGES, or `low..high`."""
    fields = []
    for line in text.strip().splitlines():
        words, meaning = line.split(":", 1)
        name, values = words.split()
        kind = values.removesuffix(OR_NEVER)
        low, high = RANGES[kind] if kind in RANGES else (int(bound, 0) for bound in kind.split(".."))
        fields.append(Field(name, meaning.strip(), low, high, hot, is_time, values != kind))
    return fields


CPU_FIELDS = fields_of("""
a byte: register A
f 0..0xF0: flags, Z N H C in bits 7-4
b byte: register B
c byte: register C
d byte: register D
e byte: register E
h byte: register H
l byte: register L
sp word: stack pointer
pc word: program counter (on HALT while halted)
ime bit: interrupt master enable
ei_delay bit: 1 if EI takes effect after the next instruction
halted 0..2: 1 in HALT, 2 if the next byte will be read twice (hardware's halt bug)
halted_after_ei bit: 1 if HALT followed EI directly, so that an interrupt returns to the HALT
locked bit: 1 after an illegal opcode, or beyond the instruction budget
interrupt_flag 0..0x1F: IF, 5 bits
interrupt_enable byte: IE, 8 bits
""")
LCD_FIELDS = fields_of("""
lcdc byte: LCDC
stat byte: STAT with mode and coincidence bits, bit 7 set
ly 0..153: LY
lyc byte: LYC
scy byte: SCY
scx byte: SCX
wy byte: WY
wx byte: WX
bgp byte: BGP
obp0 byte: OBP0
obp1 byte: OBP1
lcd_next_mode 0..3: mode that the next mode change enters
lcd_transition 0..2: 0 mode change, 1 LY increases, 2 mode 2 starts 4 T-cycles after LY increased
lcd_first_frame bit: 1 during the first frame after switching on
lcd_restart bit: 1 from switching on until the LCD restarts
stat_mode_hidden bit: 1 if the next STAT read returns mode 0 (LYC was changed while the LCD was off)
lyc_written_off bit: 1 if LYC was written while the LCD was off
stat_line bit: level of the STAT interrupt line
mode3_extra -4..120: T-cycles by which mode 3 of this line differs from 172
window_hit bit: 1 once LY was equal to WY in this frame
window_first 0..143: line at which that was so
window_line any: the window's own line counter, -1 before its first line
frame_done bit: 1 from the end of a frame until the step takes notice
""")
TIMER_FIELDS = fields_of("""
tima byte: TIMA
tma byte: TMA
tac 0..7: TAC, 3 bits
tima_reload 0..2: 0 idle, 1 TIMA overflowed and reads 00, 2 TMA is being loaded
tima_reload_count 0..4: T-cycles left in that state, at timer_last
""")
OTHER_FIELDS = fields_of("""
serial_control byte: SC
serial_count any: bytes written to SB so far
dma_active bit: 1 while an OAM DMA is under way
dma_source byte: last value written to DMA
dma_index 0..160: bytes copied
p1 byte: P1 as worked out at its last write
buttons word: buttons held, as in Emulator.step; during a step in bits 8-15 those that it pressed
rom_low bank: index in the ROM of address 0000
rom_high bank: index in the ROM of address 4000, minus 4000h
ram_enabled bit: 1 if cartridge RAM is readable
ram_bank 0..255: selected cartridge RAM bank, or RTC register 08-0C
ram_offset bank: offset of that bank in the memory row, -1 if no such bank exists
bank1 0..0x1FF: MBC1's 5-bit and MBC5's 9-bit bank register
bank2 0..3: MBC1's 2-bit bank register
banking_mode bit: MBC1's banking mode
""")
STEP_FIELDS = fields_of("""
frames_left 0..20000: frames until the step is over
release_at 0..20000: frames left when the buttons are released
render zero: 1 in the frame that is drawn
next_line 0..144: first line of that frame that is not drawn yet
drawing zero: 1 while the step waits at VBlank for the picture to be drawn
executed zero: instructions executed in this step
now zero: time in the step while it waits
""")
TIME_FIELDS = fields_of(
    """
lcd_zero past: when the LCD's frame clock was 0
lcd_target near: when the LCD's next change is due
lcd_last past: when the LCD was last brought up to date
timer_last past: when the timer was last brought up to date
timer_next near?: when TIMA overflows or is reloaded, NEVER if the timer is off
div_zero -0x10000..0: when the 16-bit divider was 0
serial_end near?: when the serial transfer ends, NEVER if none is under way
dma_start -0x10000..0x10000: reference time of the OAM DMA
""",
    is_time=True,
)
RTC_FIELDS = fields_of(
    """
rtc_t_cycles 0..4194303: T-cycles into the current second
rtc_seconds 0..0x3F: seconds
rtc_minutes 0..0x3F: minutes
rtc_hours 0..0x1F: hours
rtc_day_low byte: day counter bits 7-0
rtc_day_high bit: day counter bit 8
rtc_halt bit: 1 if the clock is stopped
rtc_day_carry bit: day counter overflowed
rtc_latched bit: 1 after 01 was written to the latch
rtc_latch_seconds 0..0x3F: latched seconds
rtc_latch_minutes 0..0x3F: latched minutes
rtc_latch_hours 0..0x1F: latched hours
rtc_latch_day_low byte: latched day bits 7-0
rtc_latch_day_high bit: latched day bit 8
cycles_low 0..0x3FFFFFFF: T-cycles since power-on, bits 29-0
cycles_high count: T-cycles since power-on, from bit 30
instructions count: instructions executed in the last step
""",
    hot=False,
)
COLOR_FIELDS = fields_of("""
color_mode bit: 1 where the cartridge is for the Game Boy Color, 0 where a DMG's runs on one
double_speed bit: 1 while the CPU runs twice as fast
lcd_wrapped bit: 1 from where PyBoy's clock of the LCD, an unsigned number, ran backwards at double speed
key1 byte: KEY1 as written, bit 7 the speed
vram_bank bit: VBK
wram_bank 0..7: SVBK, 0 meaning 1
bg_index byte: BCPS
obj_index byte: OCPS
object_priority byte: OPRI
hdma1 byte: HDMA1
hdma2 byte: HDMA2
hdma3 byte: HDMA3
hdma4 byte: HDMA4
hdma5 byte: HDMA5 as a read gives it
hdma_active bit: 1 while HBlanks copy
hdma_source word: next byte that VRAM DMA copies
hdma_target word: where to
undocumented_72 byte: FF72
undocumented_73 byte: FF73
undocumented_74 byte: FF74
undocumented_75 byte: FF75
""")
RTC_TIME_FIELDS = fields_of("rtc_last -0x800000..0: when the RTC was last brought up to date", hot=False, is_time=True)

FIELDS: list[Field] = [
    *CPU_FIELDS, *LCD_FIELDS, *TIMER_FIELDS, *OTHER_FIELDS, *STEP_FIELDS, *TIME_FIELDS, *RTC_FIELDS, *RTC_TIME_FIELDS,
]  # fmt: skip
INDEX: dict[str, int] = {field.name: index for index, field in enumerate((*FIELDS, *COLOR_FIELDS))}
"""Rows of the state by name; those of COLOR_FIELDS only a Game Boy Color has."""
LCD_REGISTERS = ("lcdc", "scy", "scx", "wy", "wx")  # those that say what of VRAM is on the screen
NUM_FIELDS = len(FIELDS)
NUM_COLOR_FIELDS = NUM_FIELDS + len(COLOR_FIELDS)  # of a Game Boy Color's state
HOT_FIELDS = [field for field in FIELDS if field.hot]
HOT_COLOR_FIELDS = [*HOT_FIELDS, *COLOR_FIELDS]
_LOW, _HIGH = (
    np.array([getattr(field, end) for field in (*FIELDS, *COLOR_FIELDS)], np.int32)[:, None] for end in ("low", "high")
)
_COLOR_HIGH = _HIGH.copy()
_COLOR_HIGH[INDEX["lcd_transition"]] = 3  # hw/lcd/clock.py, EARLY_VBLANK
_MAY_BE_NEVER = np.array([field.may_be_never for field in (*FIELDS, *COLOR_FIELDS)])[:, None]
# The last visit to a loop that polls RAM: its address, registers and time (loops/skip.py).
POLL_FIELDS = ("poll_pc", "poll_f", "poll_low", "poll_high", "poll_event", "poll_now")
# Members that exist only during a step: not part of the state. previous, before: when the last two instructions began
# (before: with sound). overrun: a register was written, but PyBoy's batch
# continued, so the LCD may have pending changes, or a frame may have ended. changes: of memory (hw/counters.py).
SCRATCH_FIELDS = ("env", "previous", "before", "next_event", "batch_end", "ei_end", "settle_from", "overrun", "code",
                  "skipped", "changes", *POLL_FIELDS)  # fmt: skip
# The same for a Game Boy Color. color_base: its part of the row, relative to ROW_BASE (hw/color/banks.py); vram_shift
# and wram_shift: from an address to the selected bank. hdma_pending: bytes to copy from hdma_from to hdma_to after
# the instruction; the other hdma members are the copy's arguments (hw/color/hdma.py). lcd_due: timing.py.
COLOR_SCRATCH_FIELDS = ("color_base", "vram_shift", "wram_shift", "hdma_pending", "hdma_from", "hdma_to", "hdma_time",
                        "hdma_lookahead", "hdma_length", "lcd_due")  # fmt: skip
POINTERS = ("row", "rom", "words")
"""Addresses: of the env's memory row (minus 8000h), of the ROM, and of Machine.code."""


def _struct(name: str, members: dict[str, object]):
    """A Warp struct from member types."""
    return wp.struct(type(name, (), {"__annotations__": members, "__module__": __name__}))


_CPU_MEMBERS: dict[str, object] = dict.fromkeys((*(f.name for f in HOT_FIELDS), *SCRATCH_FIELDS), wp.int32)
Cpu = _struct("Cpu", _CPU_MEMBERS | dict.fromkeys(POINTERS, wp.uint64))
"""Registers and per-step scratch of one env; passed as wp.ref[Cpu]."""
_COLOR_MEMBERS = _CPU_MEMBERS | dict.fromkeys((*(f.name for f in COLOR_FIELDS), *COLOR_SCRATCH_FIELDS), wp.int32)
ColorCpu = _struct("ColorCpu", _COLOR_MEMBERS | dict.fromkeys(POINTERS, wp.uint64))
"""The same of a Game Boy Color, whose kernels have it instead of Cpu (build/variant.py)."""

ARRAYS = """
rom uint8[bytes]: the ROM, the same for all envs, as all up to op_length
code int32[bytes]: by index in the ROM three bytes, and in bits 24-30 the mark of a loop that begins there, or a hook
waits int32[entries]: what is known of these loops (loops/table.py)
descriptors vec4i[entries]: the ROM for the data path (gpu/descriptors.py)
areas uint8[addresses]: the area of each address, for the data path (hw/areas.py)
op_length uint8[opcodes]: bytes of an instruction
memory uint8[num_envs, row]: memory rows (hardware.py)
state int32[fields, num_envs]: FIELDS, and after them COLOR_FIELDS of a Game Boy Color
screen uint8[num_envs, rows, columns]: the picture, 144 / pixel_step x 160 / pixel_step
skipped int32[num_envs]: instructions of the last step that were skipped with their loops, not part of the state
hooks int32[hooks, num_envs]: executions of the last step (probes/hooks.py)
until int32[tests, 5]: what ends a step early (probes/until.py)
frames int32[num_envs]: how many the last step took, or how many this one is to take
order int32[lanes]: the env of each lane, -1 for none, for the data path, as the next two (gpu/schedule/)
took int32[num_envs]: how long the step took
path int32[num_envs]: a hash of the step's frames
counts int64[events, columns]: for `puffer profile` (hw/counters.py), as the next; empty where nothing is counted
marks int32[num_envs, columns]: what was counted up to
"""
OF_CARTRIDGE: dict[str, Callable[[Cartridge], int]] = {
    "mapper": lambda cartridge: cartridge.mapper.number,
    "rom_banks": lambda cartridge: cartridge.rom_banks,
    "bank_mask": lambda cartridge: cartridge.rom_banks - 1 if _selects_rom_at_once(cartridge) else 0,
    "ram_banks": lambda cartridge: cartridge.ram_banks,
    "has_rtc": lambda cartridge: cartridge.has_rtc,
    # A000-BFFF is memory without side effects where it shows bank 0
    "has_plain_ram": lambda cartridge: cartridge.mapper.has_plain_ram and not cartridge.has_rtc,
}
SETTINGS = (
    "pixel_step",  # 1, or 2 for every second pixel of every second line
    "draw_later",  # 1 where the picture is drawn by a kernel of its own while the step waits at VBlank
    "instruction_budget",  # instructions of a step after which an env is locked, 0 for any number
)


def _arrays(text: str) -> dict[str, object]:
    """Members from lines `name type[sizes]: meaning`."""
    kinds = (wp.array, wp.array2d, wp.array3d)
    members: dict[str, object] = {}
    for line in text.strip().splitlines():
        name, declared = line.split(":", 1)[0].split(" ", 1)
        dtype, sizes = declared.removesuffix("]").split("[")
        members[name] = kinds[sizes.count(",")](dtype=getattr(wp, dtype))
    return members


NATIVE = {"native": wp.uint64}  # on a CPU, where the address of the ROM's native code and its numbers are (pieces/)
Machine = _struct("Machine", _arrays(ARRAYS) | dict.fromkeys((*OF_CARTRIDGE, *SETTINGS), wp.int32) | NATIVE)
"""All envs: ARRAYS, then numbers that they share."""


def _selects_rom_at_once(cartridge: Cartridge) -> bool:
    """True where mbc.select_rom_at_once knows how a bank is selected."""
    return cartridge.mapper.selects_rom_at_once and cartridge.rom_banks.bit_count() == 1


def describe(machine: object, cartridge: Cartridge) -> None:
    """Set the members that describe a cartridge to the kernels."""
    for name, value in OF_CARTRIDGE.items():
        setattr(machine, name, int(value(cartridge)))


def row_size(ram_banks: int) -> int:
    """Bytes of an env's memory row: bank 0 of the cartridge RAM is at A000, the others follow FFFF."""
    return hw.ROW_SIZE + max(0, ram_banks - 1) * hw.RAM_BANK_SIZE


def color_row_size(ram_banks: int, pixel_step: int) -> int:
    """The same for a Game Boy Color: VRAM and WRAM banks, palettes and the picture's colours follow."""
    return row_size(ram_banks) + hw.COLOR_SIZE + 2 * hw.SCREEN_HEIGHT * hw.SCREEN_WIDTH // pixel_step**2


def state_size(cartridge: Cartridge, pixel_step: int) -> tuple[int, int]:
    """(fields, bytes of the memory row) of an env."""
    if cartridge.model == "dmg":
        return NUM_FIELDS, row_size(cartridge.ram_banks)
    return NUM_COLOR_FIELDS, color_row_size(cartridge.ram_banks, pixel_step)


def part_of(env: int | None, num_envs: int) -> slice:
    """One env of several, or all.

    Raises: ConfigError if the env does not exist.
    """
    if env is None:
        return slice(None)
    if not 0 <= env < num_envs:
        raise ConfigError(f"env {env} does not exist: give 0 to {num_envs - 1}")
    return slice(env, env + 1)


def allowed_banks(cartridge: Cartridge) -> dict[str, list[int]]:
    """All values of the fields that map the cartridge's memory."""
    rom = [bank * hw.ROM_BANK_SIZE for bank in range(-1, cartridge.rom_banks)]
    ram = [hw.ROW_SIZE + bank * hw.RAM_BANK_SIZE for bank in range(cartridge.ram_banks - 1)]
    low = rom[1:] if cartridge.mapper.maps_low_bank else [0]
    return {"rom_low": low, "rom_high": rom[:-1], "ram_offset": [-1, hw.CART_RAM - hw.ROW_BASE, *ram]}


def first_fault(state: np.ndarray, cartridge: Cartridge) -> str:
    """The first value of `state` (fields, envs) that no step of this cartridge leaves, in words; empty if there is
    none."""
    rows = slice(len(state))
    high = _COLOR_HIGH if len(state) > NUM_FIELDS else _HIGH
    wrong = ((state < _LOW[rows]) | (state > high[rows])) & ~(_MAY_BE_NEVER[rows] & (state == hw.NEVER))
    for name, values in allowed_banks(cartridge).items():
        wrong[INDEX[name]] = ~np.isin(state[INDEX[name]], values)
    wrong[INDEX["f"]] |= state[INDEX["f"]] & 0x0F != 0
    if not wrong.any():
        return ""
    index, env = np.argwhere(wrong)[0]
    return f"{(*FIELDS, *COLOR_FIELDS)[index].name} of env {env} is {state[index, env]}"
