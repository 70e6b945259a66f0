"""The files for clusters: each command and flag in them exists, and they do what their first lines say.

tests/trainers/test_training_distributed.py trains by way of the SLURM script."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.browser import PATIENCE
from tests.support.clusters import ROOT, SLURM, program, slurm_job
from tests.support.pages import check_arguments, commands

FOLDER = ROOT / "clusters"
RECORD = 'printf "%s\\0" torchrun "$@" >> "$TORCHRUN"'


def examples(path: Path) -> list[list[str]]:
    """The commands in the comment at the head of a file."""
    head = "".join(line[1:] for line in path.read_text().splitlines(True) if line.startswith("#   "))
    return [list(command) for command in commands(head)]


@pytest.mark.parametrize("name", ["train.slurm", "sky.yaml", "Dockerfile"])
def test_the_commands_in_the_heads_exist(name: str) -> None:
    found = examples(FOLDER / name)
    assert found and all(name in " ".join(command) or "gbxcule-puffer" in command for command in found)
    for command in found:
        check_arguments(command)


def test_a_slurm_job_starts_torchrun_on_all_its_nodes(tmp_path: Path) -> None:
    (script,) = (command[command.index("clusters/train.slurm") + 1 :] for command in examples(SLURM))
    env = slurm_job(tmp_path, ["node3", "node4"], "4", 'printf "%s\\0" "$@"')
    output = subprocess.run(["bash", SLURM, *script], env=env, capture_output=True, text=True, check=True).stdout
    command = output.split("\0")[:-1]
    check_arguments(command)
    assert {"--nnodes=2", "--nproc-per-node=4"} < set(command) and command[-len(script) :] == script
    port = 20_000 + int(env["SLURM_JOB_ID"])
    assert f"--rdzv-endpoint=node3:{port}" in command
    refused = subprocess.run(["bash", SLURM], env=env, capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stderr.startswith("usage: sbatch")


def sky() -> dict[str, str]:
    """The scripts and settings of sky.yaml that a machine of SkyPilot gets: a reader for as much of YAML as it has."""
    text = (FOLDER / "sky.yaml").read_text()
    parts = {
        name: re.sub("^  ", "", body, flags=re.MULTILINE)
        for name, body in re.findall(r"^(\w+): \|\n((?:  .*\n|\n)+)", text, re.MULTILINE)
    }
    (envs,) = re.findall(r"^envs:\n((?:  .*\n)+)", text, re.MULTILINE)
    return parts | dict(re.findall(r"^  (\w+): (.+)$", envs, re.MULTILINE))


@pytest.mark.parametrize("rank", [0, 1])
def test_sky_starts_torchrun_and_keeps_the_run(rank: int, tmp_path: Path) -> None:
    found, kept = sky(), tmp_path / "kept"
    (kept / "long").mkdir(parents=True)
    (kept / "long/before.txt").write_text("before")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin/torchrun", f"{RECORD}\nls runs/long > runs/long/seen.txt || true")
    env = {name: found[name] for name in ("SCRIPT", "FLAGS", "RUN")} | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TORCHRUN": str(tmp_path / "torchrun"),
        "SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NUM_NODES": "2", "SKYPILOT_NUM_GPUS_PER_NODE": "4",
        "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
    }  # fmt: skip
    script = found["run"].replace("/kept", str(kept))
    command = ["bash", "-c", script]
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    command = (tmp_path / "torchrun").read_text().split("\0")[:-1]
    check_arguments(command)
    assert {f"--node-rank={rank}", "--master-addr=10.0.0.1", "--nnodes=2", "--nproc-per-node=4"} < set(command)
    # The first node has the folder: what the bucket had is in it before, and what is new in the bucket afterwards.
    assert (kept / "long/seen.txt").exists() == (rank == 0)
    if rank == 0:
        assert (kept / "long/seen.txt").read_text().split() == ["before.txt", "seen.txt"]


def test_sky_installs_into_a_python_that_is_new_enough(tmp_path: Path) -> None:
    """Its machines may have 3.10; uv lies in ~/.local/bin, which need not be on the path."""
    (tmp_path / ".local/bin").mkdir(parents=True)
    program(tmp_path / ".local/bin/uv", 'echo "$@"')
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    result = subprocess.run(["bash", "-c", sky()["setup"]], env=env, capture_output=True, text=True, check=True)
    made, installed = (line.split() for line in result.stdout.splitlines())
    assert made[0] == "venv" and installed[:2] == ["pip", "install"]
    assert installed[installed.index("--python") + 1] == made[-1] == ".venv", "which the run's script activates"
    assert installed[-3:] == ["-c", "constraints.txt", "."] and (ROOT / "constraints.txt").exists()
    (least,) = re.findall(r'python_requires=">=3\.(\d+)"', (ROOT / "setup.py").read_text())
    assert int(made[made.index("--python") + 1].removeprefix("3.")) >= int(least)


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: (word, rest)."""
    text = re.sub(r"^#.*\n", "", (FOLDER / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.split(None, 1)[1]) for line in text.splitlines() if line]


def test_the_image_has_what_a_wheel_is_built_from() -> None:
    """Each file that is copied is in the repository and comes through the ignore file; packages have their versions."""
    copied = [word for name, rest in instructions() if name == "COPY" for word in rest.split()[:-1]]
    tracked = subprocess.run(["git", "ls-files", *copied], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(any(f"{line}/".startswith(f"{word}/") for line in tracked.splitlines()) for word in copied)
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied)
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines() if not line.startswith("#")]
    needed = [word for name, *words in lines if name != "global-exclude" for word in words if "*" not in word]
    missing = [word for word in needed if not any(f"{word}/".startswith(f"{part}/") for part in copied)]
    assert needed and not missing, "the image copies what the source archive has"
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for name, rest in instructions():
        if name == "RUN" and rest.startswith("pip"):
            packages = rest.split("constraints.txt")[1].split()
            assert packages == ["."] or set(packages) <= set(pinned)


def test_the_image_starts_puffer() -> None:
    found = dict(instructions())  # the last of each
    assert json.loads(found["ENTRYPOINT"]) == ["puffer"] and found["USER"] != "root"
    for line in (found["RUN"], found["CMD"]):
        with pytest.raises(SystemExit) as end:
            check_arguments(["puffer", *(word for word in json.loads(line) if word != "puffer")])
        assert not end.value.code
