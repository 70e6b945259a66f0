"""Pictures for the wall: a sample of an env's Game Boys, gathered on the device and handed to the server's process."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.trainers.blocks.replay import pack
from gbxcule_puffer.trainers.wall import DEFAULT_ADDRESS
from gbxcule_puffer.trainers.wall.process import ServerProcess

PAGE = Path(__file__).with_name("page.html")
SHOWN = 64  # Game Boys at most
PICTURES_A_SECOND = 12
MIN_SPEED, MAX_SPEED = 0.1, 240.0  # steps a second
# RAM that is always where its address says: work RAM and high RAM.
RAM = ((0xC000, 0xDFFF), (0xFF80, 0xFFFE))
MEMORY_BEGIN = 0x8000  # of a row of Emulator.memory
MAX_WATCHES = 16


class Wall(AbstractContextManager):
    """An env's Game Boys in a browser, while they are trained or played.

    The one who steps the env calls `look` after each step. With no viewer that is one comparison. With one, a few times
    a second the device packs pictures of 2 bits a pixel, or of 16 in colour, and copies them to pinned memory; a thread
    waits for the copy and hands it to the server, which is a process of its own.

    env: with torch io; status: called for the figures beside the pictures, names to numbers; controls: whether viewers
    may pause and set the speed, which `wait` follows.
    """

    def __init__(
        self,
        env: Any,
        title: str,
        status: Callable[[], Mapping[str, Any]],
        address: str = DEFAULT_ADDRESS,
        picture: tuple[int, int] | None = None,
        controls: bool = False,
    ) -> None:
        """Raises: ConfigError where the address cannot be listened on."""
        self.env, self._status = env, status
        count = min(SHOWN, env.num_envs)
        self._sample = torch.arange(count, device=env.device) * env.num_envs // count
        self._envs = self._sample.tolist()
        self._memory: Tensor | None = getattr(getattr(env, "emulator", None), "memory", None)
        self.paused, self.speed = False, 10.0
        self._single = threading.Event()  # a viewer asks for one step
        self._focus, self._watches = 0, tuple[int, ...]()
        position = getattr(env, "position", None)
        self._places = None if position is None or self._memory is None else env.ram.offsets(position)
        self._busy, self._next = False, 0.0
        self._gathered: queue.SimpleQueue[tuple[dict[str, Any], Tensor, Any] | None] = queue.SimpleQueue()
        self._host = torch.empty(0, dtype=torch.uint8)  # pinned; one picture is under way at a time
        rows, columns = picture or env.layout.picture_shape[1:]
        codec = getattr(env, "codec", None)
        hello = {
            **{"title": title, "rows": rows, "columns": columns, "num_envs": env.num_envs, "controls": controls},
            **{"envs": self._envs, "actions": list(codec.actions) if codec else []},
            **{"ram": self._memory is not None, "speed": self.speed, "map": self._places is not None},
        }
        parts = 0 if self._places is None else self._places.shape[1]
        self._server = ServerProcess(address, PAGE, hello, self._receive, ["map.js"], parts)
        self.url = self._server.url
        threading.Thread(target=self._hand_over, name="wall", daemon=True).start()

    def follow(self) -> None:
        """Looks after every step of the env by itself."""
        step = self.env.step

        def watched_step(actions: Any) -> Any:
            result = step(actions)
            self.look()
            return result

        self.env.step = watched_step

    @torch.no_grad()
    def look(self, pictures: Tensor | None = None) -> None:
        """Shows the env as it is now, or `pictures` of it (num_envs, rows, columns), shades or colours, if somebody
        looks."""
        if not self._server.viewers or self._busy or time.monotonic() < self._next:
            return
        env = self.env
        on_gpu = env.device.type == "cuda"
        if on_gpu and torch.cuda.is_current_stream_capturing():
            return
        self._next, self._busy = time.monotonic() + 1 / PICTURES_A_SECOND, True
        sample, focus, watches = self._sample, self._focus, self._watches
        screens = env.pictures(sample) if pictures is None else signed(pictures)[sample]
        numbers = torch.stack([self._numbers(name) for name in ("taken_actions", "rewards", "episode_returns")])
        parts = [numbers.view(torch.uint8).flatten()]
        if self._memory is not None and watches:
            parts += [self._memory[self._envs[focus], address - MEMORY_BEGIN].view(1) for address in watches]
        parts.append(encoded(screens).flatten())
        if self._memory is not None and self._places is not None:
            parts.append(self._memory.gather(1, self._places).flatten())
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
        }
        self._gathered.put((header, payload, copied))

    def _numbers(self, name: str) -> Tensor:
        """One number of each Game Boy shown, float32; 0 where the env does not have it."""
        values = getattr(self.env, name, None)
        if values is None:
            return torch.zeros(len(self._sample), device=self.env.device)
        return torch.as_tensor(values, device=self.env.device)[self._sample].float()

    def wait(self) -> None:
        """Waits for as long as viewers want between two steps: the speed's time, or until they go on."""
        end = time.monotonic() + 1 / self.speed
        while (self.paused and not self._single.is_set()) or time.monotonic() < end:
            if self._single.wait(0.01):
                break
        self._single.clear()

    def close(self) -> None:
        """Ends the server."""
        self._gathered.put(None)
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
        if isinstance(watches, list):
            good = [a for a in watches if type(a) is int and any(low <= a <= high for low, high in RAM)]
            self._watches = tuple(good[:MAX_WATCHES])
        if isinstance(speed, int | float) and speed > 0:
            self.speed = float(max(MIN_SPEED, min(speed, MAX_SPEED)))
        if isinstance(message.get("paused"), bool):
            self.paused = message["paused"]
        if message.get("step") is True:
            self._single.set()


def encoded(pictures: Tensor) -> Tensor:
    """Bytes of pictures (..., columns) as the pages take them: of shades four pixels a byte, of colours two bytes a
    pixel."""
    return pack(pictures) if pictures.dtype == torch.uint8 else pictures.contiguous().view(torch.uint8)


def _finite(status: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has; None for the others."""
    return {name: value if math.isfinite(value) else None for name, value in status.items()}
