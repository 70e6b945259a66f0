"""The flags of `puffer verify`."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import GAME, STEP, GameFlags
from gbxcule_puffer.commandline import command, flag
from gbxcule_puffer.env.option_flags import Later, option_flag
from gbxcule_puffer.env.options import RUNNING

COMPARED, WRITTEN = "Comparison", "Output"


@command
class VerifyFlags(GameFlags):
    """The flags of `puffer verify`."""

    steps: int | None = flag(None, "steps to compare (default: 500, or all of an action file)", COMPARED, least=1)
    actions: str = flag("random:0", "random:SEED, or a file of action names", COMPARED)
    mem_region: str = flag(
        "C000:E000", "memory to compare, in hex; VRAM, OAM and HRAM are always compared", COMPARED, metavar="FIRST:END"
    )
    sound: bool = option_flag("sound", GAME)
    rom_sha256: str | None = flag(None, "SHA-256 that the ROM must have", COMPARED, metavar="HEX")
    frames_per_step: int = option_flag("frames_per_step", STEP)
    release_after_frames: int | None = option_flag("release_after_frames", STEP, Later("a third of the step's frames"))
    action_codec: str = option_flag("action_codec", STEP)
    replay: str | None = flag(
        None, "reproduce the difference of a repro bundle; other flags override its own", COMPARED, metavar="BUNDLE"
    )
    out: str | None = flag(
        None, "folder of a difference's repro bundle (default: runs/verify/ROM-stepN)", WRITTEN, metavar="DIR"
    )
    no_bundle: bool = flag(False, "only report a difference", WRITTEN)
    json: str | None = flag(
        None,
        "write the summary as JSON; without FILE, or with -, to stdout (the default if that is not a terminal)",
        WRITTEN,
        metavar="FILE",
        bare="-",
    )
    device: str = flag("cpu", "the emulator's device: cpu, cuda or cuda:N", RUNNING)
