"""dmg-acid2: the emulator's picture is the reference picture, pixel by pixel."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.references import hash64
from gbxcule_puffer.emulator import Emulator


def test_dmg_acid2_is_pixel_exact(shared: Path, manifest: dict[str, Any]) -> None:
    entry = next(test for test in manifest["tests"] if test["suite"] == "acid2")
    roms = shared / "roms"
    reference = 3 - np.asarray(Image.open(roms / entry["check"]["png"]).convert("L")) // 85
    assert f"{hash64(reference.astype(np.uint8).tobytes()):016x}" in entry["check"]["ref"], (
        "the PNG is not the reference"
    )

    emulator = Emulator(roms / entry["file"], 1, "cpu", screen="full", frames_per_step=10, release_after_frames=5)
    wrong = None
    for _ in range(entry["max_frames"] // 10):
        emulator.step(torch.zeros(1, dtype=torch.uint8))
        wrong = np.argwhere(emulator.screen[0].numpy() != reference)
        if len(wrong) == 0:
            return
    assert wrong is not None
    rows = sorted({int(y) for y, _ in wrong})
    raise AssertionError(f"{len(wrong)} pixels differ, first (line, column) {tuple(wrong[0])}, on lines {rows}")
