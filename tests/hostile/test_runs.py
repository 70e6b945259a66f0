"""Runs of strangers: nothing is written beside their folder, and what they hold is refused in one line or drawn."""

from __future__ import annotations

import copy
import json
import math
import os
import resource
from pathlib import Path
from typing import Any

import pytest
import torch

from cleanrl_style import a2c_overlap, dqn_nstep, evaluate
from gbxcule_puffer import cli
from gbxcule_puffer.apps.bench import baseline
from gbxcule_puffer.apps.plot.plot import read_run
from gbxcule_puffer.errors import ConfigError, RomError, StateError, StorageError
from gbxcule_puffer.games import load_game
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from gbxcule_puffer.tasks.ram.symbols import Symbols
from gbxcule_puffer.tasks.stages.list import FORMAT, VERSION, StageFiles, load_stages, make_stages, write_stages
from gbxcule_puffer.trainers import launch
from gbxcule_puffer.trainers.runlog import RunLog
from tests.hostile.formats import CARTRIDGE, ROM
from tests.support.training_runs import read, toy_run, words

NAMES = ("/tmp/evil", "../evil", "..", ".", "a/b", "a\\b", "", "a\0b", ".hidden", "x" * 65, "a b", "\x1b[2J", "é")


@pytest.fixture(scope="module")
def a2c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of A2C with a GRU on the toy."""
    folder = tmp_path_factory.mktemp("a2c")
    flags = {"total_env_steps": 64, "eval_episodes": 1, "eval_envs": 1, "num_envs": 4, "recurrent": "gru"}
    assert a2c_overlap.main(toy_run(folder, **flags)) == 0
    return folder


@pytest.fixture(scope="module")
def dqn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of DQN on the toy that keeps its replay."""
    folder = tmp_path_factory.mktemp("dqn")
    assert dqn_nstep.main(words(f"--smoke --env toy --device cpu --keep-replay --run-dir {folder}")) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_names_of_stages_are_no_paths(name: str, tmp_path: Path) -> None:
    row = {"name": name, "recipe": "stage1.json", "max_steps": 8}
    path = tmp_path / "stages.json"
    spec = {"format": FORMAT, "version": VERSION, "rom_sha256": CARTRIDGE.sha256, "stages": [row]}
    path.write_text(json.dumps(spec))
    for way in (lambda: make_stages(path, tmp_path / "out"), lambda: load_stages(path, CARTRIDGE.sha256)):
        with pytest.raises(ConfigError, match="is not a name of a stage: give up to 64 letters") as error:
            way()
        assert str(error.value).isprintable()
    with pytest.raises(ConfigError, match="is not a name of a stage"):
        write_stages(tmp_path / "new.json", CARTRIDGE.sha256, [StageFiles(name, tmp_path, tmp_path, 8)])
    assert [one.name for one in tmp_path.iterdir()] == ["stages.json"]


@pytest.mark.parametrize("changes", [
    {"rom": 5}, {"rom": None}, {"solve_actions": {"UP": 1}}, {"start_actions": [["A"]]}, {"solve_actions": "UP"},
])  # fmt: skip
def test_a_stage_of_other_types_is_one_line(changes: dict[str, Any], tmp_path: Path) -> None:
    stage = {"rom": str(ROM), "start_actions": [], "solve_actions": ["UP"]} | changes
    (tmp_path / "stage.json").write_text(json.dumps(stage))
    with pytest.raises(ConfigError, match="is damaged"):
        GoalRecipe.load(tmp_path / "stage.json").make(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_goal_has_no_absolute_path(tmp_path: Path) -> None:
    stage = {"rom": str(ROM), "start_actions": [], "solve_actions": ["UP"]}
    (tmp_path / "stage.json").write_text(json.dumps(stage))
    files = GoalRecipe.load(tmp_path / "stage.json").make(tmp_path / "out")
    found = GoalTemplate.load(files.goal_dir).meta["rom_file"]
    assert not Path(found).is_absolute() and (files.goal_dir / found).resolve() == ROM.resolve()


def test_evaluation_writes_nothing_into_a_run(a2c: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its list of stages would be made in the run's folder, through a link of the stranger's."""
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    (run / "stages").symlink_to(elsewhere)
    row = {"name": "one", "recipe": "recipe.json", "max_steps": 8}
    spec = {"format": FORMAT, "version": VERSION, "rom_sha256": CARTRIDGE.sha256, "stages": [row]}
    (run / "list.json").write_text(json.dumps(spec))
    recipe = {"rom": str(ROM), "start_actions": [], "solve_actions": ["UP"]}
    (run / "recipe.json").write_text(json.dumps(recipe))
    state = read(a2c / "checkpoint.pt")
    state["args"] |= {"env": "gbxcule", "stages": "list.json"}
    state["env_config"]["rom_sha256"] = CARTRIDGE.sha256
    torch.save(state, run / "checkpoint.pt")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    assert evaluate.main([str(run), "--episodes", "1", "--num-envs", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a checkpoint in which one thing is another."""
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new(inner[path[-1]]) if callable(new) else new
    return value


def beyond(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, 200)


OWN = ("processes", 0)
MUTATIONS = {
    "no weights": (("model",), KeyError),
    "weights that are not finite": (("model", "WEIGHT"), lambda w: w * math.nan),
    "weights of another type": (("model", "WEIGHT"), lambda w: w.to(torch.int32)),
    "moments of another shape": (("optimizer", "state", 0, "exp_avg"), torch.zeros(1)),
    "no moments": (("optimizer", "state", 0, "exp_avg"), KeyError),
    "moments of a parameter that is not": (("optimizer", "state", 999), {}),
    "text for a rate": (("optimizer", "param_groups", 0, "betas"), ("a", "b")),
    "another option": (("optimizer", "param_groups", 0, "capturable"), 3),
    "groups": (("optimizer", "param_groups"), []),
    "memory that would be spread": ((*OWN, "memory0"), lambda m: m[:1, :1]),
    "walker beyond the board": ((*OWN, "envs", 0, "tensors", "walker"), beyond),
    "steps": ((*OWN, "envs", 0, "steps"), 2**80),
    "generator": ((*OWN, "rng", "cpu"), lambda r: torch.zeros_like(r)),
    "no generator": ((*OWN, "rng"), KeyError),
    "losses": ((*OWN, "losses", "count"), "many"),
    "counter": (("counters", "global_step"), -1),
    "envs": ((*OWN, "envs"), {}),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_checkpoint_is_refused(
    name: str, a2c: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, new = MUTATIONS[name]
    state = read(a2c / "checkpoint.pt")
    path = tuple(next(key for key in state["model"] if "weight" in key) if key == "WEIGHT" else key for key in path)
    torch.save(changed(state, path, new), tmp_path / "checkpoint.pt")
    capsys.readouterr()
    flags = ["--resume", str(tmp_path), "--total-env-steps", "128"]
    assert a2c_overlap.main(flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "checkpoint" in line or "damaged" in line or "does not fit" in line


OF_REPLAY = {
    "ages": beyond, "age": beyond, "actions": beyond, "count": 3, "max_priority": lambda p: p * math.nan,
    "pictures": lambda p: p[:1], "rewards": lambda r: r * math.inf, "terminals": lambda t: t.float(),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_REPLAY)
def test_a_changed_replay_is_refused(name: str, dqn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = read(dqn / "checkpoint.pt")
    torch.save(changed(state, (*OWN, "replay", name), OF_REPLAY[name]), tmp_path / "checkpoint.pt")
    capsys.readouterr()
    assert dqn_nstep.main(["--resume", str(tmp_path), "--total-env-steps", "4096"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "saved replay" in line and (name in line or name == "count")


def metrics(folder: Path, *records: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_odd_curves_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values of any size, text that looks like a formula, one record."""
    runs = []
    for number, text in enumerate(("$\\frac$", "\x1b[2J$x$", "a" * 10_000)):
        record = {"global_step": 0, "charts/SPS": 10**30, "losses/entropy": True, "env/done_rate": -1e18}
        run = metrics(tmp_path / f"run{number}", {**record, "env/stage/$\\oops$/success": 1, "env/stage/a/success": 1})
        (run / "manifest.json").write_text(json.dumps({"config": {"$rom$": text, "seed": {}}}))
        runs.append(str(run))
    assert cli.main(["plot", *runs, "--out", str(tmp_path / "a.png")]) == 0
    assert "Traceback" not in capsys.readouterr().err and (tmp_path / "a.png").is_file()


@pytest.mark.parametrize("records", [
    [[]], [None], [{}], [{"global_step": "1"}], [{"global_step": 10**400}], [{"global_step": True}],
    [{"global_step": 1, **{f"env/stage/s{i}/success": 0 for i in range(61)}}],
    [{"global_step": 1, "charts/SPS": 10**400}], [{"global_step": 1, "charts/SPS": [1]}],
])  # fmt: skip
def test_records_of_no_run_are_refused(records: list[Any], tmp_path: Path) -> None:
    with pytest.raises((StateError, ConfigError)) as error:
        read_run(metrics(tmp_path / "run", *records))
    assert str(error.value).isprintable()


@pytest.mark.parametrize("changes", [
    {"sps": 10**400}, {"sps": True}, {"sps": "1"}, {"sps": 0}, {"num_envs": [1]}, {"rom_sha256": {}}, {"actions": [[]]},
])  # fmt: skip
def test_a_baseline_of_other_types_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    record: dict[str, Any] = dict.fromkeys(baseline.SAME, "x") | {"sps": 1.0, "rom": "x", "num_envs": 1}
    (tmp_path / "records.json").write_text(json.dumps([record]))
    assert baseline.losses([record], baseline.load(tmp_path / "records.json"), 0.05) == []
    (tmp_path / "records.json").write_text(json.dumps([record | changes]))
    with pytest.raises(ConfigError, match=r"has a record whose|a number has 401 digits"):
        baseline.load(tmp_path / "records.json")


def test_a_game_reads_a_bounded_number_of_bytes(tmp_path: Path) -> None:
    head = f'format = "gbxcule-game"\nversion = 1\nname = "a"\n[rom]\nsha256 = "{CARTRIDGE.sha256}"\n'

    def refused(text: str) -> str:
        (tmp_path / "game.toml").write_text(head + text)
        with pytest.raises(ConfigError) as error:
            load_game(tmp_path)
        return str(error.value)

    names = [f"n{number}" for number in range(17)]
    bits = "\n".join(
        f'{name} = {{address = "C{number:X}00", size = 512, read = "bits"}}' for number, name in enumerate(names[:16])
    )
    more = 'n16 = {address = "D000", size = 2}\n'
    assert "read more than 8,192 bytes" in refused(f"[numbers]\n{bits}\n{more}[reward]\nall = '{' + '.join(names)}'")
    assert "has 1,025 entries: give at most 1,024" in refused(
        "[reward]\n" + "\n".join(f"r{i} = {i}" for i in range(1025))
    )
    sums = "\n".join(f"r{i} = '{' + '.join(f'{i}.5 * {j}' for j in range(100))}'" for i in range(100))
    assert "more than 8,192 operations" in refused(f"[reward]\n{sums}")
    assert len(refused("[numbers]\nx = '" + "9" * 100_000 + "'")) < 400


def test_names_of_symbols_are_short(tmp_path: Path) -> None:
    """A name of megabytes made the search for an offset, and for names like it, take for ever."""
    (tmp_path / "game.sym").write_text("00:C000 wHere\n")
    symbols = Symbols.load(tmp_path / "game.sym")
    for text in ("a" + " " * 10**6, "wHere+" + "9" * 5000):
        with pytest.raises(ConfigError, match="longer than 200 characters"):
            symbols.find(text)
    (tmp_path / "long.sym").write_text("00:C000 " + "a" * 201)
    with pytest.raises(ConfigError, match="has no symbols"):
        Symbols.load(tmp_path / "long.sym")


@pytest.mark.parametrize(("error", "code", "line"), [
    (PermissionError(13, "No", "a\x1b[2J"), 1, "a2c: a\\x1b[2J cannot be read or written (No)\n"),
    (BrokenPipeError(), 141, ""),
    (MemoryError("out of memory"), 2, "a2c: the memory is too small (out of memory): give fewer --num-envs\n"),
    (KeyboardInterrupt(), 130,
     "\na2c: stopped; --resume continues from the last checkpoint, or starts again if there is none\n"),
])  # fmt: skip
def test_trainers_end_as_commands_do(
    error: BaseException, code: int, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that cannot be read gave a traceback."""

    def work() -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "dup2", lambda *_: None)  # or the streams of the other tests would be gone
        assert launch.exit_code("a2c", work) == code
    assert capfd.readouterr().err == line


def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path) -> None:
    for name in ("x" * 3000, "a\0b"):
        (tmp_path / "stage.json").write_text(json.dumps({"rom": name, "start_actions": [], "solve_actions": ["UP"]}))
        with pytest.raises(RomError, match="cannot be read") as error:
            GoalRecipe.load(tmp_path / "stage.json").make(tmp_path / "out")
        assert str(error.value).isprintable()


def test_a_full_disk_is_one_line_of_a_run_s_threads_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """TensorBoard writes in a thread of its own, whose traceback stood beside our line."""
    log = RunLog(tmp_path / "run", {})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        with pytest.raises((StorageError, OSError)):
            for step in range(10_000):
                log.record(step, {f"losses/{step % 50}": 1.0})
                log.board._writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert capfd.readouterr().err == ""
