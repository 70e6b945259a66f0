"""What is installed: the hashed list has the versions of constraints.txt, and a hash for every file of each."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;#\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """Package -> version."""
    found = PIN.findall((ROOT / name).read_text())
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_the_hashed_list_has_the_same_versions() -> None:
    ours, hashed = pins("constraints.txt"), pins(".ci/constraints-hashed.txt")
    assert {package: hashed.get(package) for package in ours} == ours


def test_every_package_has_hashes() -> None:
    parts = re.split(r"^(?=[a-z0-9])", (ROOT / ".ci/constraints-hashed.txt").read_text(), flags=re.MULTILINE)[1:]
    assert len(parts) >= len(pins(".ci/constraints-hashed.txt")) > 50, "some have two versions, for two platforms"
    assert all("--hash=sha256:" in part for part in parts)


def test_what_builds_the_package_is_pinned() -> None:
    (build,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    package, version = build.split("==")
    assert pins(".ci/constraints-hashed.txt")[package] == version
