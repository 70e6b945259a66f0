"""--game: the trainers' flags take a folder's options as their defaults; a run remembers its game."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import evaluate, ppo_lite, pqn
from gbxcule_puffer.apps.watch.watch import Player
from gbxcule_puffer.trainers.flags import read_flags
from gbxcule_puffer.trainers.trained import Trained
from tests.games.folders import game_text, write
from tests.support.training_runs import read

pytestmark = pytest.mark.kernel
SHORT = ["--smoke", "--device=cpu"]
TABLES = (
    '[env]\nframes_per_step = 12\nmax_steps = 40\nobs = "packed"\nstack_k = 2\nstart_waits = 3\nvisit_bonus = 0.5\n'
    'blocked_actions = ["START", "SELECT"]\naction_codec = "NOOP,A,START,SELECT,LEFT,RIGHT"\nram_obs = "lives"',
    '[numbers]\nlives = "lives"\nscore = "score"',
    '[reward]\nscore = "score.delta"\n[end]\nfailure = "lives.delta < 0"\n[statistics]\nscore = "score"',
    '[levels]\nwrite = "seed"\nbytes = ["level & 255", "level >> 8", 0xA5]\ntrain = [0, 64]\ntest = [64, 64]',
    '[variants.many]\npoke = [{address = "lives", value = 9}]\n'
    '[variants.other]\npatch = [{offset = 0xFFF0, bytes = "12"}]',
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("games") / "mine", game_text(*TABLES), rom=True)


def test_the_folders_options_are_defaults_of_the_flags(folder: Path) -> None:
    args: Any = read_flags(pqn.Args, "pqn", None, [f"--game={folder}", "--stack-k=3", "--no-stagger"])
    assert (args.frames_per_step, args.max_steps, args.obs, args.stack_k) == (12, 40, "packed", 3)
    assert args.blocked_actions == ("START", "SELECT") and args.start_waits == 3 and args.ram_obs == "C123"
    tiny: Any = read_flags(pqn.Args, "pqn", None, [f"--game={folder}", "--smoke"])
    assert tiny.max_steps == 16, "those of a tiny run"
    assert read_flags(pqn.Args, "pqn", None, ["--max-steps=9", f"--game={folder}", "--smoke"]).max_steps == 9


def test_help_shows_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, wanted in (
        (["--game", str(folder), "--help"], "(default: 40)"),
        (["--help"], "(default: the task's limit, or 128)"),
        (["--game", "nowhere", "--help"], "(default: the task's limit, or 128)"),
    ):
        with pytest.raises(SystemExit):
            pqn.main(words)
        text = " ".join(capsys.readouterr().out.split())
        assert wanted in text.partition("--max-steps")[2].partition("--tau")[0]


def test_a_run_remembers_its_game(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It goes on, is evaluated and is watched without --game, also where both folders have been moved."""
    there = tmp_path / "there"
    shutil.copytree(folder, there / "mine")
    run = there / "run"
    assert pqn.main([f"--game={there / 'mine'}", *SHORT, f"--run-dir={run}", "--levels=4"]) == 0
    saved = read(run / "checkpoint.pt")["args"]
    assert (saved["game"], saved["levels"], saved["frames_per_step"]) == ("./../mine", "4", 12)
    told = {name for line in (run / "metrics.jsonl").read_text().splitlines() for name in json.loads(line)}
    assert {"env/task/score", "env/visits/cells", "eval/task/score"} <= told
    here = tmp_path / "here"
    there.rename(here)
    assert pqn.main([f"--resume={here / 'run'}", "--total-env-steps=256"]) == 0
    assert evaluate.main([str(here / "run"), "--episodes=2", "--num-envs=2", "--policy=greedy", "--levels=test"]) == 0
    env: Any = Trained(here / "run").open_env(2, "cpu", 1, levels="test")
    env.reset(seed=1)
    assert (env.task.level >= 64).all() and env.max_steps == 16 and env.options.visit_bonus == 0
    player = Player(here / "run", 2, "cpu", 1, False, variant="many")
    for _ in range(3):
        player.step()
    assert int(player.env.ram["lives"][0]) in (3, 9)  # pyright: ignore[reportAttributeAccessIssue]
    (here / "mine/game.toml").unlink()
    capfd.readouterr()
    assert evaluate.main([str(here / "run"), "--episodes=2"]) == 2
    error = capfd.readouterr().err
    assert "there is no game.toml in such a folder" in error and error.count("\n") == 1


def test_a_policy_plays_a_variant_with_another_rom(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert pqn.main([f"--game={folder}", *SHORT, f"--run-dir={run}"]) == 0
    plain, other = (Trained(run).open_env(1, "cpu", 1, variant=name) for name in (None, "other"))
    assert plain.config["rom_sha256"] != other.config["rom_sha256"]
    assert evaluate.main([str(run), "--episodes=1", "--num-envs=1", "--policy=greedy", "--variant=other"]) == 0


def test_a_game_of_ours_is_trained_as_its_environment_is(tmp_path: Path) -> None:
    """--game storeroom and --env gbxcule_storeroom: the same bits."""
    weights = []
    for number, words in enumerate((["--game=storeroom", "--levels=8"], ["--env=gbxcule_storeroom-8"])):
        assert ppo_lite.main([*words, *SHORT, f"--run-dir={tmp_path / str(number)}"]) == 0
        weights.append(read(tmp_path / str(number) / "checkpoint.pt")["model"])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--game=chess"], "game 'chess': there is no game.toml in such a folder"),
        (["--game=orchard", "--env=gbxcule_orchard"], "'gbxcule_orchard' is a game itself"),
        (["--game=orchard", "--env=toy"], "'toy' plays no Game Boy: leave game out"),
        (["--variant=easy"], "variant and levels need a game: give game, too"),
        (["--game=orchard", "--variant=easy"], "variant 'easy' is not in"),
        (["--game=orchard", "--levels=0"], "levels '0' are unknown"),
        (["--game=orchard", "--rom=homeward"], "is not the game's ROM"),
        (["--game=orchard", "--stages=roms/homeward/stages.json"], "--stages and --game exclude each other"),
        (["--game=orchard", "--frames-per-step=4"], "release_after_frames 8 must be from 1 to frames_per_step 4"),
    ],
)
def test_a_trainer_refuses(words: list[str], fault: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert pqn.main([*words, *SHORT, f"--run-dir={tmp_path / 'run'}"]) == 2
    error = capfd.readouterr().err
    assert fault in error and error.count("\n") == 1 and not (tmp_path / "run").exists()


def test_a_runs_folder_is_named_by_its_game(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["--env=toy"], [f"--game={folder}", "--total-env-steps=1", "--eval-episodes=1"]):
        assert pqn.main([*words, *SHORT]) == 0
    assert sorted(path.name.split("__")[0] for path in (tmp_path / "runs").iterdir()) == ["mine", "toy"]
