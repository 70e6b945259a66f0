"""Snapshots: the whole state of one or more envs, in memory and as a file that refuses damage and foreign ROMs."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gbxcule_puffer.emulator import address_space, sound_fields
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import RAM_BANKS, Cartridge
from gbxcule_puffer.emulator.schedule import SCREENS
from gbxcule_puffer.emulator.state import (
    COLOR_FIELDS,
    FIELDS,
    INDEX,
    NUM_COLOR_FIELDS,
    color_row_size,
    first_fault,
    state_size,
)
from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, StrPath, inflate, parse_json, read_bytes, write_bytes

MAGIC = b"gbxcule-snapshot\n"
FORMAT_VERSION = 1
SNAPSHOT_FILE = Kind("snapshot", StateError, "give a file that `Snapshot.to_file` wrote")
DTYPES = (np.int32, np.uint8, np.uint8)  # of state, memory and screen
MAX_ROW = color_row_size(max(RAM_BANKS.values()), 1)
MAX_ENV_SIZE = 4 * NUM_COLOR_FIELDS + MAX_ROW + hw.SCREEN_HEIGHT * hw.SCREEN_WIDTH  # bytes
MAX_ENVS = 2**18
SOUND = "-sound"
# Which machine: Emulator's `accuracy`, and whether it has sound
PROFILES = tuple(accuracy + sound for accuracy in ("pyboy", "hardware") for sound in ("", SOUND))


@dataclass
class Snapshot:
    """State of `num_envs` envs: state (fields, num_envs) int32, memory (num_envs, row) uint8, screen (num_envs, h, w)
    uint8 shades; a Game Boy Color's memory ends with its picture in colour. A screen of 144x160 also fits an emulator
    that keeps 72x80."""

    rom_sha256: str
    state: np.ndarray
    memory: np.ndarray
    screen: np.ndarray
    profile: str = "pyboy"
    source: str = "the snapshot"
    """Where it comes from, such as a file, for errors."""

    @property
    def num_envs(self) -> int:
        """Envs in the snapshot."""
        return self.state.shape[1]

    @property
    def model(self) -> str:
        """'dmg' or 'cgb'."""
        return "cgb" if len(self.state) == NUM_COLOR_FIELDS else "dmg"

    @property
    def has_sound(self) -> bool:
        """True if it is of an emulator with sound=True."""
        return self.profile.endswith(SOUND)

    @property
    def colors(self) -> np.ndarray:
        """The pictures of a Game Boy Color, shape as of `screen`, uint16: 5 bits each of red (lowest), green, blue.

        Raises: StateError for a DMG.
        """
        if self.model == "dmg":
            raise StateError("the snapshot is a DMG's and has no colours: use its screen")
        size = 2 * math.prod(self.screen.shape[1:])
        return np.ascontiguousarray(self.memory[:, -size:]).view(np.uint16).reshape(self.screen.shape)

    def fields(self, env: int = 0) -> dict[str, int]:
        """All scalar fields of one env by name (state.py)."""
        return {name: int(self.state[index, env]) for name, index in INDEX.items() if index < len(self.state)}

    def hashes(self) -> np.ndarray:
        """A hash of registers, memory and picture of each env, shape (num_envs,), uint64: 64 bits of BLAKE2b."""
        columns = np.ascontiguousarray(self.state.T)
        digests = (
            hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=8).digest()
            for parts in zip(columns, self.memory, self.screen, strict=True)
        )
        return np.array([int.from_bytes(digest, "big") for digest in digests], np.uint64)

    def bus(self, cartridge: Cartridge, env: int = 0) -> np.ndarray:
        """The address space of one env as its CPU's bus shows it, shape (65536,), uint8 (address_space.py)."""
        return address_space.bus(cartridge, self.fields(env), self.memory[env])

    def check(self, cartridge: Cartridge) -> None:
        """Check everything that kernels rely on: the ROM, shapes and types, each field's range (state.py), shades 0 to
        3.

        Raises: StateError.
        """
        self.check_rom(cartridge)
        if self.state.ndim == 2 and self.model != cartridge.model:
            raise StateError(
                f"{self.source} is of model {self.model!r}, this Game Boy of {cartridge.model!r}: save it with the same"
            )
        if self.has_sound != cartridge.sound:
            raise StateError(
                f"{self.source} was saved with sound={not cartridge.sound}, this Game Boy has sound={cartridge.sound}: "
                "use the same"
            )
        envs = self.num_envs if self.state.ndim == 2 else 0
        pixel_step = 1 if self.screen.shape[1:] == SCREENS["full"] else 2
        fields, row = state_size(cartridge, pixel_step)
        shapes = ((fields, envs), (envs, row), (envs, *self.screen.shape[1:]))
        arrays = {"state": self.state, "memory": self.memory, "screen": self.screen}
        fault = "it has no env" if envs < 1 else ""
        for (part, array), dtype, shape in zip(arrays.items(), DTYPES, shapes, strict=True):
            if array.dtype != dtype or array.shape != shape:
                fault = fault or f"its {part} is {array.dtype} of {array.shape}, not {np.dtype(dtype)} of {shape}"
        if not fault and self.screen.shape[1:] not in SCREENS.values():
            fault = f"its pictures are {self.screen.shape[1:]}"
        if not fault and self.screen.max() > 3:
            fault = f"a shade is {self.screen.max()}, and at most 3"
        if not fault and self.has_sound:
            fault = sound_fields.first_fault(self.memory)
        if fault := fault or first_fault(self.state, cartridge):
            raise StateError(f"{self.source} is damaged, or of another program ({fault}): save it again")

    def check_rom(self, cartridge: Cartridge) -> None:
        """Raises: StateError if the snapshot belongs to another ROM."""
        if self.rom_sha256 != cartridge.sha256:
            raise StateError(
                f"{self.source} is of ROM {self.rom_sha256[:12]}..., this is {cartridge.sha256[:12]}... "
                f"({cartridge.title}); use the state that was saved with this ROM"
            )

    def check_single(self) -> None:
        """Raises: StateError if a pool cannot take the snapshot, because it has several envs."""
        if self.num_envs != 1:
            raise StateError(
                f"{self.source} has {self.num_envs} envs, a pool takes those of one: save each env by its number"
            )

    def screen_for(self, shape: tuple[int, ...]) -> np.ndarray:
        """The screens in another emulator's resolution.

        Raises: StateError if the snapshot has only every second pixel and all are needed.
        """
        if self.screen.shape[1:] == shape:
            return self.screen
        if self.screen.shape[1:] == (144, 160):
            return np.ascontiguousarray(self.screen[:, ::2, ::2])
        raise StateError(
            f"{self.source} was saved with screen='half' and cannot serve screen='full'; save it with 'full'"
        )

    def doubled(self) -> Snapshot:
        """A snapshot for an emulator that keeps 144x160 pixels: each pixel of a 72x80 screen becomes 2x2 pixels."""
        if self.screen.shape[1:] == SCREENS["full"]:
            return self
        memory = self.memory
        if self.model == "cgb":
            colors = self.colors.repeat(2, 1).repeat(2, 2).view(np.uint8).reshape(self.num_envs, -1)
            memory = np.concatenate([memory[:, : -2 * math.prod(self.screen.shape[1:])], colors], 1)
        return replace(self, memory=memory, screen=self.screen.repeat(2, 1).repeat(2, 2))

    def memory_for(self, shape: tuple[int, ...]) -> np.ndarray:
        """The memory rows in another emulator's resolution: those of a Game Boy Color contain its picture.

        Raises: as screen_for.
        """
        screen = self.screen_for(shape)
        if self.model == "dmg" or screen is self.screen:
            return self.memory
        half = np.ascontiguousarray(self.colors[:, ::2, ::2]).view(np.uint8).reshape(self.num_envs, -1)
        return np.concatenate([self.memory[:, : -2 * math.prod(self.screen.shape[1:])], half], 1)

    def to_file(self, path: StrPath) -> None:
        """Write the file completely or not at all; raises as `files.new_file`."""
        arrays = (self.state, self.memory, self.screen)
        payload = zlib.compress(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), 6)
        header = {
            "format_version": FORMAT_VERSION,
            "profile": self.profile,
            "rom_sha256": self.rom_sha256,
            "fields": _field_names(self.model),
            "shapes": [a.shape for a in arrays],
            "payload_sha256": hashlib.sha256(payload).hexdigest(),
        }
        write_bytes(path, MAGIC + json.dumps(header).encode() + b"\n" + payload)

    @classmethod
    def from_file(cls, path: StrPath, max_envs: int = MAX_ENVS) -> Snapshot:
        """Read a file of to_file with at most `max_envs` envs.

        Raises: StateError if it is missing, damaged, has more envs or another format version, or is not a snapshot.
        """
        data = read_bytes(path, SNAPSHOT_FILE, max_envs * MAX_ENV_SIZE)
        if not data.startswith(MAGIC):
            raise StateError(f"{path}: not a gbxcule snapshot: give a file of Snapshot.to_file or `puffer play`")
        line, _, payload = data[len(MAGIC) :].partition(b"\n")
        header = parse_json(line, path, SNAPSHOT_FILE)
        if not isinstance(header, dict):
            raise StateError(f"{path}: the snapshot's header is damaged")
        if header.get("profile") not in PROFILES:
            raise StateError(f"{path}: snapshot of an unknown profile {header.get('profile')!r}; save it again")
        if header.get("format_version") != FORMAT_VERSION or header.get("fields") not in NAMES:
            raise StateError(
                f"{path}: snapshot format {header.get('format_version')} with other fields than this version's "
                f"{FORMAT_VERSION}; save it again"
            )
        if hashlib.sha256(payload).hexdigest() != header.get("payload_sha256"):
            raise StateError(f"{path}: the snapshot is damaged (checksum differs)")
        shapes = _checked_shapes(path, header.get("shapes", ()), len(header["fields"]), max_envs)
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in zip(shapes, DTYPES, strict=True)]
        raw, arrays, offset = inflate(payload, sum(sizes)), [], 0
        if raw is None or not isinstance(header.get("rom_sha256"), str):
            raise StateError(f"{path}: the snapshot is damaged (its shapes do not fit its data)")
        for shape, dtype, size in zip(shapes, DTYPES, sizes, strict=True):
            arrays.append(np.frombuffer(raw[offset : offset + size], dtype).reshape(shape).copy())
            offset += size
        return cls(header["rom_sha256"], *arrays, profile=header["profile"])


def _field_names(model: str) -> list[str]:
    """The rows of a snapshot's state."""
    return [field.name for field in (FIELDS if model == "dmg" else [*FIELDS, *COLOR_FIELDS])]


NAMES = [_field_names("dmg"), _field_names("cgb")]


def _checked_shapes(path: StrPath, shapes: Sequence[Sequence[int]], size: int, max_envs: int) -> list[tuple[int, ...]]:
    """Shapes of state (with `size` fields), memory and screen from a snapshot's header.

    Raises: StateError if they do not have the same number of envs, or have more than `max_envs`.
    """
    try:
        (fields, num_envs), (envs, row), (pictures, *screen) = shapes
        numbers = (fields, num_envs, envs, row, pictures, *screen)
        fits = all(type(number) is int for number in numbers) and fields == size and num_envs >= 1
        fits = fits and num_envs == envs == pictures and 0 < row <= MAX_ROW and tuple(screen) in SCREENS.values()
    except (TypeError, ValueError):
        fits, num_envs = False, 0
    if not fits:
        raise StateError(f"{path}: the snapshot is damaged (its shapes are not those of envs)")
    if num_envs > max_envs:
        raise StateError(f"{path}: the snapshot is of {num_envs:,} envs, at most {max_envs:,} are allowed here")
    return [tuple(shape) for shape in shapes]


def profile_of(cartridge: Cartridge, accuracy: str = "pyboy") -> str:
    """The profile of a snapshot."""
    return accuracy + (SOUND if cartridge.sound else "")


def power_on(cartridge: Cartridge, accuracy: str = "pyboy") -> Snapshot:
    """One env at PC=0100, as PyBoy's boot ROM leaves it, or as a real DMG's does (accuracy 'hardware')."""
    fields = dict(hw.POST_BOOT)
    is_color = cartridge.model == "cgb"
    if is_color:
        fields |= hw.COLOR_POST_BOOT if cartridge.is_for_color else hw.COMPATIBLE_POST_BOOT
    fields |= {"bank1": 1, "ram_enabled": int(cartridge.has_open_ram)}
    fields |= {"ram_offset": hw.CART_RAM - hw.ROW_BASE, "rom_high": (1 % cartridge.rom_banks - 1) * hw.ROM_BANK_SIZE}
    bytes_at = {**hw.POST_BOOT_MAP, **hw.POST_BOOT_HRAM}
    picture = _picture()
    if accuracy == "hardware" and is_color:
        bytes_at, picture = hw.POST_BOOT_HRAM, np.zeros_like(picture)
    elif accuracy == "hardware":
        fields |= hw.HARDWARE_POST_BOOT
        bytes_at |= hw.HARDWARE_POST_BOOT_IO
    rows, size = state_size(cartridge, 1)
    state = np.zeros((rows, 1), np.int32)
    for name, value in fields.items():
        state[INDEX[name]] = value
    row = np.zeros(size, np.uint8)
    if is_color:
        bytes_at = {**bytes_at, **hw.COLOR_POST_BOOT_HRAM}
        palette = np.array(hw.POST_BOOT_PALETTE, "<u2")
        at = size - 2 * picture.size
        row[at - 0x80 : at] = np.tile(palette, 16).view(np.uint8)
        row[at:] = palette[picture].view(np.uint8).ravel()
        picture = np.where(picture != 0, hw.POST_BOOT_SHADES[1], hw.POST_BOOT_SHADES[0]).astype(np.uint8)
    row[0x10 : 0x10 + len(hw.POST_BOOT_TILES)] = np.frombuffer(hw.POST_BOOT_TILES, np.uint8)
    for address, value in bytes_at.items():
        row[address - hw.ROW_BASE] = value
    if cartridge.sound:
        sound_fields.write(row, sound_fields.booted(cartridge.model, fields["cycles_low"], accuracy))
        row[hw.WAVE_RAM - hw.ROW_BASE : hw.WAVE_RAM_END - hw.ROW_BASE] = 0xFF
    return Snapshot(cartridge.sha256, state, row[None], picture[None], profile_of(cartridge, accuracy))


def _picture() -> np.ndarray:
    """The screen as the boot ROM leaves it, shades, shape (144, 160), uint8."""
    picture = np.zeros((hw.SCREEN_HEIGHT, hw.SCREEN_WIDTH), np.uint8)
    for address, tile in hw.POST_BOOT_MAP.items():
        row, column = divmod(address - hw.VRAM - 0x1800, 32)
        planes = np.frombuffer(hw.POST_BOOT_TILES[16 * (tile - 1) :][:16], np.uint8).reshape(8, 2)
        bits = np.unpackbits(planes[:, 0] | planes[:, 1]).reshape(8, 8)
        picture[8 * row :, 8 * column :][:8, :8] = 3 * bits
    return picture
