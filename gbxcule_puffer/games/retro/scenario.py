"""A scenario.json as terms: reward, done and actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.games.retro.variables import MOST_MASK, Names, Unconverted, Variable
from gbxcule_puffer.tasks.actions import MOST_ACTIONS, action_of, get_codec

BUTTONS = ("B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT", "A")
# The actions of stable-retro's core for Game Boys, where a scenario has none.
ACTIONS: list[list[list[str]]] = [
    [[], ["UP"], ["DOWN"]],
    [[], ["LEFT"], ["RIGHT"]],
    [[], ["A"], ["B"], ["SELECT"], ["A", "B"], ["A", "SELECT"], ["B", "SELECT"], ["A", "B", "SELECT"]],
]
# Operations that give 1 or 0. Any other word, also none, gives the value itself.
TESTS: dict[str, Callable[[str, int], str]] = {
    "equal": lambda x, y: f"{x} == {y}",
    "negative-equal": lambda x, y: f"{x} == {-y}",
    "not-equal": lambda x, y: f"{x} != {y}",
    "less-than": lambda x, y: f"{x} < {y}",
    "greater-than": lambda x, y: f"{x} > {y}",
    "less-or-equal": lambda x, y: f"{x} <= {y}",
    "greater-or-equal": lambda x, y: f"{x} >= {y}",
    "nonzero": lambda x, _: f"{x} != 0",
    "zero": lambda x, _: f"{x} == 0",
    "positive": lambda x, _: f"{x} > 0",
    "negative": lambda x, _: f"{x} < 0",
}
SIGN = "sign"  # gives 1, 0 or -1
MOST_REWARD = 1e9
MOST_NODES, DEEPEST = 256, 16  # of conditions in conditions


def reward_of(
    scenario: Mapping[str, Any], variables: Mapping[str, Variable], names: Names, notes: list[str]
) -> dict[str, str]:
    """The table [reward]; what cannot be converted becomes a note."""
    spec, players = scenario.get("reward"), scenario.get("rewards")
    if isinstance(players, list) and players:
        spec = players[0]
        if len(players) > 1:
            notes.append(f"scenario: rewards: those of {len(players) - 1} more players are left out")
    if not isinstance(spec, dict):
        return {}
    if isinstance(spec.get("script"), str):
        notes.append(_script("reward", spec["script"]))
        return {}
    if not spec:
        notes.append("scenario: reward: is empty: nothing is rewarded")
    found: dict[str, str] = {}
    rows = spec.get("variables")
    entries = list(rows.items()) if isinstance(rows, dict) else []
    if isinstance(spec.get("time"), dict):
        entries.append(("time", spec["time"]))
    for name, row in entries:
        is_time = row is spec.get("time")
        try:
            term = _time_reward(row) if is_time else _reward(_find(name, variables), row)
        except Unconverted as reason:
            notes.append(f"scenario: reward: {name:.60}: {reason}")
            continue
        if term:
            found[names.of(name)] = term
    return found


def end_of(scenario: Mapping[str, Any], variables: Mapping[str, Variable], notes: list[str]) -> list[str]:
    """Conditions, any of which ends the episode."""
    spec = scenario.get("done")
    if not isinstance(spec, dict):
        return []
    if isinstance(spec.get("script"), str):
        notes.append(_script("done", spec["script"]))
        return []
    count = iter(range(MOST_NODES))
    try:
        parts = _conditions(spec, variables, count, 0)
    except Unconverted as reason:
        notes.append(f"scenario: done: {reason}; no end is written")
        return []
    if spec.get("condition") != "all":
        return parts
    if not parts:
        notes.append("scenario: done: all of no conditions, which ends every episode at once; no end is written")
        return []
    return [" and ".join(parts)]


def used_variables(scenario: Mapping[str, Any], variables: Mapping[str, Variable]) -> list[str]:
    """The variables that rewards and ends name."""

    def of(spec: object, depth: int = 0) -> Iterator[str]:
        if isinstance(spec, dict) and depth < DEEPEST:
            rows, nodes = spec.get("variables"), spec.get("nodes")
            yield from rows if isinstance(rows, dict) else ()
            for node in nodes.values() if isinstance(nodes, dict) else ():
                yield from of(node, depth + 1)

    players = scenario.get("rewards")
    specs = [scenario.get("reward"), *(players[:1] if isinstance(players, list) else []), scenario.get("done")]
    return [name for name in dict.fromkeys(name for spec in specs for name in of(spec)) if name in variables]


def codec_of(scenario: Mapping[str, Any], notes: list[str]) -> str:
    """The option action_codec: choices that are made at once, as in stable-retro's multi-discrete actions."""
    given = scenario.get("actions")
    if given is None:
        notes.append("scenario: has no actions: stable-retro's own for Game Boys are written, which lack START")
    groups = ACTIONS if given is None else given
    try:
        lists = [list(dict.fromkeys(_combination(each, notes) for each in group)) for group in groups]
        return _codec([each for each in lists if each], notes)
    except (TypeError, AttributeError, ConfigError):
        notes.append("scenario: actions: are not lists of lists of buttons: the usual actions are written")
        return "multi_discrete"


def _codec(lists: list[list[str]], notes: list[str]) -> str:
    choices = [each for each in lists if each != ["NOOP"]]
    if choices and all(len(each) > 1 for each in choices):
        text = "/".join(",".join(each) for each in choices)
        try:
            get_codec(text)
        except ConfigError:
            pass  # the same buttons in two of the lists, or too many of them
        else:
            return text
    if math.prod(len(each) for each in choices) > 16 * MOST_ACTIONS:
        raise ConfigError("too many")
    every = list(dict.fromkeys(action_of("+".join(each).split("+")) for each in product(*choices)))
    text = ",".join(every)
    get_codec(text)
    if len(choices) > 1:
        notes.append(
            "scenario: actions: groups of one choice, or that share buttons, become one list of all combinations"
        )
    return text


def _combination(buttons: list[str], notes: list[str]) -> str:
    known = [each for each in buttons if each in BUTTONS]
    for each in buttons:
        if each not in BUTTONS:
            notes.append(f"scenario: actions: a Game Boy has no button {each!r:.40}: it is left out")
    return action_of(known)


def _script(part: str, function: str) -> str:
    return f"scenario: {part}: the script function {function!r:.60} is code, which is not run: write it as terms"


def _find(name: str, variables: Mapping[str, Variable]) -> Variable:
    if name not in variables:
        raise Unconverted("is not among the converted variables of data.json")
    return variables[name]


def _measured(variable: Variable, row: Mapping[str, Any], usual: str) -> str:
    measurement = row.get("measurement", usual)
    return (
        variable.delta
        if measurement == "delta" or (measurement not in ("delta", "absolute") and usual == "delta")
        else (variable.term)
    )


def _reference(row: Mapping[str, Any]) -> int:
    given = row.get("reference", 0)
    if type(given) not in (int, float):
        return 0
    if not abs(given) <= MOST_MASK:
        raise Unconverted(f"reference {given!r:.40} is too large")
    return int(given)


def _weights(row: Mapping[str, Any]) -> tuple[float, float]:
    """What a positive value is multiplied by, and a negative one."""
    found = []
    for name in ("reward", "penalty"):
        given = row.get(name, 0)
        if type(given) not in (int, float) or not abs(given) <= MOST_REWARD:
            raise Unconverted(f"{name} {given!r:.40} is not a number up to {MOST_REWARD:,.0f}")
        found.append(given)
    return found[0], found[1]


def _reward(variable: Variable, row: object) -> str:
    """The term of a variable's reward; empty where it is always 0."""
    if not isinstance(row, dict):
        raise Unconverted("is not an object")
    reward, penalty = _weights(row)
    value, operation = _measured(variable, row, "delta"), row.get("op")
    if isinstance(operation, str) and operation in TESTS:
        return _times(f"({TESTS[operation](value, _reference(row))})", reward) if reward else ""
    if operation == SIGN:
        parts = [_times(f"({value} > 0)", reward)] * bool(reward) + [_times(f"({value} < 0)", -penalty)] * bool(penalty)
    elif reward == penalty:
        parts = [_times(value, reward)] * bool(reward)
    else:
        parts = [_times(f"max({value}, 0)", reward)] * bool(reward)
        parts += [_times(f"min({value}, 0)", penalty)] * bool(penalty)
    return " + ".join(parts)


def _time_reward(row: Mapping[str, Any]) -> str:
    """The term of what each frame pays, where 1 is the value."""
    reward, _ = _weights(row)
    operation = row.get("op")
    if isinstance(operation, str) and operation in TESTS:
        reference = _reference(row)
        left, comparison, right = TESTS[operation]("1", reference).split(" ")
        a, b = int(left), int(right)
        holds = {"==": a == b, "!=": a != b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[comparison]
        reward = reward if holds else 0
    return _text(reward) if reward else ""


def _conditions(
    spec: Mapping[str, Any], variables: Mapping[str, Variable], count: Iterator[int], depth: int
) -> list[str]:
    """The conditions of a spec and of the nodes in it."""
    found = []
    rows, nodes = spec.get("variables"), spec.get("nodes")
    for name, row in rows.items() if isinstance(rows, dict) else ():
        if next(count, None) is None or depth >= DEEPEST:
            raise Unconverted(f"has more than {MOST_NODES} conditions, or they are too deep")
        if not isinstance(row, dict):
            raise Unconverted(f"{name:.60} is not an object")
        try:
            value, operation = _measured(_find(name, variables), row, "absolute"), row.get("op")
            test = TESTS.get(operation, TESTS["positive"]) if isinstance(operation, str) else TESTS["positive"]
            found.append(test(value, _reference(row)))
        except Unconverted as reason:
            raise Unconverted(f"{name:.60}: {reason}") from None
    for node in nodes.values() if isinstance(nodes, dict) else ():
        if next(count, None) is None or depth >= DEEPEST:
            raise Unconverted(f"has more than {MOST_NODES} conditions, or they are too deep")
        if isinstance(node, dict):
            parts = _conditions(node, variables, count, depth + 1)
            is_all = node.get("condition") == "all"
            found.append(f"({(' and ' if is_all else ' or ').join(parts)})" if parts else str(is_all))
    return found


def _times(value: str, factor: float) -> str:
    return value if factor == 1 else f"{value} * {_text(factor)}"


def _text(value: float) -> str:
    """A number of a term."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
