"""`puffer watch`: the newest checkpoint of a run plays, in whole pictures, until it is told to end."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from websockets.sync.client import connect

from cleanrl_style import a2c_streaming
from gbxcule_puffer.apps.watch.command import Watch
from gbxcule_puffer.apps.watch.watch import Player, watch
from gbxcule_puffer.cli import main
from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.trainers.blocks.replay import unpack
from gbxcule_puffer.trainers.wall.wall import Wall
from tests.support.browser import PATIENCE
from tests.support.viewers import receive_picture


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    assert a2c_streaming.main(f"--smoke --device cpu --run-dir {folder}".split()) == 0
    return folder


def test_a_run_is_watched(run: Path) -> None:
    seen: list[Any] = []

    def view(url: str) -> None:
        with connect(url.replace("http", "ws") + "socket", origin=url.rstrip("/")) as connection:  # pyright: ignore[reportArgumentType]
            connection.send(json.dumps({"speed": 240, "watches": ["C000"]}))
            seen.append(json.loads(connection.recv(timeout=PATIENCE)))
            seen.extend(receive_picture(connection, 20) for _ in range(2))

    viewers: list[threading.Thread] = []

    def ready(wall: Wall) -> bool:
        if not viewers:
            viewers.append(threading.Thread(target=view, args=(wall.url,)))
            viewers[0].start()
        return viewers[0].is_alive()

    watch(Watch(run_dir=str(run), num_envs=2, address="127.0.0.1:0"), ready)
    hello, (header, payload) = seen[0], seen[2]
    assert (hello["title"], hello["rows"], hello["columns"], hello["controls"]) == ("first", 144, 160, True)
    assert hello["actions"][:3] == ["NOOP", "A", "B"]
    payload = payload[: len(payload) - header["cells"]]
    shown = unpack(torch.frombuffer(bytearray(payload[-2 * 144 * 40 :]), dtype=torch.uint8).reshape(2, 144, 40))
    assert int(shown.max()) == 3 and len(shown.unique()) == 4  # a room, not noise nor an empty screen
    assert header["step"] == 512


def test_whole_pictures_are_those_of_the_env(run: Path) -> None:
    """Each second pixel of what is shown is what the agent sees, and a new checkpoint is taken up."""
    player = Player(run, 2, "cpu", seed=1, greedy=False)
    before = player.policy
    (run / "checkpoint.pt").touch()
    pictures = player.step()
    assert player.policy is not before
    assert pictures is not None
    assert np.array_equal(pictures[:, ::2, ::2], player.env.final_observation[:, -1])
    player.env.close()


def test_the_figures_are_those_of_the_episodes_that_ended(run: Path) -> None:
    player = Player(run, 2, "cpu", seed=1, greedy=False, max_steps=4)
    assert set(player.status()) == {"step"}
    step, rewards = player.env.step, []

    def noted(actions: Any) -> Any:
        result = step(actions)
        rewards.append(result[1].clone())
        return result

    player.env.step = noted
    for _ in range(9):  # two episodes each have ended, the third has begun
        player.step()
    figures = player.status()
    assert player.episodes == 4 and figures["charts/episodic_length"] == 4
    assert figures["charts/episodic_return"] == pytest.approx(float(torch.stack(rewards[:8]).sum()) / 4)
    player.env.close()


def test_a_task_and_a_place_are_given_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, message in (
        (["--task", "none.py:Task"], "there is no file none.py"),
        (["--position", "C0A0"], "position 'C0A0' has 1 parts"),
    ):
        assert main(["watch", str(run), *flags]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    env = Player(run, 1, "cpu", seed=1, greedy=False, position="FF80,FF81").env
    assert isinstance(env, GBxCuLEEnv) and env.position == (0xFF80, 0xFF81)


def test_what_is_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([str(tmp_path)], [str(tmp_path), "--num-envs", "0"]):
        assert main(["watch", *arguments]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
