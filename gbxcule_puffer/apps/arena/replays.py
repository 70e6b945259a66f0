"""Whole episodes as action traces: played by a policy on any device, and replayed on a CPU to the bit."""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import torch

from gbxcule_puffer.apps.game.playing import statistic_key
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.env.protocol import EnvLike, Policy
from gbxcule_puffer.errors import ConfigError

LETTERS = string.digits + string.ascii_letters  # an action each
SUCCESS, RETURN = "success", "return"  # scores that no statistic of the game is
RAM = 0x8000  # where the address space stops being the cartridge's ROM
Chooser = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass
class Episodes:
    """The first episode of each of some Game Boys.

    seed: of the env; actions: a letter of LETTERS a step; scores: the statistic that the game is scored by, at the
    episode's end; returns: the sums of the rewards; states: digests of the episodes' ends (`digest`).
    """

    seed: int
    actions: list[str]
    scores: list[float]
    returns: list[float]
    states: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)

    @property
    def lengths(self) -> list[int]:
        """Steps of each episode."""
        return [len(each) for each in self.actions]


def digest(actions: str, snapshot: Snapshot, env: GBxCuLEEnv) -> str:
    """SHA-256, 32 hex digits of it, of an episode's actions, and of the Game Boy at its end: its memory from 8000 on as
    the CPU reads it, and its picture. With the actions, so that one that changes nothing cannot be replaced either."""
    memory = snapshot.bus(env.cartridge)[RAM:]
    return hashlib.sha256(actions.encode() + memory.tobytes() + snapshot.screen.tobytes()).hexdigest()[:32]


def play(policy: Policy, env: EnvLike, statistic: str, seed: int) -> Episodes:
    """Plays the first episode of each Game Boy of `env` with a policy; without `states`.

    Raises: ConfigError for more actions than there are letters, and a statistic that an episode does not have.
    """
    if env.codec.num_actions > len(LETTERS):
        raise ConfigError(f"{env.codec.num_actions} actions are too many for a record, which has {len(LETTERS)}")
    return _play(env, policy, statistic, seed)


def replay(env: GBxCuLEEnv, recorded: Episodes, statistic: str) -> Episodes:
    """Plays the recorded actions in `env`, on a CPU, with a Game Boy for each of them: what they lead to. An episode
    that has not ended with its last action has no score, no return and no state."""
    n, longest = len(recorded.actions), max(recorded.lengths)
    rows = [[LETTERS.index(letter) for letter in each] + [0] * (longest - len(each)) for each in recorded.actions]
    table = iter(torch.tensor(rows, dtype=torch.int64).reshape(n, longest).unbind(1))
    return _play(env, lambda obs, starts: next(table), statistic, recorded.seed, Ends(env, recorded.actions))


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
def _play(env: EnvLike, choose: Policy | Chooser, statistic: str, seed: int, ends: Ends | None = None) -> Episodes:
    obs, _ = env.reset(seed=seed)
    n, device = len(obs), env.device
    starts, running = (torch.ones(n, dtype=torch.bool, device=device) for _ in range(2))
    total, returns, scores = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(3))
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
        of_game = {SUCCESS: (terminals & ~env.failures).double(), RETURN: total}
        of_game |= env.statistics()
        score = of_game[statistic_key(of_game, statistic)].double()
        returns, scores = torch.where(ended, total, returns), torch.where(ended, score, scores)
        lengths += running
        running = running & ~ended
    played, ended = torch.stack(actions, 1).tolist(), (~running).tolist()
    if not all(math.isfinite(each) for each in scores.tolist()):
        raise ConfigError(f"statistic {statistic!r:.60} is not known of every episode: score the game by another")
    counts = lengths.tolist()
    texts = ["".join(map(LETTERS.__getitem__, row[:count])) for row, count in zip(played, counts, strict=True)]
    values = [torch.where(running, math.nan, each).tolist() for each in (scores, returns)]
    states = [state if done else "" for state, done in zip(ends.states, ended, strict=True)] if ends else []
    return Episodes(seed, texts, values[0], values[1], states)


def differences(recorded: Episodes, replayed: Episodes) -> list[str]:
    """Differences between two plays of the same actions, a line for each episode that has one."""
    found = []
    for number, length in enumerate(recorded.lengths):
        for name, one, other in (
            ("steps", length, replayed.lengths[number]),
            ("score", recorded.scores[number], replayed.scores[number]),
            ("return", recorded.returns[number], replayed.returns[number]),
            ("state", recorded.states[number] if recorded.states else "", replayed.states[number]),
        ):
            if one != other and (name != "state" or recorded.states):
                ended = other == other and other != ""
                found.append(f"episode {number}: {name} {one}, replayed {other if ended else 'without an end'}")
                break
    return found
