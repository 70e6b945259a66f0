"""The launch shape of the CUDA kernel: lanes in use per warp, the policy by which envs share warps, threads per block.
No result depends on it.

Diverged lanes of a warp wait for each other, so few lanes are faster while the GPU has warps to spare. The defaults
were measured on an H200. `puffer bench --autotune` measures another GPU and saves the result next to the compiled
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
PATIENCE = 128  # turns after which the interpreter is called for waiting lanes, with up to 8 lanes in use
TABLE_FILE = Kind("launch shapes", ConfigError, "delete it, or measure again with bench --autotune")


@dataclass(frozen=True)
class LaunchShape:
    """A launch shape.

    lanes: in use per warp; with PACKED approximately their mean, because each warp has as many as end in time.
    block_dim: threads per block.
    grouped: True if envs with similar steps share a warp (lane_order.py); False: envs in their order.
    head: the 1/head of the envs that are expected to take longest get warps with only head_lanes lanes in use; 0: none.
    twins: the policy, MIXED, TOGETHER or PACKED.
    calls: how much more often than usual the interpreter runs for waiting lanes.
    """

    lanes: int
    block_dim: int
    grouped: bool = False
    head: int = 0
    head_lanes: int = 0
    twins: str = MIXED
    calls: int = 1

    @property
    def patience(self) -> int:
        """Turns after which the interpreter is called for waiting lanes: more if more lanes can wait together."""
        return PATIENCE * max(1, self.lanes // 8) // self.calls

    def warps(self, num_envs: int) -> tuple[int, int]:
        """The number of warps with head_lanes lanes, and the number of all warps, in a launch for `num_envs` envs."""
        first = num_envs // self.head // self.head_lanes if self.head else 0
        return first, first + -(-(num_envs - first * self.head_lanes) // self.lanes)


Table = Mapping[int, LaunchShape]
"""num_envs -> the best shape; it also serves fewer envs, down to the next smaller entry; the largest serves more."""
# At 1,024 to 131,072 envs (kernel_variants.json, lanes_few_envs.json, lanes_16384.json of benchmarks/results/h200).
MEASURED: Table = {
    1_024: LaunchShape(1, 32, True),
    2_048: LaunchShape(2, 32, True),
    4_096: LaunchShape(8, 32, True, twins=PACKED),
    16_384: LaunchShape(16, 32, True, twins=PACKED),
    32_768: LaunchShape(32, 32, True, twins=TOGETHER),
}


def table_path() -> Path:
    """The file with the measurements of this machine."""
    return cache.directory() / "launch_shapes.json"


def load_tables() -> dict[str, Table]:
    """Device name -> the table measured there.

    Raises: ConfigError if the file is damaged.
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
        raise TABLE_FILE.bad(path, f"is damaged ({error!s:.200})") from None
    return {name: table for name, table in tables.items() if table}


def save_table(device_name: str, table: Table) -> Path:
    """Save a device's table; the file is written completely or stays as it was."""
    tables = {**load_tables(), device_name: table}
    path = table_path()
    shapes = {name: {size: astuple(shape) for size, shape in sorted(one.items())} for name, one in tables.items()}
    write_json(path, shapes)
    return path


def best(num_envs: int, device_name: str) -> LaunchShape:
    """The shape for a number of envs on a device.

    Raises: ConfigError if the file of measurements is damaged.
    """
    table = load_tables().get(device_name, MEASURED)
    return table[min((size for size in table if size >= num_envs), default=max(table))]


def _checked(shape: LaunchShape) -> LaunchShape:
    if shape.lanes not in LANES or shape.block_dim not in BLOCK_DIMS or not isinstance(shape.grouped, bool):
        raise ValueError(f"{shape} is none of lanes {LANES}, block_dim {BLOCK_DIMS}, grouped or not")
    if shape.twins not in TWINS or shape.head or shape.head_lanes or shape.calls != 1:
        raise ValueError(f"{shape} is none of {TWINS} without a head, with the usual calls")
    return shape
