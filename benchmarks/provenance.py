"""Where a measurement comes from: gbxcule_puffer.provenance, for the scripts of this folder."""

from gbxcule_puffer.provenance import cpu_name, git_sha, usable_cores, versions, write_json

__all__ = ["cpu_name", "git_sha", "usable_cores", "versions", "write_json"]
