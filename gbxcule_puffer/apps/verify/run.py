"""The work of `puffer verify`: a comparison, its report, and the bundle of a difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gbxcule_puffer.apps.verify import bundle, verify
from gbxcule_puffer.apps.verify.flags import VerifyFlags
from gbxcule_puffer.files import check_output, check_output_folder, write_json


def run(flags: VerifyFlags) -> int:
    """The command: compare, report, write the bundle of a difference and the JSON summary; returns the exit code.
    Without --json, a terminal gets the report for people, and anything else the summary.

    Raises: RomError, StateError, ActionError, ConfigError, DeviceError or StorageError.
    """
    json_path = flags.json if flags.json is not None or sys.stdout.isatty() else "-"
    if json_path not in (None, "-"):
        check_output(json_path)
    if flags.out is not None and not flags.no_bundle:
        check_output_folder(Path(flags.out).parent)
    report = sys.stdout if json_path is None else sys.stderr
    bar = verify.ProgressBar()
    result = verify.verify(flags, bar)
    bar.end()
    print(verify.compared(result), *verify.describe(result), sep="\n", file=report)
    folder = None
    if not (flags.no_bundle or result.equal):
        default = Path("runs", "verify", f"{Path(flags.rom).stem}-step{len(result.trace)}")
        folder = bundle.write_bundle(result, default if flags.out is None else Path(flags.out))
        print(f"repro bundle: {folder}; puffer verify ROM --replay {folder} shows it again", file=report)
    summary = result.summary(folder)
    if json_path == "-":
        print(json.dumps(summary, indent=1))
    elif json_path is not None:
        write_json(json_path, summary)
    return 0 if result.equal else 1
