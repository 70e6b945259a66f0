"""`puffer bench --fit`: how many Game Boys fit into a GPU, alone and with a trainer's rollouts, by the estimates
with which runs refuse what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gbxcule_puffer.apps.bench.summary import text
from gbxcule_puffer.commandline.parsing import parse
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.env.memory import env_memory
from gbxcule_puffer.errors import GBxCuLEError
from gbxcule_puffer.layout import trainer_scripts
from gbxcule_puffer.trainers.blocks.rollout import rollout_memory
from gbxcule_puffer.trainers.envs import layout_of
from gbxcule_puffer.trainers.trained import load_script

GIB = 2**30
SHARE = 0.9  # of a GPU's memory: CUDA, torch and the compiled kernels take the rest
UNIT = 256  # Game Boys
MOST = 4096  # of UNIT
TRAINERS = {"ppo_lite": "Agent", "pqn": "QNetwork"}  # scripts with rollouts, and their networks
COPIES = 4  # of the weights: with gradients and Adam's two means


def training_memory(script: str, rom: Path, num_envs: int, words: Sequence[str]) -> dict[str, int]:
    """Estimated bytes of a training with a script's defaults, by part. words: more of its flags.

    Raises: ConfigError, RomError, DeviceError.
    """
    trainer: Any = load_script(trainer_scripts()[script])
    args = parse(trainer.Args, script, None, ["--rom", str(rom), "--num-envs", str(num_envs), *words])
    layout = layout_of(args)
    network = getattr(trainer, TRAINERS[script])
    weights = sum(part.numel() for part in network(layout, 8).parameters())
    return {
        **env_memory(load_cartridge(rom, model=args.model), num_envs, layout),
        **rollout_memory(args, trainer.empty_rollout, network, least=2),
        "network": 4 * COPIES * weights,
    }


def most_envs(needed: Callable[[int], int], size: int) -> int:
    """The most Game Boys, in steps of UNIT up to MOST, whose `needed` bytes fit into `size`; 0 for none."""
    low, high = 0, MOST
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(needed, UNIT * middle, size):
            low = middle
        else:
            high = middle - 1
    return UNIT * low


def _fits(needed: Callable[[int], int], num_envs: int, size: int) -> bool:
    try:
        return needed(num_envs) <= size
    except GBxCuLEError:  # more than can be counted
        return False


def fit(gib: Sequence[int], rom: Path, model: str, words: Sequence[str]) -> None:
    """Print the table. words: flags of the observation, for the trainers."""
    script: Any = load_script(trainer_scripts()["ppo_lite"])
    layout = layout_of(parse(script.Args, "ppo_lite", None, ["--rom", str(rom), *words]))
    cartridge = load_cartridge(rom, model=model)
    ways: dict[str, Callable[[int], int]] = {"the env": lambda n: sum(env_memory(cartridge, n, layout).values())}
    for name in TRAINERS:
        ways[name] = lambda n, name=name: sum(training_memory(name, rom, n, words).values())
    rows = []
    for size in gib:
        found = [most_envs(needed, int(SHARE * GIB * size)) for needed in ways.values()]
        rows.append([f"{size} GiB", *(f"{UNIT * MOST:,} or more" if n == UNIT * MOST else f"{n:,}" for n in found)])
    title = f"Game Boys that fit, {rom.stem} (estimates; a tenth of the memory stays free)"
    print(text(title, rows, ["GPU memory", *ways]))
