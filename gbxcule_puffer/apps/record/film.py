"""Films of Game Boys: the whole 144x160 picture of every step, or of every frame with its sound; GIF, MP4 and WAV files
in PyBoy's colours."""

from __future__ import annotations

import os
import tempfile
import wave
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import warp as wp

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.probes.samples import SAMPLES_A_SECOND, HeardEmulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import StrPath, check_output, new_file
from gbxcule_puffer.pictures import indexed, to_rgb

FORMATS = (".gif", ".mp4")
FORMATS_WITH_SOUND = (".mp4", ".wav")
FRAMES_A_SECOND = 4_194_304 / 70_224  # of the console
GIF_TICK = 10  # milliseconds, the unit of time in a GIF


class Camera:
    """Takes the 144x160 pictures of the steps of an env that draws 72x80.

    A second emulator with all pixels plays each step again from the state of the env's machines, so the picture is that
    at the end of the step, even if the env has reset itself.
    """

    def __init__(self, env: GBxCuLEEnv) -> None:
        self.env = env
        schedule = env.schedule
        self.emulator = Emulator(
            env.cartridge,
            env.num_envs,
            str(env.device),
            screen="full",
            frames_per_step=schedule.frames_per_step,
            release_after_frames=schedule.release_after_frames,
            instruction_budget=env.options.instruction_budget,
        )
        self.emulator.end_steps_when(env.until)
        codes = [env.codec.to_buttons(action) for action in range(env.codec.num_actions)]
        self._buttons = torch.tensor(codes, dtype=torch.uint8, device=env.device)
        frames = [schedule.of(action)[0] for action in env.codec.actions]
        self._frames = torch.tensor(frames, dtype=torch.int32, device=env.device) if env.codec.frames else None

    def shoot(self, actions: torch.Tensor) -> np.ndarray:
        """The pictures (num_envs, 144, 160) to which the env's next step with `actions` (num_envs,) leads: uint8
        shades, or uint16 colours of Game Boy Colors. Call it before that step."""
        source, copy = self.env.emulator, self.emulator
        assert isinstance(source, Emulator)
        wp.to_torch(copy.machine.state).copy_(wp.to_torch(source.machine.state))
        copy.memory_without_colors.copy_(source.memory_without_colors)
        copy.step(self._buttons[actions], None if self._frames is None else self._frames[actions])
        return (copy.colors if copy.model == "cgb" else copy.screen).cpu().numpy().copy()


class SoundCamera(Camera):
    """Takes each frame of the steps of an env, and the sound. The game reads 00 from its sound registers, as it does in
    the muted env. A sound that began before the episode is not heard."""

    def __init__(self, env: GBxCuLEEnv) -> None:
        super().__init__(env)
        self._heard = HeardEmulator(env.cartridge, env.num_envs, str(env.device), screen="full")

    def roll(self, actions: torch.Tensor, starts: torch.Tensor) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The pictures of the frames of the env's next step with `actions` (1,), as of `shoot`, and the samples of
        each (samples, 2) uint8. starts: (1,) bool, True if an episode begins. Call it before that step."""
        self.shoot(actions)
        frames = int(self.emulator.frames[0])
        source, heard = self.env.emulator, self._heard
        assert isinstance(source, Emulator)
        heard.follow(source, bool(starts[0]))
        _, release_after = self.env.schedule.of(self.env.codec.actions[int(actions[0])])
        for _ in heard.frames_of_step(self._buttons[actions], frames, release_after, self.env.schedule.holds):
            picture = heard.colors if heard.model == "cgb" else heard.screen
            yield picture[0].cpu().numpy().copy(), heard.take_samples()


def in_time(takes: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[list[np.ndarray], np.ndarray]:
    """(pictures, 59.7 a second of the sound; the samples): where the LCD is switched off or on, frames are shorter."""
    pictures, parts, heard = list[np.ndarray](), list[np.ndarray](), 0
    for picture, samples in takes:
        parts.append(samples)
        heard += len(samples)
        missing = round(heard * FRAMES_A_SECOND / SAMPLES_A_SECOND) - len(pictures)
        pictures += [picture] * missing
    return pictures, np.concatenate(parts)


def check_path(path: StrPath, sound: bool = False) -> Path:
    """The path of a film to write.

    Raises: ConfigError for another format, a folder that is not writable, or MP4 without imageio's encoder.
    """
    path = Path(path)
    if sound and path.suffix.lower() not in FORMATS_WITH_SOUND:
        raise ConfigError(f"film {path} can have no sound: name it .mp4, or .wav for the sound alone")
    if not sound and path.suffix.lower() not in FORMATS:
        raise ConfigError(f"film {path} has an unknown format: name it .gif or .mp4")
    check_output(path)
    if not path.parent.exists():
        raise ConfigError(f"film {path}: there is no folder {path.parent}: make it, or give another --out")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"film {path} cannot be written there: give a file name in a folder of yours")
    if path.suffix.lower() == ".wav":
        return path
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise ConfigError("films need Pillow: pip install pillow") from None
    if path.suffix.lower() == ".mp4":
        try:
            import imageio.v2  # noqa: F401  # pyright: ignore[reportMissingImports]
            import imageio_ffmpeg  # noqa: F401  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ConfigError(f"film {path} needs an encoder: pip install 'imageio[ffmpeg]', or name it .gif") from None
    return path


def write_film(
    path: Path, pictures: Sequence[np.ndarray], scale: int, frames_per_second: float, sound: np.ndarray | None = None
) -> None:
    """Writes pictures (gbxcule_puffer.pictures), each pixel a square of `scale`, and samples (HeardEmulator); a reader
    never sees a partial file."""
    with new_file(path) as file:
        if path.suffix.lower() == ".gif":
            _write_gif(file, pictures, scale, frames_per_second)
        elif path.suffix.lower() == ".wav":
            assert sound is not None
            write_wav(file, sound)
        elif sound is None:
            _write_mp4(Path(file.name), pictures, scale, frames_per_second)
        else:
            with tempfile.TemporaryDirectory() as folder:
                track = Path(folder) / "sound.wav"
                with track.open("wb") as wav:
                    write_wav(wav, sound)
                _write_mp4(
                    Path(file.name), pictures, scale, frames_per_second, audio_path=str(track), audio_codec="aac"
                )


def write_wav(file: BinaryIO, sound: np.ndarray) -> None:
    """Writes samples (samples, 2) uint8 as 16 bits each, 256 times PyBoy's values."""
    with wave.open(file, "wb") as wav:
        wav.setparams((2, 2, SAMPLES_A_SECOND, len(sound), "NONE", ""))
        wav.writeframes((sound.astype("<i2") << 8).tobytes())


def _write_gif(file: BinaryIO, pictures: Sequence[np.ndarray], scale: int, frames_per_second: float) -> None:
    first, *rest = (indexed(picture, scale) for picture in pictures)
    duration = max(2, round(1000 / frames_per_second / GIF_TICK)) * GIF_TICK  # players slow down pictures below 20 ms
    first.save(file, "GIF", save_all=True, append_images=rest, duration=duration, loop=0)


def _write_mp4(path: Path, pictures: Sequence[np.ndarray], scale: int, frames_per_second: float, **track: str) -> None:
    import imageio.v2  # pyright: ignore[reportMissingImports]

    # The encoder stores colours for blocks of 2x2 pixels: odd sizes get another black line.
    rows, columns = (-(-length * scale // 2) * 2 for length in pictures[0].shape[:2])
    with imageio.v2.get_writer(path, fps=frames_per_second, macro_block_size=1, **track) as film:
        for each in pictures:
            frame = np.zeros((rows, columns, 3), np.uint8)
            picture = to_rgb(each, scale)
            frame[: picture.shape[0], : picture.shape[1]] = picture
            film.append_data(frame)
