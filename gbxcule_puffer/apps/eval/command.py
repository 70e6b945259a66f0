"""`puffer eval RUN`: episodes with a run's checkpoint, or PufferLib's eval."""

from __future__ import annotations

from pathlib import Path

from gbxcule_puffer.apps.train.pufferl import check_subject, may_know, run_mode
from gbxcule_puffer.apps.train.scripts import run_script
from gbxcule_puffer.commandline import command, word
from gbxcule_puffer.layout import SCRIPTS, own_games


@command
class Eval:
    """Play episodes with a run's checkpoint, or watch a policy of PufferLib's trainer."""

    subject: str = word(
        "a run's folder or checkpoint.pt, a game with an agent; or gbxcule, or an environment of PufferLib",
        "WHAT",
    )
    words: tuple[str, ...] = word("its flags; puffer eval RUN --help lists them", "...", (), rest=True)

    def run(self) -> int | None:
        if (
            Path(self.subject).exists()
            or ("--help" in self.words and not may_know(self.subject))
            or self.subject in own_games()
        ):
            return run_script(SCRIPTS / "evaluate.py", "puffer eval", [self.subject, *self.words])
        check_subject("run", self.subject, "give a run's folder or its checkpoint.pt")
        return run_mode("eval", self.subject, self.words)


COMMAND = Eval
