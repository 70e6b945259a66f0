"""GameBoys: PyBoy's public API, of which each call is one of many Game Boys on the device."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np
import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.emulator.probes.hooks import hook_place
from gbxcule_puffer.emulator.saves import pyboy_state
from gbxcule_puffer.emulator.schedule import MOST_FRAMES
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.integrations.pyboy_api import tiles
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.integrations.pyboy_api.memory import Memory, RegisterFile
from gbxcule_puffer.pictures import LEVELS
from gbxcule_puffer.tasks.ram import Ram, Symbols

BUTTONS = ("right", "left", "up", "down", "a", "b", "select", "start")  # bit 0 first, as Emulator.step takes them
BOOT_FRAMES = 65  # of PyBoy's boot ROM, which this one has behind it
LARGEST_STATE = 2**24  # bytes
LEFT_OUT = "docs/pyboy.md says what of PyBoy is left out, and why"


class GameBoys:
    """`num_envs` Game Boys with the calls of a PyBoy, for code that is ported. What is a number there is a tensor with
    a row for each Game Boy here; what is pressed may be pressed in some of them. They begin behind the boot ROM.

    docs/pyboy.md lists what is there, what differs, and what is left out.

    Args: symbols: a .sym file; keywords: as of Emulator.
    Raises: RomError, DeviceError, ConfigError.
    """

    def __init__(
        self,
        gamerom: Rom,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        symbols: StrPath | None = None,
        **keywords: object,
    ) -> None:
        if unknown := [name for name in keywords if name not in inspect.signature(Emulator.__init__).parameters]:
            raise ConfigError(f"GameBoys has no option {unknown[0]!r:.40}: leave it out ({LEFT_OUT})")
        self.emulator = Emulator(gamerom, num_envs, device, **{"screen": "full", **keywords})
        self.num_envs, self.device = num_envs, torch.device(self.emulator.device)
        self._symbols = Symbols.find_files(symbols, self.emulator.cartridge.path)
        self._ram, self._fields = Ram(self.emulator, self._symbols), Fields(self.emulator)
        self.memory = Memory(self.emulator, self._ram, self._fields)
        self.register_file = RegisterFile(self._fields)
        self.tilemap_background = tiles.TileMap(self.memory, self._fields, tiles.BACKGROUND_BIT)
        self.tilemap_window = tiles.TileMap(self.memory, self._fields, tiles.WINDOW_BIT)
        self.screen = Screen(self.emulator, self._fields)
        self._area = tiles.GameArea(self._ram, self._fields, self.tilemap_background)
        self.frame_count, self.cartridge_title = BOOT_FRAMES, self.emulator.title
        self._events: list[tuple[bool, int, torch.Tensor | None]] = []  # pressed or released, buttons, in which envs
        self._queue: list[tuple[int, int, torch.Tensor | None]] = []  # buttons that are released before a frame
        self._executions: dict[int, torch.Tensor] = {}

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"GameBoys has no {name}: {LEFT_OUT}")

    def tick(self, count: int = 1, render: bool = True, sound: bool = True) -> bool:
        """Runs `count` frames and draws the last one; render and sound have no effect."""
        if count < 1:
            raise ConfigError(f"tick {count}: give at least one frame")
        for counts in self._executions.values():
            counts.zero_()
        end = self.frame_count + count
        while self.frame_count < end:
            self._handle_events()
            until = min([end, self.frame_count + MOST_FRAMES, *(frame for frame, *_ in self._queue)])
            self.emulator.run(until - self.frame_count)
            self.frame_count = until
            for place, counts in self._executions.items():
                counts += self.emulator.executions(*divmod(place, hw.ROM_BANK_SIZE))
        return True

    def button(self, input: str, delay: int = 1, envs: torch.Tensor | None = None) -> None:
        """Presses a button before the next frame, in all Game Boys or those of a mask (num_envs,) bool, and releases it
        `delay` frames later."""
        if delay < 1:
            raise ConfigError(f"delay {delay} of a button must be at least 1")
        self.button_press(input, envs)
        self._queue.append((self.frame_count + delay, self._bit(input), self._checked(envs)))

    def button_press(self, input: str, envs: torch.Tensor | None = None) -> None:
        """Presses a button before the next frame, in all Game Boys or those of a mask (num_envs,) bool."""
        self._events.append((True, self._bit(input), self._checked(envs)))

    def button_release(self, input: str, envs: torch.Tensor | None = None) -> None:
        """Releases a button before the next frame, in all Game Boys or those of a mask (num_envs,) bool."""
        self._events.append((False, self._bit(input), self._checked(envs)))

    def symbol_lookup(self, symbol: str) -> tuple[int, int]:
        """(bank, address) of a name in the symbol file.

        Raises: ConfigError for an unknown one, and without a file.
        """
        if self._symbols is None:
            raise ConfigError(f"symbol {symbol!r:.60} needs a symbol file: give symbols='GAME.sym'")
        found = self._symbols.find(symbol)
        return found.bank, found.address

    def hook_register(self, bank: int | None, addr: int | str, *callback: object) -> None:
        """Counts from the next tick on how often an instruction in ROM begins; bank None: `addr` is a symbol.

        Raises: ConfigError for code that is not in ROM, and with a callback.
        """
        if callback:
            remedy = "leave callback and context out, and read hook_executions after the tick"
            raise ConfigError(f"hook_register counts, and calls nothing: {remedy}")
        place = self._place(bank, addr)
        self.emulator.hook(*divmod(place, hw.ROM_BANK_SIZE))
        self._executions.setdefault(place, torch.zeros(self.num_envs, dtype=torch.int32, device=self.device))

    def hook_executions(self, bank: int | None, addr: int | str) -> torch.Tensor:
        """Times that a hooked instruction began in the last tick, (num_envs,) int32.

        Raises: ConfigError where there is no hook.
        """
        place = self._place(bank, addr)
        if place not in self._executions:
            raise ConfigError(f"hook at {addr!r:.60}: there is none: call hook_register before the tick")
        return self._executions[place].clone()

    def get_sprite(self, sprite_index: int) -> tiles.Sprite:
        """Sprite 0 to 39 of all Game Boys."""
        return tiles.sprite(self._ram, self._fields, sprite_index)

    def get_sprite_by_tile_identifier(self, tile_identifiers: Sequence[int], on_screen: bool = True) -> torch.Tensor:
        """The sprites that show each of these tiles, (num_envs, identifiers, 40) bool."""
        whole = tiles.sprites(self._ram, self._fields)
        wanted = torch.tensor(list(tile_identifiers), dtype=torch.int32, device=self.device)[:, None]
        first, second = whole.tile_identifier[:, None] == wanted, whole.tile_identifier[:, None] + 1 == wanted
        found = first | (second & (whole.height == 16)[:, None])
        return found & whole.on_screen[:, None] if on_screen else found

    def game_area(self) -> torch.Tensor:
        """Tiles of the background's map with the sprites on them, (num_envs, height, width) int32."""
        return self._area.read()

    def game_area_dimensions(self, x: int, y: int, width: int, height: int, follow_scrolling: bool = True) -> None:
        """Sets the part of the map that `game_area` shows.

        Raises: ConfigError for one that leaves the map, and with follow_scrolling.
        """
        if follow_scrolling:
            raise ConfigError("follow_scrolling needs the scroll position of each line, which is not kept: give False")
        self._area.set_section(x, y, width, height)

    def game_area_mapping(self, mapping: Sequence[int] | np.ndarray, sprite_offset: int = 0) -> None:
        """Sets the numbers that `game_area` has for the 384 tiles, 768 of a Game Boy Color, and what it adds to a
        sprite's."""
        self._area.set_mapping(mapping, sprite_offset)

    def save_state(self, file_like_object: BinaryIO, env: int = 0) -> None:
        """Writes one Game Boy as PyBoy's save_state does."""
        _check_file(file_like_object)
        file_like_object.write(pyboy_state.to_bytes(self.emulator.save(env), self.emulator.cartridge))

    def load_state(self, file_like_object: BinaryIO, env: int | None = None) -> None:
        """Reads what PyBoy's save_state wrote, into one Game Boy or all.

        Raises: StateError for what is none of this cartridge.
        """
        _check_file(file_like_object)
        data = file_like_object.read(LARGEST_STATE)
        self.emulator.load(pyboy_state.from_bytes(data, self.emulator.cartridge), env)

    def stop(self, save: bool = False) -> None:
        """Ends the Game Boys. Raises: ConfigError with save: `emulator.save_ram` has the content of a .ram file."""
        if save:
            raise ConfigError("stop(save=True) writes no file of many Game Boys: use emulator.save_ram(env)")
        self.emulator.close()

    def _handle_events(self) -> None:
        """Changes the buttons that are held as PyBoy does before a frame; one more requests the joypad's interrupt."""
        due = [(False, buttons, envs) for frame, buttons, envs in self._queue if frame <= self.frame_count]
        self._queue = [event for event in self._queue if event[0] > self.frame_count]
        held, requests = self._fields["buttons"], self._fields["interrupt_flag"]
        for pressed, buttons, envs in [*due, *self._events]:
            where = torch.ones_like(held) if envs is None else envs.to(torch.int32)
            if pressed:
                is_new = where * ((held & buttons) == 0)
                requests |= is_new * hw.INT_JOYPAD
                held |= where * buttons
            else:
                held &= ~(where * buttons)
        self._events = []

    def _bit(self, name: str) -> int:
        if name.lower() not in BUTTONS:
            raise ConfigError(f"button {name!r:.40} is unknown: give one of {', '.join(BUTTONS)}")
        return 1 << BUTTONS.index(name.lower())

    def _checked(self, envs: torch.Tensor | None) -> torch.Tensor | None:
        if envs is None:
            return None
        envs = torch.as_tensor(envs)
        if envs.shape != (self.num_envs,) or envs.dtype != torch.bool:
            raise ConfigError(f"envs has shape {tuple(envs.shape)} of {envs.dtype}: give ({self.num_envs},) bool")
        return envs.to(self.device)

    def _place(self, bank: int | None, addr: int | str) -> int:
        where = self.symbol_lookup(addr) if isinstance(addr, str) else (bank, addr)
        return hook_place(self.emulator.cartridge, *where)


def _check_file(file_like_object: object) -> None:
    """Raises: ConfigError for a path, as PyBoy has it."""
    if isinstance(file_like_object, str | os.PathLike):
        raise ConfigError(f"file {str(file_like_object)!r:.60} is a path: open it, and give the file")


class Screen:
    """The pictures of all Game Boys after the last tick."""

    def __init__(self, emulator: Emulator, fields: Fields) -> None:
        self._emulator, self._fields = emulator, fields
        self.raw_buffer_dims = (hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH)

    @property
    def shades(self) -> torch.Tensor:
        """Shades 0-3, 0 the lightest, (num_envs, 144, 160) uint8: the emulator's own buffer."""
        return self._emulator.screen

    @property
    def ndarray(self) -> np.ndarray:
        """Red, green, blue and 255 as PyBoy has them, (num_envs, 144, 160, 4) uint8: a copy on the host."""
        if self._fields.is_color:
            rgb = self._emulator.render("rgb").cpu().numpy()
        else:
            rgb = LEVELS[self.shades.cpu().numpy()][..., None].repeat(3, -1)
        return np.concatenate([rgb, np.full_like(rgb[..., :1], 255)], axis=-1)

    def image(self, env: int = 0) -> Any:
        """One Game Boy's picture as Pillow has it.

        Raises: ConfigError where Pillow is not installed.
        """
        try:
            from PIL import Image
        except ImportError:
            raise ConfigError("screen.image needs Pillow: pip install pillow") from None
        if not 0 <= env < len(self.shades):
            raise ConfigError(f"env {env} does not exist: give 0 to {len(self.shades) - 1}")
        return Image.fromarray(np.ascontiguousarray(self.ndarray[env]))

    def get_tilemap_position(self) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        """((SCX, SCY), (WX - 7, WY)) at the end of the frame, each (num_envs,) int32."""
        scx, scy, wx, wy = (self._fields[name].clone() for name in ("scx", "scy", "wx", "wy"))
        return (scx, scy), (wx - 7, wy)
