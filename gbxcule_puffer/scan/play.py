"""The buttons of a scan: phases of random play, and forks, in which copies of one Game Boy play one button each."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.progress import counted
from gbxcule_puffer.scan.recording import SPARSE, Recording

LOOK_FRAMES = 4  # frames between two looks
BRANCHES = {
    "NOOP": 0, "RIGHT": hw.BUTTON_RIGHT, "LEFT": hw.BUTTON_LEFT, "UP": hw.BUTTON_UP, "DOWN": hw.BUTTON_DOWN,
    "A": hw.BUTTON_A, "B": hw.BUTTON_B, "START": hw.BUTTON_START,
}  # fmt: skip
FORK_LOOKS, HELD_LOOKS = 12, 9  # looks of a fork, and of these with the button held
RANDOM_LOOKS = 24  # looks of random play between two forks
ROUND_LOOKS = 1 + FORK_LOOKS + RANDOM_LOOKS  # the first one of the copies
PERSISTENCE = (2, 5, 12, 30)  # looks for which a random button is held on average; each env has one of them
# Masks of random play, each as often as it stands here: directions alone and with A, few others.
RANDOM = [0] * 3 + [1, 2, 4, 8] * 3 + [0x10] * 4 + [0x11, 0x12, 0x14, 0x18] + [0x20] * 2 + [0x21, 0x22] + [0x80]
SCENES = 12  # moments that are kept, in which bytes are changed to see what depends on them
SHORT, LONG = 4, 28  # rounds after which a context begins again at the start: of even and odd contexts
DEAD = 2  # forks in a row in which no button changes the picture, after which it begins again, too: the game is over


class Rounds:
    """Rounds of play from one start, recorded: a fork of each context into its branches, then random play of all.

    An env is 8 * context + branch. Allocates only here.
    """

    def __init__(self, emulator: Emulator, start: Snapshot, seed: int) -> None:
        self.emulator, count = emulator, emulator.num_envs
        self.contexts, device = count // len(BRANCHES), emulator.device
        emulator.load(start)
        self.pool = emulator.pool([start], spare=self.contexts + SCENES)
        self.first_scene, self.scenes = 1 + self.contexts, 0
        self.recording = Recording(emulator)
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._env = torch.arange(count, device=device)
        self._context = self._env // len(BRANCHES)
        self._branch = torch.tensor(list(BRANCHES.values()), dtype=torch.uint8, device=device).repeat(self.contexts)
        self._nothing = torch.zeros_like(self._branch)
        self._choices = torch.tensor(RANDOM, dtype=torch.uint8, device=device)
        persistence = torch.tensor(PERSISTENCE, device=device)[(self._env + self._context) % len(PERSISTENCE)]
        self._renewal = 1 / persistence
        self._held = self._nothing.clone()
        self._everyone = torch.ones(count, dtype=torch.bool, device=device)
        self._alike = torch.zeros(self.contexts, dtype=torch.int32, device=device)  # forks in a row
        self._moved = ~self._everyone  # envs whose picture changed in the last half of random play

    def play(self, rounds: int) -> None:
        """Plays and records rounds, and keeps scenes, evenly over them."""
        for index in counted(rounds, "rounds of play"):
            if self.scenes < SCENES and index * SCENES >= rounds * self.scenes:
                env = self._env == self._in_play(index, self.scenes * 11 // len(BRANCHES))
                self.pool.save(env, torch.full_like(self._env, self.first_scene + self.scenes, dtype=torch.int32))
                self.scenes += 1
            self.fork(index)
            for look in range(FORK_LOOKS):
                self.step(self._branch if look < HELD_LOOKS else self._nothing)
            self._alike = torch.where(self._reacts(), 0, self._alike + 1)
            for look in range(RANDOM_LOOKS):
                self.step(self.random())
                self._moved = (self.recording.latest_drawn > 0) | (self._moved & (look > RANDOM_LOOKS // 2))

    def _reacts(self) -> torch.Tensor:
        """(contexts,) true where some button has changed the picture."""
        pictures = self.emulator.screen[:, :: SPARSE // 2, :: SPARSE // 2].flatten(1)
        pictures = pictures.view(self.contexts, len(BRANCHES), -1)
        return (pictures[:, 1:] != pictures[:, :1]).flatten(1).any(1)

    def _leaders(self, index: int) -> torch.Tensor:
        """The env of each context that a fork copies, (contexts,): each in turn, but none whose picture stands still,
        unless all do."""
        turn = (self._env - index * 3 - self._context) % len(BRANCHES) + len(BRANCHES) * ~self._moved
        return turn.view(self.contexts, -1).argmin(1) + self._env[:: len(BRANCHES)]

    def _in_play(self, index: int, context: int) -> torch.Tensor:
        """The leader of a context, or, if no button did anything there lately, of the next one where some did."""
        order = (self._env[: self.contexts] + context) % self.contexts
        first = (self._alike[order] == 0).int().argmax()  # the first one, also if none is in play
        return self._leaders(index)[order[first]]

    def fork(self, index: int) -> None:
        """Copies one env of each context to the others of it; some contexts begin again at the start, as do those in
        which the game is over."""
        leader = self._env == self._leaders(index)[self._context]
        slots = (1 + self._context).to(torch.int32)
        self.pool.save(leader, slots)
        period = torch.where(self._context % 2 == 0, SHORT, LONG)
        dead = self._alike[self._context] >= DEAD
        again = ((index + self._context // 2) % period == 0) | dead if index else self._everyone
        self._alike = torch.where(self._alike >= DEAD, 0, self._alike)
        self.pool.reset(self._everyone, torch.where(again, 0, slots))
        self.recording.forks.append(self.recording.looks)
        self.recording.look(self._nothing, False)

    def step(self, buttons: torch.Tensor) -> None:
        self.emulator.step(buttons)
        self.recording.look(buttons)

    def random(self) -> torch.Tensor:
        """Buttons of random play: each env holds one for a while, then takes another."""
        shape, device = (self.emulator.num_envs,), self.emulator.device
        renew = torch.rand(shape, generator=self._generator, device=device) < self._renewal
        choice = torch.randint(len(self._choices), shape, generator=self._generator, device=device)
        self._held = torch.where(renew, self._choices[choice], self._held)
        return self._held
