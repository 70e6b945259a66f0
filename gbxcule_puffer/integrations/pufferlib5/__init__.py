"""The environment as PufferLib 5 takes one for its trainer in CUDA: files that `puffer native` copies."""

from pathlib import Path

SOURCES = tuple(Path(__file__).with_name(name) for name in ("gbxcule.cu", "gbxcule.ini"))
