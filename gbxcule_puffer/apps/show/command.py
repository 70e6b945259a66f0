"""`puffer show STATE...`: the pictures of saved states, as PNG files."""

from __future__ import annotations

from gbxcule_puffer.apps.show.flags import ShowFlags
from gbxcule_puffer.commandline import command


@command
class Show(ShowFlags):
    """Write the picture of a saved state, or one sheet with the pictures of several.

    States of this program hold their picture. States of PyBoy, and save RAM, also need the ROM.
    """

    def run(self) -> None:
        from gbxcule_puffer.apps.show.show import show

        show(self)


COMMAND = Show
