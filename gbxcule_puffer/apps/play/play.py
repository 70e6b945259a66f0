"""`puffer play`: a person plays a ROM in a window or a terminal."""

from __future__ import annotations

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.apps.play.window import has_display, play_in_window
from gbxcule_puffer.errors import ConfigError


def show(session: PlaySession, display: str) -> None:
    """Shows the session in a 'window', in the 'terminal', or 'auto': a window where there is a display.

    Raises: ConfigError where that cannot be had.
    """
    if display == "window" and not has_display():
        # SDL would open a window that nobody sees.
        raise ConfigError("there is no display for a window (DISPLAY and WAYLAND_DISPLAY are not set): give --terminal")
    if display == "window" or (display == "auto" and has_display()):
        play_in_window(session)
    else:
        from gbxcule_puffer.apps.play.terminal import play_in_terminal  # its modules are of POSIX systems only

        play_in_terminal(session)
