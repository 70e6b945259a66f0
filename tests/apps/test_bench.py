"""`puffer bench`: contenders do the same, stages are what they say, records add up, limits and Ctrl-C are kept."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from PIL import Image

from benchmarks.workload import ROOT
from gbxcule_puffer import env_creator
from gbxcule_puffer.apps.bench.contenders import Contender, make_contender
from gbxcule_puffer.apps.bench.live import LiveTable
from gbxcule_puffer.apps.bench.measure import Turn
from gbxcule_puffer.apps.bench.run import Plan, judge, warning_where_busy
from gbxcule_puffer.apps.bench.stages import PartialStep
from gbxcule_puffer.apps.bench.workload import Workload
from gbxcule_puffer.cli import main
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.provenance import usable_cores
from gbxcule_puffer.tasks.actions import get_codec
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from tests.support.browser import PATIENCE
from tests.support.roms import tiny_rom
from tests.support.signals import HEARS_CTRL_C

HOMEWARD = ROOT / "roms/homeward.gb"
DIVERGE = ROOT / "roms/micro/joy_diverge_persist.gb"
CONTRACT = {
    *("backend", "device_name", "num_envs", "stage", "action_codec", "action_codec_version", "frames_per_step"),
    *("release_after_frames", "stack_k", "vec_backend", "rom", "rom_sha256", "start_state", "warmup_steps"),
    *("measured_steps", "sps", "frames_per_second", "x_realtime", "ms_per_step", "bytes_allocated_after_warmup"),
    *("peak_device_bytes", "unique_pcs", "distinct_pictures", "versions", "git_sha"),
}


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "gbxcule_puffer", "bench", *map(str, words)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of a whole benchmark: two sizes beside PyBoy in another process."""
    out = tmp_path_factory.mktemp("bench") / "out"
    words = ["bench", "gbxcule", "--vs", "pyboy_puffer_vec", "--vs-num-envs", 4, "--num-envs", "6,2", "--device", "cpu"]
    words += ["--cores", 1, "--obs", "packed", "--reset-every", 4]
    words += ["--warmup", 2, "--steps", 3, "--repeat", 2, "--out", out]
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as error:
        assert (main(list(map(str, words))), error.getvalue()) == (0, "")
    return out, output.getvalue()


def records_of(out: Path) -> list[dict[str, Any]]:
    return json.loads((out / "records.json").read_text())


def test_records_add_up(finished: Any) -> None:
    out, _ = finished
    records = records_of(out)
    pairs = [(record["backend"], record["num_envs"]) for record in records]
    assert pairs == [("gbxcule", 2), ("pyboy_puffer_vec", 4), ("gbxcule", 6), ("pyboy_puffer_vec", 4)]
    for record in records:
        assert record.keys() >= CONTRACT
        assert 0 < record["sps_min"] <= record["sps"] <= record["sps_max"]
        assert record["frames_per_second"] == pytest.approx(24 * record["sps"], rel=1e-3)
        assert record["ms_per_step"] == pytest.approx(1000 * record["num_envs"] / record["sps"], rel=1e-3)
        assert record["peak_device_bytes"] > 0
    for ours, other in zip(records[::2], records[1::2], strict=True):
        assert ours["ratio"] == pytest.approx(ours["sps"] / other["sps"], abs=0.01)
        assert (ours["vec_backend"], other["vec_backend"]) == ("native", "mp_async")


def test_table_report_and_plot_show_the_records(finished: Any) -> None:
    out, output = finished
    report = (out / "report.md").read_text()
    for record in records_of(out):
        assert f"| {record['sps']:,.0f} |" in report
        assert f" {record['sps']:,.0f} " in output
    assert "scaling.png" in report
    with Image.open(out / "scaling.png") as image:
        assert image.size > (600, 400) and len(set(image.convert("L").tobytes())) > 20
    assert sorted(path.name for path in out.iterdir()) == ["records.json", "report.md", "scaling.png"]


class Terminal(io.StringIO):
    """A terminal of 100 columns; `screen` is what it shows."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        lines, row = [""], 0
        for part in re.split(r"(\x1b\[\d*[AJ]|\n)", self.getvalue()):
            if part == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif part.endswith("A"):
                row -= int(part[2:-1])
            elif part == "\x1b[J":
                lines = [*lines[:row], ""]
            else:
                lines[row] += part
        return lines


@pytest.mark.parametrize(
    ("load", "names", "device", "told"),
    [
        (0.3, ("gbxcule", None), "cpu", []),
        (3.0, ("gbxcule", None), "cpu", ["gbxcule will be measured too slow: end what else"]),
        (3.0, ("gbxcule", "pyboy_puffer_vec"), "cuda:0", ["pyboy_puffer_vec will", "and so is the ratio too high"]),
        (3.0, ("gbxcule", "pyboy_puffer_vec"), "cpu", ["gbxcule and pyboy_puffer_vec will be measured too slow: end"]),
        (3.0, ("gbxcule", None), "cuda:0", []),
    ],
)
def test_a_busy_machine_is_told(
    load: float, names: tuple[str, str | None], device: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    plan: Any = SimpleNamespace(name=names[0], versus=names[1], device=device)
    text = warning_where_busy(plan)
    assert (text is not None) == bool(told)
    assert all(part in str(text) for part in ["load average is 3.0 on 2 cores", *told] if told)


def test_live_table_redraws_in_place(finished: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    records, terminal = records_of(finished[0]), Terminal()
    workload = Workload(HOMEWARD, warmup=2, steps=3, repeat=2)
    turns = [Turn(make_contender(name, workload, 2, cores=1), workload.total_steps) for name in ("gbxcule",) * 2]
    table = LiveTable(terminal)
    for part in range(3):
        turns[0].done, turns[0].doing = 5 * part, f"repeat {part} of 2 " + "x" * 100
        table.watch(workload, turns)
    header, first, second, rest = terminal.screen()
    assert header.split()[:3] == ["rom", "stage", "contender"] and rest == ""
    assert "##########" in first and len(first) == 99 and "waits" in second
    table.finish(records[:2])
    assert [len(text.split()) > 9 for text in terminal.screen()] == [True, True, True, False]
    table.watch(workload, turns)
    table.stop()
    assert len(terminal.screen()) == 4


def test_limits(finished: Any, capsys: pytest.CaptureFixture[str]) -> None:
    records = records_of(finished[0])
    plan = Plan("gbxcule", "pyboy_puffer_vec", [], [2, 6], "cpu", 2, "mp_async", None, None, None)
    most = max(record["bytes_allocated_after_warmup"] for record in records[::2])
    ratio = records[2]["ratio"]
    assert judge(plan, records) == 0
    assert judge(replace(plan, max_mem_delta=most, min_ratio=ratio), records) == 0
    assert capsys.readouterr().err == ""
    assert judge(replace(plan, min_ratio=ratio + 0.01), records) == 1
    assert "missed: homeward full_step, 6 envs: " in capsys.readouterr().err
    assert judge(replace(plan, max_mem_delta=most - 1), records) == 1


def test_missed_limit_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "--vs", "pyboy_puffer_single", "--vs-num-envs", "1", "--num-envs", "1", "--device", "cpu"]
    words += ["--warmup", "0", "--steps", "1", "--repeat", "1", "--min-ratio", "1e9", "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "1e+09 are asked for" in capsys.readouterr().err


def run_all(contender: Contender) -> dict[str, Any]:
    try:
        contender.start()
        contender.run(slice(None))
        return contender.facts()
    finally:
        contender.close()


@pytest.mark.parametrize("stage", ["full_step", "emulate_only"])
def test_contenders_end_in_the_same_place(stage: str, tmp_path: Path) -> None:
    workload = Workload(HOMEWARD, stage=stage, warmup=30, steps=3, repeat=1).with_goal(tmp_path)
    makers = (("gbxcule", "native"), ("pyboy_puffer_single", "native"), ("pyboy_puffer_vec", "serial"))
    found = [run_all(make_contender(name, workload, 4, cores=1, vec_backend=vec)) for name, vec in makers]
    receipts = [(facts["unique_pcs"], facts["distinct_pictures"]) for facts in found]
    assert receipts[0] == receipts[1] == receipts[2]
    assert receipts[0][1] > 1


def test_stripes_diverge_for_good_and_noops_never() -> None:
    for actions, apart in (("noop", False), ("striped", True)):
        workload = Workload(DIVERGE, stage="emulate_only", actions=actions, warmup=4, steps=1, repeat=1)
        facts = run_all(make_contender("gbxcule", workload, 8, cores=1))
        assert (facts["unique_pcs"] > 1) == apart, actions


@pytest.mark.parametrize(
    ("model", "obs"),
    [
        pytest.param("dmg", "packed", marks=pytest.mark.long),
        ("dmg", "grey"),
        pytest.param("cgb", "rgb_full", marks=pytest.mark.long),
    ],
)
def test_stages_do_their_part_of_the_step(tmp_path: Path, model: str, obs: str) -> None:
    """Each against the whole environment, for the Warp emulator and for PyBoy."""
    workload = Workload(HOMEWARD, obs=obs, model=model, stack_k=2, warmup=6, steps=1, repeat=1).with_goal(tmp_path)
    actions = torch.from_numpy(workload.action_rows(3))
    options = {**workload.env_options(), "num_envs": 3, "io": "torch"}
    for name in ("gbxcule", "pyboy_puffer_single"):
        make = env_creator(name)
        whole = make(workload.rom, **options)
        envs = {s: make(workload.rom, **options) for s in ("emulate_only", "reward_only", "obs_only")}
        for env in (whole, *envs.values()):
            env.reset(seed=0)
        before = envs["emulate_only"].emulator.screen.clone()
        rewards, observations = torch.zeros(3), torch.zeros_like(whole.observations)
        parts = {
            "emulate_only": PartialStep("emulate_only", envs["emulate_only"]),
            "reward_only": PartialStep("reward_only", envs["reward_only"], rewards=rewards),
            "obs_only": PartialStep("obs_only", envs["obs_only"], observations=observations),
        }
        for row in actions:
            whole.step(row)
            for part in parts.values():
                part.step(row)
        assert torch.equal(observations, whole.observations)
        assert torch.equal(rewards, whole.rewards)
        pcs = [[env.emulator.registers(i)["pc"] for i in range(3)] for env in (whole, *envs.values())]
        assert pcs[1:] == pcs[:1] * 3
        if name == "pyboy_puffer_single":  # no picture was read
            assert torch.equal(envs["emulate_only"].emulator.screen, before)
            assert not torch.equal(whole.emulator.screen, before)
        for env in (whole, *envs.values()):
            env.close()


def test_resets_are_forced_or_never_happen(tmp_path: Path) -> None:
    for reset_every, expected in ((4, True), (0, False)):
        workload = Workload(HOMEWARD, reset_every=reset_every, warmup=8, steps=1, repeat=1).with_goal(tmp_path)
        contender: Any = make_contender("gbxcule", workload, 2, cores=1)
        contender.start()
        contender.run(slice(0, 8))
        assert contender._env.final_mask.tolist() == [expected] * 2
        contender.close()


def test_actions_of_an_env_do_not_depend_on_the_others() -> None:
    workload = Workload(HOMEWARD, warmup=2, steps=3, repeat=2)
    rows = workload.action_rows(9)
    assert rows.shape == (2 + 2 * (1 + 3), 9) and rows.dtype == np.uint8
    assert np.array_equal(rows[:, :4], workload.action_rows(4))
    assert len(np.unique(rows)) == 8
    assert replace(workload, actions="striped").action_rows(9)[5].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert not replace(workload, actions="noop").action_rows(9).any()


def test_the_goal_of_a_benchmark_is_never_reached(tmp_path: Path) -> None:
    workload = Workload(HOMEWARD, obs="full").with_goal(tmp_path)
    assert workload.goal_dir is not None
    goal = GoalTemplate.load(workload.goal_dir)
    assert goal.frames.shape == (1, 144, 160) and goal.meta["tau"] == 0
    assert workload.with_goal(tmp_path / "other").goal_dir == workload.goal_dir
    own = Workload(HOMEWARD, action_codec="select,b+a").with_goal(tmp_path / "own")
    assert own.goal_dir is not None
    assert GoalTemplate.load(own.goal_dir).meta["action_codec"] == get_codec("select,b+a").name == "SELECT,A+B"
    with pytest.raises(ConfigError, match="has no goal"):
        replace(workload, stage="obs_only").check()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pyboy"], "ENV 'pyboy' is unknown: give one of gbxcule"),
        (["--rom", "missing.gb"], "missing.gb"),
        (["--rom", __file__], "test_bench.py"),
        (["--stage", "obs_only,half_step"], "--stage 'half_step' is unknown: give one of emulate_only"),
        (["--obs", "colour"], "obs 'colour' is unknown: give one of shades"),
        (["--num-envs", "64,x"], "'x' is not a whole number"),
        (["--num-envs", "0"], "0 must be at least 1"),
        (["--steps", "-1"], "-1 must be at least 1"),
        (["--steps", "1000000000000"], "--steps 1,000,000,000,000 needs"),
        (["--cores", "100000"], "this process may use"),
        (["--device", "tpu"], "device 'tpu' is not supported"),
        (["--start-state", __file__], "test_bench.py"),
        (["--goal-dir", "missing"], "missing"),
        (["--min-ratio", "2"], "--min-ratio needs --vs"),
        (["--vs", "gbxcule"], "give another one"),
        (["--suite", "missing"], "--suite missing is neither 'micro', 'corpus' nor a folder"),
        (["--suite", "."], "--suite . holds no .gb file"),
        (["--max-loss", "0.1"], "--max-loss needs --baseline"),
        (["--max-loss", "1", "--baseline", "a.json"], "--max-loss 1.0 must be at least 0 and below 1"),
        (["--baseline", "missing.json"], "baseline missing.json: cannot be read"),
        (["--baseline", __file__], "is damaged"),
        (["--json", "."], "is a folder, and only a regular file is ever replaced"),
        (["--actions", "noop", "--action-codec", "pokemonred_puffer_v0"], "has no NOOP"),
        (["--action-codec", "multi_discrete"], "has several choices in a step"),
        (["--reset-every", "5", "--stage", "obs_only"], "only --stage full_step"),
        (["--release-after-frames", "25"], "release_after_frames 25"),
        (["--rom", "a.gb", "--suite", "micro"], "--rom and --suite exclude each other"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["bench", *words, "--out", "out"])
    except SystemExit as end:
        code = end.code
    error = capsys.readouterr().err
    assert code == 2 and error.count("\n") == 1 and message in error, error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("env", ["gbxcule", "pyboy_puffer_vec"])
@pytest.mark.parametrize("stage", ["full_step", "reward_only"])
def test_a_goal_of_other_pictures_is_refused(
    stage: str, env: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whose distance would be read beyond its end."""
    goal = str(Workload(HOMEWARD).with_goal(tmp_path / "goals").goal_dir)
    words = ["--stage", stage, "--goal-dir", goal, "--obs", "full", "--rom", str(HOMEWARD)]
    assert main(["bench", env, *words, "--num-envs", "1", "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "goal was made for obs 'shades', the environment has 'full'" in error
    assert not (tmp_path / "out").exists()


def test_output_folders_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "old").mkdir()
    (tmp_path / "old/records.json").write_text("[1]")
    for place, message in ((file / "out", "cannot be written (Not a directory)"), (tmp_path / "old", "already holds")):
        assert main(["bench", "--num-envs", "1", "--out", str(place)]) == 2
        assert message in capsys.readouterr().err
    assert (tmp_path / "old/records.json").read_text() == "[1]"


@pytest.mark.long
def test_a_game_that_hangs_pyboy_is_ended(tmp_path: Path) -> None:
    rom = tiny_rom(tmp_path / "illegal.gb", b"\xd3")
    words = ["bench", "--rom", rom, "--vs", "pyboy_puffer_vec", "--vs-num-envs", "1", "--num-envs", "1", "--cores", "1"]
    words += ["--device", "cpu", "--warmup", "0", "--steps", "1", "--repeat", "1", "--out", str(tmp_path / "out")]
    code = "import sys\nfrom gbxcule_puffer import cli\nfrom gbxcule_puffer.apps import watchdog\n"
    code += f"watchdog.START_SECONDS, watchdog.SLOWEST, sys.argv[1:] = 2.0, 1e9, {words}\nsys.exit(cli.main())"
    options = {"capture_output": True, "text": True, "timeout": 120, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    found = subprocess.run([sys.executable, "-c", code], **options)
    assert found.returncode == 2 and found.stderr.startswith("puffer: PyBoy has not answered for 2 s")
    assert found.stderr.count("\n") == 1


def test_ctrl_c_leaves_complete_records_and_no_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = ROOT / "roms/micro/alu_loop.gb"  # never halts: its steps take many times as long
    words = ["--vs", "pyboy_puffer_vec", "--vs-num-envs", 2, "--num-envs", 64, "--device", "cpu", "--warmup", 0]
    words += ["--steps", 30, "--repeat", 1, "--cores", min(2, usable_cores()), "--out", out]
    words += ["--rom", HOMEWARD, slow]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    options["preexec_fn"] = HEARS_CTRL_C
    with subprocess.Popen(command(*words), **options) as bench:
        deadline = time.monotonic() + 120
        while not (out / "records.json").exists() and bench.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert bench.poll() is None, bench.communicate()[1]
        while len(psutil.Process(bench.pid).children(recursive=True)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        children = psutil.Process(bench.pid).children(recursive=True)
        os.killpg(bench.pid, signal.SIGINT)  # as a terminal does it: all processes get it
        _, error = bench.communicate(timeout=120)
    assert bench.returncode == 130, error
    assert error.strip() == f"interrupted: 2 complete records in {out / 'records.json'}"
    assert [(record["rom"], record["num_envs"]) for record in records_of(out)] == [("homeward", 64), ("homeward", 2)]
    assert [path.name for path in out.iterdir()] == ["records.json"]
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive
