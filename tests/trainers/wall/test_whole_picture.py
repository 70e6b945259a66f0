"""The chosen Game Boy in whole: every pixel, as an env that draws them all shows it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from websockets.sync.client import ClientConnection

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.tasks.source import ROM
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks.graphs import Replayed
from gbxcule_puffer.trainers.wall.lens import Lens
from gbxcule_puffer.trainers.wall.wall import Wall
from gbxcule_puffer.trainers.wall.whole_picture import WholePicture
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.browser import PATIENCE, wait_for
from tests.support.viewers import next_picture, picture_of, receive_picture, viewer, whole_picture

ENVS, STEPS, READY = 5, 12, 180  # seconds for the server's emulator, whose kernel may be compiled
SYMBOLS = ROM.with_suffix(".sym")
AT_A_SERVER = "held, cgb"  # which takes 4 s to begin; the others are played in this process, as the server does it
GAMES: dict[str, tuple[Any, dict[str, Any]]] = {
    "until, objects": (
        ROM,
        {"until": "step_left==0,player_facing&FC==0", "symbols": str(SYMBOLS), "obs": "objects"},
    ),
    "frames of actions, grey": (ROM, {"action_codec": "NOOP:72,A,START:30,UP,DOWN:12", "obs": "grey"}),
    "held, cgb": (picture_rom(1, 0xC0), {"model": "cgb", "release_after_frames": 24}),
}


def ready(wall: Wall, connection: ClientConnection, step: Any) -> None:
    """Steps until a message has a whole picture."""

    def look() -> bool:
        next_picture(wall)
        step()
        return receive_picture(connection)[0]["whole"] > 0

    wait_for(look, READY)


def whole_of(env: GBxCuLEEnv, number: int) -> np.ndarray:
    """The picture that the last action led one env to, of an env that draws all pixels."""
    return env.final_pictures(slice(number, number + 1))[0].cpu().numpy()


def twins(name: str, device: str) -> tuple[GBxCuLEEnv, GBxCuLEEnv, Callable[[], None]]:
    """An env, one that draws all pixels, and a function that steps both."""
    rom, options = GAMES[name]
    common: Any = {"device": device, "io": "torch", "seed": 3, "max_steps": 7, **options}
    env = GBxCuLEEnv(rom, ENVS, **common)
    twin = GBxCuLEEnv(rom, ENVS, **{**common, "obs": "full"})
    for each in (env, twin):
        each.reset(seed=3)
    twin.keep_pictures()
    rng = np.random.default_rng(1)

    def step() -> None:
        actions = torch.from_numpy(rng.integers(0, env.codec.num_actions, ENVS)).to(env.device)
        env.step(actions)
        twin.step(actions)

    return env, twin, step


@pytest.mark.parametrize("name", GAMES)
def test_a_step_that_is_played_again_shows_every_pixel(name: str) -> None:
    """Also at an episode's end, of which it is the last picture."""
    env, twin, step = twins(name, "cpu")
    emulator = env.emulator
    assert isinstance(emulator, Emulator)
    lens, press = Lens(emulator), emulator.step
    whole = WholePicture(pickle.loads(pickle.dumps(lens.machine)))  # as it comes to the server
    lens.point_at(2)

    def watched(buttons: torch.Tensor, frames: torch.Tensor | None = None) -> None:
        lens.copy(buttons, frames)
        press(buttons, frames)

    emulator.step = watched  # pyright: ignore[reportAttributeAccessIssue]
    step()
    wait_for(lambda: whole.draw(lens.data.numpy().tobytes()) is not None, READY)
    values = set[int]()  # a blank picture would equal any other
    for _ in range(STEPS):
        step()
        picture = picture_of(whole.draw(lens.data.numpy().tobytes()), whole.in_color)
        np.testing.assert_array_equal(picture, whole_of(twin, 2))
        values |= set(np.unique(picture).tolist())
    assert len(values) > 1
    env.close()
    twin.close()


@pytest.mark.parametrize(
    ("name", "device"), [(AT_A_SERVER, "cpu"), *(pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in GAMES)]
)
def test_every_pixel_is_that_of_an_env_that_draws_all(name: str, device: str) -> None:
    """Also at an episode's end, of which it is the last picture, and after another one was chosen."""
    env, twin, step = twins(name, device)
    values = set[int]()  # a blank picture would equal any other
    with Wall(env, "whole", dict, "127.0.0.1:0", follow=True) as wall, viewer(wall) as connection:
        ready(wall, connection, step)
        for number in range(STEPS):
            focus = number // 4
            connection.send(json.dumps({"focus": focus}))
            wait_for(lambda focus=focus: wall._focus == focus)
            next_picture(wall)
            step()
            header, payload = receive_picture(connection)
            picture = whole_picture(header, payload)
            assert header["focus"] == focus and picture is not None
            np.testing.assert_array_equal(picture, whole_of(twin, wall._envs[focus]))
            values |= set(np.unique(picture).tolist())
    assert len(values) > 1
    env.close()
    twin.close()


@pytest.mark.gpu
def test_the_steps_of_a_cuda_graph_are_seen() -> None:
    """The picture is that of the newest step of the newest replay. Without trials of launch shapes: their steps run
    outside of the graph, and a picture may then be that of any of the four."""
    with torch.cuda.stream(torch.cuda.Stream()):
        common: Any = {"device": "cuda", "io": "torch", "seed": 3, "max_steps": 7, "info_mode": "none"}
        common["autotune"] = False
        env, twin = GBxCuLEEnv(ROM, ENVS, **common), GBxCuLEEnv(ROM, ENVS, **{**common, "obs": "full"})
        for each in (env, twin):
            each.reset(seed=3)
        generator = torch.Generator("cuda").manual_seed(1)
        actions = torch.zeros((4, ENVS), dtype=torch.int64, device="cuda")

        def play() -> None:
            for row in actions:
                env.step(row)

        with Wall(env, "graph", dict, "127.0.0.1:0", follow=True) as wall, viewer(wall) as connection:
            replayed = Replayed(play, unsettled=lambda: bool(env.launches and env.launches.unsettled))

            def update() -> None:
                actions.copy_(torch.randint(8, actions.shape, device="cuda", generator=generator))
                replayed()
                for row in actions:
                    twin.step(row)
                wall.look_at_graph()

            for _ in range(200):
                update()
            assert wall._recorded
            ready(wall, connection, update)
            for focus in (0, 0, 2, 2, 2):
                connection.send(json.dumps({"focus": focus}))
                wait_for(lambda focus=focus: wall._focus == focus)
                next_picture(wall)
                update()
                header, payload = receive_picture(connection)
                if wall._envs[header["focus"]] == wall._envs[focus] and header["whole"]:
                    np.testing.assert_array_equal(whole_picture(header, payload), whole_of(twin, wall._envs[focus]))
            assert header["whole"]


def test_nothing_is_copied_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    env = GBxCuLEEnv(ROM, 2, io="torch")
    env.reset(seed=1)
    with Wall(env, "alone", dict, "127.0.0.1:0", follow=True) as wall:
        assert wall._lens is not None
        monkeypatch.setattr(wall._lens, "copy", lambda *_: pytest.fail("somebody looked"))
        for _ in range(3):
            env.step(torch.zeros(2, dtype=torch.int64))
    env.close()


def cgb_that_draws_all() -> GBxCuLEEnv:
    """Its pictures are in colour, in whole, though it observes averages."""
    return GBxCuLEEnv(picture_rom(2, 0xC0), 3, io="torch", model="cgb", obs="averaged")


@pytest.mark.parametrize(
    "make", [lambda: ToyEnv(3), lambda: GBxCuLEEnv(ROM, 3, io="torch", obs="full"), cgb_that_draws_all]
)
def test_an_env_without_a_larger_picture_has_no_lens(make: Any) -> None:
    env = make()
    env.reset(seed=1)
    with Wall(env, "small", dict, "127.0.0.1:0", follow=True) as wall, viewer(wall) as connection:
        hello = json.loads(connection.recv(timeout=PATIENCE))
        shape = tuple(env.pictures().shape[1:])
        assert (hello["whole"], hello["rows"], hello["columns"]) == (False, *shape) and wall._lens is None
        next_picture(wall)
        env.step(torch.zeros(3, dtype=torch.int64))
        header, payload = receive_picture(connection)
        size = 3 * shape[0] * shape[1] * 2 if header["colors"] else 3 * shape[0] * shape[1] // 4
        assert header["whole"] == 0 and len(payload) - header["cells"] == 3 * 3 * 4 + size
    env.close()
