"""Bad input on the command line: one line on stderr that names it, exit code 2, and no files left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pufferlib
import pytest
import torch

from cleanrl_style import a2c_streaming
from gbxcule_puffer import cli
from gbxcule_puffer.integrations.pufferl import has_trainer
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe

ROOT = Path(__file__).parents[2]
STAGE = ROOT / "roms/homeward/stage1.json"
ROM = STAGE.parent.parent / json.loads(STAGE.read_text())["rom"]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with start.state and goal/."""
    return GoalRecipe.load(STAGE).make(tmp_path_factory.mktemp("stage")).goal_dir.parent


def damaged_rom(kind: str) -> bytes:
    data = bytearray(ROM.read_bytes())
    if kind == "truncated":
        return bytes(data[:0x4321])
    if kind == "oversized":
        return bytes(data) + bytes((8 << 20) + 0x4000 - len(data))
    if kind == "header":
        data[0x14D] ^= 0xFF
    elif kind == "mapper":
        data[0x14D] = (data[0x14D] + data[0x147] - 0xFC) & 0xFF
        data[0x147] = 0xFC
    return bytes(data)


def refusal(program: str, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr with which `program` ends with exit code 2."""
    capsys.readouterr()
    try:
        code = (a2c_streaming if program == "train" else cli).main(arguments)
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert code == 2
    assert len(captured.err.splitlines()) == 1, captured.err
    assert "Traceback" not in captured.out + captured.err
    return captured.err


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "cannot be read"),
        ("truncated", "truncated"),
        ("oversized", "at most 8,388,608 are allowed"),
        ("header", "checksum"),
        ("mapper", "cartridge type FC is not supported"),
    ],
)
@pytest.mark.parametrize("program", ["train", "puffer"])
def test_roms(
    program: str, kind: str, message: str, task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rom, out = tmp_path / "game.gb", tmp_path / "out"
    if kind != "missing":
        rom.write_bytes(damaged_rom(kind))
    (tmp_path / "actions.txt").write_text("UP\n")
    flags = {
        "train": ["--rom", rom, "--goal-dir", task / "goal", "--run-dir", out],
        "puffer": ["goal", "make", "--rom", rom, "--actions", tmp_path / "actions.txt", "--out", out],
    }[program]
    line = refusal(program, [str(flag) for flag in flags], capsys)
    assert "game.gb" in line
    assert message in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-such-flag", "3"], "--no-such-flag"),
        (["--num-envs", "many"], "--num-envs"),
        (["--stack-k"], "--stack-k"),
        (["--device", "cuda:99" if torch.cuda.is_available() else "cuda"], "cuda"),
        (["--device", "abacus"], "abacus"),
        (["--device", "cpu:1"], "device 'cpu:1' is not supported"),
        (["--start-state", ""], "--start-state is empty: give a value, or leave it out"),
        (["--env", "pong"], "give one of gbxcule"),
        (["--stage", "nowhere.json"], "nowhere.json"),
        (["--goal-dir", "nowhere"], "nowhere"),
        (["--start-state", "nowhere.state"], "nowhere.state"),
        (["--resume", "nowhere.pt"], "nowhere.pt"),
        (["--rom", str(ROM)], "--goal-dir"),
        (["--rom", "other.gb"], "ROM other.gb: cannot be read"),
        (["--action-codec", "v9"], "pokemonred_puffer_v0"),
        (["--update-every", "0"], "--update-every"),
        (["--num-envs", "0"], "--num-envs 0 must be at least 1"),
        (["--stack-k", "0"], "--stack-k 0 must be from 1 to 256"),
        (["--release-after-frames", "30"], "release_after_frames 30"),
    ],
)
def test_trainer_flags(flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = tmp_path / "run"
    assert message in refusal("train", [*flags, "--run-dir", str(run_dir)], capsys)
    assert not run_dir.exists()


def test_goal_of_another_configuration(task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--goal-dir", str(task / "goal"), "--frames-per-step", "20", "--run-dir", str(tmp_path / "run")]
    assert "frames_per_step 24, the environment has 20" in refusal("train", flags, capsys)


def test_a_run_below_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be made below a file: give another --run-dir" in refusal("train", ["--run-dir", f"{ROM}/x"], capsys)


def test_damaged_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"PK\x03\x04 not a checkpoint")
    assert "is damaged" in refusal("train", ["--resume", str(tmp_path / "checkpoint.pt")], capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["goal"], "COMMAND is missing: give one of make, calibrate, show, stages"),
        (["train", "--num-envs", "8", "a2c"], "--num-envs stands before WHAT: give puffer train WHAT --num-envs ..."),
        (["eval", "--episodes", "5"], "--episodes stands before WHAT: give puffer eval WHAT --episodes ..."),
        (["stage", "--stage", "nowhere.json", "--out", "x"], "nowhere.json"),
        (["stage", "--stage", str(STAGE), "--out", "x", "--no-such-flag"], "--no-such-flag"),
        (["stage", "--stage", str(STAGE), "--out", "x", "--stack-k", "two"], "--stack-k"),
        (["stage", "--stage", str(STAGE), "--out", str(STAGE)], "stage1.json is a file, not a folder: give another"),
        (["goal", "make", "--rom", str(ROM), "--actions", "nowhere.txt", "--out", "x"], "nowhere.txt"),
        (["goal", "stages", "--out", "x"], "DIR[:MAX_STEPS] is missing: folders of `puffer goal make`, in order"),
        (["arena", "report"], "RECORD is missing"),
        (["verify", "x" * 5000], "File name too long"),
        (["record", str(ROM), "--symbols", "", "--out", "a.gif"], "--symbols is empty: give a value, or leave it out"),
        # What would fail in the end, after minutes, is said at once.
        (["game", "new", str(ROM), "--yes", "--out", f"{ROM}/x"], "homeward.gb is not a folder): give another path"),
        (["game", "solve", "orchard", "--out", "/proc/sys/kernel/x"], "/proc/sys/kernel is read-only): give another"),
        (["scan", str(ROM), "--sym", f"{ROM}/x"], "homeward.gb/x cannot be written (Not a directory)"),
        (["native", str(ROM), "--to", str(ROM)], "homeward.gb is a file, not a folder: give another path"),
        (["verify", str(ROM), "--out", f"{ROM}/x"], "homeward.gb is a file, not a folder: give another path"),
        (["goal", "make", "--rom", str(ROM), "--play", "--out", str(ROM)], "is a file, not a folder: give another"),
        (["play", str(ROM), "--out", str(ROM)], "homeward.gb is a file, not a folder: give another path"),
        (["scan", "wyrmhole"], "wyrmhole is a game, not a ROM: give --game wyrmhole, or the path of a .gb file"),
        (["scan", str(ROOT / "roms/storeroom")], "storeroom is a game, not a ROM: give --game"),
        (["game", "new", "wyrmhole"], "wyrmhole is a game, not a ROM"),
        (["watch", str(ROM)], "homeward.gb: is damaged, or not a checkpoint: give another"),
        (["train", "ppo", "--rom", str(ROM)], "make a game's folder with `puffer game new`, or a goal with"),
        (["goal", "make", "--rom", str(ROM), "--actions", str(STAGE), "--out", "x"], "is not a trace"),
        (["goal", "make", "--rom", str(ROM), "--actions", str(ROOT / "LICENSE"), "--out", "x"], "action 0"),
    ],
)
def test_puffer_arguments(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refusal("puffer", arguments, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ["cleanrl_style/a2c_streaming.py", "--no-such-flag"],
        ["-m", "gbxcule_puffer", "goal", "make", "--rom", "nowhere.gb", "--actions", "README.md", "--out", "nowhere"],
    ],
)
def test_a_process_ends_with_one_line(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.skipif(has_trainer(), reason="PufferLib knows more names")
def test_a_subject_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trainer's or a run's name with a slip is no question of PufferLib."""
    assert "trainer 'a2cc' is unknown: did you mean a2c?" in refusal("puffer", ["train", "a2cc"], capsys)
    assert "trainer 'trpo' is unknown: give one of a2c, " in refusal("puffer", ["train", "trpo"], capsys)
    assert "run 'runs/x' is unknown: give a run's folder" in refusal("puffer", ["eval", "runs/x"], capsys)
    assert "only pufferlib-core is installed" in refusal("puffer", ["train", "gbxcule"], capsys)


def test_a_trainer_without_environments_is_not_pufferlibs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pufferlib-core 3.0.23 has a module pufferl."""
    (tmp_path / "pufferl.py").touch()
    assert pufferlib.__spec__ is not None
    monkeypatch.setattr(pufferlib.__spec__, "submodule_search_locations", [str(tmp_path)])
    assert "trainer 'trpo' is unknown: give one of a2c, " in refusal("puffer", ["train", "trpo"], capsys)
    assert "only pufferlib-core is installed" in refusal("puffer", ["train", "gbxcule"], capsys)


@pytest.mark.parametrize(
    "words",
    [
        "train a2c --rom no.gb --run-dir new",
        "train ppo --rom no.gb --run-dir new --stage nowhere --stages nowhere",
        "train pqn --rom no.gb --run-dir new --goal-dir nowhere --start-state nowhere",
        "train dqn --rom no.gb --run-dir new --task nowhere.py:Mine --symbols nowhere",
        "train a2c --rom no.gb --run-dir new --symbols nowhere --max-steps 5",
        "goal make --rom no.gb --out new",
        "goal make --rom no.gb --actions nowhere --start-state nowhere --out new",
        "goal make --rom no.gb --png nowhere --start-actions nowhere --out new",
        "goal calibrate nowhere --rom no.gb",
        "record no.gb --policy nowhere --goal-dir nowhere --out nowhere/film.gif",
        "play no.gb --agent nowhere --start-state nowhere",
        "profile no.gb --symbols nowhere --start-state nowhere",
        "verify no.gb --actions nowhere --start-state nowhere",
        "bench --rom no.gb --baseline nowhere --goal-dir nowhere --start-state nowhere",
        "bench --rom homeward no.gb --goal-dir nowhere",
    ],
)
def test_the_rom_comes_first(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several things that are wrong; and nothing is prepared for it."""
    monkeypatch.chdir(tmp_path)
    assert "ROM no.gb: cannot be read" in refusal("puffer", words.split(), capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", str(tmp_path / "film.gif")
    run.mkdir()
    for command in (["eval", str(run)], ["watch", str(run)], ["record", str(ROM), "--policy", str(run), "--out", out]):
        assert f"folder {run} holds no run: give one with a checkpoint.pt" in refusal("puffer", command, capsys)
    (run / "metrics.jsonl").touch()
    for command in (["eval", str(run)], ["watch", str(run)], ["record", str(ROM), "--policy", str(run), "--out", out]):
        assert f"run {run} has no checkpoint yet: wait for its first one" in refusal("puffer", command, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *((words, "ROM x.gb: cannot be read") for words in ("play x.gb", "bench --rom x.gb", "scan x.gb")),
        *((words, "ROM x.gb: cannot be read") for words in ("verify x.gb", "train ppo --rom x.gb")),
        *((words, "game 'x': there is no game.toml") for words in ("play --game x", "train dqn --game x --smoke")),
        ("eval x", "run 'x' is unknown"),
    ],
)
def test_a_mistyped_game_needs_no_torch(words: str, message: str) -> None:
    """A path that leads nowhere is refused before torch is imported, which takes more than a second."""
    code = f"import sys; from gbxcule_puffer.cli import main; code = main({words.split()})\n"
    code += "sys.exit(99 if 'torch' in sys.modules else code)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith(f"puffer: {message}")


def test_ctrl_c_while_a_script_is_imported() -> None:
    code = "import gbxcule_puffer.trainers; raise KeyboardInterrupt"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "\n-c: interrupted\n")
