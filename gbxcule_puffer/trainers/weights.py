"""Weights of an agent to pass on: a safetensors file in half precision, with all that playing it needs, and no code.

The games that come with the package have such files beside their game.toml: agent.safetensors and agent.json, the
agent's record (`puffer arena record`), which has the digest of the weights.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gbxcule_puffer.errors import StateError
from gbxcule_puffer.files import Kind, StrPath, parse_json, read_bytes, read_object, write_bytes
from gbxcule_puffer.games import find_game_folder, own_games

SUFFIX = ".safetensors"
AGENT, RECORD, DIGEST = f"agent{SUFFIX}", "agent.json", "weights_sha256"
KIND = Kind("agent", StateError, "give another")
LIMIT = 2**30  # bytes
SAVED = ("exp_name", "args", "counters", "env_config")  # of a checkpoint, beside its model
HEADER = struct.Struct("<Q")  # the size of the JSON in front of the tensors
METADATA, CHECKPOINT = "__metadata__", "checkpoint"  # keys of that JSON, and of the metadata


def write_weights(path: StrPath, checkpoint: Mapping[str, Any]) -> str:
    """Writes the network of a checkpoint and what is needed to play it; returns the file's SHA-256.

    Raises: StorageError.
    """
    facts = {name: checkpoint[name] for name in SAVED}
    header: dict[str, Any] = {METADATA: {CHECKPOINT: json.dumps(facts)}}
    parts, size = [], 0
    for name, tensor in checkpoint["model"].items():
        data = tensor.detach().cpu().half().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [size, size + len(data)]}
        parts.append(data)
        size += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = b"".join((HEADER.pack(len(text)), text, *parts))
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def read_weights(path: StrPath) -> dict[str, Any]:
    """A checkpoint for playing, from `write_weights`.

    Raises: StateError for another file, or a damaged one.
    """
    content = read_bytes(path, KIND, LIMIT)
    size = HEADER.unpack_from(content)[0] if len(content) >= HEADER.size else len(content)
    if size > len(content) - HEADER.size:
        raise KIND.bad(path, "is damaged (it has no header)")
    header: Any = parse_json(content[HEADER.size :][:size], path, KIND)
    data = content[HEADER.size + size :]
    try:
        facts: Any = parse_json(header.pop(METADATA)[CHECKPOINT], path, KIND)
        found = {name: facts[name] for name in SAVED}
        model = {name: _tensor(entry, data) for name, entry in header.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise KIND.bad(path, f"is damaged, or not of puffer arena record ({error})") from None
    kinds = {"exp_name": str, "args": dict, "counters": dict, "env_config": dict}
    steps = found["counters"].get("global_step") if isinstance(found["counters"], dict) else None
    if not all(isinstance(found[name], kind) for name, kind in kinds.items()) or type(steps) is not int:
        raise KIND.bad(path, "is damaged (what it says of its training)")
    return {**found, "processes": [], "model": model}


def _tensor(entry: Mapping[str, Any], data: bytes) -> torch.Tensor:
    """A tensor in float32. Raises: KeyError, TypeError or ValueError where an entry of the header is wrong."""
    first, end = entry["data_offsets"]
    if entry["dtype"] != "F16" or not 0 <= first <= end <= len(data):
        raise ValueError(f"a tensor of {entry['dtype']!r:.20} from {first!r:.20}")
    values = np.frombuffer(data[first:end], np.dtype("<f2")).astype(np.float32)
    return torch.from_numpy(values.reshape(entry["shape"]))


def own_agent(name: str) -> Path | None:
    """The weights of the agent that comes with a game of the package; None for another text.

    Raises: StateError for a game without one, and for weights that are not those of their record.
    """
    if name not in own_games():
        return None
    path = find_game_folder(name) / AGENT
    if not path.is_file():
        raise StateError(f"game {name} comes without an agent: train one with puffer train ppo --game {name}")
    record = read_object(path.with_name(RECORD), KIND)
    if hashlib.sha256(read_bytes(path, KIND, LIMIT)).hexdigest() != record.get(DIGEST):
        raise KIND.bad(path, f"is not the file that {RECORD} beside it describes")
    return path
