"""PyBoy with the interface of gbxcule_puffer's Emulator: N instances in one process, snapshots in and out.

PyBoy's state format lacks some of the machine's state. Before a snapshot is loaded, a small program of ours runs for a
frame to bring the missing parts into a known state; some of them are then set through the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch

from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.baselines.pyboy_mirror import PyBoyMirror
from gbxcule_puffer.baselines.pyboy_pool import PyBoyPool
from gbxcule_puffer.closing import close_for_good
from gbxcule_puffer.emulator import address_space
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.cartridge import Cartridge, Rom, load_cartridge
from gbxcule_puffer.emulator.probes.hooks import rom_index
from gbxcule_puffer.emulator.probes.screens import colors_in
from gbxcule_puffer.emulator.probes.until import ByteTest, Until, check_frames
from gbxcule_puffer.emulator.registers import REGISTERS
from gbxcule_puffer.emulator.saves import pyboy_layout, pyboy_state
from gbxcule_puffer.emulator.saves.pyboy_color import shades_of
from gbxcule_puffer.emulator.schedule import FRAMES_PER_STEP, PIXEL_STEPS, RELEASE_AFTER_FRAMES
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX, LCD_REGISTERS, row_size, state_size
from gbxcule_puffer.errors import ConfigError, DeviceError, StateError

if TYPE_CHECKING:
    from pyboy.pyboy import PyBoyMemoryView

HALT = 0x76
HALT_FOREVER = bytes([0x76, 0x18, 0xFD])  # halt; jr to it
VRAM_SIZE = hw.CART_RAM - hw.VRAM
UNDOCUMENTED = {f"undocumented_{address - 0xFF00:x}": address for address in range(0xFF72, 0xFF76)}  # of the model cgb
LCD_ADDRESSES = {row.field: row.address for row in REGISTERS if row.field in LCD_REGISTERS}
RTC_LATCHED = ("seconds", "minutes", "hours", "day_low", "day_high")


class PyBoyEmulator:
    """`num_envs` PyBoys with the same ROM, stepped one after the other, as Emulator steps its envs.

    Args: as in Emulator; device must be 'cpu'.
    An illegal opcode makes PyBoy's tick never return: `locked` is always 0, and such a game hangs.
    Raises: RomError, DeviceError, ConfigError.
    """

    launches = None  # on no GPU

    def __init__(
        self,
        rom: Rom,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        screen: str = "half",
        frames_per_step: int = FRAMES_PER_STEP,
        release_after_frames: int = RELEASE_AFTER_FRAMES,
        header: str = "strict",
        model: str | None = None,
        sound: bool | None = None,
    ) -> None:
        if str(device) != "cpu":
            raise DeviceError(f"device {device!r}: PyBoy runs on the CPU only; use 'cpu'")
        if num_envs < 1 or screen not in PIXEL_STEPS:
            raise ConfigError(f"num_envs {num_envs} must be at least 1 and screen {screen!r} 'half' or 'full'")
        self.cartridge: Cartridge = load_cartridge(rom, header, model, sound)
        self.model, self.sound = self.cartridge.model, self.cartridge.sound
        self.num_envs, self.device, self.pixel_step = num_envs, "cpu", PIXEL_STEPS[screen]
        self.frames_per_step, self.release_after_frames = frames_per_step, release_after_frames
        shape = (num_envs, hw.SCREEN_HEIGHT // self.pixel_step, hw.SCREEN_WIDTH // self.pixel_step)
        self.screen = torch.zeros(shape, dtype=torch.uint8)
        """Pictures after the last step, shades 0..3; changed in place by `step`."""
        self.locked = torch.zeros(num_envs, dtype=torch.int32)
        self._pictures = self.screen.numpy()
        self.machines = [
            PyBoyMachine(self.cartridge.data, frames_per_step, release_after_frames, model=self.model, sound=self.sound)
            for _ in range(num_envs)
        ]
        row, color = state_size(self.cartridge, self.pixel_step)[1], row_size(self.cartridge.ram_banks)
        self.mirror = PyBoyMirror(self.machines, row, color, pyboy_layout.oam_offset(self.cartridge))
        self._until = Until(self.cartridge, num_envs, "cpu", frames_per_step)
        self._lcd_registers = {name: torch.zeros(num_envs, dtype=torch.int32) for name in LCD_REGISTERS}
        self._counts: dict[int, torch.Tensor] = {}  # of each hook, by its index in the ROM
        self._chip_is_late = [True] * num_envs
        self._released = [0] * num_envs  # buttons whose release PyBoy has not taken notice of yet
        self.draw()
        self._start = self.save(0)
        self.mirror.rows[:] = self._start.memory_for(self._pictures.shape[1:])
        self._rest_states: dict[tuple[int, ...], bytes] = {}

    @property
    def memory(self) -> torch.Tensor:
        """Memory rows (hardware.py), shape (num_envs, row), uint8; only the bytes that `mirror` watches are up to
        date."""
        return self.mirror.memory

    @property
    def rom_sha256(self) -> str:
        """SHA-256 of the ROM image, hex."""
        return self.cartridge.sha256

    @property
    def title(self) -> str:
        """The title in the ROM's header."""
        return self.cartridge.title

    def step(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        """As Emulator.step: buttons (num_envs,) uint8, frames (num_envs,) int32."""
        self.step_undrawn(buttons, frames)
        self.draw()

    def step_undrawn(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        """`step` without reading the pictures: `screen` keeps the old ones until `draw`."""
        if frames is not None:
            check_frames(frames, self.num_envs)
        for counts in self._counts.values():
            counts.zero_()
        self._until.begin_step(self.frames_per_step if frames is None else frames)
        for env, (machine, mask) in enumerate(zip(self.machines, buttons.tolist(), strict=True)):
            most = int(self.frames[env])
            self.frames[env] = machine.step(mask, self._ends_early(env), most)
            is_late = not machine.holds and most <= self.release_after_frames
            self._released[env] = mask if is_late else 0
        self._chip_is_late = [True] * self.num_envs
        self.mirror.update()

    @property
    def frames(self) -> torch.Tensor:
        """Frames of the last step, shape (num_envs,), int32; changed in place by `step`."""
        return self._until.frames

    def lcd_registers(self) -> dict[str, torch.Tensor]:
        """As Emulator.lcd_registers."""
        for name, values in self._lcd_registers.items():
            values.copy_(torch.tensor([int(machine.pyboy.memory[LCD_ADDRESSES[name]]) for machine in self.machines]))
        return self._lcd_registers

    def hook(self, bank: int | None, address: int) -> None:
        """As Emulator.hook, by PyBoy's own hooks. Two hooks on consecutive instructions may make PyBoy hang, if the
        frame ends between them.

        Raises: ConfigError as Emulator.hook, and for a HALT, whose hook PyBoy calls again while it waits.
        """
        index = rom_index(self.cartridge, bank, address)
        if index in self._counts:
            return
        if self.cartridge.data[index] == HALT:
            raise ConfigError(f"hook at {address:04X}: there is HALT, which PyBoy counts all the time: give one before")
        self._counts[index] = counts = torch.zeros(self.num_envs, dtype=torch.int32)
        for env, machine in enumerate(self.machines):
            machine.pyboy.hook_register(bank or 0, address, partial(_count, counts.numpy()), env)

    def executions(self, bank: int | None, address: int) -> torch.Tensor:
        """As Emulator.executions.

        Raises: ConfigError where there is no hook.
        """
        index = rom_index(self.cartridge, bank, address)
        if index not in self._counts:
            raise ConfigError(f"{address:04X} of bank {bank or 0} has no hook: set one before the step that it counts")
        return self._counts[index]

    def end_steps_when(self, tests: Sequence[ByteTest]) -> None:
        """As Emulator.end_steps_when.

        Raises: ConfigError for a byte that is not plain RAM.
        """
        self._until.set(tests)

    def _ends_early(self, env: int) -> Callable[[], bool] | None:
        """A check of the tests that end a step, None if there are none."""
        offsets = self._until.rows[:, 0].tolist()

        def look() -> bool:
            for offset in offsets:
                self.mirror.read(env, offset, offset + 1)
            return self._until.holds(self.mirror.rows[env])

        return look if offsets else None

    def draw(self) -> None:
        """Reads the pictures into `screen`."""
        if self.model == "dmg":
            for machine, picture in zip(self.machines, self._pictures, strict=True):
                machine.picture(self.pixel_step, out=picture)
            return
        for machine, picture, colors in zip(self.machines, self._pictures, self.colors.numpy(), strict=True):
            colors[:] = machine.colors(self.pixel_step)
            picture[:] = shades_of(colors)

    @property
    def colors(self) -> torch.Tensor:
        """As Emulator.colors, of a Game Boy Color."""
        return colors_in(self.mirror.memory, self.screen.shape)

    def reset(self) -> None:
        """All envs to the end of the frame in which the cartridge starts."""
        self.load(self._start)

    def save(self, env: int | None = None) -> Snapshot:
        """The state of all envs, or of one. Values that PyBoy does not show have their usual value (pyboy_state.py)."""
        if env is None:
            parts = [self.save(i) for i in range(self.num_envs)]
            state = np.concatenate([part.state for part in parts], axis=1)
            memory, screen = (np.concatenate([getattr(part, name) for part in parts]) for name in ("memory", "screen"))
            return Snapshot(self.rom_sha256, state, memory, screen)
        machine = self.machines[env]
        if self.cartridge.has_rtc and self._chip_is_late[env]:
            # Reading the chip brings it up to date (FF is not a command); a second read would add the host's time.
            machine.pyboy.memory[0x6000] = 0xFF
            self._chip_is_late[env] = False
        snapshot = pyboy_state.from_bytes(machine.state(), self.cartridge, running=True)
        if self.model == "cgb":
            for name, address in UNDOCUMENTED.items():
                snapshot.state[INDEX[name]] = machine.pyboy.memory[address]
            snapshot.state[INDEX["undocumented_74"]] *= self.cartridge.is_for_color
            if not self.cartridge.is_for_color:
                self._read_bank(machine.pyboy.memory, snapshot)
        snapshot.state[INDEX["buttons"]] &= ~self._released[env]
        return snapshot

    def load(self, snapshot: Snapshot, env: int | None = None) -> None:
        """Restore a snapshot of all envs, or a snapshot of one env into env `env` (into all if None).

        Raises: StateError if it belongs to another ROM or number of envs, or PyBoy's format cannot store it.
        """
        self.check(snapshot)
        if snapshot.num_envs not in (1, self.num_envs) or (env is not None and snapshot.num_envs != 1):
            text = f"{snapshot.source} has {snapshot.num_envs} envs, the emulator {self.num_envs}"
            raise StateError(f"{text}: load one of as many, or of one env")
        envs = range(self.num_envs) if env is None else [env]
        shape = self._pictures.shape[1:]
        screens, memories = snapshot.screen_for(shape), snapshot.memory_for(shape)
        states = [pyboy_state.to_bytes(snapshot, self.cartridge, i) for i in range(snapshot.num_envs)]
        for index in envs:
            slot = index if len(states) > 1 else 0
            self._load(self.machines[index], states[slot], snapshot.fields(slot), snapshot.memory[slot])
            self._chip_is_late[index], self._released[index] = True, 0
            self._pictures[index] = screens[slot]
            self.mirror.rows[index] = memories[slot]

    def check(self, snapshot: Snapshot) -> None:
        """Raises: StateError if a snapshot is damaged, or belongs to another ROM."""
        snapshot.check(self.cartridge)

    def pool(self, snapshots: Sequence[Snapshot], spare: int = 0) -> PyBoyPool:
        """A pool of snapshots of single envs.

        Raises: StateError if one cannot be loaded; ConfigError for spare slots.
        """
        if spare:
            raise ConfigError("the PyBoy baselines cannot save live envs: leave archive_slots at 0")
        return PyBoyPool(self, snapshots)

    def registers(self, env: int = 0) -> dict[str, int]:
        """All scalar state fields of one env by name (state.py)."""
        return self.save(env).fields()

    def read_memory(self, env: int, address: int, length: int, bank: int | None = None) -> np.ndarray:
        """`length` bytes from `address` as the CPU's bus shows them, or of a bank of ROM or cartridge RAM; uint8, no
        side effects, IO registers read 0, OAM as it is stored, also during an OAM DMA.

        Raises: ConfigError where there is no such address or bank.
        """
        saved = self.save(env)
        return address_space.read(self.cartridge, saved.fields(), saved.memory[0], address, length, bank)

    def cartridge_state(self, env: int = 0) -> dict[str, int | bytes]:
        """Selected banks, mapper registers, the clock chip, and all of the cartridge's RAM under `ram`."""
        snapshot = self.save(env)
        names = ("rom_low", "rom_high", "ram_enabled", "ram_bank", "bank1", "bank2", "banking_mode")
        fields = {name: value for name, value in snapshot.fields().items() if name in names or name.startswith("rtc_")}
        return {**fields, "ram": pyboy_state.cartridge_ram(snapshot.memory[0], self.cartridge).tobytes()}

    def state_hash(self) -> np.ndarray:
        """As Emulator.state_hash, for the state that PyBoy shows."""
        return self.save().hashes()

    def facts(self) -> dict[str, Any]:
        """The hooks, for copies of an env."""
        return {"hooks": list(self._counts)}

    def take_facts(self, facts: dict[str, Any]) -> None:
        """Takes what `facts` returned."""
        for index in facts["hooks"]:
            self.hook(*divmod(index, hw.ROM_BANK_SIZE))

    def __reduce__(self) -> NoReturn:
        raise ConfigError("PyBoyEmulator cannot be copied: make another one, and load what save() returns")

    def close(self) -> None:
        """Stop all PyBoys; every other call is an error from then on."""
        for machine in self.machines:
            machine.close()
        close_for_good(self)

    def _read_bank(self, memory: PyBoyMemoryView, snapshot: Snapshot) -> None:
        """Bank 1 of VRAM of a DMG's cartridge, and the selected bank: PyBoy's states lack them."""
        bank = snapshot.memory[0, row_size(self.cartridge.ram_banks) :]
        last = hw.CART_RAM - 1  # PyBoy refuses ranges that end where the bank does
        bank[:VRAM_SIZE] = [*memory[1, hw.VRAM : last], memory[1, last]]
        snapshot.state[INDEX["vram_bank"]] = memory[hw.VBK] & 1

    def _write_bank(self, memory: PyBoyMemoryView, row: np.ndarray, selected: int) -> None:
        """The same of a snapshot that is loaded."""
        bank = row[row_size(self.cartridge.ram_banks) :][:VRAM_SIZE].tolist()
        memory[1, hw.VRAM : hw.CART_RAM - 1] = bank[:-1]
        memory[1, hw.CART_RAM - 1] = bank[-1]
        memory[hw.VBK] = selected

    def _load(self, machine: PyBoyMachine, data: bytes, fields: dict[str, int], row: np.ndarray) -> None:
        """Loads a state and the parts that its format lacks; only the window's line counter always starts at 0."""
        memory = machine.pyboy.memory
        machine.load_state(self._rest_state(fields))
        machine.pyboy.tick(1, True, False)
        _ = memory[hw.STAT]  # a hidden mode shows only once
        if self.cartridge.has_rtc:
            for command in (0, 1, 0)[: 2 if fields["rtc_latched"] else 3]:
                memory[0x6000] = command
        if fields["stat_mode_hidden"]:  # switching the LCD on after a write to LYC hides the mode
            memory[hw.LCDC] = 0
            memory[hw.LYC] = 0
        machine.load_state(data)
        if self.model == "cgb":
            for name, address in UNDOCUMENTED.items():
                if fields[name] != memory[address]:  # FF75 is 0 only until it is written
                    memory[address] = fields[name]
            if not self.cartridge.is_for_color:
                self._write_bank(memory, row, fields["vram_bank"])
        if fields["lyc_written_off"] and not fields["lcdc"] & hw.LCDC_ENABLE:
            memory[hw.LYC] = fields["lyc"]
        if self.cartridge.mapper.maps_low_bank:
            memory[0x6000] = fields["banking_mode"]  # works out the bank at 0000 anew

    def _rest_state(self, fields: dict[str, int]) -> bytes:
        """A machine in HALT at the start of a frame, whose clock chip shows the values to latch."""
        latched = tuple(fields[f"rtc_latch_{name}"] for name in RTC_LATCHED)
        if latched not in self._rest_states:
            wram = 0x2000 if self.model == "dmg" else 0x8000
            values = {
                "pc": hw.WRAM, "sp": 0xFFFE, "wram": HALT_FOREVER.ljust(wram, b"\0"), "lcdc": hw.LCDC_ENABLE,
                "stat": 0x82, "lcd_target": 80, "lcd_next_mode": 3, "rom_bank": 1, "bank1": 1,
                "directional": 0x0F, "standard": 0x0F, "timer_event": pyboy_layout.CYCLES_NEVER,
                "serial_event": pyboy_layout.CYCLES_NEVER, "serial_target": pyboy_layout.CYCLES_NEVER,
                **{f"rtc_{name}": value for name, value in zip(RTC_LATCHED, latched, strict=True)},
            }  # fmt: skip
            if self.cartridge.has_rumble:
                values["rumble_supported"] = 1
            self._rest_states[latched] = pyboy_layout.write(values, self.cartridge)
        return self._rest_states[latched]


def _count(counts: np.ndarray, env: int) -> None:
    """The callback of a hook."""
    counts[env] += 1
