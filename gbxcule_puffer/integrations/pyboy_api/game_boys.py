"""GameBoys: PyBoy's public API, with each call for many Game Boys on the device."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np
import torch

from gbxcule_puffer.closing import ClosedPart, check_open, close_for_good
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Rom
from gbxcule_puffer.emulator.probes.hooks import rom_index
from gbxcule_puffer.emulator.saves import pyboy_state
from gbxcule_puffer.emulator.schedule import MOST_FRAMES
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath
from gbxcule_puffer.integrations.pyboy_api import left_out, tiles
from gbxcule_puffer.integrations.pyboy_api.fields import Fields
from gbxcule_puffer.integrations.pyboy_api.hint import AxisHint
from gbxcule_puffer.integrations.pyboy_api.memory import Memory, RegisterFile
from gbxcule_puffer.integrations.pyboy_api.numbers import whole
from gbxcule_puffer.integrations.pyboy_api.screen import Screen
from gbxcule_puffer.tasks.ram import Ram, Symbols

BUTTONS = ("right", "left", "up", "down", "a", "b", "select", "start")  # bit 0 first, as Emulator.step takes them
BOOT_FRAMES = 65  # frames of PyBoy's boot ROM, which GameBoys skips
LARGEST_STATE = 2**24  # bytes
COPIED = ("frame_count", "_events", "_queue", "_executions")
LEFT_OUT = "docs/pyboy.md says what of PyBoy is left out, and why"


class GameBoys:
    """`num_envs` Game Boys with the calls of a PyBoy, for ported code. Where PyBoy has a number, this has a tensor with
    a row per Game Boy. Buttons may be pressed in some of them only. They begin after the boot ROM.

    docs/pyboy.md lists the calls, the differences, and what is left out.

    Args: symbols: a .sym file; keywords: as in Emulator.
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
        left_out.take_options(keywords)
        if unknown := [name for name in keywords if name not in inspect.signature(Emulator.__init__).parameters]:
            raise ConfigError(f"GameBoys has no option {unknown[0]!r:.40}: leave it out ({LEFT_OUT})")
        options: dict[str, Any] = {"screen": "full", **keywords}
        emulator = Emulator(gamerom, num_envs, device, **options)
        self._take(emulator, Symbols.find_files(symbols, emulator.cartridge.path))

    def _take(self, emulator: Emulator, symbols: Symbols | None) -> None:
        """Makes the parts of an emulator at its start."""
        self.emulator, self._symbols = emulator, symbols
        self.num_envs, self.device = emulator.num_envs, torch.device(emulator.device)
        self._ram, self._fields = Ram(emulator, symbols), Fields(emulator)
        self._hint = hint = AxisHint(self.num_envs)
        self.memory = Memory(emulator, self._ram, self._fields, hint)
        self.register_file = RegisterFile(self._fields)
        self.tilemap_background = tiles.TileMap(self.memory, self._fields, tiles.BACKGROUND_BIT, hint)
        self.tilemap_window = tiles.TileMap(self.memory, self._fields, tiles.WINDOW_BIT, hint)
        self.screen = Screen(emulator, self._fields, hint)
        self._area = tiles.GameArea(self._ram, self._fields, self.tilemap_background)
        self.frame_count, self.cartridge_title = BOOT_FRAMES, emulator.title
        self.gamerom = emulator.cartridge.path
        self._events: list[tuple[bool, int, torch.Tensor | None]] = []  # pressed or released, buttons, in which envs
        self._queue: list[tuple[int, int, torch.Tensor | None]] = []  # buttons that are released before a frame
        self._executions: dict[int, torch.Tensor] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes a copy with Game Boys of its own, for copy and pickle.

        Raises: ConfigError after `stop`.
        """
        check_open(self)
        own = {name: copy.deepcopy(getattr(self, name)) for name in COPIED}
        return _copy, (type(self), self.emulator.__reduce__(), self._symbols, own, self._area.settings())

    def __getattr__(self, name: str) -> NoReturn:
        left_out.refuse("GameBoys", left_out.GAME_BOYS, name)

    def __enter__(self) -> GameBoys:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def tick(self, count: int = 1, render: bool = True, sound: bool = True) -> bool:
        """Runs `count` frames and draws the last one; render and sound have no effect. False without a frame, as
        PyBoy."""
        count = whole(count, "count of tick", 0)
        for counts in self._executions.values():
            counts.zero_()
        end = self.frame_count + count
        while self.frame_count < end:
            self._handle_events()
            until = min([end, self.frame_count + MOST_FRAMES, *(frame for frame, *_ in self._queue)])
            self.emulator.run(until - self.frame_count)
            self.frame_count = until
            for index, counts in self._executions.items():
                counts += self.emulator.executions(*divmod(index, hw.ROM_BANK_SIZE))
        return count > 0

    def button(self, input: str, delay: int = 1, envs: torch.Tensor | None = None) -> None:
        """Presses a button before the next frame, in all Game Boys or those of a mask (num_envs,) bool, and releases it
        `delay` frames later; at once where that is 0."""
        delay = whole(delay, "delay of a button", 0)
        self.button_press(input, envs)
        if delay == 0:
            self.button_release(input, envs)
        else:
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

    def hook_register(self, bank: int | None, addr: int | str, callback: object = None, context: object = None) -> None:
        """Counts from the next tick on how often an instruction in ROM begins; bank None: `addr` is a symbol.

        Raises: ConfigError for code that is not in ROM, and with a callback.
        """
        if callback is not None or context is not None:
            remedy = "leave callback and context out, and read hook_executions after the tick"
            raise ConfigError(f"hook_register counts, and calls nothing: {remedy}")
        index = self._rom_index(bank, addr)
        self.emulator.hook(*divmod(index, hw.ROM_BANK_SIZE))
        self._executions.setdefault(index, torch.zeros(self.num_envs, dtype=torch.int32, device=self.device))

    def hook_executions(self, bank: int | None, addr: int | str) -> torch.Tensor:
        """Counts of a hooked instruction in the last tick, (num_envs,) int32.

        Raises: ConfigError if there is no hook.
        """
        index = self._rom_index(bank, addr)
        if index not in self._executions:
            raise ConfigError(f"hook at {addr!r:.60}: there is none: call hook_register before the tick")
        return self._executions[index].clone()

    def get_sprite(self, sprite_index: int) -> tiles.Sprite:
        """Sprite 0 to 39 of all Game Boys."""
        return tiles.sprite(self._ram, self._fields, whole(sprite_index, "sprite", 0, tiles.SPRITES - 1))

    def get_sprite_by_tile_identifier(self, tile_identifiers: Sequence[int], on_screen: bool = True) -> torch.Tensor:
        """The sprites that show each of these tiles, (num_envs, identifiers, 40) bool."""
        whole = tiles.sprites(self._ram, self._fields)
        wanted = torch.tensor(list(tile_identifiers), dtype=torch.int32, device=self.device)[:, None]
        first, second = whole.tile_identifier[:, None] == wanted, whole.tile_identifier[:, None] + 1 == wanted
        found = first | (second & (whole.height == 16)[:, None])
        return found & whole.on_screen[:, None] if on_screen else found

    def game_area(self) -> torch.Tensor:
        """Tiles of the background's map with the sprites on them, (num_envs, height, width) int32."""
        self._hint.say()
        return self._area.read()

    def game_area_dimensions(self, x: int, y: int, width: int, height: int, follow_scrolling: bool = True) -> None:
        """Sets the part of the map that `game_area` shows.

        Raises: ConfigError for one that leaves the map, and with follow_scrolling.
        """
        if follow_scrolling:
            raise ConfigError("follow_scrolling needs the scroll position of each line, which is not kept: give False")
        self._area.set_section(x, y, width, height)

    def game_area_mapping(self, mapping: Sequence[int] | np.ndarray, sprite_offset: int = 0) -> None:
        """Sets the numbers of the 384 tiles in `game_area`, 768 of a Game Boy Color, and the number that it adds for a
        sprite."""
        self._area.set_mapping(mapping, sprite_offset)

    def save_state(self, file_like_object: BinaryIO, env: int = 0) -> None:
        """Writes one Game Boy as PyBoy's save_state does."""
        _check_file(file_like_object)
        file_like_object.write(pyboy_state.to_bytes(self.emulator.save(env), self.emulator.cartridge))

    def load_state(self, file_like_object: BinaryIO, env: int | None = None) -> None:
        """Reads a file of PyBoy's save_state into one Game Boy or all.

        Raises: StateError for a file of another cartridge.
        """
        _check_file(file_like_object)
        data = file_like_object.read(LARGEST_STATE)
        self.emulator.load(pyboy_state.from_bytes(data, self.emulator.cartridge), env)

    def set_emulation_speed(self, target_speed: float) -> None:
        """Has no effect with 0, which is no limit.

        Raises: ConfigError for another speed.
        """
        if target_speed != 0:
            raise ConfigError(f"speed {target_speed!r:.40}: give 0, the Game Boys run as fast as they can")

    def stop(self, save: bool = False, ram_file: object = None, rtc_file: object = None) -> None:
        """Ends the Game Boys; every other call is an error from then on.

        Raises: ConfigError with a file: `emulator.save_ram` has the content of a .ram file.
        """
        if save or ram_file is not None or rtc_file is not None:
            raise ConfigError(
                "stop writes no file of many Game Boys: write emulator.save_ram(env) to it, then stop() without save"
            )
        self.emulator.close()
        close_for_good(self, ("stop",))
        for name, part in vars(self).items():
            if isinstance(part, Memory | RegisterFile | Screen | tiles.TileMap):
                vars(self)[name] = ClosedPart(self)

    def _handle_events(self) -> None:
        """Changes the held buttons as PyBoy does before a frame; a newly pressed button requests the joypad's
        interrupt."""
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
        if not isinstance(name, str) or name.lower() not in BUTTONS:
            raise ConfigError(f"button {name!r:.40} is unknown: give one of {', '.join(BUTTONS)}")
        return 1 << BUTTONS.index(name.lower())

    def _checked(self, envs: torch.Tensor | None) -> torch.Tensor | None:
        if envs is None:
            return None
        envs = torch.as_tensor(envs)
        if envs.shape != (self.num_envs,) or envs.dtype != torch.bool:
            raise ConfigError(f"envs has shape {tuple(envs.shape)} of {envs.dtype}: give ({self.num_envs},) bool")
        return envs.to(self.device)

    def _rom_index(self, bank: int | None, addr: int | str) -> int:
        where = self.symbol_lookup(addr) if isinstance(addr, str) else (bank, addr)
        return rom_index(self.emulator.cartridge, *where)


def _copy(
    kind: type[GameBoys],
    emulator: tuple[Any, ...],
    symbols: Symbols | None,
    own: dict[str, Any],
    area: tuple[Any, ...],
) -> GameBoys:
    """GameBoys of the parts that GameBoys.__reduce__ gives."""
    make, arguments = emulator
    made = kind.__new__(kind)
    made._take(make(*arguments), symbols)
    for name, value in own.items():
        setattr(made, name, value)
    made._area.take_settings(area)
    return made


def _check_file(file_like_object: object) -> None:
    """Raises: ConfigError for a path; PyBoy takes files only."""
    if isinstance(file_like_object, str | os.PathLike):
        raise ConfigError(f"file {str(file_like_object)!r:.60} is a path: open it, and give the file")
