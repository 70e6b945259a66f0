"""Weights that are passed on: in half precision, without code, known by their digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gbxcule_puffer.errors import StateError
from gbxcule_puffer.trainers import trained, weights
from gbxcule_puffer.trainers.weights import AGENT, DIGEST, HEADER, RECORD, own_agent, read_weights, write_weights

FACTS = {"exp_name": "pqn", "args": {"seed": 1}, "counters": {"global_step": 9}, "env_config": {"obs": "shades"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 3).state_dict()
    write_weights(tmp_path / AGENT, {**FACTS, "model": model, "optimizer": {"lr": 1}})
    return tmp_path / AGENT


def test_weights_are_read_as_they_were_written(file: Path) -> None:
    torch.manual_seed(0)
    found, wanted = read_weights(file), torch.nn.Linear(5, 3).state_dict()
    assert {name: found[name] for name in FACTS} == FACTS and found["processes"] == []
    assert found["model"].keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert torch.equal(found["model"][name], tensor.half().float())


def with_header(change: Callable[[dict], None], content: bytes) -> bytes:
    size = HEADER.unpack_from(content)[0]
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    return HEADER.pack(len(text)) + text + content[8 + size :]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: HEADER.pack(2**60) + content[8:],
        lambda content: with_header(lambda header: header.pop("__metadata__"), content),
        lambda content: with_header(lambda header: header["bias"].update(shape=[4]), content),
        lambda content: with_header(lambda header: header["bias"].update(shape=["3"]), content),
        lambda content: with_header(lambda header: header["bias"].update(dtype="F64"), content),
        lambda content: with_header(lambda header: header["bias"].update(data_offsets=[-6, 0]), content),
        lambda content: with_header(lambda header: header["bias"].update(data_offsets=[0, 10**12]), content),
        lambda content: with_header(lambda header: header["__metadata__"].update(checkpoint="[1]"), content),
        lambda content: with_header(lambda header: header.update(bias=[1]), content),
    ],
    ids=["empty", "cut", "header", "metadata", "shape", "text", "type", "before", "behind", "list", "entry"],
)
def test_damaged_weights_are_one_line(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(StateError, match=r"^agent .* damaged"):
        read_weights(file)


def test_an_agent_is_trusted_by_its_digest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_game_folder", lambda name: file.parent)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    file.with_name(RECORD).write_text(json.dumps({DIGEST: digest}))
    assert own_agent("orchard") == file
    assert trained._newest("orchard") == file
    file.with_name(RECORD).write_text(json.dumps({DIGEST: digest[::-1]}))
    with pytest.raises(StateError, match=r"is not the file that agent\.json beside it describes"):
        own_agent("orchard")
    file.unlink()
    with pytest.raises(StateError, match="comes without an agent: train one with puffer train ppo --game orchard"):
        own_agent("orchard")
    assert own_agent("nowhere") is None
