"""`puffer sweep`: its space, its trials side by side, those that end early, and sweeps that go on."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from gbxcule_puffer.apps.side_by_side import SideBySide
from gbxcule_puffer.apps.sweep.command import OWN, seconds_of
from gbxcule_puffer.apps.sweep.search import JOURNAL, Plan, Search, _Rungs, open_study, ranked
from gbxcule_puffer.apps.sweep.space import dimension, own_ranges, space_of
from gbxcule_puffer.apps.train.scripts import FLAGS, SWEEP, flags_module
from gbxcule_puffer.cli import main
from gbxcule_puffer.commandline.flags import flags_of
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import trainer_scripts, trainers
from gbxcule_puffer.trainers.flags import read_flags

# A trainer whose score grows the faster the nearer --lr is to 0.01; --size 13 fails.
HILL = """
import json, math, sys, time
from dataclasses import dataclass
from pathlib import Path

from gbxcule_puffer.trainers.flags import RunFlags, flag, read_flags


@dataclass
class Args(RunFlags):
    lr: float = flag(1e-3, "learning rate", least=0)
    size: int = flag(8, "a size", least=1)


SWEEP = {"lr": "1e-4:1:log", "size": "4,8,16"}


def main():
    args = read_flags(Args, "hill", None)
    if args.size == 13:
        sys.exit("13 is not a size")
    speed = 1 / (1 + abs(math.log10(args.lr / 0.01))) + args.seed / 1000
    Path(args.run_dir).mkdir(parents=True)
    with open(f"{args.run_dir}/metrics.jsonl", "w") as file:
        for step in range(100, args.total_env_steps + 1, 100):
            record = {"global_step": step, "charts/seconds": step / 100, "env/episodes": 100}
            file.write(json.dumps(record | {"charts/episodic_return": speed * step}) + "\\n")
            file.flush()
            time.sleep(0.02)


main()
"""


@pytest.fixture
def hill(tmp_path: Path) -> Path:
    path = tmp_path / "hill.py"
    path.write_text(HILL)
    return path


def plan_of(out: Path, **given: Any) -> Plan:
    """A plan whose trainings do not matter."""
    flags = {each.name: each for each in flags_of(getattr(flags_module(trainers()["ppo"]), FLAGS))}
    space = [dimension(flags["lr"], "1e-4:1e-2:log"), dimension(flags["num_steps"], "64,16,32")]
    plan = Plan(
        trainers()["ppo"], ["--env=toy"], {}, space, (1,), None, 900, None, "charts/episodic_return",
        {"lr": 1e-3, "num_steps": 32}, out, None, 4, True, SideBySide(["cpu"], 1),
    )  # fmt: skip
    return replace(plan, **given)


def test_a_sweep_finds_better_settings_than_the_defaults_and_goes_on(
    hill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = hill.parent / "out"
    words = ["sweep", str(hill), *f"--device cpu --steps 900 --jobs 2 --out {out}".split()]
    assert main([*words, "--trials", "3", "--vary", "lr", "--size=4"]) == 0
    study = open_study(out)
    assert study is not None and study.trials[0].params["lr"] == 1e-3, "the defaults come first"
    best = ranked(study)[0]
    assert best.state == TrialState.COMPLETE
    command = f"{Path(sys.executable).name} {hill} --size=4 --lr={best.params['lr']:.3g}"
    assert shlex.split((out / "best.txt").read_text()) == command.split()
    assert (out / "sweep.png").stat().st_size > 10_000
    table = (out / "sweep.md").read_text()
    assert "the defaults" in table and command in table
    shown = capsys.readouterr().out
    assert shown.count("trial ") >= 3 and command in shown

    assert main([*words, "--trials", "4", "--vary", "lr", "--size=4"]) == 0
    assert capsys.readouterr().out.count(": lr ") == 1, "one more"
    assert main([*words, "--trials", "4", "--vary", "lr"]) == 2
    assert "has flags ['--size=4'], not []: give another --out" in capsys.readouterr().err


def test_trainings_that_fail_are_lines_and_the_end(hill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"--device cpu --steps 100 --jobs 3 --trials 5 --vary lr --size=13 --out {hill.parent / 'out'}".split()
    assert main(["sweep", str(hill), *words]) == 2
    shown = capsys.readouterr()
    assert "failed: 13 is not a size: lr 0.001" in shown.out
    assert "the first 3 trials failed, the last with: 13 is not a size" in shown.err


def test_a_killed_sweep_s_trials_failed_and_come_again(tmp_path: Path) -> None:
    """Also where it was killed while it wrote."""
    plan = plan_of(tmp_path)
    before = Search(plan)
    trial = before.study.ask()
    values = {each.name: each.suggest(trial) for each in plan.space}
    assert values == {"lr": 1e-3, "num_steps": 32}
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"op_code": 4, "worker')
    (tmp_path / f"{JOURNAL}.lock").symlink_to(tmp_path / JOURNAL)
    after = Search(plan).study
    assert [each.state for each in after.trials] == [TrialState.FAIL, TrialState.WAITING]
    trial = after.ask()
    assert {each.name: each.suggest(trial) for each in plan.space} == values


@pytest.mark.parametrize(
    "other", [{"steps": 901}, {"seeds": (1, 2)}, {"words": ["--env=gbxcule"]}, {"metric": "env/task/x"}], ids=str
)
def test_another_sweep_s_folder_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    Search(plan_of(tmp_path))
    with pytest.raises(ConfigError, match="give another --out"):
        Search(plan_of(tmp_path, **other))


def test_a_damaged_journal_is_one_line(tmp_path: Path) -> None:
    Search(plan_of(tmp_path))
    text = (tmp_path / JOURNAL).read_text()
    (tmp_path / JOURNAL).write_text(text.replace('"op_code":0', '"op_code":7', 1).replace("{", "[", 1))
    with pytest.raises(ConfigError, match="is damaged"):
        Search(plan_of(tmp_path))


def curve(*scores: float) -> list[list[float]]:
    """A curve with a record of a hundred episodes every hundred steps."""
    return [[100 * number, number, score, 100] for number, score in enumerate(scores, 1)]


@pytest.mark.parametrize(
    ("reach", "others"), [(None, (5.0, 6.0, 7.0)), (100.0, (5.0, 6.0, 7.0))], ids=["score", "reach"]
)
def test_a_trial_behind_the_best_third_ends(tmp_path: Path, reach: float | None, others: tuple[float, ...]) -> None:
    """By its score at a ninth and a third of its length, not by later ones, once all seeds are there."""
    plan = plan_of(tmp_path, reach=reach, seeds=(1, 2))
    study = Search(plan).study
    for score in others:
        rungs = _Rungs(plan, study.ask())
        rungs.is_behind([curve(score), curve(score)])
    worst, best = _Rungs(plan, study.ask()), _Rungs(plan, study.ask())
    assert not worst.is_behind([curve(1.0, 99.0), []]), "a seed is not there yet"
    assert worst.is_behind([curve(1.0, 99.0), curve(1.0, 99.0)])
    assert not best.is_behind([curve(9.0), curve(9.0)])
    slow = [[100.0, 1.0, 1.0, 9.0]]
    assert not _Rungs(plan, study.ask()).is_behind([slow, slow]), "no score yet"


def test_seconds_to_a_score_order_those_that_miss_it_by_how_far(tmp_path: Path) -> None:
    search = Search(plan_of(tmp_path, reach=50.0, steps=None, seconds=9.0))
    curves = [curve(1, 60), curve(1, 2, 3, 55), curve(1, 2, 40), curve(1, 2, 3)]
    values = [value for each in curves if (value := search._value([each], [each[-1][2]])) is not None]
    assert values[:2] == [2, 4] and 9 < values[2] < values[3] < 18
    assert search._value([curves[0], curves[1]], [60, 55]) == 3 and search._value([[]], []) is None


@pytest.mark.parametrize("name", trainer_scripts())
def test_a_trainer_s_space_has_its_defaults(name: str) -> None:
    """On a CPU and on a GPU: the first trial of a sweep is a training with them."""
    module = flags_module(trainer_scripts()[name])
    flags = [each for each in flags_of(getattr(module, FLAGS)) if each.name not in OWN]
    for device in ("cpu", "cuda"):
        ranges, single = own_ranges(getattr(module, SWEEP), device != "cpu")
        space = space_of(flags, ranges, (), None, ())
        assert single in ({}, {"log_interval": "1"})
        defaults = read_flags(getattr(module, FLAGS), name, None, ["--device", device])
        assert {"lr", "num_envs", "gamma"} < {each.name for each in space}
        for each in space:
            assert each.value(each.parameter(getattr(defaults, each.name))) == getattr(defaults, each.name), each


@pytest.mark.parametrize("name", trainer_scripts())
def test_a_trainer_takes_the_words_of_a_trial(name: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, script=trainer_scripts()[name], single={"log_interval": "1"}, seconds=5.0, steps=None)
    _, *words = Search(plan)._words({"lr": 2e-3}, 7, "cpu", tmp_path / "runs/3__7")
    args = read_flags(getattr(flags_module(plan.script), FLAGS), name, None, words)
    args.check()
    assert (args.env, args.lr, args.seed, args.max_seconds, args.log_interval) == ("toy", 2e-3, 7, 5.0, 1)
    assert args.run_dir == str(tmp_path / "runs/3__7") and args.stop_at_success > 1


def test_a_space_in_a_file_and_in_words(tmp_path: Path) -> None:
    flags = flags_of(getattr(flags_module(trainers()["ppo"]), FLAGS))
    file = tmp_path / "space.toml"
    file.write_text('lr = "1e-4:1e-2:log"\nnum-steps = [64, 16]\nnorm_adv = [true, false]\ngamma = true\n')
    space = space_of(flags, {"gamma": "0.9,0.99"}, ["num-envs=1e2:1000"], str(file), ())
    texts = {each.name: each.text for each in space}
    assert texts == {
        **{"lr": "1e-4:1e-2:log", "num_steps": "64,16", "norm_adv": "true,false", "gamma": "0.9,0.99"},
        "num_envs": "1e2:1000",
    }
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(1)).ask()
    values = {each.name: each.suggest(trial) for each in space}
    assert 1e-4 <= values["lr"] <= 1e-2 and values["lr"] == float(f"{values['lr']:.3g}")
    assert values["num_steps"] in (16, 64) and values["norm_adv"] in (True, False) and 100 <= values["num_envs"] <= 1000


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--trials 1", "--seconds or --steps is missing"),
        ("--steps 1", "--budget or --trials is missing"),
        ("--budget 5x", "'5x' is not a time: give 90s, 20m or 3h"),
        ("--budget 9s --seed 2", "--seed is of one training"),
        ("--budget 9s --resume", "--resume is of one training"),
        ("--budget 9s --budgt 3", "did you mean --budget?"),
        ("--budget 9s --vary lr=1e-2:1e-4", "needs a LOW below its HIGH"),
        ("--budget 9s --vary lr=0:1:log", "needs a LOW above 0"),
        ("--budget 9s --vary lr=1:2:lin", "lr=1:2:lin is not a range"),
        ("--budget 9s --vary lr=3", "has fewer than two values"),
        ("--budget 9s --vary lr=-1,1", "--lr -1.0 must be at least 0"),
        ("--budget 9s --vary num-steps=8,9.5", "has '9.5', which is not a value of it"),
        ("--budget 9s --vary obs=shades:grey", "obs=shades:grey is not a list"),
        ("--budget 9s --vary obs=shades,gray", "'gray' is unknown"),
        ("--budget 9s --vary alpha", "alpha has no range of its own"),
        ("--budget 9s --vary lrr=1,2", "'lrr' is not a flag"),
        ("--budget 9s --vary device=cpu,cuda", "'device' is not a flag"),
        ("--budget 9s --lr 1 --vary lr", "--lr is given, and varies"),
        ("--budget 9s --space none.toml", "none.toml"),
        ("--budget 9s --seeds 1,1 --jobs 2", "name each seed once"),
        ("--budget 9s --seeds 1,2 --jobs 1", "as many --jobs"),
    ],
)
def test_wrong_words_are_one_line_and_leave_no_folder(
    words: str, wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "ppo", "--device", "cpu", *words.split(), "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert wanted in line and len(line) < 300
    assert not (tmp_path / "out").exists()


class Without:
    """A finder of modules that knows that one is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1", "mine.py has no class Args: write one, as docs/trainers.md shows"),
        ("\ndef x(", "mine.py, line 2: '(' was never closed"),
        ("a\0", "mine.py"),
        ("import nothing_like_it as base\nclass Args(base.Flags): pass", "ModuleNotFoundError: No module named 'noth"),
    ],
    ids=["another file", "syntax", "a zero byte", "import"],
)
def test_a_file_that_is_not_a_trainer_is_one_line(
    text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(text)
    assert main(["sweep", "mine.py", "--budget", "1m"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("puffer: trainer mine.py") and fault in line
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_without_optuna_it_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [each for each in sys.modules if each.startswith("gbxcule_puffer.apps.sweep.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.partition(".")[0] == "optuna"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without("optuna"), *sys.meta_path])
    assert main(["sweep", "ppo", "--budget", "9s"]) == 2
    assert "pip install 'gbxcule-puffer[sweep]'" in capsys.readouterr().err


def test_times() -> None:
    assert [seconds_of(text) for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]
