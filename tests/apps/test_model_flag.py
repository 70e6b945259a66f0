"""`--model` of the commands: a film in colour, a comparison with PyBoy, a game and a goal on a Game Boy Color."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence

from gbxcule_puffer.apps.play.browser import BrowserPlay
from gbxcule_puffer.apps.play.session import PlaySession
from gbxcule_puffer.apps.play.terminal import picture_for
from gbxcule_puffer.apps.record.command import Record
from gbxcule_puffer.apps.record.film import Camera
from gbxcule_puffer.apps.record.record import record
from gbxcule_puffer.apps.verify.bundle import write_bundle
from gbxcule_puffer.apps.verify.command import Verify
from gbxcule_puffer.apps.verify.verify import verify
from gbxcule_puffer.baselines.pyboy_machine import PyBoyMachine
from gbxcule_puffer.cli import main
from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.hardware import COLOR_PALETTES, OBJ_PALETTES
from gbxcule_puffer.emulator.snapshot import Snapshot
from gbxcule_puffer.emulator.state import INDEX, row_size
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.errors import GoalError
from gbxcule_puffer.pictures import to_rgb
from gbxcule_puffer.tasks.goals.template import GoalTemplate
from tests.conformance.test_game_boy_color import picture_rom, rom_of
from tests.emulator.test_model_cgb import PROGRAM
from tests.support.browser import Browser, wait_for


@pytest.fixture
def rom(tmp_path: Path) -> Path:
    path = tmp_path / "game.gb"
    path.write_bytes(picture_rom(1, 0xC0))
    return path


def pyboys(rom: Path, actions: np.ndarray) -> list[np.ndarray]:
    """The pictures of a PyBoy after each of a codec's actions that press nothing, RGB in its own values."""
    machine = PyBoyMachine(rom.read_bytes(), model="cgb")
    pictures = []
    for buttons in actions:
        machine.step(int(buttons))
        pictures.append(machine.pyboy.screen.ndarray[..., :3] & 0xF8)
    machine.close()
    return pictures


def test_a_film_has_pyboys_colours(rom: Path, tmp_path: Path) -> None:
    made = record(
        Record(rom=str(rom), out=str(tmp_path / "film.gif"), steps=6, num_envs=2, columns=2, scale=2, model="auto")
    )
    assert (made.width, made.height) == (2 * 321, 2 * 144)
    env = GBxCuLEEnv(rom, 2, io="torch", model="cgb", seed=0)
    env.reset(seed=0)
    with Image.open(made.path) as film:
        frames = [np.asarray(frame.convert("RGB"))[::2, ::2] for frame in ImageSequence.Iterator(film)]
    expected = pyboys(rom, np.zeros(6, int))  # the ROM looks at no button
    assert len({picture.tobytes() for picture in expected}) >= 3
    pairs = {frame[:, :160].tobytes() for frame in frames} | {frame[:, 161:].tobytes() for frame in frames}
    assert pairs == {picture.tobytes() for picture in expected}


def test_a_camera_beside_an_env(rom: Path) -> None:
    """Its colours are those of the step that follows."""
    env = GBxCuLEEnv(rom, 2, io="torch", model="cgb")
    env.reset(seed=0)
    camera = Camera(env)
    for _ in range(3):
        actions = torch.zeros(2, dtype=torch.int64)
        pictures = camera.shoot(actions)
        env.step(actions)
        np.testing.assert_array_equal(pictures[:, ::2, ::2], env.emulator.colors.numpy())
        assert isinstance(env.emulator, Emulator)
        np.testing.assert_array_equal(to_rgb(pictures[1])[::2, ::2], env.emulator.render("rgb")[1].numpy())


def test_verify(rom: Path) -> None:
    result = verify(Verify(rom=str(rom), steps=6, model="cgb"))
    assert result.equal and len(result.trace) == 6 and result.summary()["model"] == "cgb"


class Recoloured(Emulator):
    """An emulator in which each step begins with other colours of the background's palettes."""

    def step(self, buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        first = row_size(self.cartridge.ram_banks) + COLOR_PALETTES
        self.memory[:, first : first + OBJ_PALETTES] ^= 1
        super().step(buttons, frames)


def test_verify_finds_a_planted_fault(rom: Path, tmp_path: Path) -> None:
    """A colour of the background has changed; the bundle's pictures show each pixel of another colour."""
    result = verify(Verify(rom=str(rom), steps=4, model="cgb"), make_emulator=Recoloured)
    assert set(result.differences) == {"palettes", "picture"} and result.oracle is not None
    bundle = write_bundle(result, tmp_path / "bundle")
    with Image.open(bundle / "oracle.png") as oracle, Image.open(bundle / "difference.png") as difference:
        np.testing.assert_array_equal(np.asarray(oracle), to_rgb(result.oracle.colors[0]))
        red = (np.asarray(difference) == (255, 0, 0)).all(2)
    assert red.sum() == result.differences["picture"]["pixels"] > 0


def test_play_and_a_state_of_half_the_pixels(rom: Path, tmp_path: Path) -> None:
    half = Emulator(rom, model="cgb")
    half.step(torch.zeros(1, dtype=torch.uint8))
    half.save().to_file(tmp_path / "half.state")
    session = PlaySession(rom, tmp_path / "play", model="cgb", start_state=tmp_path / "half.state")
    np.testing.assert_array_equal(session.shown[::2, ::2], half.colors[0].numpy())
    np.testing.assert_array_equal(session.shown[1::2, ::2], half.colors[0].numpy())
    session.press("NOOP")
    half.step(torch.zeros(1, dtype=torch.uint8))
    np.testing.assert_array_equal(session.shown[::2, ::2], half.colors[0].numpy())
    assert session.emulator.registers()["pc"] == int(half.save().state[INDEX["pc"], 0])


@pytest.mark.parametrize("size", [(160, 74), (80, 38), (60, 24)])
def test_a_terminal_shows_the_nearest_colours(size: tuple[int, int]) -> None:
    levels = np.array([0, 95, 135, 175, 215, 255])  # of its palette from 16 on
    palette = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(216, 3)
    picture = np.full((144, 160), 31, np.uint16)  # red
    picture[:72] = 20 << 10 | 3
    shown = picture_for(picture, *size)
    assert shown.shape[0] <= 2 * (size[1] - 2) and shown.shape[1] <= size[0] and len(np.unique(shown)) == 2
    for color, row in ((0x1F, -1), (20 << 10 | 3, 0)):
        rgb = to_rgb(np.array([[color]], np.uint16))[0, 0].astype(int)
        assert shown[row, 0] == 16 + np.abs(palette - rgb).sum(1).argmin()


def test_the_page_of_a_game_shows_colours(rom: Path) -> None:
    session = PlaySession(rom, None, model="cgb")
    page = BrowserPlay(session, "127.0.0.1:0")
    with Browser() as browser:
        browser.open(page.server.url)
        wait_for(lambda: page.server.viewers)
        for _ in range(2):
            session.press("NOOP")
        page.turn()
        browser.wait_until("header.status && header.status.startsWith('step 2')")
        canvas = "document.getElementById('game').getContext('2d').getImageData(0, 0, 160, 144).data"
        pixels = np.array(browser.run(f"Array.from({canvas})")).reshape(144, 160, 4)
    page.close()
    rgb = session.emulator.render("rgb")[0].numpy()
    np.testing.assert_array_equal(pixels[..., :3], rgb)
    assert (rgb != rgb[..., :1]).any()


@pytest.mark.filterwarnings("ignore:.*for the Game Boy Color only")
@pytest.mark.parametrize("obs", ["shades", "luma", "rgb", "rgb555_full"])
def test_a_goal(obs: str, rom: Path, tmp_path: Path) -> None:
    """Of colours where they are observed; the distance is theirs; PNGs of it make the same goal."""
    (tmp_path / "way.txt").write_text("NOOP\n" * 3)
    flags = ["--rom", str(rom), "--model", "cgb", "--obs", obs]
    made = [*flags, "--actions", str(tmp_path / "way.txt"), "--out", str(tmp_path / "task")]
    assert main(["goal", "make", *made]) == 0
    goal = GoalTemplate.load(tmp_path / "task" / "goal")
    assert goal.meta["model"] == "cgb" and goal.frames.dtype == (np.uint8 if obs == "shades" else np.uint16)
    start = tmp_path / "task" / "start.state"
    assert Snapshot.from_file(start).model == "cgb"
    options = {"start_state": start, "goal_dir": tmp_path / "task" / "goal", "obs": obs}
    env = GBxCuLEEnv(rom, io="torch", model="cgb", **options)
    env.reset(seed=0)
    assert float(env.distance) == 0  # of no step
    env.step(torch.zeros(1, dtype=torch.int64))
    drawn = env.emulator.screen if obs == "shades" else env.emulator.colors
    assert float(env.distance) == pytest.approx(distance(drawn[0].numpy(), goal.frames), abs=1e-6)
    done = [bool(env.step(torch.zeros(1, dtype=torch.int64))[2]) for _ in range(8)]
    assert any(done), "the way does not lead to the goal"
    assert main(["goal", "calibrate", str(tmp_path / "task"), "--steps=32", "--num-envs=4", "--max-steps=8"]) == 0
    assert main(["goal", "show", str(tmp_path / "task")]) == 0
    picture = tmp_path / "task/pictures/goal0.png"
    with Image.open(picture) as image:
        seen = np.asarray(image)[::4, ::4]
    assert ((seen == seen[..., :1]).all() == (obs == "shades")) and set(seen[0, 0]) != {0}
    again = [*flags, "--png", str(picture), "--out", str(tmp_path / "again")]
    assert main(["goal", "make", *again]) == 0
    np.testing.assert_array_equal(GoalTemplate.load(tmp_path / "again/goal").frames[0], goal.frames[0])
    with pytest.raises(GoalError, match="goal was made for model 'cgb', the environment has 'dmg'"):
        GBxCuLEEnv(rom, **{**options, "start_state": None})


def test_a_goal_that_always_shows_cannot_be_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rom := tmp_path / "game.gb").write_bytes(rom_of(PROGRAM))
    (tmp_path / "way.txt").write_text("NOOP\n")
    flags = ["--rom", str(rom), "--model", "cgb", "--actions", str(tmp_path / "way.txt")]
    assert main(["goal", "make", *flags, "--out", str(tmp_path / "task")]) == 0
    capsys.readouterr()
    assert main(["goal", "calibrate", str(tmp_path / "task"), "--steps=16", "--num-envs=4", "--max-steps=4"]) == 2
    assert "shows in every step" in (error := capsys.readouterr().err) and error.count("\n") == 1


def distance(picture: np.ndarray, goals: np.ndarray) -> float:
    """To the nearest of the goals, of shades or of the three channels of colours."""
    shifts, most = ((0, 5, 10), 31) if goals.dtype == np.uint16 else ((0,), 3)
    here, there = (
        np.stack([part >> shift & most for shift in shifts], 1).astype(int) for part in (picture[None], goals)
    )
    return float(np.abs(here - there).mean((1, 2, 3)).min() / most)


def test_bench(rom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both contenders have the model, which is the header's, and the goal is of it; the records name it."""
    words = ["bench", "--vs", "pyboy_puffer_vec", "--vec-backend", "serial", "--vs-num-envs", "1", "--num-envs", "2"]
    words += ["--rom", str(rom), "--model", "auto", "--warmup", "1", "--steps", "2", "--repeat", "2", "--device", "cpu"]
    assert main([*words, "--cores", "1", "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().err
    records = json.loads((tmp_path / "out" / "records.json").read_text())
    assert [record["model"] for record in records] == ["cgb", "cgb"]
    assert "- model: cgb" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize("command", ["record", "verify", "play", "bench", "profile"])
def test_an_unknown_model_ends_in_one_line(
    command: str, rom: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"record": ["--out", str(tmp_path / "x.gif")], "verify": [], "play": ["--terminal"]}.get(command, [])
    game = ["--rom", str(rom)] if command == "bench" else [str(rom)]
    assert main([command, *game, "--model", "sgb", *more]) == 2
    assert "model" in (error := capsys.readouterr().err) and "'sgb'" in error and error.count("\n") == 1
