"""Observations of more than pictures in networks, replay and a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence
from torch import nn

from cleanrl_style import a2c_streaming, dqn_nstep, evaluate, ppo_lite, pqn
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.layout import trainer_scripts
from gbxcule_puffer.tasks.goals.recipe import GoalRecipe, GoalSettings
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import NO_TILE, OBJECTS, PICTURE, PICTURES, picture_kind
from gbxcule_puffer.tasks.observe.pixels import signed
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.blocks import Patches, Replay
from gbxcule_puffer.trainers.trained import load_script
from tests.conformance.test_game_boy_color import picture_rom
from tests.support.envs import STAGE

ROM = STAGE.parent.parent / "homeward.gb"
VECTORS = {"ram": (3,), "visited": (5, 5)}


def noise(layout: ObservationLayout, *count: int) -> torch.Tensor:
    """Observations (*count, *layout.shape) of layout.kept_dtype with vectors from 0 to 1."""
    flat = torch.randint(0, 4, (*count, *layout.shape), dtype=layout.kept_dtype).flatten(0, len(count) - 1)
    for name in layout.vectors:
        layout.split(flat)[name].uniform_()
    return flat.unflatten(0, count)


@pytest.mark.parametrize("network", [ppo_lite.Agent, pqn.QNetwork])
@pytest.mark.parametrize("obs", PICTURES)
def test_a_network_sees_all_parts(obs: str, network: Any) -> None:
    layout = ObservationLayout(PICTURES[obs], 2, VECTORS)
    torch.manual_seed(1)
    model = network(layout, 8)
    observations = noise(layout, 4)
    found = outputs(model, observations)
    for name in layout.split(observations):
        other = observations.clone()
        part = layout.split(other)[name]
        part.zero_() if part.is_floating_point() else part.copy_(signed(part) ^ 1)
        assert not torch.equal(outputs(model, other), found), name
    torch.manual_seed(1)
    plain = network(ObservationLayout(PICTURES[obs], 2), 8)
    assert plain.state_dict().keys() == model.state_dict().keys()
    assert torch.equal(plain.convolutions[1].weight, model.convolutions[1].weight)


def outputs(model: nn.Module, observations: torch.Tensor) -> torch.Tensor:
    found = model(observations)
    return found if isinstance(found, torch.Tensor) else torch.cat([part.flatten() for part in found])


@pytest.mark.parametrize("obs", ["shades", "rgb555", "tiles"])
def test_residual_blocks_begin_as_nothing_and_learn(obs: str) -> None:
    layout = ObservationLayout({**PICTURES, **OBJECTS}[obs], 2)
    model = ppo_lite.Agent(layout, 8, residual=True)
    pixels = layout.pixels(noise(layout, 4))
    layers: Any = model.convolutions
    before, blocks = layers[:4](pixels), layers[4:6]
    found = layers(pixels)
    assert before.shape[2:] == (9, 10) or obs == "rgb555"
    assert torch.equal(found, layers[6:](before))
    found.square().sum().backward()
    assert all(block.second.weight.grad.any() for block in blocks)


def test_residual_blocks_are_for_grids() -> None:
    with pytest.raises(ConfigError, match="--residual takes pictures or tiles, not objects"):
        ppo_lite.Agent(ObservationLayout(OBJECTS["objects"], 1), 8, residual=True)


def test_a_residual_agent_plays_again() -> None:
    env = ToyEnv(num_envs=2)
    obs, _ = env.reset(seed=1)
    model = ppo_lite.Agent(env.layout, 8, residual=True)
    checkpoint = {"args": {"residual": True}, "model": model.state_dict()}
    assert torch.equal(ppo_lite.load_policy(checkpoint, env, 1, greedy=True)(obs), model(obs)[0].argmax(1))


@pytest.mark.parametrize("obs", PICTURES)
@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["pictures", "vectors"])
def test_patches_are_the_pictures(obs: str, vectors: dict[str, tuple[int, ...]]) -> None:
    layout = ObservationLayout(PICTURES[obs], 3, vectors)
    observations = noise(layout, 5)
    patches, wanted = Patches(layout.kind.most), nn.PixelUnshuffle(4)(layout.pictures(observations))
    assert torch.equal(patches(layout.pixels(observations)), wanted)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(patches(layout.pixels(observations)), wanted.bfloat16())


@pytest.mark.parametrize("obs", ["grey_42x42", "grey_84x82", "grey_16x84"])
def test_sizes_that_the_networks_do_not_take(obs: str) -> None:
    with pytest.raises(ConfigError, match="the trainers' networks take multiples of 4 from 20 on"):
        ppo_lite.Agent(ObservationLayout(picture_kind(obs), 1), 8)


@pytest.mark.parametrize("obs", PICTURES)
@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["pictures", "vectors"])
def test_the_replay_gives_back_what_was_observed(obs: str, vectors: dict[str, tuple[int, ...]]) -> None:
    layout = ObservationLayout(PICTURES[obs], 1, vectors)
    replay = Replay(12, 2, layout, torch.device("cpu"), n_step=2)
    history = noise(layout, 8, 2)
    no = torch.zeros(2, dtype=torch.bool)
    for row in history:
        replay.add(row, no.long(), no.float(), no, no)
    drawn = replay.sample(60)
    moments = torch.stack([drawn.index // 2, drawn.index % 2])
    assert torch.equal(drawn.obs, history[moments[0], moments[1]])
    assert torch.equal(
        replay.observations_after(drawn.index, torch.ones(60, dtype=torch.int64)), history[moments[0] + 1, moments[1]]
    )
    allocated = sum(ring.nbytes for ring in (replay.pictures, replay.vectors))
    assert Replay.bytes_needed(12, 2, layout, 0.0) == allocated + 12 * 2 * 8


@pytest.mark.kernel
def test_a_run_with_all_of_them(tmp_path: Path) -> None:
    task = f"--task={ROM.parent / 'homeward/errand.py'}:Errand"
    words = [f"--rom={ROM}", task, f"--symbols={ROM.with_suffix('.sym')}"]
    flags = ["--ram-obs=quest_flags,player_map:3", "--visited-obs=3", "--action-obs=2", "--obs=packed", "--stack-k=2"]
    flags += ["--action-codec=NOOP,UP,DOWN,LEFT,RIGHT/NOOP,A"]
    assert ppo_lite.main([*words, *flags, "--smoke", "--device=cpu", f"--run-dir={tmp_path / 'run'}"]) == 0
    assert list((tmp_path / "run/media").glob("*.gif"))
    out = tmp_path / "result.json"
    checkpoint = [str(tmp_path / "run"), task, "--episodes=2", "--num-envs=2"]
    assert evaluate.main([*checkpoint, f"--json={out}", "--policy=greedy"]) == 0
    assert json.loads(out.read_text())["greedy"]["episodes"] == 2


@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (ppo_lite, ["--obs=rgb555", "--stack-k=2"]),
        (a2c_streaming, ["--obs=rgb"]),
        pytest.param(dqn_nstep, ["--obs=rgb555", "--stack-k=2"], marks=pytest.mark.long),
        pytest.param(dqn_nstep, ["--obs=rgb", "--action-obs=2"], marks=pytest.mark.long),
        (pqn, ["--obs=luma"]),
        pytest.param(ppo_lite, ["--obs=grey_64x96", "--stack-k=2"], marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.kernel
def test_a_run_in_colour(device: str, script: Any, flags: list[str], tmp_path: Path) -> None:
    """On a ROM for both kinds of Game Boy: with a goal in colour, films in colour, and an agent that plays again."""
    (rom := tmp_path / "game.gb").write_bytes(picture_rom(1, 0x80))
    stack_k = 2 if "--stack-k=2" in flags else 1
    task = GoalRecipe(rom, ["NOOP"] * 3, settings=GoalSettings(obs=flags[0][6:], stack_k=stack_k, model="cgb")).make(
        tmp_path / "task"
    )
    words = [f"--rom={rom}", f"--start-state={task.start_state}", f"--goal-dir={task.goal_dir}", "--model=cgb"]
    run = tmp_path / "run"
    assert script.main([*words, *flags, "--smoke", f"--device={device}", f"--run-dir={run}"]) == 0
    for path in [*run.glob("media/*.gif"), *run.glob("media/envs*.png")]:
        assert has_colors(path), f"{path} is grey"
    assert len(list(run.glob("media/*"))) >= 2
    out = tmp_path / "film.gif"
    assert evaluate.main([str(run), "--episodes=2", "--num-envs=2", f"--gif={out}"]) == 0
    assert has_colors(out)


def has_colors(path: Path) -> bool:
    """True where a picture of a film has other colours than greys."""
    with Image.open(path) as film:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    return any((frame != frame[..., :1]).any() for frame in frames)


@pytest.mark.parametrize("obs", OBJECTS)
@pytest.mark.parametrize("stack_k", [1, 3])
def test_tiles_and_sprites_in_networks(obs: str, stack_k: int) -> None:
    """Each network takes them, and each number of a visible sprite counts; of others none."""
    layout = ObservationLayout(OBJECTS[obs], stack_k, VECTORS)
    torch.manual_seed(1)
    observations = noise(layout, 4)
    picture = signed(layout.split(observations)[PICTURE])
    picture.remainder_(NO_TILE if obs == "tiles" else 2)
    if obs == "objects":
        picture[..., 9:] = 1
    for network in (ppo_lite.Agent, pqn.QNetwork):
        model = network(layout, 8)
        found = outputs(model, observations)
        for index in range(picture.shape[-1]):
            other = observations.clone()
            signed(layout.split(other)[PICTURE])[..., index] ^= 1
            assert not torch.equal(outputs(model, other), found), index
    if obs == "objects":
        picture[..., 9:] = 0
        found = outputs(model, observations)
        picture[..., :9] ^= 1
        assert torch.equal(outputs(model, observations), found)


@pytest.mark.parametrize("obs", OBJECTS)
def test_the_replay_of_tiles_and_sprites(obs: str) -> None:
    layout = ObservationLayout(OBJECTS[obs], 2)
    replay = Replay(12, 2, layout, torch.device("cpu"), n_step=2)
    pictures = noise(ObservationLayout(OBJECTS[obs], 1), 9, 2)
    history = torch.cat([pictures[:-1], pictures[1:]], 2)
    no = torch.zeros(2, dtype=torch.bool)
    for row in history:
        replay.add(row, no.long(), no.float(), no, no)
    drawn = replay.sample(60)
    after_the_first = drawn.index >= 2
    assert torch.equal(drawn.obs[after_the_first], history.flatten(0, 1)[drawn.index[after_the_first]])


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("script", "obs"),
    [
        *(
            pytest.param(script, "tiles", marks=[pytest.mark.long] * (script in ("a2c_overlap", "pqn_recurrent")))
            for script in trainer_scripts()
        ),
        ("ppo_lite", "objects"),
        pytest.param("dqn_nstep", "objects", marks=pytest.mark.long),
    ],
)
def test_every_trainer_takes_tiles_and_sprites(script: str, obs: str, tmp_path: Path) -> None:
    flags = ["--env=gbxcule_orchard", f"--obs={obs}", "--smoke", "--device=cpu", "--stack-k=2"]
    assert load_script(trainer_scripts()[script]).main([*flags, f"--run-dir={tmp_path / 'run'}"]) == 0
    assert list((tmp_path / "run/media").glob("*.gif"))


@pytest.mark.gpu
@pytest.mark.parametrize("obs", OBJECTS)
@pytest.mark.parametrize("script", ["ppo_lite", "pqn", "a2c_streaming"])
def test_cuda_graphs_of_networks_of_tiles_and_sprites(script: str, obs: str, tmp_path: Path) -> None:
    flags = ["--env=gbxcule_orchard", f"--obs={obs}", "--smoke", "--device=cuda", "--cuda-graph"]
    assert load_script(trainer_scripts()[script]).main([*flags, f"--run-dir={tmp_path / 'run'}"]) == 0
