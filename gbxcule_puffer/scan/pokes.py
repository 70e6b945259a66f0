"""Causes: a byte is changed in a copy of a Game Boy, and what then differs from the copy left alone depends on it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.scan.play import Rounds
from gbxcule_puffer.scan.recording import SPARSE
from gbxcule_puffer.scan.statistics import wrapped

MOST_POKED = 480  # bytes
SOON, LATE = 1, 6  # looks after the change at which the copies are compared
CHANGES = (1, 4, -1, 2)  # what is added to the byte, one of them in each scene


@dataclass(frozen=True)
class Causes:
    """Effects of changing each byte in `scenes` moments of the game; parts of the scenes, each (bytes,).

    stays: the change is still there one look later; stays_late: some looks later; draws: the picture differs soon;
    draws_late; sprites_x, sprites_y: sprites moved along an axis; camera_x, camera_y: the scroll register changed.
    """

    poked: torch.Tensor
    stays: torch.Tensor
    stays_late: torch.Tensor
    draws: torch.Tensor
    draws_late: torch.Tensor
    sprites_x: torch.Tensor
    sprites_y: torch.Tensor
    camera_x: torch.Tensor
    camera_y: torch.Tensor

    def cpu(self) -> Causes:
        """The same on the CPU."""
        return Causes(*[getattr(self, each.name).cpu() for each in fields(self)])

    def of(self, some: torch.Tensor) -> Causes:
        """Those of some bytes, (bytes,) bool; nothing depends on the others."""
        return Causes(*[getattr(self, each.name) * some for each in fields(self)])

    @classmethod
    def unknown(cls, total: int, device: torch.device) -> Causes:
        """Before anything was changed: as if everything had an effect."""
        ones = torch.ones(total, device=device)
        none = torch.zeros(total, dtype=torch.bool, device=device)
        return cls(none, ones, ones, ones, ones, ones, ones, ones, ones)


def poke_all(rounds: Rounds, interest: torch.Tensor) -> Causes:
    """Changes each byte in each of the scenes that `rounds` kept, the most interesting ones if they are too many.
    interest: (bytes,), below 0 for a byte that is left alone."""
    emulator, recording = rounds.emulator, rounds.recording
    device, total = recording.values.device, len(recording.where)
    offsets = torch.tensor(recording.offsets, device=device)
    can = (offsets >= 0) & (interest >= 0)
    chosen = torch.where(can, interest, -1.0).argsort(descending=True)[: min(MOST_POKED, int(can.sum()))]
    scenes, count = rounds.scenes, len(chosen) + 1  # the last of each scene is left alone
    looks = torch.zeros((scenes * count, 2, total), dtype=torch.uint8, device=device)
    height, width = emulator.screen[0, :: SPARSE // 2, :: SPARSE // 2].shape
    pictures = torch.zeros((scenes * count, 2, height, width), dtype=torch.uint8, device=device)
    jobs = torch.arange(scenes * count, device=device)
    everyone = torch.ones(emulator.num_envs, dtype=torch.bool, device=device)
    nothing = torch.zeros(emulator.num_envs, dtype=torch.uint8, device=device)
    changes = torch.tensor(CHANGES, device=device)
    for first in range(0, len(jobs), emulator.num_envs):
        part = jobs[first : first + emulator.num_envs]
        part = torch.cat([part, part[-1:].expand(emulator.num_envs - len(part))])
        scene, byte = part // count, part % count
        rounds.pool.reset(everyone, (rounds.first_scene + scene).to(torch.int32))
        active = byte < len(chosen)
        env = active.nonzero()[:, 0]
        at = offsets[chosen[byte[env]]]
        emulator.memory[env, at] += changes[scene[env] % len(changes)].to(torch.uint8)
        done = min(emulator.num_envs, len(jobs) - first)
        for look in range(1, LATE + 1):
            emulator.step(nothing)
            if look in (SOON, LATE):
                looks[first : first + done, int(look == LATE)] = recording.now()[:done]
                pictures[first : first + done, int(look == LATE)] = emulator.screen[
                    :done, :: SPARSE // 2, :: SPARSE // 2
                ]
    looks, pictures = looks.view(scenes, count, 2, total), pictures.view(scenes, count, 2, height, width)
    apart = wrapped(looks[:, :-1].short() - looks[:, -1:].short())  # (scenes, chosen, 2, bytes)
    drawn = (pictures[:, :-1] != pictures[:, -1:]).flatten(3).any(3).float().mean(0)  # (chosen, 2)
    own = apart.gather(3, chosen.view(1, -1, 1, 1).expand(scenes, -1, 2, 1))[..., 0]
    wanted = changes[torch.arange(scenes, device=device) % len(changes)].view(-1, 1, 1)
    stays = (own == wanted).float().mean(0)
    addresses = recording.addresses.to(device)
    oam = (addresses >= hw.OAM) & (addresses < hw.OAM_END)

    def moved(columns: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(total, device=device)
        found[chosen] = (apart[..., columns] != 0).any(3).any(2).float().mean(0)
        return found

    def spread(values: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(total, device=device)
        found[chosen] = values
        return found

    poked = torch.zeros(total, dtype=torch.bool, device=device)
    poked[chosen] = True
    return Causes(
        poked, spread(stays[:, 0]), spread(stays[:, 1]), spread(drawn[:, 0]), spread(drawn[:, 1]),
        moved(oam & (addresses % 4 == 1)), moved(oam & (addresses % 4 == 0)), moved(addresses == hw.SCX),
        moved(addresses == hw.SCY),
    )  # fmt: skip
