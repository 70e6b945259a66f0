"""gbxcule_puffer/files: writes replace regular files only and are whole, reads are bounded, errors are one line."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gbxcule_puffer import files
from gbxcule_puffer.errors import ConfigError, GoalError, StateError, StorageError
from gbxcule_puffer.files.writing import PART

KIND = files.Kind("trace", GoalError, "record it")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("stays")


def make_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("stays")
    path.symlink_to(target)


def make_broken_link(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError:
        pytest.skip("only root may make a device")


ODD: dict[str, Callable[[Path], None]] = {
    "FIFO": make_fifo, "folder": make_folder, "symbolic link": make_link, "a symbolic link": make_broken_link,
    "device": make_device,
}  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("what", ODD)
def test_only_regular_files_are_replaced(tmp_path: Path, what: str) -> None:
    path = tmp_path / "out.json"
    ODD[what](path)
    before, there = os.lstat(path), names(tmp_path)
    with pytest.raises(ConfigError, match=f"out.json is a.* {what.removeprefix('a ')}, and only a regular file"):
        files.write_json(path, {})
    after = os.lstat(path)
    assert (after.st_mode, after.st_ino, names(tmp_path)) == (before.st_mode, before.st_ino, there)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_mode_is_the_umasks(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        files.write_text(tmp_path / "a", "text")
        with files.new_folder(tmp_path / "b") as folder:
            files.write_text(folder / "c", "text")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "b", "b/c")]
    assert modes == [0o666 & ~umask, 0o777 & ~umask, 0o666 & ~umask]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.png"
    with pytest.raises(KeyboardInterrupt), files.new_file(path) as file:
        assert Path(file.name).suffix == ".png"
        file.write(b"half")
        raise KeyboardInterrupt
    assert names(tmp_path) == []
    files.write_text(path, "whole")
    with pytest.raises(ZeroDivisionError), files.new_file(path) as file:
        file.write(b"half")
        _ = 1 / 0
    assert (path.read_text(), names(path.parent)) == ("whole", ["out.png"])


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"state cannot be written \(No space left on device\): make room"),
        files.new_file(tmp_path / "state"),
        open("/dev/full", "wb") as full,
    ):
        full.write(b"much")
        full.flush()
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", ["file/out", "x" * 300, "zero\0byte"])
def test_paths_that_cannot_be(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written .*: give another path") as error:
        files.write_text(tmp_path / path, "")
    assert "\n" not in str(error.value)
    with pytest.raises(GoalError, match="cannot be read"):
        files.read_text(tmp_path / path, KIND)


def test_a_folder_is_replaced_only_by_its_like(tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    for content in ("old", "new"):
        with files.new_folder(goal, replaces=("a", "b")) as folder:
            (folder / "a").write_text(content)
    assert ((goal / "a").read_text(), names(tmp_path)) == ("new", ["goal"])
    (goal / "diary").write_text("mine")
    with (
        pytest.raises(ConfigError, match="goal holds diary, which would be lost"),
        files.new_folder(goal, replaces=("a", "b")),
    ):
        pass
    (goal / "diary").unlink()
    (goal / "b").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="goal holds b"), files.new_folder(goal, replaces=("a", "b")):
        pass
    with pytest.raises(ConfigError, match="a is a file, not a folder"), files.new_folder(goal / "a"):
        pass
    assert (names(tmp_path), names(goal)) == (["goal"], ["a", "b"])


def test_parts_of_a_killed_process_go(tmp_path: Path) -> None:
    (tmp_path / f"{PART}1234.pt").write_text("")
    (tmp_path / f"{PART}5678").mkdir()
    (tmp_path / f"{PART}5678" / "a").write_text("")
    (tmp_path / "kept").write_text("")
    files.remove_parts(tmp_path)
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize("what", ["FIFO", "folder", "device"])
def test_only_regular_files_are_read(tmp_path: Path, what: str) -> None:
    ODD[what](tmp_path / "a")
    with pytest.raises(GoalError, match=f"trace .*a: is a {what}, not a file: record it"):
        files.read_bytes(tmp_path / "a", KIND, 100)


def test_sizes_are_known_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(GoalError, match="has 1,099,511,627,776 bytes, at most 100 are allowed"):
        files.read_bytes(path, KIND, 100)


BAD_JSON = {
    "deep": (b"[" * 100_000, "more than 16 levels"),
    "deep and whole": (b'{"a":' * 20 + b"1" + b"}" * 20, "more than 16 levels"),
    "cut off": (b'{"format": "x"', "is damaged"),
    "not UTF-8": (b'"\xff"', "no UTF-8 text at byte 1"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "no UTF-8"),
    "half a character": (rb'{"a": "\ud800"}', "is damaged"),
    "NaN": (b"[NaN]", "NaN is not a number"),
    "infinite": (b"[1e999]", "1e999 is not a number"),
    "too many digits": (b"1" * 5000, "is damaged"),
    "larger than a float": (b"[-" + b"9" * 400 + b"]", "a number has 401 digits"),
    "empty": (b"", "is damaged"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_is_one_line(tmp_path: Path, name: str) -> None:
    data, reason = BAD_JSON[name]
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(GoalError, match=reason) as error:
        files.read_json(tmp_path / "a", KIND)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["null", "5", "true", '"text"', "[1, null]", "{}"])
def test_json_of_any_kind_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    assert files.read_json(tmp_path / "a", KIND) == json.loads(text)
    if text != "{}":
        with pytest.raises(GoalError, match="is not a trace file"):
            files.read_object(tmp_path / "a", KIND)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = [", "Invalid value"),
        ("a = " + "[" * 5000, "too many brackets"),
        ("a = " + "9" * 5000, "too many digits"),
        ("a = [{b = -" + "9" * 400 + "}]", "more than 300 digits"),
    ],
    ids=["cut off", "deep", "digits", "larger than a float"],
)
def test_bad_toml_is_one_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        files.parse_toml(text)
    assert "\n" not in str(error.value)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\ufeff[1]", encoding="utf-8")
    assert files.read_json(tmp_path / "a", KIND) == [1] and files.read_text(tmp_path / "a", KIND) == "[1]"


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "new/folders/out", tmp_path / "out", tmp_path / "file"):
        assert files.check_output(path) == path
    for path in (tmp_path / "new/folder", tmp_path):
        assert files.check_output_folder(path) == path
    for check in (files.check_output, files.check_output_folder):
        with pytest.raises(
            ConfigError, match=r"cannot be written \(.*Not a dir.*|.* is not a folder\): give another path"
        ):
            check(tmp_path / "file/a/b")
        with pytest.raises(ConfigError, match=r"cannot be written \(.* is read-only\): give another path"):
            check("/proc/sys/kernel/a")
    with pytest.raises(ConfigError, match="is a file, not a folder"):
        files.check_output_folder(tmp_path / "file")
    assert names(tmp_path) == ["file"]


def test_headers_of_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"format": "ours", "version": 2, "text": "\u00e9\U0001f600"})
    assert files.read_object(path, KIND, "ours", 2)["text"] == "\u00e9\U0001f600"
    with pytest.raises(GoalError, match=r"is not a trace file \(format is not 'theirs'\): record it$"):
        files.read_object(path, KIND, "theirs", 2)
    with pytest.raises(GoalError, match=r"has version 2, not 1: record it again$"):
        files.read_object(path, KIND, "ours", 1)
    for odd in (True, "x" * 500, [2]):
        path.write_text(json.dumps({"format": "ours", "version": odd}))
        with pytest.raises(GoalError, match=r"has version .{1,40}, not 1: record it again$"):
            files.read_object(path, KIND, "ours", 1)
    path.write_text("[]")
    with pytest.raises(GoalError, match="is not a trace file"):
        files.read_object(path, KIND)


def npy(header: str, payload: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + payload


def saved(array: Any, save: Callable[..., None] = np.save) -> bytes:
    out = io.BytesIO()
    save(out, array)
    return out.getvalue()


BAD_ARRAYS = {
    "huge": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 23000000000, 1)}"),
    "negative": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-1, -1, 1)}", b"1"),
    "deep": npy("(" * 9000),
    "code": npy("__import__('os').abort()"),
    "escape": npy("{'descr': '|u1\\,', 'fortran_order': False, 'shape': (1, 1, 1)}", b"1"),
    "pickle": saved(np.array([None, []], object).reshape(1, 2, 1)),
    "npz": saved(np.zeros((1, 1, 1), np.uint8), np.savez),
    "cut off": saved(np.zeros((2, 3, 4), np.uint8))[:-1],
    "longer": saved(np.zeros((2, 3, 4), np.uint8)) + b"x",
    "floats": saved(np.zeros((2, 3, 4), np.float32)),
    "flat": saved(np.zeros(24, np.uint8)),
    "columns first": saved(np.asfortranarray(np.zeros((2, 3, 4), np.uint8))),
    "empty": b"",
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_are_one_line(tmp_path: Path, name: str, recwarn: pytest.WarningsRecorder) -> None:
    (tmp_path / "a.npy").write_bytes(BAD_ARRAYS[name])
    with pytest.raises(GoalError, match=r"is damaged|is not an array of uint8 with 3 dimensions"):
        files.read_array(tmp_path / "a.npy", KIND, np.uint8, 3, 10_000)
    assert not recwarn


def test_a_good_array(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.save(tmp_path / "a.npy", array)
    found = files.read_array(tmp_path / "a.npy", KIND, np.uint8, 3, 1000)
    assert found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_inflating_has_a_bound() -> None:
    data = zlib.compress(b"\0" * 1000)
    assert files.inflate(data, 1000) == b"\0" * 1000
    for damaged, size in ((data, 999), (data, 1001), (data[:-1], 1000), (data + b"x", 1000), (b"x", 1000)):
        assert files.inflate(damaged, size) is None


def rewritten(path: Path, change: Callable[[str, bytes], bytes], compression: int = zipfile.ZIP_STORED) -> None:
    """The archive at `path` with its parts changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, change(name, data))


class Call:
    """Is pickled as a call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def test_tensors_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    state = {"weights": {"w": torch.ones(2, 3), "b": torch.zeros(1, dtype=torch.bool)}, "step": 3, "args": {"x": None}}
    torch.save(state, path)
    found = files.read_tensors(path, KIND, 10_000)
    assert found["step"] == 3 and torch.equal(found["weights"]["w"], state["weights"]["w"])
    with pytest.raises(GoalError, match="at most 100 are allowed"):
        files.read_tensors(path, KIND, 100)


@pytest.mark.parametrize("call", [(bytearray, (10**9,)), (torch.FloatTensor, (1000,)), (os.getpid, ())])
def test_a_checkpoint_calls_nothing(tmp_path: Path, call: Any) -> None:
    torch.save({"a": Call(*call)}, tmp_path / "a.pt")
    with pytest.raises(GoalError, match=r"is damaged \(it holds .*, not only tensors, numbers and text\): record it"):
        files.read_tensors(tmp_path / "a.pt", KIND, 10_000)


def test_bad_archives_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"a": torch.zeros(100_000)}, path)
    whole = path.read_bytes()
    rewritten(path, lambda name, data: data, zipfile.ZIP_DEFLATED)
    with pytest.raises(GoalError, match="it is compressed"):
        files.read_tensors(path, KIND, 10**6)
    path.write_bytes(whole)
    rewritten(path, lambda name, data: data.replace(b"K\x01\x85", b"\x8a\x05" + b"\x7f" * 5 + b"\x85", 1))
    with pytest.raises(GoalError, match="is damaged"):
        files.read_tensors(path, KIND, 10**6)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for data in (bytes(flipped), whole[:-100], b"", b"no archive"):
        path.write_bytes(data)
        with pytest.raises(GoalError, match="is damaged") as error:
            files.read_tensors(path, KIND, 10**6)
        assert "weights_only" not in str(error.value) and "\n" not in str(error.value)


def test_errors_escape_what_a_terminal_obeys() -> None:
    error = StateError("state \x1b[2J\nx\u202e\ud800\u00e9: give another")
    assert str(error) == r"state \x1b[2J\nx\u202e\ud800é: give another"
