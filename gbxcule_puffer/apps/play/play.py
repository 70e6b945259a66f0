"""`puffer play`: a person plays a ROM in a window, on a web page or in a terminal."""

from __future__ import annotations

from gbxcule_puffer.apps.play.browser import play_in_browser
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.apps.play.window import play_in_window
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.window import why_no_window
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS


def show(session: PlaySession, display: str, address: str = DEFAULT_ADDRESS) -> None:
    """Shows the session in a 'window', in a 'browser' on a page at `address`, in the 'terminal', or 'auto': a window if
    one can be opened, else the terminal.

    Raises: ConfigError if the display is not available.
    """
    if display == "browser":
        play_in_browser(session, address)
        return
    reason = "" if display == "terminal" else why_no_window()
    if reason and display == "window":
        raise ConfigError(f"no window can be opened here ({reason}): give --browser or --terminal")
    if display != "terminal" and not reason:
        play_in_window(session)
    else:
        from gbxcule_puffer.apps.play.terminal import play_in_terminal  # its modules are of POSIX systems only

        play_in_terminal(session)
