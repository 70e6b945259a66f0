"""A SLURM job of this machine: what the batch script finds, with stand-ins for the commands that only a cluster has."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLURM = ROOT / "clusters/train.slurm"


def slurm_job(folder: Path, nodes: Sequence[str], gpus: str, srun: str) -> dict[str, str]:
    """The environment of a job in `folder`. srun: what happens to a node's command, "$@", in place of srun."""
    bin = folder / "bin"
    bin.mkdir()
    program(bin / "scontrol", f"printf '%s\\n' {' '.join(nodes)}")
    program(bin / "srun", f"while [[ $1 == --* ]]; do shift; done\n{srun}")
    return os.environ | {
        "PATH": os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_ID": str(_free_port() - 20_000),
        "SLURM_JOB_NODELIST": ",".join(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_GPUS_ON_NODE": gpus,
    }


def program(path: Path, script: str) -> None:
    """Writes a bash script that can be called."""
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


def _free_port() -> int:
    """One of the ports that the batch script may take."""
    for port in range(20_000 + os.getpid() % 9_000, 30_000):
        with socket.socket() as probe:
            if probe.connect_ex(("localhost", port)):
                return port
    raise OSError("no port from 20000 to 29999 is free")
