"""`puffer bench --fit`: its estimates beside what is really allocated."""

from __future__ import annotations

import gc
import re
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Any

import pytest
import torch

from gbxcule_puffer.apps.bench.fit import TRAINERS, UNIT, most_envs, training_memory
from gbxcule_puffer.cli import main
from gbxcule_puffer.commandline.parsing import parse
from gbxcule_puffer.emulator.cartridge import load_cartridge
from gbxcule_puffer.env.memory import env_memory
from gbxcule_puffer.layout import ROMS, trainer_scripts
from gbxcule_puffer.native.record import RecordedEnv
from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import observation_kind
from gbxcule_puffer.trainers.envs import layout_of
from gbxcule_puffer.trainers.trained import load_script

ROM = ROMS / "homeward.gb"
WORDS = ["--rom", str(ROM), "--num-envs", "64"]


def new_tensor_bytes() -> int:
    """Bytes of all storages of tensors that were made since gc.freeze()."""
    gc.collect()
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor) and not each.is_meta]
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
    return sum(storages.values())


@pytest.mark.kernel
@pytest.mark.parametrize(("obs", "stack_k"), [("shades", 1), ("packed", 4)])
def test_an_env_takes_what_is_estimated(obs: str, stack_k: int) -> None:
    """With the GPU's kernel and arrays; 1,000 more envs, since what all share counts once. Within 2 %."""

    def allocated(num_envs: int) -> int:
        gc.collect()
        gc.freeze()  # only what comes now is looked at, not the half million objects of all that is imported
        frozen = gc.get_freeze_count()
        env = RecordedEnv(ROM, num_envs, io="torch", obs=obs, stack_k=stack_k)
        assert env._episodes.envs is not None  # made at its first use
        assert gc.get_freeze_count() <= frozen, "an import has hidden tensors (lazily.py)"
        found = new_tensor_bytes()
        env.close()
        return found

    RecordedEnv(ROM, 1, io="torch", obs=obs, stack_k=stack_k).close()  # which imports all that is imported late

    layout, cartridge = ObservationLayout(observation_kind(obs), stack_k), load_cartridge(ROM)
    estimates = [sum(env_memory(cartridge, num_envs, layout).values()) for num_envs in (100, 1_100)]
    real = [allocated(num_envs) for num_envs in (100, 1_100)]
    assert estimates[1] - estimates[0] == pytest.approx(real[1] - real[0], rel=0.02)
    assert estimates[1] == pytest.approx(real[1], rel=0.08)


@pytest.mark.parametrize("script", TRAINERS)
def test_a_training_takes_what_is_estimated(script: str) -> None:
    """The rollout and the network to the byte, a minibatch's activations at most half of what is estimated with their
    gradients, and at least a fifth."""
    trainer: Any = load_script(trainer_scripts()[script])
    args = parse(trainer.Args, script, None, WORDS)
    estimate = training_memory(script, ROM, 64, [])
    layout = layout_of(args)
    rollout = trainer.empty_rollout(args, layout, torch.device("cpu"))
    assert estimate["rollout"] == sum(part.nbytes for part in rollout.values())

    model = getattr(trainer, TRAINERS[script])(layout, 8)
    optimizer = torch.optim.Adam(model.parameters())
    kept: dict[int, int] = {}

    def note(saved: torch.Tensor) -> torch.Tensor:
        kept[saved.untyped_storage().data_ptr()] = saved.untyped_storage().nbytes()
        return saved

    size = args.num_steps * args.num_envs // args.num_minibatches
    weights = [part.untyped_storage().data_ptr() for part in model.parameters()]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        output = model(torch.zeros(size, *layout.shape, dtype=layout.kept_dtype))
    (output[0] if isinstance(output, tuple) else output).sum().backward()
    optimizer.step()
    activations = sum(found for address, found in kept.items() if address not in weights)
    assert estimate["minibatch"] / 5 < activations < estimate["minibatch"] / 1.9
    states = [part for state in optimizer.state.values() for part in state.values() if part.ndim]
    gradients = [part.grad for part in model.parameters() if part.grad is not None]
    real = sum(part.nbytes for part in [*model.parameters(), *gradients, *states])
    assert estimate["network"] == pytest.approx(real, rel=0.01)


def test_the_most_envs_are_those_that_fit() -> None:
    """One step more would not."""
    needed = partial(lambda a, n: a + 10_000 * n, 5_000)
    found = most_envs(needed, 2**30)
    assert needed(found) <= 2**30 < needed(found + UNIT)
    assert most_envs(needed, 6_000) == 0


def test_the_table() -> None:
    """A row for each memory."""
    output = StringIO()
    with redirect_stdout(output):
        assert main(["bench", "--fit", "8,24", "--rom", str(ROM)]) == 0
    rows = re.findall(r"^(\d+) GiB +([\d,]+) +([\d,]+) +([\d,]+)$", output.getvalue(), re.MULTILINE)
    assert [row[0] for row in rows] == ["8", "24"]
    counts = [[int(cell.replace(",", "")) for cell in row[1:]] for row in rows]
    assert all(small < large for small, large in zip(*counts, strict=True))
    assert all(row[0] > max(row[1:]) for row in counts)
