"""The C++ around a ROM's traces: the call of the interpreter, its accesses and loops, and where traces are left."""

HEAD = """
typedef unsigned char byte;
typedef int Read(void* m, Cpu* c, int address, int t, int lookahead);
typedef void Write(void* m, Cpu* c, int address, int value, int t, int lookahead);
typedef void AtMark(void* m, Cpu* c, int index);
typedef void Advance(void* m, Cpu* c, int t);

// The registers where a loop began a round; pc < 0: none has
struct Head {
    int pc, a, f, sp, ime, bc, de, hl, left, executed;
};
// A call of the interpreter. event: the next one; rom_high: as the code in a group has it; plain: for each kind of
// access eight bits, one for each 8 KiB; 0 where the code has to be left after the instruction; changed: not 0 after
// anything that could make the next round of the loop at `head` another one; polled: LY or STAT was read in this round
struct Frame {
    Cpu& c;
    void* m;
    Read* read;
    Write* write;
    AtMark* at_mark;
    Advance* advance;  // the LCD
    int event, rom_high, plain, changed, polled;
    Head head;
};

static inline void find_plain(Frame& x) {
    const Cpu& c = x.c;
    const bool stays = c.next_event == x.event && c.rom_high == x.rom_high;
    const int vram = IS_FORWARD && ((c.lcdc & 0x80) == 0 || c.ly >= 144) ? 0x10 : 0;
    const int written = c.render && c.next_line < 144 ? 0 : 0x10;
    const int ram = HAS_PLAIN_RAM && c.ram_enabled == 1 && c.ram_offset == 0x2000 ? 0x60 : 0x40;
    const int plain = 0x1F | ram | (0x0F | vram | ram) << 8 | (written | ram) << 16 | ((vram & written) | ram) << 24;
    x.plain = stays && (c.ei_delay | c.dma_active | c.rom_low) == 0 ? plain : 0;
}
static inline void begin_access(Frame& x, int now, int last) {
    x.c.now = now;
    x.c.previous = now - last;
    x.changed = 1;
}
// STAT or LY: ppu.advance, where no change of the LCD is due. On a Game Boy Color timing.look, too, where it only notes
// the end of PyBoy's batch: the clock goes forward, loses no T-cycle, and VBlank's early interrupt does not come
static inline bool is_settled(Frame& x, int now, int at) {
    Cpu& c = x.c;
    if (at >= c.lcd_target || at < c.lcd_zero || c.stat_mode_hidden != 0) return false;
#if HAS_COLOR
    if (c.lcd_wrapped != 0 || at < c.lcd_last || ((at - c.lcd_last) & c.double_speed) != 0 || c.ly == 143) return false;
    if (c.lcd_last <= now) c.lcd_due = c.lcd_target;
#endif
    c.lcd_last = at;
    x.polled = 1;
    return true;
}
// ppu.advance, within the instruction that begins at `now`
static inline void advance(Frame& x, int now, int last, int at) {
    begin_access(x, now, last);
    x.advance(x.m, &x.c, at);
    find_plain(x);
}
// True where an access has to do with the LCD alone: to VRAM with lookahead
static inline bool is_of_lcd(int address, int lookahead) { return (address & 0xE000) == 0x8000 && lookahead != 0; }
// T-cycles of the LCD until its next change; negative where its clock has wrapped
static inline int until_change(const Cpu& c) {
#if HAS_COLOR
    return c.lcd_wrapped != 0 ? -1 : (c.lcd_target - c.lcd_last) >> c.double_speed;
#else
    return c.lcd_target - c.lcd_last;
#endif
}
static inline void look(Frame& x, int now, int last, int at) {
    const int polled = x.polled;
    if (!is_settled(x, now, at)) advance(x, now, last, at);
    x.polled = polled;
    x.changed = 1;
}
// Accesses by the interpreter's bus; cold, so that the compiler keeps registers for plain accesses.
// now: when the instruction begins; last: T-cycles of the one before; t: of the access, after now
static __attribute__((noinline, cold)) int read(Frame& x, int address, int now, int last, int t, int lookahead) {
    const Cpu& c = x.c;
    const int at = now + t + lookahead;
    if (address == P1) return c.p1;
    if ((address == STAT || address == LY) && c.stat_mode_hidden == 0) {
        if (!is_settled(x, now, at)) advance(x, now, last, at);
        return address == LY ? c.ly : c.stat;
    }
    if (is_of_lcd(address, lookahead)) {
        look(x, now, last, at);
        const int mode = c.stat & 3, until = until_change(c);
        const bool is_locked = mode == 3 || (mode == 2 && until >= 0 && until <= 4);
        return (c.lcdc & 0x80) != 0 && is_locked ? 0xFF : ((const byte*)c.row)[address + shift(c, address)];
    }
    begin_access(x, now, last);
    const int value = x.read(x.m, &x.c, address, now + t, lookahead);
    find_plain(x);
    return value;
}
static __attribute__((noinline)) int stat(Frame& x, int now, int last, int t, int lookahead) {
    return is_settled(x, now, now + t + lookahead) ? x.c.stat : read(x, STAT, now, last, t, lookahead);
}
static __attribute__((noinline)) int ly(Frame& x, int now, int last, int t, int lookahead) {
    return is_settled(x, now, now + t + lookahead) ? x.c.ly : read(x, LY, now, last, t, lookahead);
}
static __attribute__((noinline, cold)) void write(
    Frame& x, int address, int value, int now, int last, int t, int lookahead) {
    Cpu& c = x.c;
    if (is_of_lcd(address, lookahead) && !(c.render && c.next_line < 144)) {
        look(x, now, last, now + t + lookahead);
        if ((c.lcdc & 0x80) == 0 || (c.stat & 3) != 3) ((byte*)c.row)[address + shift(c, address)] = value;
        return;
    }
    const int changed = x.changed, p1 = c.p1;
    begin_access(x, now, last);
    x.write(x.m, &c, address, value, now + t, lookahead);
    if (address == P1 && c.p1 == p1) x.changed = changed;
    find_plain(x);
}
static inline void store(Frame& x, byte& at, int value) {
    x.changed |= at ^ (byte)value;
    at = value;
}

static inline bool is_high(int address) { return (unsigned)(address - 0xFF80) < 0x7F; }
static inline bool is_plain(int plain, int kind, int address) {
    return ((plain >> (8 * kind + (address >> 13 & 7))) & 1) != 0 || is_high(address);
}
// A piece is of one address, and ROM can also be seen at others
static inline bool is_elsewhere(int pc, int index) { return (pc < 0x4000) != (index < 0x4000); }
"""
# A group of traces from the trace `number` on; the number of the one that another group goes on with, else -1.
# before: instructions executed when the interpreter called.
BEGIN = """
static __attribute__((noinline)) int GROUP(Frame& x, const long long* bounds, int number, const int before) {
    Cpu& c = x.c;
    const byte* const rom = (const byte*)c.rom;
    const byte* banked = rom + c.rom_high;
    byte* const row = (byte*)c.row;
    int rom_high = c.rom_high, plain = x.plain;
    int a, f, sp, ime, executed, pc, code, bc, de, hl, left, last;
    LOAD
    goto enter;
skip: {  // rounds of the loop at PC; the next one is executed
    const int at = number;
    number = -1;
    if (left <= 0) goto done;
    const int index = (pc < 0x4000 ? 0 : rom_high) + pc, word = ((const int*)c.words)[index], mark = word >> 24;
    if (mark != LCD_POLL && !(mark > 0 && mark < FIRST_HOOK)) goto done;
    STORE
    c.code = word;
    const int executed_before = c.executed;
    x.at_mark(x.m, &c, index);
    x.changed |= c.executed - executed_before;
    LOAD
    find_plain(x);
    plain = x.plain;
    if (plain == 0) goto done;
    number = at;
    goto enter;
}
idle: {  // a round of a loop, at PC, is over: where it has changed nothing, those until the next event are like it
    Head& h = x.head;
    const bool is_same = h.pc == pc && h.a == a && h.f == f && h.bc == bc && h.de == de && h.hl == hl && h.sp == sp;
    if (is_same && h.ime == ime && x.changed == 0) {
        const int round = h.left - left, until_lcd = c.lcd_target - 1 - c.lcd_last;
        const int rounds = (x.polled && until_lcd < left - 1 ? until_lcd : left - 1) / round;
        const int skipped = rounds * (c.executed + executed - h.executed);
        left -= rounds * round;
        executed += skipped;
        c.skipped += skipped;
        if (x.polled && rounds > 0) {
            c.lcd_last += rounds * round;
            NOTE_END
        }
    }
    h = {pc, a, f, sp, ime, bc, de, hl, left, c.executed + executed};
    x.changed = x.polled = 0;
    goto enter;
}
mapped:
    x.rom_high = rom_high = c.rom_high;
    find_plain(x);
    plain = x.plain;
    banked = rom + rom_high;
    number = -1;
    if (plain == 0) goto done;
follow: {
    number = -1;
    if (pc >= 0x8000) goto done;
    const int index = (pc < 0x4000 ? 0 : rom_high) + pc, word = ((const int*)c.words)[index];
    if (word >= 0 || is_elsewhere(pc, index)) goto done;
    number = word & 0xFFFFFF;
}
enter:
"""
END = """
late:
    number = -1;
    if (c.executed + executed == before) goto leave;
done:
    code = -1;
leave:
    STORE
    c.code = code;
    return number;
}
"""
LOAD = """
    a = c.a; f = c.f; sp = c.sp; ime = c.ime; executed = 0; pc = c.pc; code = -1;
    bc = c.b << 8 | c.c; de = c.d << 8 | c.e; hl = c.h << 8 | c.l;
    left = x.event - c.now; last = c.now - c.previous;
"""
STORE = """
    c.a = a; c.f = f; c.sp = sp; c.ime = ime; c.pc = pc;
    c.b = bc >> 8; c.c = bc & 255; c.d = de >> 8; c.e = de & 255; c.h = hl >> 8; c.l = hl & 255;
    c.now = x.event - left; c.previous = c.now - last; c.executed += executed;
"""
RUN = """
static void run(
    Cpu& c, const long long* bounds, void* m, Read* read, Write* write, AtMark* at_mark, Advance* advance) {
    const byte* const rom = (const byte*)c.rom;
    const int index = (c.pc < 0x4000 ? c.rom_low : c.rom_high) + c.pc;
    int number = c.code & 0xFFFFFF;
    c.code = rom[index] | rom[index + 1] << 8 | rom[index + 2] << 16;
    if ((c.ei_delay | c.dma_active | c.rom_low) != 0 || is_elsewhere(c.pc, index)) return;
    const int before = c.executed;
    Frame x = {c, m, read, write, at_mark, advance, c.next_event, c.rom_high, 0, 0, 0, {-1}};
    find_plain(x);
    while (number >= 0) {
"""
CALL = """
// numbers: the address of counts, if there are any, then bounds
extern "C" void SYMBOL(
    Cpu& c, const long long* numbers, void* m, Read* read, Write* write, AtMark* at_mark, Advance* advance) {
    long long* const counts = (long long*)numbers[0] + 2 * (c.code & 0xFFFFFF);
    const int before = c.executed - c.skipped;
    run(c, numbers + 1, m, read, write, at_mark, advance);
    if (numbers[0] != 0) {
        counts[0] += 1;
        counts[1] += c.executed - c.skipped - before;
    }
}
"""
# How far the memory that an address selects is from that of bank 0 or 1
SHIFT = "static inline int shift(const Cpu& c, int address) { return 0; }"
COLOR_SHIFT = """
static inline int shift(const Cpu& c, int address) {
    return (address >> 12) == 13 ? c.wram_shift : address < 0xA000 ? c.vram_shift : 0;
}
"""
