"""The emulated machine: constants. build/variant.py makes instances with other values."""

import warp as wp

from gbxcule_puffer.emulator.state import Cpu

HARDWARE = 0
"""0: PyBoy. 1: a real machine, where public test ROMs show that PyBoy is not one (docs/accuracy.md)."""
COLOR = False
"""True: a Game Boy Color. `if model.COLOR:` by itself leaves nothing in a DMG's kernel."""
SOUND = False
"""True: PyBoy with sound_emulated=True, whose sound registers work (hw/sound/)."""
DMG_SOUND = SOUND and not COLOR
"""True: with SOUND, a DMG's."""
SAMPLES = False
"""True: with SOUND, the samples of each step (hw/sound/samples.py)."""


@wp.func
def dots(c: wp.ref[Cpu], count: int) -> int:
    """T-cycles of the CPU in which the LCD's clock counts to `count`. Double speed does not change the LCD's clock."""
    if COLOR:
        return count << c.double_speed
    return count
