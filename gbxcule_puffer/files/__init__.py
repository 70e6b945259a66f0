"""Files: a read is bounded and checked, a write is whole or leaves what was there; each error is one line."""

from gbxcule_puffer.files.kinds import StrPath
from gbxcule_puffer.files.reading import (
    Kind,
    inflate,
    parse_json,
    parse_toml,
    read_array,
    read_bytes,
    read_json,
    read_object,
    read_tensors,
    read_text,
)
from gbxcule_puffer.files.writing import (
    check_output,
    check_output_folder,
    check_target,
    make_folder,
    new_file,
    new_folder,
    open_append,
    remove_parts,
    write_bytes,
    write_json,
    write_text,
)

__all__ = [
    "Kind",
    "StrPath",
    "check_output",
    "check_output_folder",
    "check_target",
    "inflate",
    "make_folder",
    "new_file",
    "new_folder",
    "open_append",
    "parse_json",
    "parse_toml",
    "read_array",
    "read_bytes",
    "read_json",
    "read_object",
    "read_tensors",
    "read_text",
    "remove_parts",
    "write_bytes",
    "write_json",
    "write_text",
]
