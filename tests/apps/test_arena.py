"""`puffer arena`: runs side by side, records of them, and the proof that a record is true."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from gbxcule_puffer.apps.arena.recording import has_ended
from gbxcule_puffer.apps.arena.records import read_record, unpacked
from gbxcule_puffer.apps.arena.running import BARE
from gbxcule_puffer.apps.side_by_side import SideBySide
from gbxcule_puffer.cli import main
from gbxcule_puffer.commandline import as_words
from tests.support.browser import PATIENCE, wait_for

pytestmark = pytest.mark.kernel
TINY = "--levels 8 --num-envs 4 --num-steps 32 --num-minibatches 1 --log-interval 1"
STEPS = 768


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a short training on ORCHARD."""
    folder = tmp_path_factory.mktemp("arena")
    words = f"train ppo --game orchard --device cpu --run-dir {folder}/run --total-env-steps {STEPS} {TINY}".split()
    assert main([*words, *as_words(BARE)]) == 0
    words = f"arena record {folder}/run --out {folder}/one.json --agent mine --episodes 2".split()
    assert main([*words, "--weights", f"{folder}/one.safetensors"]) == 0
    return folder / "one.json"


def content_of(record: Path) -> Any:
    """What a record's file holds, with its actions as lists of texts, which a record may have, too."""
    found = json.loads(record.read_text())
    for each in found["evaluations"].values():
        each["actions"] = unpacked(each["actions"])
    return found


def test_a_record_says_what_was_trained_and_what_it_reached(record: Path) -> None:
    found = read_record(record)
    assert (found.game, found.agent, found.script, found.steps) == ("orchard", "mine", "ppo_lite", STEPS)
    assert found.settings["levels"] == "8" and found.settings["num_steps"] == 32
    assert 0 < found.curve["steps"][-1] <= STEPS and found.curve["success"][-1] < 0.5
    assert set(found.evaluations) == {"train", "test"}
    for each in found.evaluations.values():
        assert len(each.actions) == 2 and all(10 < length <= 256 for length in each.lengths)
        assert each.states[0] != each.states[1]
    assert found.score("score") == sum(found.evaluations["test"].values["score"]) / 2
    assert set(found.curve) == {"steps", "seconds", "return", "success", "score"}


def test_a_true_record_is_verified(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", "verify", str(record)]) == 0
    assert "4 episodes" in capsys.readouterr().out


def test_actions_are_packed_or_texts(record: Path, tmp_path: Path) -> None:
    """A record is a few lines for each evaluation, and the older form, with a text for each episode, is read, too."""
    found = read_record(record)
    (tmp_path / "texts.json").write_text(json.dumps(content_of(record)))
    assert read_record(tmp_path / "texts.json") == found
    found.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == record.read_text()
    assert not any(actions in record.read_text() for each in found.evaluations.values() for actions in each.actions)


def test_a_folder_may_pay_for_and_count_something_else_later(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The return of a record and some statistics are of its time; its score is compared."""
    found = content_of(record)
    values = found["evaluations"]["test"]["values"]
    values["return"][0] += 0.5
    values["apples_in_a_row"] = [3.0, 4.0]
    (tmp_path / "one.json").write_text(json.dumps(found))
    assert main(["arena", "verify", str(tmp_path)]) == 0
    assert "4 episodes" in capsys.readouterr().out


def other_action(found: Any) -> None:
    """One action, the last one but one: START in place of A does nothing in ORCHARD."""
    actions = found["evaluations"]["test"]["actions"]
    actions[1] = actions[1][:-2] + ("1" if actions[1][-2] != "1" else "3") + actions[1][-1]


def more(found: Any) -> None:
    found["evaluations"]["test"]["values"]["score"][0] += 1


def longer(found: Any) -> None:
    found["evaluations"]["train"]["actions"][0] += "0"


def easier(found: Any) -> None:
    found["settings"]["sticky_actions"] = 0.25


def endless(found: Any) -> None:
    found["evaluations"]["train"]["actions"][0] = "0" * 1000


def other_starts(found: Any) -> None:
    found["evaluations"]["test"]["seed"] = 7


def without_tests(found: Any) -> None:
    del found["evaluations"]["test"]


def file_of_its_own(found: Any) -> None:
    found["settings"]["start_state"] = "easy.state"


def other_rom(found: Any) -> None:
    found["rom_sha256"] = "0" * 64


def unknown_action(found: Any) -> None:
    found["evaluations"]["train"]["actions"][0] = "Z"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (other_action, "test: episode 1: "),
        (more, "test: episode 0: score"),
        (longer, "train: episode 0: steps"),
        (easier, "sticky_actions is 0.25, the game's is 0.0"),
        (endless, "has an episode of 1,000 steps, the game's have at most 256"),
        (other_starts, "test: played with seed 7"),
        (without_tests, "no evaluation on the test levels"),
        (file_of_its_own, "names start_state"),
        (other_rom, "another ROM of orchard"),
        (unknown_action, "they are 01234567"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_changed_record_is_found_out(
    record: Path, tmp_path: Path, change: Callable[[Any], None], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = content_of(record)
    change(found)
    (tmp_path / "changed.json").write_text(json.dumps(found))
    assert main(["arena", "verify", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "wrong: " in out and wanted in out


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(game="../orchard"),
        lambda found: found["curve"]["steps"].append(1),
        lambda found: found["curve"].update(steps=5),
        lambda found: found["evaluations"]["train"]["values"]["return"].__setitem__(0, 10**400),
        lambda found: found["evaluations"]["train"]["states"].pop(),
        lambda found: found["evaluations"]["train"].update(actions=[]),
        lambda found: found["evaluations"]["train"].update(actions={"lengths": [5, 5], "packed": "eJw="}),
        lambda found: found["evaluations"]["train"].update(actions={"lengths": [5, 5], "packed": "no base64"}),
        lambda found: found["evaluations"]["train"].update(actions={"lengths": [5, -5], "packed": "eJwDAAAAAAE="}),
        lambda found: found.update(seed="1"),
        lambda found: found.update(settings=[]),
    ],
    ids=[
        "game",
        "curve",
        "no curve",
        "numbers",
        "states",
        "actions",
        "cut off",
        "not packed",
        "lengths",
        "seed",
        "settings",
    ],
)
def test_a_damaged_record_is_one_line(
    record: Path, tmp_path: Path, change: Callable[[Any], None], capsys: pytest.CaptureFixture[str]
) -> None:
    found = content_of(record)
    change(found)
    (tmp_path / "bad.json").write_text(json.dumps(found))
    assert main(["arena", "verify", str(tmp_path / "bad.json")]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "arena record" in line and len(line) < 300


def test_a_record_is_made_beside_the_next_run() -> None:
    """With one slot, the second run begins while the first is recorded; a record that fails ends the rest."""
    second, runner = threading.Event(), SideBySide(["cpu"], 1)

    def run(item: int, devices: Sequence[str]) -> int:
        assert devices == ["cpu"]
        if item == 2:
            second.set()
        return 10 * item

    def after(item: int, result: int) -> int:
        assert item > 1 or second.wait(60)
        return result + item

    assert runner.each([1, 2, 3], run, after=after) == [11, 22, 33]

    def fail(item: int, result: int) -> int:
        raise RuntimeError(f"record {item}")

    with pytest.raises(RuntimeError, match="record 1"):
        runner.each([1, 2], run, after=fail)
    assert runner.stopped.is_set()


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        (['{"global_step": 8}', '{"global_step": 8, "eval/random_return": 1.0}'], True),
        (['{"global_step": 8}'], False),
        ([], False),
        (['{"global_step": 8}', '{"global_st'], False),
    ],
    ids=["ended", "cut", "empty", "in-a-line"],
)
def test_a_run_that_was_cut_off_has_not_ended(tmp_path: Path, lines: list[str], ended: bool) -> None:
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert has_ended(tmp_path) == ended


@pytest.mark.slow
def test_a_run_that_fails_is_a_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first run has its record, and where the folder of the second should be, there is a file."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/orchard__ppo__2").touch()
    (tmp_path / "orchard__ppo__1.json").touch()
    words = f"arena run --game orchard --script ppo --seeds 1,2 --steps 256 --out {tmp_path} --jobs 2"
    assert main(words.split()) == 1
    first, second, third = capfd.readouterr().out.splitlines()
    assert first == "1 of 2 runs have their record" and third == f"1 of 2 runs are recorded in {tmp_path}"
    assert second.startswith("orchard__ppo__2: failed: ") and "is a file" in second


@pytest.mark.long
def test_no_run_goes_on_without_the_command(tmp_path: Path) -> None:
    """It ends its trainings where a time limit ends it."""
    words = f"arena run --game orchard --script ppo --seeds 1 --steps 1e9 --out {tmp_path}".split()
    command = subprocess.Popen([sys.executable, "-m", "gbxcule_puffer", *words], stdout=subprocess.PIPE, text=True)
    run, process = tmp_path / "runs/orchard__ppo__1", psutil.Process(command.pid)
    wait_for(lambda: run.exists() and process.children())  # the training has begun
    (training,) = process.children()
    command.terminate()
    out, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == 143 and "failed" not in out
    assert not training.is_running()


def test_a_run_with_settings_of_its_own_is_not_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"train ppo --game orchard --device cpu --run-dir {tmp_path}/run --smoke"  # whose episodes are short
    assert main(words.split()) == 0
    assert main(["arena", "record", f"{tmp_path}/run", "--out", f"{tmp_path}/one.json"]) == 2
    assert "max_steps is 16, the game's is 256: train with --game orchard" in capsys.readouterr().err
    assert not (tmp_path / "one.json").exists()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--game orchard", "--seconds or --steps"),
        ("--game nowhere --steps 1", "nowhere' is unknown: give one of "),
        ("--game orchard --steps 1 --script pp", "give one of a2c"),
        ("--game orchard --steps 1 --script ppo,pqn --agent x", "names one trainer"),
    ],
    ids=["length", "game", "script", "agent"],
)
def test_wrong_words_of_a_run(words: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", "run", *words.split()]) == 2
    assert wanted in capsys.readouterr().err
