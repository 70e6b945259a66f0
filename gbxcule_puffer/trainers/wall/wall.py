"""Pictures for the wall: a sample of an env's Game Boys, gathered on the device and handed to the server's process."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.cartridge import Cartridge
from gbxcule_puffer.env.protocol import EnvLike, Step
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.tasks.ram.view import Ram
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS
from gbxcule_puffer.trainers.wall.encoding import encoded
from gbxcule_puffer.trainers.wall.lens import Lens
from gbxcule_puffer.trainers.wall.process import END_SECONDS, Begin, ServerProcess
from gbxcule_puffer.trainers.wall.ram_words import MOST_WORDS

PAGE = Path(__file__).with_name("page.html")
FILES = ("ram.js", "curves.js", "map.js")
SHOWN = 64  # Game Boys at most
PICTURES_A_SECOND = 12
MIN_SPEED, MAX_SPEED = 0.1, 240.0  # steps a second
WHOLE = (144, 160)
Header = dict[str, Any]


class Wall(AbstractContextManager):
    """An env's Game Boys in a browser, while they are trained or played.

    The one who steps the env calls `look` after each step. With no viewer that is one comparison. With one, a few times
    a second the device packs pictures of 2 bits a pixel, or of 16 in colour, and copies them to pinned memory; a thread
    waits for the copy and hands it to the server, which is a process of its own.

    env: with torch tensors, after a reset; status: called for the figures beside the pictures, names to numbers;
    picture: rows and columns of what `look` is given; controls: viewers may pause and set the speed, which `wait`
    follows; follow: the wall looks after every step of the env by itself, and shows the chosen Game Boy in whole;
    facts: words beside the title, by name; records: the run's metrics.jsonl, for its curves.
    """

    def __init__(
        self,
        env: EnvLike,
        title: str,
        status: Callable[[], Mapping[str, float]],
        address: str = DEFAULT_ADDRESS,
        *,
        picture: tuple[int, int] | None = None,
        controls: bool = False,
        follow: bool = False,
        facts: Mapping[str, str] | None = None,
        records: Path | None = None,
    ) -> None:
        """Raises: ConfigError where the address cannot be listened on."""
        self.env, self._status = env, status
        count = min(SHOWN, env.num_envs)
        self._sample = torch.arange(count, device=env.device) * env.num_envs // count
        self._envs: list[int] = self._sample.tolist()
        emulator = env.emulator
        self._ram = None if emulator is None else Ram(emulator, env.symbols)
        self.paused, self.speed = False, 10.0
        self._single = threading.Event()  # a viewer asks for one step
        self._focus, self._watches = 0, tuple[int, ...]()
        known = self._ram is not None and env.position is not None
        self._positions = self._ram.offsets(env.position) if self._ram and known and env.position else None
        rows, columns = picture or env.pictures(slice(1)).shape[1:]
        films = follow and isinstance(emulator, Emulator) and (rows, columns) != WHOLE
        self._lens = Lens(emulator) if films and isinstance(emulator, Emulator) else None
        self._due = self._recorded = False  # whether to look after the step; whether a CUDA graph has the env's steps
        self._busy, self._next = False, 0.0
        self._gathered: queue.SimpleQueue[tuple[Header, Tensor, torch.cuda.Event | None] | None] = queue.SimpleQueue()
        self._host = torch.empty(0, dtype=torch.uint8)  # pinned; one picture is under way at a time
        words = _rom(env.cartridge) | dict(facts or {})
        hello = {
            **{"title": title, "rows": rows, "columns": columns, "num_envs": env.num_envs, "controls": controls},
            **{
                "envs": self._envs,
                "actions": list(env.codec.actions),
                "facts": words,
            },
            **{"ram": self._ram is not None, "symbols": len(env.symbols or ()), "speed": self.speed},
            **{"map": self._positions is not None, "whole": films, "has_records": records is not None},
        }
        begin = Begin(
            address,
            PAGE,
            hello,
            FILES,
            position_size=0 if self._positions is None else self._positions.shape[1],
            cartridge=env.cartridge,
            symbols=env.symbols,
            machine=self._lens.machine if self._lens else None,
            records=records,
        )
        self._server = ServerProcess(begin, self._receive)
        self.url = self._server.url
        self._thread = threading.Thread(target=self._hand_over, name="wall", daemon=True)
        self._thread.start()
        if follow:
            self._follow()

    def _follow(self) -> None:
        """Looks after every step of the env; before it the lens takes the chosen Game Boy."""
        step, emulator = self.env.step, self.env.emulator

        def watched_step(actions: Tensor) -> Step:
            captured = self._is_captured()
            self._recorded |= captured
            self._due = self._recorded or self._wanted()
            result = step(actions)
            if self._due and not captured:
                self.look()
            return result

        self.env.step = watched_step  # pyright: ignore[reportAttributeAccessIssue]
        if self._lens is None or emulator is None:
            return
        lens, press = self._lens, emulator.step

        def watched_press(buttons: Tensor, frames: Tensor | None = None) -> None:
            if self._due:
                if not self._is_captured():
                    lens.point_at(self._envs[self._focus])
                lens.copy(buttons, frames)
            press(buttons, frames)

        emulator.step = watched_press  # pyright: ignore[reportAttributeAccessIssue]

    def look_at_graph(self) -> None:
        """Shows the env after a CUDA graph has replayed its steps: the calls in a graph show nothing."""
        if self._recorded:
            self.look()

    @torch.no_grad()
    def look(self, pictures: Tensor | None = None) -> None:
        """Shows the env as it is now, or `pictures` of it (num_envs, rows, columns), shades or colours, if somebody
        looks."""
        if not self._wanted() or self._is_captured():
            return
        env, on_gpu = self.env, self.env.device.type == "cuda"
        self._next, self._busy = time.monotonic() + 1 / PICTURES_A_SECOND, True
        sample, focus, watches = self._sample, self._focus, self._watches
        screens = env.pictures(sample) if pictures is None else signed(pictures)[sample]
        values = (env.taken_actions, env.rewards, env.episode_returns)
        parts = [torch.stack([each[sample].float() for each in values]).view(torch.uint8).flatten()]
        if self._ram is not None:
            self._watch(watches)
            row = self._ram.memory[self._envs[focus]]
            parts += [row[column : column + 1] for column in watches]
        parts.append(encoded(screens).flatten())
        lens = self._lens if self._due and self._lens and self._lens.env == self._envs[focus] else None
        if lens:
            parts.append(lens.data)
        elif self._lens and self._recorded:  # a later replay is of the one that is chosen now
            self._lens.point_at(self._envs[focus])
        if self._ram is not None and self._positions is not None:
            parts.append(self._ram.memory.gather(1, self._positions).flatten())
        payload, copied = torch.cat(parts), None
        if on_gpu:
            if self._host.numel() < payload.numel():
                self._host = torch.empty(payload.shape, dtype=torch.uint8, pin_memory=True)
            payload = self._host[: payload.numel()].copy_(payload, non_blocking=True)
            copied = torch.cuda.Event(blocking=True)
            copied.record()
        header = {
            "focus": focus,
            "watches": watches,
            "colors": screens.dtype != torch.uint8,
            **_finite(self._status()),
            "paused": self.paused,
            "lens_size": lens.data.numel() if lens else 0,
        }
        self._gathered.put((header, payload, copied))

    def _watch(self, columns: Sequence[int]) -> None:
        """Has columns of the memory rows be up to date, where these are a copy."""
        if self.env.emulator is not None and (mirror := self.env.emulator.mirror) is not None:
            for column in columns:
                mirror.watch(column, column + 1)

    def _wanted(self) -> bool:
        """True where somebody looks and the next picture is due."""
        return bool(self._server.viewers) and not self._busy and time.monotonic() >= self._next

    def _is_captured(self) -> bool:
        return self.env.device.type == "cuda" and torch.cuda.is_current_stream_capturing()

    def wait(self) -> None:
        """Waits for as long as viewers want between two steps: the speed's time, or until they go on."""
        end = time.monotonic() + 1 / self.speed
        while (self.paused and not self._single.is_set()) or time.monotonic() < end:
            if self._single.wait(0.01):
                break
        self._single.clear()

    def close(self, reason: str = "ended") -> None:
        """Ends the server; viewers read that the run has `reason`."""
        self._gathered.put(({"ended": reason}, torch.empty(0, dtype=torch.uint8), None))
        self._gathered.put(None)
        self._thread.join(END_SECONDS)
        self._server.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hand_over(self) -> None:
        """In a thread of its own, which sleeps while the device, or the server, is busy."""
        with contextlib.suppress(OSError):  # the server has ended: nobody looks any more
            while (gathered := self._gathered.get()) is not None:
                header, payload, copied = gathered
                if copied is not None:
                    copied.synchronize()
                self._server.send(header, payload.numpy())
                self._busy = False

    def _receive(self, message: dict[str, Any]) -> None:
        """What a viewer asks for; values out of range are left out."""
        focus, watches, speed = (message.get(name) for name in ("focus", "watches", "speed"))
        if type(focus) is int and 0 <= focus < len(self._sample):
            self._focus = focus
        if isinstance(watches, list) and self._ram is not None:
            size = self._ram.memory.shape[1]
            good = (column for column in watches if type(column) is int and 0 <= column < size)
            self._watches = tuple(islice(good, MOST_WORDS))
        if isinstance(speed, int | float) and speed > 0:
            self.speed = float(max(MIN_SPEED, min(speed, MAX_SPEED)))
        if isinstance(message.get("paused"), bool):
            self.paused = message["paused"]
        if message.get("step") is True:
            self._single.set()


def _rom(cartridge: Cartridge | None) -> dict[str, str]:
    """A cartridge by its title and model; by its digest where it has no title."""
    if cartridge is None:
        return {}
    return {"ROM": f"{cartridge.title or cartridge.sha256[:12]} ({cartridge.model.upper()})"}


def _finite(status: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers that JSON has; None for the others."""
    return {name: value if math.isfinite(value) else None for name, value in status.items()}
