"""`puffer play`: a person plays a ROM in a window or a terminal."""

from __future__ import annotations

from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.apps.play.window import play_in_window, why_no_window
from gbxcule_puffer.errors import ConfigError


def show(session: PlaySession, display: str) -> None:
    """Show the session in a 'window', in the 'terminal', or 'auto': a window where one can be opened.

    Raises: ConfigError where that cannot be had.
    """
    reason = "" if display == "terminal" else why_no_window()
    if reason and display == "window":
        raise ConfigError(f"no window can be opened here ({reason}): give --terminal")
    if display != "terminal" and not reason:
        play_in_window(session)
    else:
        from gbxcule_puffer.apps.play.terminal import play_in_terminal  # its modules are of POSIX systems only

        play_in_terminal(session)
