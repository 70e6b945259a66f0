"""The shape of a launch of the CUDA kernel: lanes of a warp in use, envs that share a warp, threads of a block. Never
changes a result.

Few lanes leave a warp less to wait for where the GPU has warps to spare, since diverged lanes wait for each other. What
is best was measured on an H200; `puffer bench --autotune` measures it on another GPU and keeps it beside the compiled
kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from gbxcule_puffer.emulator.build import cache
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.files import Kind, read_object, write_json

WARP_SIZE = 32
LANES = (1, 2, 8, 16, 32)
BLOCK_DIMS = (32, 128)
TWINS = (MIXED, TOGETHER, PACKED) = ("mixed", "together", "packed")
PATIENCE = 128  # turns that a lane waits at most for the interpreter to be called, with up to 8 lanes in use
TABLE_FILE = Kind("launch shapes", ConfigError, "delete it, or measure again with bench --autotune")


@dataclass(frozen=True)
class LaunchShape:
    """Lanes of each warp in use, threads of a block; grouped: envs whose steps will be alike share a warp
    (lane_order.py). head: one in so many envs, those that will take longest, have warps with head_lanes lanes.
    twins: of those that are grouped, which execute the same instructions: MIXED with the others, TOGETHER beside each
    other, or PACKED, where a warp has as many lanes in use as end in time, and `lanes` is about their mean. calls: as
    many times as usual the interpreter is called for lanes that wait."""

    lanes: int
    block_dim: int
    grouped: bool = False
    head: int = 0
    head_lanes: int = 0
    twins: str = MIXED
    calls: int = 1

    @property
    def patience(self) -> int:
        """PATIENCE for these lanes: with more of them, more wait together."""
        return PATIENCE * max(1, self.lanes // 8) // self.calls

    def warps(self, num_envs: int) -> tuple[int, int]:
        """(those with head_lanes lanes, all) of a launch for so many envs."""
        first = num_envs // self.head // self.head_lanes if self.head else 0
        return first, first + -(-(num_envs - first * self.head_lanes) // self.lanes)


Table = Mapping[int, LaunchShape]
"""num_envs -> the best shape, which also serves fewer envs, down to the next smaller entry; the largest serves more."""
# At 1,024 to 131,072 envs (kernel_variants.json, lanes_few_envs.json, lanes_16384.json of benchmarks/results/h200).
MEASURED: Table = {
    1_024: LaunchShape(1, 32, True),
    2_048: LaunchShape(2, 32, True),
    4_096: LaunchShape(8, 32, True, twins=PACKED),
    16_384: LaunchShape(16, 32, True, twins=PACKED),
    32_768: LaunchShape(32, 32, True, twins=TOGETHER),
}


def table_path() -> Path:
    """The file of what was measured on this machine."""
    return cache.directory() / "launch_shapes.json"


def load_tables() -> dict[str, Table]:
    """Device name -> what was measured there.

    Raises: ConfigError where the file is damaged.
    """
    path = table_path()
    if not path.exists():
        return {}
    content = read_object(path, TABLE_FILE)
    try:
        tables = {
            name: {int(num_envs): _checked(LaunchShape(*shape)) for num_envs, shape in table.items()}
            for name, table in content.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise TABLE_FILE.bad(path, f"is damaged ({error})") from None
    return {name: table for name, table in tables.items() if table}


def save_table(device_name: str, table: Table) -> Path:
    """Keep what was measured on a device; the file is complete or as it was."""
    tables = {**load_tables(), device_name: table}
    path = table_path()
    shapes = {name: {size: astuple(shape) for size, shape in sorted(one.items())} for name, one in tables.items()}
    write_json(path, shapes)
    return path


def best(num_envs: int, device_name: str) -> LaunchShape:
    """The shape for a number of envs on a device.

    Raises: ConfigError where the file of what was measured is damaged.
    """
    table = load_tables().get(device_name, MEASURED)
    return table[min((size for size in table if size >= num_envs), default=max(table))]


def _checked(shape: LaunchShape) -> LaunchShape:
    if shape.lanes not in LANES or shape.block_dim not in BLOCK_DIMS or not isinstance(shape.grouped, bool):
        raise ValueError(f"{shape} is none of lanes {LANES}, block_dim {BLOCK_DIMS}, grouped or not")
    if shape.twins not in TWINS or shape.head or shape.head_lanes or shape.calls != 1:
        raise ValueError(f"{shape} is none of {TWINS} without a head, with the usual calls")
    return shape
