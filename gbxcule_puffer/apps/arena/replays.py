"""Whole episodes as action traces: played by a policy on any device, and replayed on a CPU to the bit."""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import EnvLike, Policy
from gbxcule_puffer.errors import ConfigError

LETTERS = string.digits + string.ascii_letters  # an action each
SUCCESS, RETURN = "success", "return"  # values that no statistic of the game is
RAM = 0x8000  # where the address space stops being the cartridge's ROM
Chooser = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass
class Episodes:
    """The first episode of each of some Game Boys.

    seed: of the env; actions: a letter of LETTERS a step; values: at the episodes' ends SUCCESS, RETURN (the sum of
    the rewards) and the game's statistics, NaN where one is unknown; states: digests of the ends (`digest`).
    """

    seed: int
    actions: list[str]
    values: dict[str, list[float]]
    states: list[str] = field(default_factory=list)

    @property
    def lengths(self) -> list[int]:
        """Steps of each episode."""
        return [len(each) for each in self.actions]


def digest(actions: str, snapshot: Snapshot, env: GBxCuLEEnv) -> str:
    """SHA-256, 32 hex digits of it, of an episode's actions, and of the Game Boy at its end: its memory from 8000 on as
    the CPU reads it, and its picture. With the actions, so that one that changes nothing cannot be replaced either."""
    memory = snapshot.bus(env.cartridge)[RAM:]
    return hashlib.sha256(actions.encode() + memory.tobytes() + snapshot.screen.tobytes()).hexdigest()[:32]


def play(policy: Policy, env: EnvLike, seed: int) -> Episodes:
    """Plays the first episode of each Game Boy of `env` with a policy; without `states`.

    Raises: ConfigError for more actions than there are letters.
    """
    if env.codec.num_actions > len(LETTERS):
        raise ConfigError(f"{env.codec.num_actions} actions are too many for a record, which has {len(LETTERS)}")
    return _play(env, policy, seed)


def replay(env: GBxCuLEEnv, recorded: Episodes) -> Episodes:
    """Plays the recorded actions in `env`, on a CPU, with a Game Boy for each episode; returns the results. An episode
    that has not ended with its last action has no values and no state."""
    n, longest = len(recorded.actions), max(recorded.lengths)
    rows = [[LETTERS.index(letter) for letter in each] + [0] * (longest - len(each)) for each in recorded.actions]
    table = iter(torch.tensor(rows, dtype=torch.int64).reshape(n, longest).unbind(1))
    return _play(env, lambda obs, starts: next(table), recorded.seed, Ends(env, recorded.actions))


class Ends:
    """Digests of the ends of episodes whose `actions` are known, before the env begins the next ones: a Game Boy beside
    the env plays each last step again."""

    def __init__(self, env: GBxCuLEEnv, actions: Sequence[str]) -> None:
        self.env, self.states, self._actions = env, [""] * len(actions), actions
        self._due: dict[int, list[int]] = {}
        for row, own in enumerate(actions):
            self._due.setdefault(len(own), []).append(row)
        schedule, codec = env.schedule, env.codec
        self._own = Emulator(
            env.cartridge,
            1,
            "cpu",
            screen="half" if env.emulator.pixel_step == 2 else "full",
            frames_per_step=schedule.frames_per_step,
            release_after_frames=schedule.release_after_frames,
            instruction_budget=env.options.instruction_budget,
            num_threads=1,
        )
        self._own.end_steps_when(env.until)
        buttons = [codec.to_buttons(action) * allowed for action, allowed in enumerate(env.allowed)]
        self._buttons = torch.tensor(buttons, dtype=torch.uint8)
        frames = [schedule.of(action)[0] for action in codec.actions]
        self._frames = torch.tensor(frames, dtype=torch.int32) if codec.frames else None

    @property
    def last(self) -> int:
        """Steps of the longest episode."""
        return max(self._due)

    def before(self, step: int) -> None:
        """Keeps the machines of the episodes that end with this step, counted from 1."""
        self._kept = [(row, self.env.emulator.save(row)) for row in self._due.get(step, ())]

    def after(self) -> None:
        """Finds their states at the end of the step that the env has taken."""
        for row, snapshot in self._kept:
            action = self.env.taken_actions[row : row + 1]
            self._own.load(snapshot)
            self._own.step(self._buttons[action], None if self._frames is None else self._frames[action])
            self.states[row] = digest(self._actions[row], self._own.save(0), self.env)

    def close(self) -> None:
        """Releases the Game Boy."""
        self._own.close()


@torch.no_grad()
def _play(env: EnvLike, choose: Policy | Chooser, seed: int, ends: Ends | None = None) -> Episodes:
    obs, _ = env.reset(seed=seed)
    n, device = len(obs), env.device
    starts, running = (torch.ones(n, dtype=torch.bool, device=device) for _ in range(2))
    total, values = torch.zeros(n, dtype=torch.float64, device=device), dict[str, torch.Tensor]()
    lengths, actions = torch.zeros(n, dtype=torch.int64, device=device), list[torch.Tensor]()
    most = ends.last if ends else math.inf
    while len(actions) < most and running.any():
        chosen = choose(obs, starts)
        actions.append(chosen.to(torch.uint8))
        if ends:
            ends.before(len(actions))
        obs, rewards, terminals, truncations, _ = env.step(chosen)
        if ends:
            ends.after()
        starts = terminals | truncations
        ended = starts & running
        total += rewards
        now = {SUCCESS: terminals & ~env.failures, RETURN: total}
        now |= {name.partition("/")[2]: value for name, value in env.statistics().items()}
        for name, value in now.items():
            before = values.get(name, torch.full_like(total, math.nan))
            values[name] = torch.where(ended, value.double(), before)
        lengths += running
        running = running & ~ended
    texts = [
        "".join(map(LETTERS.__getitem__, row[:count]))
        for row, count in zip(torch.stack(actions, 1).tolist(), lengths.tolist(), strict=True)
    ]
    states = [state * done for state, done in zip(ends.states, (~running).tolist(), strict=True)] if ends else []
    return Episodes(seed, texts, {name: value.tolist() for name, value in values.items()}, states)


def differences(recorded: Episodes, replayed: Episodes, left_out: Collection[str] = ()) -> list[str]:
    """Differences between two plays of the same actions, a line for each episode that differs. The values `left_out`
    are not compared."""
    found = []
    for number, length in enumerate(recorded.lengths):
        pairs: dict[str, tuple[object, object]] = {"steps": (length, replayed.lengths[number])}
        for name, values in recorded.values.items():
            if name in left_out:
                continue
            pairs[name] = values[number], replayed.values[name][number] if name in replayed.values else math.nan
        if recorded.states:
            pairs["state"] = recorded.states[number], replayed.states[number]
        for name, (one, other) in pairs.items():
            if one != other:
                ended = other == other and other != ""
                found.append(f"episode {number}: {name} {one}, replayed {other if ended else 'without an end'}")
                break
    return found
