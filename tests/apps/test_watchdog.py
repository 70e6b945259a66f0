"""How commands end: time limits, Ctrl-C, closed and full outputs. One line each, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gbxcule_puffer.apps.watchdog import limit
from tests.support.browser import PATIENCE
from tests.support.signals import HEARS_CTRL_C

ROOT = Path(__file__).resolve().parents[2]
START = """
import os, signal, sys, time
from functools import partial
from gbxcule_puffer.apps import watchdog
from gbxcule_puffer.errors import ConfigError, exit_code

watchdog.GRACE_SECONDS = 0.5
def hang():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as C code that does not return to Python
    print("hangs", os.getpid(), flush=True)
    while True:
        time.sleep(60)
def work():
    WORK
    return 3
sys.exit(watchdog.supervised("puffer", partial(exit_code, "puffer", work)))
"""


def start(work: str, prog: str = START, **options: object) -> subprocess.Popen[str]:
    code = prog.replace("WORK", work)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True, start_new_session=True, **streams)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_a_command_that_ends_by_itself() -> None:
    process = start("print('done')")
    assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("done\n", "", 3)
    process = start("raise ConfigError('bad input')")
    assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("", "puffer: bad input\n", 2)


def test_a_command_that_hangs_is_ended() -> None:
    process = start("with watchdog.limit(0.5): hang()")
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2 and error.startswith("puffer: PyBoy has not answered for") and len(out.split()) == 2
    assert error.count("\n") == 1 and not psutil.pid_exists(int(out.split()[1]))


def test_the_time_between_limits_does_not_count() -> None:
    process = start("\n    ".join(["with watchdog.limit(0.2): pass", "time.sleep(0.6)"]))
    assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("", "", 3)
    with limit(0.01):
        pass  # without a parent that watches, nothing happens


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_what_does_not_hear_them(number: signal.Signals) -> None:
    process = start("hang()")
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    process.send_signal(number)
    out, error = process.communicate(timeout=PATIENCE)
    assert (out, error.strip(), process.returncode) == ("", "", 128 + number)
    assert not psutil.pid_exists(child)


def test_ctrl_c_lets_a_command_end_well() -> None:
    # Python misses a signal that comes just before a sleep until that ends: many short ones.
    patient = START.replace("GRACE_SECONDS = 0.5", "GRACE_SECONDS = 60")  # on a busy machine 0.5 s is no time to end
    work = "print('waits', flush=True); [time.sleep(0.01) for _ in range(6000)]"
    process = start(work, patient, preexec_fn=HEARS_CTRL_C)
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    _, error = process.communicate(timeout=PATIENCE)
    assert (error.strip(), process.returncode) == ("puffer: interrupted", 130)


def test_a_killed_command_leaves_no_process() -> None:
    process = start("hang()")
    assert process.stdout is not None
    child = psutil.Process(int(process.stdout.readline().split()[1]))
    process.kill()
    process.communicate(timeout=PATIENCE)
    child.wait(timeout=PATIENCE)


ENDS = """
import os, sys
from gbxcule_puffer.errors import exit_code

def work():
    WORK
sys.exit(exit_code("puffer", work))
"""
MUCH = "[print('x' * 1000) for _ in range(1000)]"


def test_a_reader_that_goes() -> None:
    process = start(MUCH, ENDS)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait(PATIENCE)) == ("", 141)


def test_a_full_disk_for_the_output() -> None:
    with open("/dev/full", "w") as full:
        process = start(MUCH, ENDS, stdout=full)
        _, error = process.communicate(timeout=PATIENCE)
        assert error == "puffer: the output cannot be read or written (No space left on device)\n"
        assert process.returncode == 1
        process = start("print('short')", ENDS, stdout=full, stderr=full)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 1


def test_closed_standard_streams(tmp_path: Path) -> None:
    """A file that is opened must not become what messages go to."""
    work = f"file = open({str(tmp_path / 'file')!r}, 'w'); os.write(2, b'noise'); print('x', file=sys.stderr)"
    with start(work, ENDS, stdout=None, stderr=None, preexec_fn=lambda: os.closerange(0, 3)) as process:
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        ("MemoryError()", 2, "the memory is too small"),
        ("RuntimeError('DefaultCPUAllocator: can\\'t allocate memory: you tried')", 2, "can't allocate memory"),
        ("OSError(30, 'Read-only file system', 'a\\x1b.json')", 1, r"a\x1b.json cannot be read or written (Read-only"),
        ("KeyboardInterrupt()", 130, "interrupted"),
    ],
)
def test_errors_of_the_machine_are_one_line(error: str, code: int, line: str) -> None:
    process = start(f"raise {error}", ENDS)
    _, found = process.communicate(timeout=PATIENCE)
    assert process.returncode == code and line in found and len(found.strip().splitlines()) == 1
