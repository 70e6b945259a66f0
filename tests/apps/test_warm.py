"""`puffer warm`, and the archive of compiled kernels for a wheel: they have what most commands need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import warp as wp

from gbxcule_puffer import cli, env_creator, progress, shipped_kernels
from gbxcule_puffer.apps.warm import archive, usual
from gbxcule_puffer.device import start_warp
from gbxcule_puffer.emulator.gpu.schedule.lane_order import LaneOrder, Sizes
from gbxcule_puffer.emulator.gpu.schedule.launch_shape import MEASURED
from gbxcule_puffer.emulator.needed import USUAL_SHAPE
from gbxcule_puffer.emulator.state import FIELDS
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.kernel_objects import Needed
from gbxcule_puffer.tasks.ram import bits
from gbxcule_puffer.trainers.advice import unlike_play

pytestmark = pytest.mark.kernel


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> set[wp.Module]:
    """The modules whose kernels are launched."""
    start_warp()
    load, found = wp.Module.load, set[wp.Module]()

    def noted(module: wp.Module, *args: Any, **options: Any) -> object:
        found.add(module)
        return load(module, *args, **options)

    monkeypatch.setattr(wp.Module, "load", noted)
    return found


def modules(models: tuple[str, ...], on_gpu: bool) -> dict[wp.Module, int]:
    """The modules of the usual kernels, with their block sizes."""
    return {each.module: each.block_dim for each in usual.usual_kernels(models, on_gpu)}


@pytest.mark.parametrize("options", [{"rom": "homeward"}, {"game": "orchard"}, {"rom": "homeward", "obs": "objects"}])
def test_an_env_s_steps_need_no_other_kernel(options: dict[str, Any], loaded: set[wp.Module]) -> None:
    name = {"game": options["game"]} if "game" in options else {}
    env = env_creator("gbxcule", **name)(num_envs=2, io="torch", **{k: v for k, v in options.items() if k != "game"})
    env.reset(seed=1)
    for _ in range(2):
        env.step(torch.zeros(2, dtype=torch.int64))
    unlike_play(env, 1)
    env.close()
    assert len(loaded) >= 3 and loaded <= modules(("dmg",), False).keys()


def test_a_gpu_s_steps_need_no_other_kernel() -> None:
    found = modules(("dmg", "cgb"), True)
    order = LaneOrder(torch.zeros((len(FIELDS), 64), dtype=torch.int32), torch.zeros(64, dtype=torch.int32))
    for shape in MEASURED.values():
        assert shape.block_dim == USUAL_SHAPE.block_dim
        launches = order.launches(wp.zeros(64, dtype=wp.uint8, device="cpu"), shape, Sizes.of(64, shape))
        assert {kernel.module for kernel, *_ in launches if kernel is not None} <= found.keys()
    assert list(found.values()).count(USUAL_SHAPE.block_dim) == 2  # of each model


@pytest.fixture
def one_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Needed]]]:
    """One small kernel in place of the usual ones."""
    needed = [Needed("bits", bits.kernel_bits_set)]
    for module in (usual, archive):
        monkeypatch.setattr(module, "usual_kernels", lambda *_: needed)
    yield lambda: needed
    progress.listen(None)


def test_an_archive_has_a_cpu_s_and_a_gpu_s_objects(
    one_kernel: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start_warp()
    if 90 not in wp.get_cuda_supported_archs():
        pytest.skip("this Warp was installed without its CUDA compiler")
    path = tmp_path / "kernels.zip"
    assert cli.main(["warm", "--archive", str(path), "--arch", "90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 2: bits, ") and lines[1].startswith("2 of 2: bits for sm_90, ")
    monkeypatch.setattr(shipped_kernels, "ARCHIVE", path)
    shipped_kernels._of_target.cache_clear()
    module = Needed("bits", bits.kernel_bits_set).module
    found = shipped_kernels.find(module, 256, ".sm90.cubin")
    assert found is not None and found.data.startswith(b"\x7fELF") and found.meta.startswith(b"{")
    assert [shipped_kernels.find(module, 256, target) for target in (".sm80.cubin", ".sm90.ptx")] == [None, None]
    shipped_kernels._of_target.cache_clear()


def test_what_cannot_be_compiled_for_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start_warp()
    with pytest.raises(ConfigError, match="architecture 71 is unknown to this Warp: leave it out"):
        archive.write_archive(str(tmp_path / "kernels.zip"), ["dmg"], [71])
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", "-march=native")
    with pytest.raises(ConfigError, match="this CPU is older than x86-64-v3"):
        archive.write_archive(str(tmp_path / "kernels.zip"), ["dmg"], [90])


def test_warm_says_what_it_has(one_kernel: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warm"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("kernels for cpu: 1, all compiled after ")
