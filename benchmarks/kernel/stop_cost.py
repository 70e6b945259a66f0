"""What each kind of stop of the data path costs on a GPU, in turns of the warp that stops.

    python -m benchmarks.kernel.stop_cost --out FILE.json [--num-envs 16384] [--kinds stat p1 ...]

Each kind is a small program: one instruction that stops the data path, or a short piece of code, among plain ones, over
and over. All lanes of a warp are at one instruction and share each stop. The cost is what a step takes longer than as
many turns without stops, divided by the stops, in turns. One JSON record.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator.state import INDEX
from gbxcule_puffer.provenance import device_name, git_sha, versions

FRAMES_PER_STEP, WARM_UP = 24, 2
PLAIN = bytes([0x1C])  # inc e
PIECES = 40  # of a round of the program
BETWEEN = 19  # plain instructions after each piece
# Kind -> (code, its instructions). A is 20h, B 1, HL 9000h.
KINDS: dict[str, tuple[str, int]] = {
    "plain": ("1c", 1),
    "STAT read": ("f0 41 3e 20", 2),
    "LY read": ("f0 44 3e 20", 2),
    "STAT polled, not waiting": ("f0 41 e6 00 20 fa 3e 20", 4),
    "P1 written": ("e0 00", 1),
    "P1 read": ("f0 00 3e 20", 2),
    "sound register written": ("e0 12", 1),
    "SCX written": ("e0 43", 1),
    "LYC written": ("e0 45", 1),
    "DIV read": ("f0 04 3e 20", 2),
    "no register written": ("e0 6b", 1),
    "ROM bank selected": ("ea 00 20", 1),
    "VRAM written": ("77", 1),
    "SWAP": ("cb 30", 1),
    "RLC": ("cb 00", 1),
    "SCF": ("37", 1),
    "DAA": ("27 3e 20", 2),
    "PUSH AF": ("f5 c1", 2),
    "POP AF": ("c5 f1 3e 20", 3),
    "DI": ("f3", 1),
    "EI and DI": ("fb f3", 2),
    "delay of 8 rounds": ("16 08 15 20 fd", 17),
    "poll of RAM, not waiting": ("f0 90 b7 20 fb 3e 20", 4),
    "copy of 8 bytes": ("16 08 21 00 c0 2a 12 13 15 20 fa", 42),
    "code in RAM": ("cd a0 ff", 2),
}


def program(code: bytes) -> bytes:
    """A ROM of 64 KiB, MBC1, that repeats `code` among plain code. FFA0 holds a RET, FF90 0; no interrupts."""
    begin = bytes.fromhex("f3 31 fe df 3e c9 e0 a0 af e0 90 e0 0f e0 ff 3e 20 06 01 21 00 90 11 00 c1")
    body = (code + PLAIN * BETWEEN) * PIECES
    start = 0x150
    rom = bytearray(0x10000)
    rom[0x100:0x104] = bytes([0x00, 0xC3, start & 0xFF, start >> 8])
    rom[0x147:0x149] = bytes([1, 1])
    rom[start : start + len(begin)] = begin
    loop = start + len(begin)
    rom[loop : loop + len(body)] = body
    end = loop + len(body)
    rom[end : end + 3] = bytes([0xC3, loop & 0xFF, loop >> 8])
    rom[0x14D] = -sum(byte + 1 for byte in rom[0x134:0x14D]) & 0xFF
    return bytes(rom)


def measure(path: Path, num_envs: int, device: str, steps: int) -> tuple[float, float]:
    """(seconds of a step, instructions of a lane in it that were not skipped)."""
    emulator = Emulator(path, num_envs, device, frames_per_step=FRAMES_PER_STEP, autotune=False)
    buttons = torch.zeros(num_envs, dtype=torch.uint8, device=device)
    for _ in range(WARM_UP):
        emulator.step(buttons)
    wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        emulator.step(buttons)
    wait(device)
    seconds = (time.perf_counter() - start) / steps
    turns = emulator.machine.state.numpy()[INDEX["instructions"]] - emulator.skipped.cpu().numpy()
    assert emulator.locked.sum() == 0
    return seconds, float(turns.mean())


def wait(device: str) -> None:
    """Until the device has done its work."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def costs(args: argparse.Namespace) -> dict[str, float]:
    """Of each kind: what a stop costs, in turns without one; of "plain" the nanoseconds of such a turn."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.gb"
        for kind in ["plain", *(kind for kind in args.kinds or KINDS if kind != "plain")]:
            code, instructions = KINDS[kind]
            path.write_bytes(program(bytes.fromhex(code)))
            seconds, turns = measure(path, args.num_envs, args.device, args.steps)
            if kind == "plain":
                found[kind] = round(seconds / turns * 1e9, 1)
            else:
                extra = seconds * 1e9 / found["plain"] - turns
                found[kind] = round(extra * (instructions + BETWEEN) / turns, 2)
            print(f"{kind:28} {found[kind]:8}", flush=True)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--num-envs", type=int, default=16_384)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS))
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the record")
    args = parser.parse_args()
    record = {
        "what": "cost of a stop that all lanes of a warp share, in turns without one; plain: ns of such a turn",
        **{"device_name": device_name(args.device), "num_envs": args.num_envs, "git_sha": git_sha()},
        **{"versions": versions(), "kinds": costs(args)},
    }
    args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
