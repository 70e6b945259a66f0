"""`puffer play` in a window: one step per key, repeated while it is held, or real time."""

from __future__ import annotations

from gbxcule_puffer.apps.play.session import STEP_KEYS, Pace, PlaySession
from gbxcule_puffer.integrations.window import DOWN, QUIT, Event, Window
from gbxcule_puffer.pictures import to_rgb

SCALE = 4
WIDTH, HEIGHT = 160, 144
IDLE_MS = 200


def play_in_window(session: PlaySession) -> None:
    """Shows the session in a window until it ends or the window is closed.

    Raises: ConfigError if no window can be opened.
    """
    window = Window("puffer play", HEIGHT, WIDTH, SCALE, "give --browser or --terminal")
    print(f"{session.help}\n{session.help_in_time}", flush=True)
    held, pace = set[str](), Pace()
    try:
        while not session.finished:
            window.show(to_rgb(session.shown), session.status)
            event = window.event(0 if session.runs else IDLE_MS)
            while event is not None:
                _take(session, event, held)
                event = window.event(0) if session.runs else None
            if session.runs and not session.finished:
                session.frame(held)
                pace.wait()
    finally:
        window.close()


def _take(session: PlaySession, event: Event, held: set[str]) -> None:
    """Hands a key on; `held` are the buttons that are down."""
    if event.kind == QUIT:
        session.quit()
        return
    button = STEP_KEYS.get(event.key, "NOOP")
    if event.kind == DOWN:
        session.key(event.key)
        held |= {button} - {"NOOP"}
    else:
        held -= {button}
