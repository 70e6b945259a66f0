"""Memory map, IO registers, clock constants and post-boot values of the DMG, each with its source."""

# --- Clock (Pan Docs, "Specifications"). The unit everywhere is the T-cycle: one period of 4.194304 MHz.
CLOCK_HZ = 4_194_304
T_CYCLES_PER_M_CYCLE = 4
FRAME_T_CYCLES = 70_224  # 154 lines of 456
LINE_T_CYCLES = 456
NEVER = 0x7FFF_FFFF  # a time that never comes; times are int32, counted from the start of the step

# --- Screen (Pan Docs, "Graphics")
SCREEN_WIDTH = 160
SCREEN_HEIGHT = 144
LAST_LINE = 153

# --- Memory map (Pan Docs, "Memory Map")
ROM_BANK_SIZE = 0x4000
RAM_BANK_SIZE = 0x2000
VRAM = 0x8000
CART_RAM = 0xA000
WRAM = 0xC000
WRAM_BANK_SIZE = 0x1000
BANKED_WRAM = WRAM + WRAM_BANK_SIZE  # on a Game Boy Color
ECHO = 0xE000
BANKED_ECHO = BANKED_WRAM + ECHO - WRAM
OAM = 0xFE00
OAM_END = 0xFEA0
IO = 0xFF00
HRAM = 0xFF80

# --- IO registers (Pan Docs, "Hardware Reg List")
P1 = 0xFF00
SB = 0xFF01
SC = 0xFF02
DIV = 0xFF04
TIMA = 0xFF05
TMA = 0xFF06
TAC = 0xFF07
IF = 0xFF0F
NR10 = 0xFF10
NR14 = 0xFF14
NR50 = 0xFF24
NR51 = 0xFF25
NR52 = 0xFF26
WAVE_RAM = 0xFF30
WAVE_RAM_END = 0xFF40
LCDC = 0xFF40
STAT = 0xFF41
SCY = 0xFF42
SCX = 0xFF43
LY = 0xFF44
LYC = 0xFF45
DMA = 0xFF46
BGP = 0xFF47
OBP0 = 0xFF48
OBP1 = 0xFF49
WY = 0xFF4A
WX = 0xFF4B
IE = 0xFFFF

# --- IO registers of the Game Boy Color (Pan Docs, "CGB Registers")
KEY0 = 0xFF4C
KEY1 = 0xFF4D
VBK = 0xFF4F
HDMA1 = 0xFF51
HDMA2 = 0xFF52
HDMA3 = 0xFF53
HDMA4 = 0xFF54
HDMA5 = 0xFF55
RP = 0xFF56
BCPS = 0xFF68
BCPD = 0xFF69
OCPS = 0xFF6A
OCPD = 0xFF6B
OPRI = 0xFF6C
SVBK = 0xFF70
PCM12 = 0xFF76
PCM34 = 0xFF77

# --- LCDC bits (Pan Docs, "LCD Control")
LCDC_BG_ENABLE = 0x01
LCDC_OBJ_ENABLE = 0x02
LCDC_OBJ_SIZE = 0x04
LCDC_BG_MAP = 0x08
LCDC_TILE_DATA = 0x10
LCDC_WINDOW_ENABLE = 0x20
LCDC_WINDOW_MAP = 0x40
LCDC_ENABLE = 0x80

# --- STAT bits (Pan Docs, "LCD Status Registers")
STAT_MODE = 0x03
STAT_LYC_EQUAL = 0x04
STAT_MODE2_INT = 0x20
STAT_LYC_INT = 0x40

# --- Interrupt bits (Pan Docs, "Interrupts")
INT_VBLANK = 0x01
INT_STAT = 0x02
INT_TIMER = 0x04
INT_SERIAL = 0x08
INT_JOYPAD = 0x10
INTERRUPT_DISPATCH_T_CYCLES = 20

# --- CPU flags
FLAG_Z = 0x80
FLAG_N = 0x40
FLAG_H = 0x20
FLAG_C = 0x10

SERIAL_TRANSFER_T_CYCLES = 1024  # 8 bits at 8,192 Hz
SERIAL_BUFFER_SIZE = 1024  # captured output, a ring of PyBoy's size

# --- An environment's memory row: 8000-FFFF flat, then cartridge RAM banks 1 and up. The echo's 7.5 KiB hole
# (E000-FDFF always reads C000-DDFF) holds the captured serial output, and the sound unit's words (sound_fields.py).
ROW_BASE = 0x8000
ROW_SIZE = 0x8000
SERIAL_BUFFER = ECHO - ROW_BASE
SOUND = ECHO + SERIAL_BUFFER_SIZE
# On a Game Boy Color, after the cartridge RAM: VRAM bank 1, WRAM banks 2 to 7, palettes (64 bytes of the background,
# 64 of sprites), then the picture's colours, 15 bits each in two bytes.
COLOR_WRAM = 0x2000
COLOR_PALETTES = COLOR_WRAM + 6 * WRAM_BANK_SIZE
OBJ_PALETTES = 0x40  # after COLOR_PALETTES
COLOR_SIZE = COLOR_PALETTES + 2 * OBJ_PALETTES

# --- Buttons of Emulator.step: bits 0-3 the directions, bits 4-7 the others, both in P1's order
BUTTON_RIGHT = 0x01
BUTTON_LEFT = 0x02
BUTTON_UP = 0x04
BUTTON_DOWN = 0x08
BUTTON_A = 0x10
BUTTON_B = 0x20
BUTTON_SELECT = 0x40
BUTTON_START = 0x80

# --- State at PC=0100 as PyBoy 2.8.1 leaves it (its boot ROM has another C register and logo than a DMG's).
POST_BOOT = {
    "a": 0x01, "f": 0xD0, "b": 0x00, "c": 0x13, "d": 0x00, "e": 0x8F, "h": 0x00, "l": 0x87,
    "sp": 0xFFFE, "pc": 0x0100, "interrupt_flag": INT_VBLANK,
    "lcdc": 0x91, "stat": 0x81, "ly": 145, "bgp": 0xFC, "obp0": 0xFF, "obp1": 0xFF,
    "lcd_zero": -66_232, "lcd_target": 66_576 - 66_232, "lcd_next_mode": 1, "window_line": -1,
    "div_zero": -0xC6E0, "timer_next": NEVER, "serial_control": 0x7E, "serial_end": NEVER,
    "cycles_low": 4_507_360, "rtc_last": -4_507_360,
}  # fmt: skip
POST_BOOT_HRAM = {0xFFFC: 0xB1}
POST_BOOT_TILES = bytes.fromhex(  # 6 tiles at 8010
    "0000000000007c7c7e7e6666666666667e7e7c7c606060606060606060600000000066666666666666667e7e3c3c1c1c"
    "7e7e7c7c6666666666667e7e7c7c000000003c3c7e7e666666667e7e3c3c00001818f0f0e0e000000000000000000000"
)
POST_BOOT_MAP = {0x9908: 1, 0x990A: 1, 0x9928: 2, 0x9929: 3, 0x992A: 4, 0x992B: 5, 0x992C: 3, 0x9949: 6, 0x994C: 6}

# --- The same of a Game Boy Color, with PyBoy's boot ROM
COMPATIBLE_POST_BOOT = {
    "a": 0x11, "f": 0x80, "c": 0x00, "e": 0x08, "l": 0x7C, "lcd_zero": -66_308, "lcd_target": 66_576 - 66_308,
    "div_zero": -0xC72C, "cycles_low": 4_507_436, "rtc_last": -4_507_436, "hdma5": 0xFF, "object_priority": 0xFF,
}  # fmt: skip
COLOR_POST_BOOT = COMPATIBLE_POST_BOOT | {  # with a cartridge for the Game Boy Color
    "color_mode": 1, "serial_control": 0x7C, "lcd_zero": -66_292, "lcd_target": 66_576 - 66_292, "div_zero": -0xC71C,
    "cycles_low": 4_507_420, "rtc_last": -4_507_420,
}  # fmt: skip
COLOR_POST_BOOT_HRAM = {0xFFFC: 0xB0}
POST_BOOT_PALETTE = (0x1CE7, 0x1E19, 0x7E31, 0x217B)  # each one
POST_BOOT_SHADES = (3, 2)  # of its first and its last colour
# Four colours for each of BGP, OBP0 and OBP1, in which PyBoy shows a DMG's games on it: 15 bits, red lowest.
COMPATIBLE_COLORS = tuple(
    (rgb >> 19) | (rgb >> 11 & 31) << 5 | (rgb >> 3 & 31) << 10
    for rgb in (0xFFFFFF, 0x7BFF31, 0x0063C5, 0x000000, *(0xFFFFFF, 0xFF8484, 0x943A3A, 0x000000) * 2)
)

# --- The same of a real DMG (mooneye, boot_regs-dmgABC, boot_div-dmgABCmgb, boot_hwio-dmgABCmgb)
HARDWARE_POST_BOOT = {
    "f": 0xB0, "e": 0xD8, "h": 0x01, "l": 0x4D, "p1": 0xCF,
    "div_zero": -0xABD0,  # ABCC, read 4 T-cycles early (isa.py, access times)
    "ly": LAST_LINE, "lcd_zero": -70_160, "lcd_target": FRAME_T_CYCLES - 70_160,
}  # fmt: skip
HARDWARE_POST_BOOT_IO = {
    0xFF10: 0x80, 0xFF11: 0xBF, 0xFF12: 0xF3, 0xFF13: 0xFF, 0xFF14: 0xBF, 0xFF16: 0x3F, 0xFF18: 0xFF, 0xFF19: 0xBF,
    0xFF1A: 0x7F, 0xFF1B: 0xFF, 0xFF1C: 0x9F, 0xFF1D: 0xFF, 0xFF1E: 0xBF, 0xFF20: 0xFF, 0xFF23: 0xBF, 0xFF24: 0x77,
    0xFF25: 0xF3, 0xFF26: 0xF1,
}  # fmt: skip
