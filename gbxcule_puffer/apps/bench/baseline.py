"""`puffer bench --baseline`: the records of an earlier run, and which measurements have become slower."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gbxcule_puffer.apps.bench.records import Record
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, read_json

FILE = Kind("baseline", ConfigError, "give the records.json of an earlier run")
LIMIT = 64 * 2**20  # bytes
# Keys that must be equal for two records to measure the same workload
SAME = (
    *("backend", "vec_backend", "num_envs", "stage", "rom_sha256", "model", "start_state", "actions", "action_seed"),
    *(
        "sound",
        "action_codec",
        "frames_per_step",
        "release_after_frames",
        "obs",
        "stack_k",
        "reset_every",
        "info_mode",
        "device_name",
        "cores",
    ),
)


def load(path: Path) -> list[Record]:
    """The records of a file that `puffer bench` wrote.

    Raises: ConfigError if it has none.
    """
    found = read_json(path, FILE, LIMIT)
    keys = (*SAME, "sps", "rom")
    if not isinstance(found, list) or not found:
        raise FILE.bad(path, "holds no records")
    for record in found:
        if isinstance(record, dict):
            record.setdefault("model", "dmg")  # older records have none of the three
            record.setdefault("sound", False)
            record.setdefault("info_mode", "stats" if record.get("stage") == "full_step" else "none")
        missing = [key for key in keys if not isinstance(record, dict) or key not in record]
        if missing:
            raise FILE.bad(path, f"has a record without {missing[0]!r}")
        if type(record["sps"]) not in (int, float) or not 0 < record["sps"] < 1e18:
            raise FILE.bad(path, f"has a record whose sps is {record['sps']!r:.40}")
        if wrong := [key for key in SAME if isinstance(record[key], list | dict)]:
            raise FILE.bad(path, f"has a record whose {wrong[0]} is {record[wrong[0]]!r:.40}")
    return found


def losses(records: Sequence[Record], baseline: Sequence[Record], max_loss: float) -> list[str]:
    """A line for each record that is more than `max_loss` (0.05: 5 %) slower than its counterpart, or has none."""
    earlier = {tuple(record[key] for key in SAME): record["sps"] for record in baseline}
    found = []
    for record in records:
        name = f"{record['rom']} {record['stage']}, {record['num_envs']} envs"
        before = earlier.get(tuple(record[key] for key in SAME))
        if before is None:
            found.append(f"{name}: the baseline has no such record on {record['device_name']}")
        elif record["sps"] < (1 - max_loss) * before:
            loss = 100 * (1 - record["sps"] / before)
            found.append(f"{name}: {record['sps']:,.0f} steps/s, {loss:.1f} % less than {before:,.0f} in the baseline")
    return found
