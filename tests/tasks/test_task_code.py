"""Tasks by name, and what their code raises."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.tasks.ram import Ram
from gbxcule_puffer.tasks.task import StepInfo, Task

ROM = Path(__file__).parents[2] / "roms/homeward.gb"
FAILING = """
import torch
from helper import half
from gbxcule_puffer.tasks.task import Task

class Mine(Task):
    observations = {"x": (1,)}
    def __init__(self):
        WHERE == "__init__" and {}["a", 2]
    def setup(self, ram):
        WHERE == "setup" and self.nothing
    def reset(self, ram, which):
        WHERE == "reset" and open("missing file")
    def step(self, ram, picture, info):
        WHERE == "step" and torch.zeros(2) + torch.zeros(3)
        return torch.zeros(2)
    def observe(self, ram, picture):
        return {"x": half(WHERE == "observe")}
    def read(self):
        assert WHERE != "read"
        return {}
"""
HELPER = "import torch\ndef half(zero):\n    return torch.zeros(2, 1) + 1 / (1 - zero)\n"


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("__init__", "task Mine: mine.py, line 9, in __init__: KeyError: ('a', 2)"),
        ("setup", "task Mine: mine.py, line 11, in setup: AttributeError: 'Mine' object has no attribute 'nothing'"),
        ("reset", "task Mine: mine.py, line 13, in reset: FileNotFoundError: [Errno 2] No such file or directory: "),
        ("step", "task Mine: mine.py, line 15, in step: RuntimeError: The size of tensor a (2) must match the size"),
        ("observe", "task Mine: helper.py, line 3, in half: ZeroDivisionError: division by zero"),
        ("read", "task Mine: mine.py, line 20, in read: AssertionError"),
    ],
)
def test_an_exception_is_one_line_with_its_place(
    where: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the Task's own code, or what it calls beside it; never of a library's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    Path("mine.py").write_text(f"WHERE = {where!r}{FAILING}")
    Path("helper.py").write_text(HELPER)
    with pytest.raises(ConfigError) as caught:
        env = GBxCuLEEnv(str(ROM), num_envs=2, task="mine.py:Mine", log_interval=1)
        env.reset()
        env.step(np.zeros(2, int))
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert type(caught.value.__cause__).__name__ in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nothing_like_it", "mine.py, line 2, in <module>: ModuleNotFoundError: No module named 'nothing_like"),
        ("def step(self:", "mine.py, line 2: SyntaxError: '(' was never closed"),
        ("x = int('two')", "mine.py, line 2, in <module>: ValueError: invalid literal for int()"),
        ("raise SystemExit(3)", "mine.py, line 2, in <module>: SystemExit: 3"),
    ],
)
@pytest.mark.parametrize("spec", ["mine.py:Mine", "mine:Mine"])
def test_a_file_that_fails(spec: str, text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(f"\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        GBxCuLEEnv(str(ROM), task=spec)
    assert str(caught.value).startswith(f"task '{spec}': {told}")


def test_arguments_are_told_from_mistakes() -> None:
    class Own(Task):
        def __init__(self) -> None:
            self.size = len(3)  # pyright: ignore[reportArgumentType]

    with pytest.raises(ConfigError, match=r"test_task_code.py, line \d+, in __init__: TypeError: object of type 'int'"):
        GBxCuLEEnv(str(ROM), task=Own)


def test_a_full_memory_is_no_mistake_of_the_task() -> None:
    class Large(Task):
        def step(self, ram: Ram, picture: torch.Tensor, info: StepInfo) -> torch.Tensor:
            raise MemoryError

    env = GBxCuLEEnv(str(ROM), task=Large)
    env.reset()
    with pytest.raises(MemoryError):
        env.step(np.zeros(1, int))


def test_tasks_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from gbxcule_puffer.tasks.task import Task\nclass Mine(Task):\n    pass\nNUMBER = 1\n"
    (tmp_path / "my_task.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    for spec in ("my_task:Mine", "my_task.py:Mine", f"{tmp_path}/my_task.py:Mine", "tests.env.test_tasks:Walk"):
        assert type(GBxCuLEEnv(str(ROM), task=spec).task).__name__ == spec.rpartition(":")[2]
    refused = {
        "Mine": "must be package.module:Class", ":Mine": "must be package.module:Class",
        "my_task:Main": "has no such class: give one of its Tasks (Mine)",
        "my_task:NUMBER": "has another kind of NUMBER",
        "my_tusk:Mine": "there is no module 'my_tusk'", "tests.tusk:Mine": "there is no module 'tests.tusk'",
        "tusk.py:Mine": "there is no file tusk.py", "..:Mine": "is not a name of a module",
    }  # fmt: skip
    for spec, told in refused.items():
        with pytest.raises(ConfigError) as caught:
            GBxCuLEEnv(str(ROM), task=spec)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)

    class Needs(Task):
        def __init__(self, price: int) -> None:
            self.price = price

    for wrong, told in ((Needs, "cannot be made without arguments"), (int, "must be a Task"), (7, "must be a Task")):
        with pytest.raises(ConfigError, match=told):
            GBxCuLEEnv(str(ROM), task=wrong)
    assert isinstance(GBxCuLEEnv(str(ROM), task=Needs(3)).task, Needs)
