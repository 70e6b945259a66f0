"""`puffer record`: every pixel is PyBoy's, the file holds every step, a checkpoint plays as its trainer made it."""

from __future__ import annotations

import importlib.util
import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence

from cleanrl_style import a2c_streaming
from gbxcule_puffer import cli
from gbxcule_puffer.apps.record.command import Record
from gbxcule_puffer.apps.record.film import Camera, SoundCamera, in_time
from gbxcule_puffer.apps.record.record import record
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.pictures import mosaic, to_rgb
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.trainers.checkpoints import save_checkpoint
from gbxcule_puffer.trainers.flags import flags_to_save
from tests.conformance.test_sound import rom_of
from tests.emulator.probes.test_samples import BAND
from tests.support.envs import CODEC, Task, make_test_task, random_actions

ENCODER = importlib.util.find_spec("imageio") and importlib.util.find_spec("imageio_ffmpeg")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return make_test_task(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="module")
def checkpoint(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model as a2c_streaming saves it."""
    torch.manual_seed(0)
    env = GBxCuLEEnv(**task.kwargs, io="torch")
    model = a2c_streaming.Agent(shades_layout(1, 72, 80), CODEC.num_actions)
    path = tmp_path_factory.mktemp("run") / "checkpoint.pt"
    args = a2c_streaming.Args(start_state=task.kwargs["start_state"], goal_dir=task.kwargs["goal_dir"], max_steps=30)
    state = {"exp_name": a2c_streaming.EXP_NAME, "env_config": env.config, "model": model.state_dict()}
    state |= {"args": flags_to_save(args, path.parent), "counters": {"global_step": 0}, "processes": []}
    save_checkpoint(path, state)
    return path


def frames(path: Path) -> list[np.ndarray]:
    """The pictures of a GIF, RGB, one a step: Pillow has merged equal ones and made them last longer."""
    with Image.open(path) as gif:
        pictures = [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(gif)]
    tick = min(duration for _, duration in pictures)
    return [picture for picture, duration in pictures for _ in range(duration // tick)]


def test_pictures_are_pyboy_s(task: Task) -> None:
    """Colours and all: what the camera takes, as RGB, is what PyBoy shows after the same steps."""
    env = GBxCuLEEnv(task.kwargs["rom"], 2, io="torch", max_steps=1000)
    observations, _ = env.reset()
    camera, machines = Camera(env), [PyBoyMachine(env.cartridge.data, 24, 8) for _ in range(2)]
    seen = set()
    for row in random_actions(40, 2, seed=2):
        actions = torch.from_numpy(row)
        pictures = camera.shoot(actions)
        observations, *_ = env.step(actions)
        np.testing.assert_array_equal(pictures[:, ::2, ::2], observations[:, 0].numpy())
        for machine, picture, action in zip(machines, pictures, row, strict=True):
            machine.step(CODEC.to_buttons(int(action)))
            shown = np.asarray(machine.pyboy.screen.image)[..., :3]
            np.testing.assert_array_equal(to_rgb(picture), shown)
            seen.add(shown.tobytes())
    assert len(seen) > 5


def test_a_step_with_a_budget_of_instructions() -> None:
    """Which ends with the first frame, in the film, too."""
    env = GBxCuLEEnv("homeward", 1, io="torch", obs="full", instruction_budget=100)
    env.reset()
    action = torch.zeros(1, dtype=torch.int64)
    picture = Camera(env).shoot(action)
    assert env.step(action)[3].all()
    np.testing.assert_array_equal(picture, env.final_observation[:, 0])


def test_the_film_shows_the_goal_before_the_reset(task: Task) -> None:
    env = GBxCuLEEnv(**task.kwargs, io="torch")
    env.reset()
    camera = Camera(env)
    for action in task.solution:
        actions = torch.tensor([action])
        picture = camera.shoot(actions)
        terminal = bool(env.step(actions)[2][0])
        if terminal:
            break
    assert terminal
    np.testing.assert_array_equal(picture[0, ::2, ::2], env.final_observation[0, 0].numpy())
    assert (picture[0, ::2, ::2] != env.observations[0, 0].numpy()).any()


def test_a_gif_holds_every_step(task: Task, tmp_path: Path) -> None:
    options: Any = {"steps": 25, "num_envs": 3, "scale": 2, "columns": 2, "seed": 4}
    made = record(Record(rom=str(task.kwargs["rom"]), out=str(tmp_path / "film.gif"), **options))
    assert (made.width, made.height) == (2 * 321, 2 * 289)
    assert (made.steps, made.episodes) == (25, 3)
    pictures = frames(made.path)
    assert len(pictures) == 25
    assert {tuple(colour) for picture in pictures for colour in picture.reshape(-1, 3)[::7]} <= {
        (level,) * 3 for level in (255, 153, 85, 0)
    }
    for picture in pictures:
        assert picture.shape == (2 * 289, 2 * 321, 3)
        np.testing.assert_array_equal(picture[::2, ::2], picture[1::2, 1::2])
        assert (picture[2 * 145 :, 2 * 161 :] == 0).all(), "the empty place of the mosaic"
    again = record(Record(rom=str(task.kwargs["rom"]), out=str(tmp_path / "again.gif"), **options))
    assert again.path.read_bytes() == made.path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.gif", "film.gif"]


def test_a_film_with_sound_has_pyboy_s(tmp_path: Path) -> None:
    """Each sample of a WAV, from power-on, though the game's own machine is muted; and each frame."""
    rom = tmp_path / "band.gb"
    rom.write_bytes(rom_of(bytes.fromhex(BAND)))
    made = record(Record(rom=str(rom), out=str(tmp_path / "sound.wav"), steps=3, sound=True, max_steps=2))
    assert (made.steps, made.episodes) == (3, 1)
    machine = PyBoyMachine(rom.read_bytes(), 24, 8, sound=True)
    expected = []
    for _ in range(48):  # the buttons do not matter
        machine.pyboy.tick(1, True, True)
        expected.append(machine.pyboy.sound.ndarray.astype(int))
    with wave.open(str(made.path)) as file:
        assert file.getparams()[:3] == (2, 2, 48_000)
        found = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    heard = np.concatenate(expected)
    np.testing.assert_array_equal(found[: len(heard)], 256 * heard)
    np.testing.assert_array_equal(found[len(heard) :], 256 * heard[: len(found) - len(heard)])  # the second episode
    env = GBxCuLEEnv(rom, 1, io="torch")
    env.reset()
    camera, actions, starts = SoundCamera(env), torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.bool)
    pictures, _ = zip(*camera.roll(actions, starts), strict=True)
    assert len(pictures) == 24
    np.testing.assert_array_equal(pictures[-1], camera.shoot(actions)[0])
    env.step(actions)
    _, later = zip(*camera.roll(actions, starts), strict=True)  # as from a start state
    assert np.concatenate(later).max() > 15


def test_pictures_in_time_with_the_sound() -> None:
    """59.7 a second: short frames, where the LCD is switched on, have no picture of their own."""
    lengths = [803, 804, 20, 30, 804, 403, 803]
    takes = [(np.full((2, 2), number), np.full((length, 2), number)) for number, length in enumerate(lengths)]
    pictures, sound = in_time(takes)
    assert [int(picture[0, 0]) for picture in pictures] == [0, 1, 4, 5, 6] and len(sound) == sum(lengths)


def test_mosaic() -> None:
    sheet = mosaic(np.arange(3, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2), columns=2)
    expected = [[0, 0, 3, 1, 1], [0, 0, 3, 1, 1], [3, 3, 3, 3, 3], [2, 2, 3, 3, 3], [2, 2, 3, 3, 3]]
    assert sheet.tolist() == expected


def test_a_checkpoint_plays_its_task(task: Task, checkpoint: Path, tmp_path: Path) -> None:
    """The film of a policy is that of the actions which its trainer's load_policy gives in the training's env."""
    from gbxcule_puffer.trainers.checkpoints import read_checkpoint

    made = record(
        Record(
            rom=str(task.kwargs["rom"]),
            out=str(tmp_path / "film.gif"),
            policy=str(checkpoint),
            steps=40,
            scale=1,
            seed=3,
        )
    )
    env = GBxCuLEEnv(**task.kwargs, io="torch", max_steps=30, seed=3)
    policy = a2c_streaming.load_policy(read_checkpoint(checkpoint), env, 3, False)
    observations, _ = env.reset(seed=3)
    camera, starts, ends = Camera(env), torch.ones(1, dtype=torch.bool), 0
    pictures = frames(made.path)
    for step in range(40):
        with torch.no_grad():
            actions = policy(observations, starts)
        np.testing.assert_array_equal(pictures[step], to_rgb(camera.shoot(actions)[0]))
        observations, _, terminals, truncations, _ = env.step(actions)
        starts = terminals | truncations
        ends += int(starts.sum())
    assert made.episodes == ends >= 1


@pytest.mark.skipif(not ENCODER, reason="no encoder: pip install 'imageio[ffmpeg]'")
def test_mp4(task: Task, tmp_path: Path) -> None:
    import imageio.v2  # pyright: ignore[reportMissingImports]

    made = record(Record(rom=str(task.kwargs["rom"]), out=str(tmp_path / "film.mp4"), num_envs=2, steps=10, scale=1))
    film = np.stack(imageio.v2.mimread(made.path))
    assert film.shape == (10, 144, 322, 3), "an even number of columns"
    record(Record(rom=str(task.kwargs["rom"]), out=str(tmp_path / "film.gif"), num_envs=2, steps=10, scale=1))
    difference = np.abs(film[:, :, :321].astype(int) - np.stack(frames(tmp_path / "film.gif")))
    assert difference.mean() < 8, "but for what the encoder loses"


@pytest.mark.skipif(not ENCODER, reason="no encoder: pip install 'imageio[ffmpeg]'")
def test_mp4_with_sound(tmp_path: Path) -> None:
    """The strengths of its frequencies below 12 kHz are those of the WAV, but for what the encoder loses."""
    import imageio_ffmpeg  # pyright: ignore[reportMissingImports]

    rom, sounds = tmp_path / "band.gb", list[np.ndarray]()
    rom.write_bytes(rom_of(bytes.fromhex(BAND)))
    for suffix in (".wav", ".mp4"):
        made = record(Record(rom=str(rom), out=str(tmp_path / f"film{suffix}"), steps=5, sound=True, scale=1))
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(made.path), "-f", "s16le", "-ar", "48000", "-"]
        raw = subprocess.run(command, capture_output=True, check=True).stdout
        sounds.append(np.frombuffer(raw, "<i2").reshape(-1, 2)[:90_000].astype(float))
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(made.path))
    assert (frames, round(seconds, 1)) == (120, 2.0)
    levels = np.stack([np.abs(np.fft.rfft(sound, axis=0))[1:22_500].ravel() for sound in sounds])
    assert np.corrcoef(levels)[0, 1] > 0.95


@pytest.mark.skipif(bool(ENCODER), reason="an encoder is installed")
def test_mp4_without_an_encoder(task: Task, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["record", task.kwargs["rom"], "--out", str(tmp_path / "film.mp4")]) == 2
    assert "pip install 'imageio[ffmpeg]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--out", "film.avi"], "unknown format"),
        (["--out", "nowhere/film.gif"], "there is no folder nowhere: make it"),
        (["--out", "film.gif", "--scale", "0"], "--scale 0 must be at least 1"),
        (["--out", "film.gif", "--num-envs", "0"], "--num-envs 0"),
        (["--out", "film.gif", "--scale", "1000"], "pictures of 160,000 x 144,000 pixels, at most 8,192 a side"),
        (["--out", "film.gif", "--num-envs", "100000"], "--num-envs 100,000 make pictures of"),
        (["--out", "film.gif", "--columns", "100000"], "make pictures of"),
        (["--out", "film.gif", "--steps", "1000000000"], "--steps 1,000,000,000 needs"),
        (["--out", "film.gif", "--policy", "."], "folder . holds no run"),
        (["--out", "film.gif", "--fps", "0"], "--fps 0.0"),
        (["--out", "film.wav"], "unknown format"),
        (["--out", "film.gif", "--sound"], "can have no sound: name it .mp4, or .wav for the sound alone"),
        (["--out", "film.wav", "--sound", "--num-envs", "2"], "--sound is of one Game Boy, not of --num-envs 2"),
        (["--out", "film.wav", "--sound", "--fps", "8"], "console's speed: leave --fps out"),
        (["--out", "film.gif", "--policy", "none.pt"], "checkpoint none.pt: cannot be read"),
        (["--out", "film.gif", "--goal-dir", "none"], "goal none"),
        (["--out", "film.gif", "--start-state", "none"], "state none"),
        (["--out", "film.gif", "--device", "tpu"], "device 'tpu'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    task: Task, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["record", task.kwargs["rom"], *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_something_else(task: Task, checkpoint: Path, tmp_path: Path, capsys) -> None:
    other = tmp_path / "other.pt"
    for change, message in (
        ({"exp_name": "unknown"}, "of trainer 'unknown'"),
        ({"model": {}}, "network is not this version's"),
        ({"args": {}}, "names no goal"),
        ({"args": {"env": "toy"}}, "not of a Game Boy"),
        ({"env_config": {"rom_sha256": "0"}}, "another ROM"),
    ):
        torch.save(torch.load(checkpoint, weights_only=True) | change, other)
        assert cli.main(["record", task.kwargs["rom"], "--out", str(tmp_path / "f.gif"), "--policy", str(other)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["other.pt"]
