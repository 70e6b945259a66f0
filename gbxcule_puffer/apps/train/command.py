"""`puffer train a2c`: the single-file trainers, and PufferLib's own trainer on an environment."""

from __future__ import annotations

import difflib

from gbxcule_puffer.apps.train.pufferl import check_subject, run_mode
from gbxcule_puffer.apps.train.scripts import run_script
from gbxcule_puffer.commandline import command, word
from gbxcule_puffer.layout import trainer_scripts, trainers

NAMES = ", ".join(trainers())


@command
class Train:
    """Train an agent with a single-file trainer, or with PufferLib's own."""

    subject: str = word(f"{NAMES}; or gbxcule, or an environment of PufferLib, for PufferLib's trainer", "WHAT")
    words: tuple[str, ...] = word("its flags; puffer train WHAT --help lists them", "...", (), rest=True)

    def run(self) -> int | None:
        script = trainers().get(self.subject) or trainer_scripts().get(self.subject)
        if script is not None:
            return run_script(script, f"puffer train {self.subject}", self.words)
        close = difflib.get_close_matches(self.subject, trainers(), 1)
        check_subject("trainer", self.subject, f"did you mean {close[0]}?" if close else f"give one of {NAMES}")
        return run_mode("train", self.subject, self.words)


COMMAND = Train
