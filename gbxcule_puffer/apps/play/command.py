"""`puffer play`: play a ROM by hand, or let an agent play; save states and action traces."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.apps.flags import GAME, GameFlags, StepFlags
from gbxcule_puffer.commandline import at_most_one, command, flag
from gbxcule_puffer.env.option_flags import option_flag
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS

SHOWN = "Display"


@command
class DisplayFlags:
    """The display that a person plays at."""

    window: bool = flag(False, "play in a window (default if there is a display)", SHOWN)
    browser: bool = flag(False, "play on a web page", SHOWN)
    terminal: bool = flag(False, "play in this terminal, one step per key", SHOWN)
    address: str = flag(DEFAULT_ADDRESS, "address of --browser", SHOWN, metavar="HOST:PORT")

    @property
    def display(self) -> str:
        """The argument of `play.show`.

        Raises: ConfigError where several are given.
        """
        names = ("window", "browser", "terminal")
        at_most_one(self, *names)
        return next((name for name in names if getattr(self, name)), "auto")


@command
class Play(GameFlags, DisplayFlags, StepFlags):
    """Play a ROM by hand, in real time or one step per key; save states and traces."""

    sound: bool = option_flag("sound", GAME)
    out: str = flag("play", "folder for states and traces", metavar="DIR")
    agent: str | None = flag(
        None, "a run whose agent may play next to you or take over; alone: the agent that comes with the game", bare="",
        metavar="RUN",
    )  # fmt: skip
    symbols: str | None = flag(
        None, "symbol file: names of RAM, and where new names are written (default: beside the ROM)", metavar="FILE"
    )
    greedy: bool = flag(False, "the agent takes the likeliest action instead of sampling")

    def run(self) -> None:
        display = self.display
        from gbxcule_puffer.apps.play.agent import Agent
        from gbxcule_puffer.apps.play.play import show
        from gbxcule_puffer.apps.play.session import FLAGS, PlaySession

        run = self.agent if self.agent != "" else self.game or Path(self.rom).stem
        agent = Agent(run, self.rom, greedy=self.greedy) if run is not None else None
        session = PlaySession(
            out=self.out,
            agent=agent,
            symbols=self.symbols,
            sound=self.sound,
            **{name: getattr(self, name) for name in FLAGS},
        )
        show(session, display, self.address)
        for path in session.written:
            print(f"saved  {path}")
        if session.last_words:
            print(session.last_words)


COMMAND = Play
