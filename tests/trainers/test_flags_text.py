"""The trainers' command line as a person types and reads it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from cleanrl_style import a2c_streaming, ppo_lite
from gbxcule_puffer.commandline import parse
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.trainers.runlog import RunLog


def test_counts_in_powers_of_ten() -> None:
    args = parse(a2c_streaming.Args, "a2c", None, ["--total-env-steps", "1e6", "--num-envs=1.6e1", "--lr", "1e-3"])
    assert (args.total_env_steps, args.num_envs, args.lr) == (1_000_000, 16, 0.001)
    assert parse(a2c_streaming.Args, "a2c", None, ["--run-dir", "1e5"]).run_dir == "1e5"
    with pytest.raises(ConfigError, match=r"--num-envs.*1\.5e0"):
        parse(a2c_streaming.Args, "a2c", None, ["--num-envs", "1.5e0"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--num-env 8", "flag '--num-env' is unknown: did you mean --num-envs?"),
        ("--learning-rate 1", "flag '--learning-rate' is unknown: here it is --lr"),
        ("--nonsense", "flag '--nonsense' is unknown: see a2c --help"),
        ("--num-envs 8x", "--num-envs '8x' is not a whole number (see a2c --help)"),
        ("--lr x", "--lr 'x' is not a number (see a2c --help)"),
    ],
)
def test_mistyped_flags(words: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(a2c_streaming.Args, "a2c", None, words.split())
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--num-envs", "1e30"], "is too large: give at most 2,147,483,647"),
        (
            ["--total-env-steps", "1e20"],
            "--total-env-steps 100,000,000,000,000,000,000 is too large: give at most 1,000",
        ),
        (
            ["--num-envs", "2e9", "--num-steps", "1e9"],
            "a rollout of 1,000,000,000 steps of 2,000,000,000 Game Boys fits",
        ),
    ],
)
def test_numbers_that_nothing_can_count_with(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ppo_lite.main([*words, "--device", "cpu", "--run-dir", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert told in line and not (tmp_path / "run").exists()


def test_steps_may_be_more_than_any_run_has() -> None:
    """As benchmarks.training.suite says never."""
    args = ppo_lite.Args(checkpoint_every=10**12, media_every=10**12, eval_every_steps=10**12, total_env_steps=10**12)
    args.check()


@pytest.mark.parametrize("script", [a2c_streaming, ppo_lite])
def test_help_tells_a_default_once(script: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(script.Args, "trainer", None, ["--help"])  # pyright: ignore[reportAttributeAccessIssue]
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "(default: runs/ENV__EXP__SEED__TIME, with the name of --game for ENV)" in text and "(default: 0.99)" in text
    assert not re.search(r"\(default: [^)]*\) \(default:|\(default: None\)", text)


def test_progress_tells_elapsed_and_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = RunLog(tmp_path, {}, resumed_at=100)
    log.progress(200, 500, 95.0)
    log.progress(500, 500, 400.0, last=True, may_stop=True)
    log.close()
    first, last = capsys.readouterr().err.splitlines()
    assert first == "200 of 500 steps, 1:35 elapsed, 4:45 left"
    assert last == "500 of 500 steps, 6:40 elapsed"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_progress_keeps_to_one_line_of_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """A longer one would be broken, and each time it is redrawn another line would be left behind."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    log = RunLog(tmp_path, {})
    log.last = dict.fromkeys(("charts/SPS", "charts/episodic_return", "charts/success_rate", "eval/success_rate"), 1.0)
    log.last |= {f"env/task/s{number}": 1.0 for number in range(3)} | {"env/task/t1": 2.0, "env/task/t2": 2.0}
    log.progress(59_008, 60_032, 95.0, may_stop=True)
    log.close()
    text = capsys.readouterr().err.removeprefix("\r\x1b[K")
    assert len(text) < columns and "\n" not in text
    whole = "[################### ] 59,008 of 60,032 steps, 1:35 elapsed, at most 0:01 left"
    whole += ", SPS 1, return 1.00, success 1.00, evaluated 1.00, s0 1.00, s1 1.00, s2 1.00, t1 2.00"
    short = "59,008 of 60,032 steps, at most 0:01 left, success 1.00, evaluated 1.00"
    assert text == {200: whole, 80: short, 40: short[:39]}[columns]
