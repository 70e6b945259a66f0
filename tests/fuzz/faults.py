"""Faults of a DMG's interpreter, all in one kernel, which takes long to compile: each in an environment of its own."""

from __future__ import annotations

from typing import Any

from gbxcule_puffer.emulator.build.instantiate import Edit
from gbxcule_puffer.emulator.build.variant import build

SKIP = "loops.skip"
LDH_READ = "c.a = bus.read(m, c, 0xFF00 | ((c.code >> 8) & 0xFF), c.now + 4, 0)"
FILL = "intrinsics.fill_bytes(memory_at(c, hl), a, {}, stride)"
CRASH, PUSH = "loops.crash", "intrinsics.fill_bytes(lowest, PUSHED, {}, 2)"
REGISTER = "mbc.write_register(m, c, first - 1, PUSHED, r.now)"
COUNT = "count(r, table.WIDE_BC + pair, {})"
# In each, FAULTY is 1 in the fault's own environment alone
OF_INSTRUCTIONS = (
    Edit("interpreter", "", "c.ei_delay = 2", "c.ei_delay = 2 - FAULTY"),  # EI works at once
    Edit("interpreter", "", LDH_READ, LDH_READ.replace("c.now + 4", "c.now + 4 + 4 * FAULTY")),  # 4 T-cycles late
)
OF_LOOPS = (
    Edit(SKIP, "fill", FILL.format("rounds"), FILL.format("rounds - FAULTY")),
    Edit(SKIP, "copy", "(de + rounds) << 16", "(de + rounds - FAULTY) << 16"),
    Edit(SKIP, "delay", "row.store(c, r.sp - 2, value)", "row.store(c, r.sp - 2, value + FAULTY)"),
    Edit(SKIP, "multiply", "de >> (16 - rounds)", "IT ^ FAULTY"),
    Edit(SKIP, "delay", "c.next_event - 1 - r.now", "IT + 40 * FAULTY"),
    Edit(SKIP, "nest", "rounds * t_cycles", "IT + 4 * FAULTY"),
    Edit(SKIP, "nest", COUNT.format("rounds"), COUNT.format("rounds + FAULTY")),
)
OF_CRASHES = (
    Edit(CRASH, "push", PUSH.format("rounds"), PUSH.format("rounds - FAULTY")),
    Edit(CRASH, "push", "r.sp - 2 * rounds", "IT - 2 * FAULTY"),
    Edit(CRASH, "push", "c.next_event - 1 - r.now", "IT + 40 * FAULTY"),
    Edit(CRASH, "push", REGISTER, REGISTER.replace("PUSHED", "PUSHED - FAULTY")),
)
FAULTS = (*OF_INSTRUCTIONS, *OF_LOOPS, *OF_CRASHES)


def faulty_step() -> Any:
    """The kernel in which environment i has fault i."""
    return build("interpreter", edits=tuple(in_env(edit, env) for env, edit in enumerate(FAULTS))).step


def in_env(edit: Edit, env: int) -> Edit:
    """The edit that makes an environment faulty."""
    replacement = edit.replacement.replace("FAULTY", f"int(c.env == {env})")
    return Edit(edit.module, edit.function, edit.pattern, replacement)
