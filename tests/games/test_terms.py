"""Terms on numbers that the test writes, compared with the same in Python; and texts that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.terms.nodes import BOOL, DECIMAL, WHOLE, Tape
from gbxcule_puffer.games.terms.parse import TermParser
from gbxcule_puffer.games.terms.run import TermRunner, slots_for

N = 3
NAMES = ("x", "y", "Main.loop")


class Terms:
    """Terms of x and y, in N envs."""

    def __init__(self, *texts: str, max_steps: int = 128, location: Any = lambda text: (1, int(text, 16))) -> None:
        tape = Tape()

        def column(name: str) -> int | None:
            return tape.add("number", (), WHOLE, NAMES.index(name)) if name in NAMES else None

        parser = TermParser(tape, column, lambda _: None, lambda *_: None, lambda: NAMES, location)
        self.ends = [parser.parse(text) for text in texts]
        self.kinds = [tape.nodes[end].kind for end in self.ends]
        self.episode = torch.zeros(N, dtype=torch.int64)
        self.counts = torch.zeros(N, dtype=torch.int32)
        self.runner = TermRunner(tape, N, torch.device("cpu"), self.episode, lambda _: self.counts, max_steps)

    def begin(self, x: int, y: int = 0, which: tuple[bool, ...] = (True,) * N) -> None:
        self.episode += torch.tensor(which)
        self.runner.begin(self._columns(x, y), torch.tensor(which))

    def step(self, x: int, y: int = 0) -> list[Any]:
        """The first env's results."""
        found = self.runner.step(self._columns(x, y))
        return [found[end].expand(N)[0].item() for end in self.ends]

    @staticmethod
    def _columns(x: int, y: int) -> torch.Tensor:
        return torch.tensor([x, y, x + y]).expand(N, -1)


@pytest.mark.parametrize(
    "text",
    [
        "x + y - 3 * x",
        "x / 4", "x // 4", "x % 4", "-x // 4", "-x % 4", "x & 6 | y ^ 3", "x << 2 >> 1", "~x", "+x", "-y",
        "x == 5", "x != 5", "x < y", "x <= 5", "5 > x > y", "x >= y", "1 <= x < 10 <= y", "x == 5 and y == 7 or not x",
        "min(x, y, 2)", "max(x, y, 2.5)", "abs(y - x)", "x if x > y else -y", "(x > 3) + (y > 3)", "1.5 * x + 2",
        "x +\n  y", "True", "3", "0.25", "x * 0x10", "(x > 3) & (y > 3)", "1_000 + x", "x / 2 // 1", "x / 2 % 1",
    ],
)  # fmt: skip
def test_a_term_is_what_it_is_in_python(text: str) -> None:
    for x, y in ((5, 7), (0, 0), (5, 2), (200, 9)):
        terms = Terms(text)
        terms.begin(x, y)
        assert terms.step(x, y) == [eval(f"({text})", {"x": x, "y": y})]


def test_kinds_of_results() -> None:
    assert Terms("x == 1", "x + 1", "x / 1", "x * 1.0", "(x > 1) + 1").kinds == [BOOL, WHOLE, DECIMAL, DECIMAL, WHOLE]


@pytest.mark.parametrize("text", ["x / y", "x // y", "x % y", "x / (y * 1.0)", "x // (y + 0.0)"])
def test_a_division_by_zero_gives_zero(text: str) -> None:
    terms = Terms(text)
    terms.begin(5)
    assert terms.step(5, 0) == [0] and terms.step(5, 5)[0] in (0, 1)


def test_functions() -> None:
    terms = Terms("clip(x, 2, y)", "bits(x)", "bits(x * 256 + y)", "bits(-1)", "bits(x - 6)")
    terms.begin(0)
    assert terms.step(5, 4) == [4, 2, 3, 64, 64]
    assert terms.step(1, 4) == [2, 1, 2, 64, (1 - 6 + 2**64).bit_count()]


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [  # of x: at the start, and then behind each step
        ("x.delta", [5, 7, 7, 3], [2, 0, -4]),
        ("delta(x)", [5, 7, 7, 3], [2, 0, -4]),
        ("delta(x / 2)", [5, 7, 7, 3], [1, 0, -2]),
        ("delta(x > 5)", [5, 7, 7, 3], [1, 0, -1]),
        ("x.rise", [5, 7, 6, 9], [2, 0, 2]),
        ("x.fall", [5, 3, 4, 1], [2, 0, 2]),
        ("x.start", [5, 7, 6], [5, 5]),
        ("x.previous", [5, 7, 6], [5, 7]),
        ("(x + 1).previous", [5, 7, 6], [6, 8]),
        ("changed(x)", [5, 5, 6, 6], [False, True, False]),
        ("once(x >= 7)", [5, 7, 8, 3, 7], [True, False, False, False]),
        ("once(x >= 7)", [7, 7, 3, 7], [False, False, False]),
        ("once_ever(x == 7)", [5, 7, 5, 7], [True, False, False]),
        ("first_visit(x)", [5, 5, 6, 5, 6, 7], [False, True, False, False, True]),
        ("total(x.delta)", [5, 7, 7, 3], [2, 2, -2]),
        ("total(first_visit(x))", [5, 5, 6, 5, 7], [0, 1, 1, 2]),
        ("total(x / 2)", [5, 1, 2], [0.5, 1.5]),
        ("total(1)", [5, 5, 5], [1, 2]),
        ("delta(x.delta)", [5, 7, 7, 3], [2, -2, -4]),
        ("once(x.delta < 0)", [5, 7, 6, 3], [False, True, False]),
        ("x.delta * (y.previous == 0)", [5, 7, 7, 3], [2, 0, -4]),
    ],
)
def test_what_terms_remember(text: str, values: list[int], wanted: list[float]) -> None:
    terms = Terms(text)
    terms.begin(values[0])
    assert [terms.step(value)[0] for value in values[1:]] == wanted


def test_an_episode_forgets_those_before_it_in_its_own_env() -> None:
    terms = Terms("x.rise", "once(x > 5)", "once_ever(x > 5)", "first_visit(x, y)", "x.start", "total(x)")
    terms.begin(0)
    assert terms.step(9) == [9, 1, 1, 1, 0, 9]
    terms.begin(0, which=(False, True, True))
    assert terms.step(9) == [0, 0, 0, 0, 0, 18], "the first env goes on"
    terms.begin(0)
    assert terms.step(9) == [9, 1, 0, 1, 0, 9], "once ever is over"
    terms.begin(9)
    assert terms.step(9) == [0, 0, 0, 0, 9, 9]


def test_a_first_visit_is_exact_for_a_whole_episode() -> None:
    """Against a set, for as many cells as an episode of max_steps can come to, in three envs."""
    steps = 700
    terms = Terms("first_visit(x, y, x + y)", max_steps=steps)
    generator = torch.Generator().manual_seed(1)
    for _ in range(2):
        seen = [set[tuple[int, int]]() for _ in range(N)]
        terms.begin(-1, -1)
        for _ in range(steps):
            x, y = torch.randint(0, 40, (2, N), generator=generator)
            found = terms.runner.step(torch.stack([x, y, x + y], 1))[terms.ends[0]].tolist()
            for env, cell in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
                assert found[env] == (cell not in seen[env])
                seen[env].add(cell)


def test_the_slots_of_visited_cells() -> None:
    assert [slots_for(steps) for steps in (1, 127, 128, 1000, 10**6)] == [256, 256, 512, 2048, 2**16]


def test_executions_and_local_labels() -> None:
    terms = Terms('executions("4A20") * 2', "Main.loop.delta")
    terms.begin(1, 2)
    terms.counts.fill_(3)
    assert terms.step(2, 3) == [6, 2]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is not a term"),
        ("x +", "is not a term"),
        ("x y", "is not a term"),
        ("x = 1", "is not a term"),
        ("x; y", "is not a term"),
        ("import os", "is not a term"),
        ("x\0", "is not a term"),
        ("(" * 300 + "x" + ")" * 300, "is not a term"),
        ("-" * 1900 + "x", "is"),
        ("Main.lop", "name 'Main.lop' is unknown: did you mean Main.loop?"),
        ("money", "name 'money' is unknown: give one of x, y, Main.loop"),
        ("x.detla", ".detla is unknown: did you mean .delta?"),
        ("x.__class__", ".__class__ is unknown"),
        ("x.delta.real", ".real is unknown"),
        ("__import__('os')", "function '__import__' is unknown"),
        ("open('x')", "function 'open' is unknown"),
        ("minn(x, y)", "function 'minn' is unknown: did you mean min?"),
        ("once", "once is a function: write once(...)"),
        ("min(x)", "min takes 2 to 64 arguments, not 1"),
        ("clip(x, 1)", "clip takes 3 arguments, not 2"),
        ("abs(*x)", "abs takes 1 argument, not 1"),
        ("abs(x=1)", "is not known in terms"),
        ("x ** 2", "** is not known in terms"),
        ("x is y", "is is not known in terms"),
        ("x in y", "in is not known in terms"),
        ("[x]", "a list is not known in terms"),
        ("x[0]", "NAME[...] is not known in terms"),
        ("lambda: x", "lambda is not known in terms"),
        ("'text'", "'text' is a text"),
        ("None", "None' is not known"),
        ("1j", "1j' is not known"),
        ("x and 'a'", "'a' is a text"),
        ("x / 0", "divides by 0"),
        ("x % 0.0", "divides by 0"),
        ("x << 70", "shifts by 70"),
        ("x >> -1", "shifts by -1"),
        ("x & 1.5", "& | ^ takes whole numbers"),
        ("~(x / 2)", "~ takes whole numbers"),
        ("bits(x / 2)", "bits takes whole numbers"),
        ("first_visit(x / 2)", "first_visit takes whole numbers"),
        ("1e999", "is infinite"),
        ("9" * 30, "is larger than"),
        ("9" * 5000, "is"),
        ("executions(x)", "executions takes the text of an instruction's symbol or address"),
        ("f'{x}'", "a text is not known in terms"),
        ("(x := 1)", ":= is not known in terms"),
        ("[y for y in x]", "a loop is not known in terms"),
    ],
)
def test_a_text_that_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Terms(text)
    assert fault in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600
