"""Thousands of Game Boys in lockstep: one Warp kernel steps them all, on a CPU or a CUDA device."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import warp as wp

from gbxcule_puffer.closing import close_for_good
from gbxcule_puffer.device import OneUser, resolve_device, room_for, start_warp
from gbxcule_puffer.emulator.arrays import allocate, memory_needed
from gbxcule_puffer.emulator.build.variant import Variant, build
from gbxcule_puffer.emulator.cartridge import Cartridge, Rom, load_cartridge
from gbxcule_puffer.emulator.cpu_steps import CpuSteps
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import PATIENCE
from gbxcule_puffer.emulator.gpu.schedule.steps import GpuSteps
from gbxcule_puffer.emulator.launch import current_stream
from gbxcule_puffer.emulator.needed import prepare_steps
from gbxcule_puffer.emulator.pieces.native import OFF, NativeCode
from gbxcule_puffer.emulator.pool import SnapshotPool
from gbxcule_puffer.emulator.probes.access import HostAccess
from gbxcule_puffer.emulator.probes.copies import Copies
from gbxcule_puffer.emulator.probes.hooks import rom_index
from gbxcule_puffer.emulator.probes.screens import Screens
from gbxcule_puffer.emulator.probes.until import ByteTest, check_frames
from gbxcule_puffer.emulator.saves.state_files import save_ram_banks
from gbxcule_puffer.emulator.schedule import (
    FRAMES_PER_STEP,
    MOST_COLOR_FRAMES,
    MOST_FRAMES,
    PIXEL_STEPS,
    RELEASE_AFTER_FRAMES,
)
from gbxcule_puffer.emulator.snapshot import Snapshot, power_on, profile_of
from gbxcule_puffer.emulator.state import INDEX, LCD_REGISTERS
from gbxcule_puffer.errors import ActionError, ConfigError, StateError


class Emulator(HostAccess, Screens, Copies):
    """`num_envs` Game Boys with the same ROM, exactly as PyBoy 2.8.1 runs them.

    Args: rom: a path, the image's bytes, or a Cartridge; device: 'cpu', 'cuda' or 'cuda:N'; screen: 'half' keeps every
    second pixel (72x80), 'full' all (144x160); frames_per_step, release_after_frames: see `step`; num_threads: CPU
    threads, by default all usable cores; kernel: 'interpreter' or 'datapath', by default the faster one for the device.
    accuracy: 'pyboy', or 'hardware': like a real machine where public test ROMs show that PyBoy is not
    (docs/accuracy.md), with the slower kernel. sound: True for the sound registers of PyBoy(..., sound_emulated=True),
    by default False: they read 00 (docs/sound.md). header: as in load_cartridge. model: 'dmg' (default), 'cgb' (a Game
    Boy Color, docs/color.md), or 'auto': the model that PyBoy chooses by the header. instruction_budget: instructions
    per step after which an env is locked at the end of the frame; 0: no limit. autotune: on a GPU, time some steps to
    find the fastest way to launch the kernel for this game. native: on a CPU, compile the code that this game executes
    most, in the background. num_threads, kernel, autotune and native change no result. launches: the launcher of steps
    on a GPU, else None; native: the native code, None without.
    Raises: RomError, DeviceError, ConfigError.
    """

    mirror = None  # `memory` is the machines' own

    def __init__(
        self,
        rom: Rom,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        screen: str = "half",
        frames_per_step: int = FRAMES_PER_STEP,
        release_after_frames: int = RELEASE_AFTER_FRAMES,
        num_threads: int | None = None,
        kernel: str | None = None,
        accuracy: str = "pyboy",
        sound: bool | None = None,
        header: str = "strict",
        model: str | None = None,
        instruction_budget: int = 0,
        autotune: bool = True,
        native: bool = False,
    ) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs is {num_envs}; it must be at least 1")
        if screen not in PIXEL_STEPS:
            raise ConfigError(f"screen is {screen!r}; it must be 'half' or 'full'")
        if not 0 <= instruction_budget < 2**31:
            raise ConfigError(f"instruction_budget is {instruction_budget}; it must be 0 (any number), or below 2**31")
        if not 1 <= release_after_frames <= frames_per_step <= MOST_FRAMES:
            raise ConfigError(
                f"frames_per_step {frames_per_step} and release_after_frames {release_after_frames} must satisfy "
                f"1 <= release_after_frames <= frames_per_step <= {MOST_FRAMES}"
            )
        start_warp()
        self.cartridge: Cartridge = load_cartridge(rom, header, model, sound)
        self.model, self.sound = self.cartridge.model, self.cartridge.sound
        self.num_envs, self.device = num_envs, resolve_device(device)
        self.frames_per_step, self.release_after_frames = frames_per_step, release_after_frames
        self.pixel_step = PIXEL_STEPS[screen]
        if accuracy not in ("pyboy", "hardware"):
            raise ConfigError(f"accuracy is {accuracy!r}; it must be 'pyboy' or 'hardware'")
        self.accuracy, self.instruction_budget = accuracy, instruction_budget
        self.profile = profile_of(self.cartridge, accuracy)  # of its snapshots
        only_interpreter = self.device == "cpu" or accuracy == "hardware"
        self.kernel = kernel or ("interpreter" if only_interpreter else "datapath")
        if self.kernel not in ("interpreter", "datapath"):
            raise ConfigError(f"kernel is {kernel!r}; it must be 'interpreter' or 'datapath'")
        if accuracy == "hardware" and self.kernel != "interpreter":
            raise ConfigError("accuracy 'hardware' has kernel 'interpreter' only: leave kernel out")
        if self.model == "cgb" and frames_per_step > MOST_COLOR_FRAMES:
            most = f"{MOST_COLOR_FRAMES:,}"
            raise ConfigError(f"frames_per_step {frames_per_step:,} must be at most {most} with model 'cgb'")
        needed = memory_needed(self.cartridge, num_envs, self.pixel_step, self.kernel == "datapath")
        with room_for(needed, self.device, f"num_envs {num_envs:,}", "use fewer envs"):
            self._allocate()
        self._buttons = torch.zeros(num_envs, dtype=torch.uint8, device=self.device)
        self._autotune, self._wants_native = autotune, native
        on_gpu = self.device != "cpu"
        self.launches = GpuSteps(self._buttons, self._lanes, autotune) if on_gpu else None
        is_plain = self.kernel == "interpreter" and not on_gpu and accuracy == "pyboy" and not self.sound
        self._cpu_steps = CpuSteps(num_envs, num_threads if not on_gpu else 1)
        has_native = native and is_plain and not os.environ.get(OFF)
        self.native = self._native_code() if has_native else None
        self._start: Snapshot | None = None
        self._user = OneUser("this Emulator")
        prepare_steps(self._variant, self.kernel, self.launches and self.launches.shape, self.device)
        self.reset()

    @property
    def rom_sha256(self) -> str:
        """SHA-256 of the ROM image, hex."""
        return self.cartridge.sha256

    @property
    def title(self) -> str:
        """The title in the ROM's header."""
        return self.cartridge.title

    @property
    def kernel_version(self) -> str:
        """The kernel's name and a digest of all of its code, e.g. 'datapath 77df62cc'."""
        return f"{self.kernel} {build(self.kernel, self._variant).step.module.name.rpartition('_')[2]}"

    @property
    def memory(self) -> torch.Tensor:
        """Memory rows (hardware.py), shape (num_envs, row), uint8: the emulator's own buffer."""
        return self._memory

    @property
    def locked(self) -> torch.Tensor:
        """1 if an illegal opcode has locked an env, shape (num_envs,), int32: the emulator's own buffer."""
        return self._state[INDEX["locked"]]

    @property
    def skipped(self) -> torch.Tensor:
        """Instructions of the last step that were skipped as part of a loop, shape (num_envs,), int32: the emulator's
        own buffer. The two kernels skip different loops."""
        return self._skipped

    @property
    def frames(self) -> torch.Tensor:
        """Frames of the last step, shape (num_envs,), int32: the emulator's own buffer; see `end_steps_when`."""
        return self._until.frames

    def lcd_registers(self) -> dict[str, torch.Tensor]:
        """LCDC, SCY, SCX, WY and WX by their names in the state, shape (num_envs,), int32: the emulator's own
        buffers."""
        return {name: self._state[INDEX[name]] for name in LCD_REGISTERS}

    def hook(self, bank: int | None, address: int) -> None:
        """Count from the next step on how often the instruction at `address` of a bank of ROM begins (`executions`).

        Raises: ConfigError for an address that is not ROM, a bank that does not exist, or more than 64 hooks.
        """
        if self.native is not None:
            self.native.leave_out(rom_index(self.cartridge, bank, address))
        self._hooks.add(bank, address)
        self.machine.hooks = wp.from_torch(self._hooks.counts)
        self._cpu_steps.forget()

    def executions(self, bank: int | None, address: int) -> torch.Tensor:
        """Counts of a hooked instruction in the last step, shape (num_envs,), int32: the emulator's own buffer. It
        counts each time that the instruction begins; a HALT begins once, however long it waits.

        Raises: ConfigError if there is no hook.
        """
        return self._hooks.executions(bank, address)

    def end_steps_when(self, tests: Sequence[ByteTest]) -> None:
        """End each env's steps early from now on: after the buttons are released, the frame after the first one at
        whose end all `tests` pass is the last of the step. Without tests, all steps take frames_per_step.

        Raises: ConfigError for a byte that is not plain RAM.
        """
        self._until.set(tests)
        self.machine.until = wp.from_torch(self._until.rows)
        self._cpu_steps.forget()

    def _allocate(self) -> None:
        datapath = self.kernel == "datapath"
        sizes = (self.num_envs, self.device, self.pixel_step, self.frames_per_step)
        arrays = allocate(self.cartridge, *sizes, datapath)
        self.machine, self._code, self._lanes = arrays.machine, arrays.code, arrays.lanes
        self._state, self._memory, self._screen = arrays.state, arrays.memory, arrays.screen
        self._skipped, self._until, self._hooks = arrays.skipped, arrays.until, arrays.hooks
        self.machine.instruction_budget = self.instruction_budget
        self.machine.draw_later = int(self.device != "cpu" and datapath)

    def stream(self) -> wp.Stream | None:
        """Torch's current CUDA stream of this thread, for Warp's launches; None on a CPU."""
        return current_stream(torch.device(self.device))

    @property
    def _variant(self) -> Variant:
        """The options of the kernels."""
        return Variant(color=self.model == "cgb", hardware=self.accuracy == "hardware", sound=self.sound)

    def _kernel(self) -> wp.Kernel:
        """The step's kernel, compiled at its first launch."""
        return build(self.kernel, self._variant).step

    def _launch(self, frames: int | torch.Tensor, release_after: int) -> None:
        """Run `frames` frames of all envs (or each env's own number in a tensor), with the buttons of self._buttons."""
        with self._user:
            self._hooks.clear()
            self._until.begin_step(frames)
            self._run(0 if isinstance(frames, torch.Tensor) else frames, release_after)

    def _run(self, frames: int, release_after: int) -> None:
        if self.launches is not None:
            drawing = build(self.kernel, self._variant).draw if self.machine.draw_later else None
            return self.launches.launch(self._kernel(), self._arguments(0, frames, release_after), drawing)

        def inputs(first_env: int) -> list[object]:
            patience = [PATIENCE, 0] if self.kernel == "datapath" else []
            return [*self._arguments(first_env, frames, release_after), *patience]

        if self.native is not None:
            self.native.look()
        self._cpu_steps.launch(self._kernel, frames, release_after, inputs)

    def _native_code(self) -> NativeCode:
        def attach(numbers: torch.Tensor) -> None:
            self.machine.native = numbers.data_ptr()
            self._cpu_steps.forget()

        return NativeCode(self.cartridge, self._code, attach, self._some_envs)

    def _some_envs(self) -> Snapshot:
        """Some of the envs, from which NativeCode finds out what the game executes."""
        envs = slice(None, None, -(-self.num_envs // 16))
        arrays = (self._state[:, envs], self._memory[envs], self._screen[envs])
        return Snapshot(self.rom_sha256, *(array.numpy().copy() for array in arrays), profile=self.profile)

    def _arguments(self, first_env: int, frames: int, release_after: int) -> list[object]:
        """The arguments that the step's kernels share."""
        return [self.machine, wp.from_torch(self._buttons), first_env, frames, release_after]

    def reset(self, save_ram: bytes | None = None) -> None:
        """Return all envs to the end of the frame in which the cartridge starts, as after PyBoy's boot ROM.

        save_ram: the content of a .sav or .ram file for the cartridge at power-on, only for this reset.
        Raises: StateError if it does not fit the cartridge.
        """
        if save_ram is not None:
            banks = save_ram_banks(save_ram, self.cartridge)
            self.load(power_on(self.cartridge, self.accuracy))
            self._write_banks(banks, slice(None))
            self._buttons.zero_()
            self._launch(1, 1)
            return
        if self._start is None:
            self.load(power_on(self.cartridge, self.accuracy))
            self._launch(1, 1)
            self._start = self.save(env=0)
        self.load(self._start)

    def step(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        """Press `buttons`, run release_after_frames frames, release them, run to frames_per_step; draw the last frame.
        A button that a loaded state holds stays held until a step has pressed and released it. Where
        release_after_frames is frames_per_step, a step releases nothing at its end: it holds `buttons`, and releases
        at its start those that it does not hold. Only a button that was not held is pressed (the joypad's interrupt).

        buttons: shape (num_envs,), uint8, on the emulator's device; bits 0-3 RIGHT LEFT UP DOWN, 4-7 A B SELECT START.
        frames: of each env in place of frames_per_step, shape (num_envs,), int32, at most as of `run`; buttons are
        released at the end at the latest. On CUDA asynchronous, on torch's current stream.

        Raises: ActionError for another shape or type.
        """
        is_tensor = isinstance(buttons, torch.Tensor)
        if not is_tensor or buttons.shape != self._buttons.shape or buttons.dtype != torch.uint8:
            found = (
                f"{buttons.dtype} of shape {tuple(buttons.shape)}" if is_tensor else f"of type {type(buttons).__name__}"
            )
            raise ActionError(f"buttons are {found}: give torch.uint8 of shape ({self.num_envs},)")
        self._buttons.copy_(buttons)
        if frames is not None:
            check_frames(frames, self.num_envs)
        holds = self.release_after_frames == self.frames_per_step
        self._launch(self.frames_per_step if frames is None else frames, 0 if holds else self.release_after_frames)

    def run(self, frames: int) -> None:
        """Run `frames` frames, 1 to 20,000 (a Game Boy Color 15,000), without changing the buttons; draw the last
        frame.

        Raises: ConfigError for another number.
        """
        if not 1 <= frames <= self._until.most:
            raise ConfigError(f"frames {frames} must be from 1 to {self._until.most:,}")
        self._buttons.zero_()
        self._launch(frames, frames)

    def save(self, env: int | None = None) -> Snapshot:
        """The state of all envs, or of one."""
        part = self._part(env)
        arrays = (self._state[:, part], self._memory[part], self._screen[part])
        return Snapshot(self.rom_sha256, *(array.cpu().numpy().copy() for array in arrays), profile=self.profile)

    def load(self, snapshot: Snapshot, env: int | None = None) -> None:
        """Restore a snapshot of all envs, or a snapshot of one env into env `env` (into all if None).

        Raises: StateError if it belongs to another ROM or number of envs; then nothing is changed.
        """
        self.check(snapshot)
        if snapshot.num_envs not in (1, self.num_envs) or (env is not None and snapshot.num_envs != 1):
            text = f"{snapshot.source} has {snapshot.num_envs} envs, the emulator {self.num_envs}"
            raise StateError(f"{text}: load one of as many, or of one env")
        part = self._part(env)
        self._state[:, part] = torch.from_numpy(snapshot.state).to(self.device)
        shape = tuple(self._screen.shape[1:])
        self._memory[part] = torch.from_numpy(snapshot.memory_for(shape)).to(self.device)
        self._screen[part] = torch.from_numpy(snapshot.screen_for(shape)).to(self.device)

    def check(self, snapshot: Snapshot) -> None:
        """Raises: StateError if a snapshot is damaged, or belongs to another ROM, accuracy or model."""
        snapshot.check(self.cartridge)
        if snapshot.profile != self.profile:
            raise StateError(
                f"{snapshot.source} was saved with profile {snapshot.profile!r}, this emulator has "
                f"{self.profile!r}: use the same accuracy and sound"
            )

    def pool(self, snapshots: Sequence[Snapshot], spare: int = 0) -> SnapshotPool:
        """A pool of snapshots of single envs on the device, followed by `spare` slots for live envs.

        Raises: StateError.
        """
        return SnapshotPool(self, snapshots, spare)

    def close(self) -> None:
        """Stop the threads; every other call is an error from then on."""
        self._cpu_steps.close()
        if self.native is not None:
            self.native.close()
        self._user.closed = True
        close_for_good(self)
