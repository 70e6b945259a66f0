"""Every command under faults of the machine: standard streams that are full, closed or read by nobody, disks that are
full or read-only. Each has to end well or in one line, without a traceback or a signal.

    python -m tests.hostile.faults --commands plot,verify
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.workload import ROOT

ROM = str(ROOT / "roms" / "homeward.gb")
STAGE = str(ROOT / "roms" / "homeward" / "stage1.json")
TOY = ["--env", "toy", "--device", "cpu", "--smoke"]
PUFFER = ["-m", "gbxcule_puffer"]
ONCE = ["--episodes", "1", "--num-envs", "1"]
FEW = ["--num-envs", "1", "--steps", "2"]
# What is made before the faults: (arguments, what they leave)
MADE = {
    "run": ["cleanrl_style/a2c_streaming.py", *TOY, "--run-dir", "{made}/run"],
    "stage": [*PUFFER, "stage", "--stage", STAGE, "--out", "{made}/stage"],
}
COMMANDS = {
    "stage": [*PUFFER, "stage", "--stage", STAGE, "--out", "{out}/stage"],
    "goal show": [*PUFFER, "goal", "show", "{made}/stage", "--out", "{out}/goal.png"],
    "goal stages": [*PUFFER, "goal", "stages", "--out", "{out}/stages.json", "{made}/stage"],
    "goal calibrate": [*PUFFER, "goal", "calibrate", "{made}/stage", *FEW, "--out", "{out}/c.png"],
    "verify": [*PUFFER, "verify", ROM, "--steps", "2", "--json", "{out}/verify.json"],
    "bench": [*PUFFER, "bench", *FEW, "--warmup", "1", "--repeat", "1", "--out", "{out}/b"],
    "profile": [*PUFFER, "profile", ROM, *FEW, "--warmup", "1", "--cpu-only"],
    "record": [*PUFFER, "record", ROM, "--out", "{out}/film.gif", *FEW],
    "plot": [*PUFFER, "plot", "{made}/run", "--out", "{out}/plot.png"],
    "copy": [*PUFFER, "copy", "a2c", "--out", "{out}/mine.py"],
    "a2c": ["cleanrl_style/a2c_streaming.py", *TOY, "--run-dir", "{out}/a2c"],
    "ppo": ["cleanrl_style/ppo_lite.py", *TOY, "--run-dir", "{out}/ppo"],
    "dqn": ["cleanrl_style/dqn_nstep.py", *TOY, "--run-dir", "{out}/dqn"],
    "pqn": ["cleanrl_style/pqn.py", *TOY, "--run-dir", "{out}/pqn"],
    "evaluate": ["cleanrl_style/evaluate.py", "{made}/run", *ONCE, "--json", "{out}/e.json"],
    "eval": [*PUFFER, "eval", "{made}/run", *ONCE, "--json", "-"],
    "help": [*PUFFER, "--help"],
    "wrong": [*PUFFER, "plot", "{made}/nothing"],
}  # fmt: skip
SECONDS = 300


def small_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


# Keywords of subprocess.Popen: file descriptors by number are closed in the child.
FAULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "stdout full": lambda: {"stdout": full()},
    "stderr full": lambda: {"stderr": full()},
    "stdout closed": lambda: {"preexec_fn": lambda: os.close(1)},
    "stderr closed": lambda: {"preexec_fn": lambda: os.close(2)},
    "all closed": lambda: {"preexec_fn": lambda: os.closerange(0, 3)},
    "stdout broken": lambda: {"stdout": broken_pipe()},
    "stderr broken": lambda: {"stderr": broken_pipe()},
    "disk full at 0": lambda: {"preexec_fn": lambda: small_files(0)},
    "disk full at 2000": lambda: {"preexec_fn": lambda: small_files(2000)},
    "read-only": dict,
}


def full() -> Any:
    """A device that has no room."""
    return open("/dev/full", "w")


def broken_pipe() -> Any:
    """The end to write to, of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


def filled(arguments: list[str], **places: Path) -> list[str]:
    return [sys.executable, *(argument.format(**places) for argument in arguments)]


def run(command: list[str], cwd: Path, fault: dict[str, Any]) -> tuple[int, str]:
    """The exit code, and what was written to the streams that are whole."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=cwd, env=environment, text=True, **(streams | fault)) as process:
        try:
            texts = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return -signal.SIGKILL, "hangs"
        return process.returncode, "\n".join(text or "" for text in texts)


def read_only(stack: ExitStack, folder: Path) -> Path:
    """A folder that nothing can be written to; root needs a mount for that."""
    folder.mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o555)
    else:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], check=True)
        stack.callback(subprocess.run, ["umount", str(folder)], check=True)
    return folder


def main() -> int:
    """Prints a line for each command and fault; exit code 1 where one ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", default=",".join(COMMANDS), help="some of them, by name")
    parser.add_argument("--faults", default=",".join(FAULTS), help="some of them, by name")
    args = parser.parse_args()
    bad = tried = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made, closed = folder / "made", read_only(stack, folder / "read-only")
        for arguments in MADE.values():
            subprocess.run(filled(arguments, made=made), cwd=ROOT, check=True, capture_output=True)
        for name in args.commands.split(","):
            for number, fault in enumerate(args.faults.split(",")):
                out = closed if fault == "read-only" else folder / name.replace(" ", "-") / str(number)
                out.mkdir(parents=True, exist_ok=True)
                command = filled(COMMANDS[name], made=made, out=out)
                command = [str(ROOT / word) if word.startswith("cleanrl_style/") else word for word in command]
                code, text = run(command, out, FAULTS[fault]())
                last = "".join(text.strip().splitlines()[-1:])[:100]
                wrong = code not in (0, 1, 2, 141) or any(t in text for t in ("Traceback", "Exception ignored"))
                left = [path.name for path in out.rglob(".part-*")] if code else []
                wrong, last = wrong or bool(left), "".join(text.strip().splitlines()[-1:])[:100]
                print(f"{name:16} {fault:18} {code:4} {'WRONG' if wrong else 'ok':6} {last}", flush=True)
                if wrong:
                    print(*left, text[-3000:], flush=True)
                bad, tried = bad + wrong, tried + 1
    print(f"{tried} commands under faults, {bad} ended otherwise than well or in one line")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
