"""The evidence for a candidate, in words."""

from __future__ import annotations

import torch

from gbxcule_puffer.scan.kinds import AXES, BRANCH
from gbxcule_puffer.scan.pokes import Causes

ROUNDED = 0.005  # shares up to this are 0%, and say nothing
WITH_A = 0.1  # part of the forks in which A changes a height, from which it is evidence
Stats = dict[str, torch.Tensor]


def percent(part: torch.Tensor) -> str:
    return f"{float(part):.0%}"


def evidence_of(kind: str, byte: int, stats: Stats, causes: Causes, num_envs: int) -> str:
    """One line."""

    def of(name: str) -> torch.Tensor:
        return stats[name][byte]

    envs = f"{round(float(of('envs')) * num_envs):,} of {num_envs:,} Game Boys"
    span = f"{int(of('lowest'))} to {int(of('highest'))}"
    parts: list[str] = []
    if kind in AXES:
        ahead, behind, cross, cross2 = AXES[kind]
        higher, lower, reacts = stats["higher"][:, byte], stats["lower"][:, byte], stats["reacts"][:, byte]
        a, b = BRANCH[ahead], BRANCH[behind]
        is_inverse = bool(torch.minimum(lower[a], higher[b]) > torch.minimum(higher[a], lower[b]))
        up, down = ("falls", "rises") if is_inverse else ("rises", "falls")
        first, second = (lower[a], higher[b]) if is_inverse else (higher[a], lower[b])
        across = (reacts[BRANCH[cross]] + reacts[BRANCH[cross2]]) / 2
        shares = [(f"{up} with {ahead}", first, 0.0), (f"{down} with {behind}", second, 0.0)]
        shares += [(f"changes with {cross} or {cross2}", across, 0.0), ("changes with A", reacts[BRANCH["A"]], WITH_A)]
        said = [f"{text} in {percent(share)}" for text, share, least in shares if share > max(least, ROUNDED)]
        parts += [f"{said[0]} of the forks", *said[1:]] if said else []
        sprites = causes.sprites_x if kind == "x" else causes.sprites_y
        camera = causes.camera_x if kind == "x" else causes.camera_y
        if sprites[byte] > 0.2 or camera[byte] > 0.2:
            parts.append(f"{'sprites follow' if sprites[byte] > 0.2 else 'the camera follows'} it")
    elif kind == "score":
        parts.append(f"rises {int(of('rise_count'))} times in {envs}, falls {int(of('fall_count'))} times")
    elif kind == "lives":
        parts.append(f"falls {int(of('fall_count'))} times in {envs}, by one in {percent(of('falls_by_one'))}")
        parts.append(f"rises {int(of('rise_count'))} times")
    elif kind == "timer":
        parts.append(
            f"changes every {float(of('gap')) * 4:.0f} frames in {envs}, "
            f"equally with all buttons in {percent(of('agree'))}"
        )
    elif kind == "random":
        parts.append(f"{int(of('distinct'))} different values, {float(of('spread')):.1f} of 8 bits spread")
    elif kind == "map":
        parts.append(
            f"changes {int(of('rise_count') + of('fall_count'))} times in {envs}, "
            f"{percent(of('scene'))} of them when the picture changes"
        )
    elif kind == "menu":
        parts.append(f"says whether directions do something in {percent(of('rules'))}")
    elif kind == "flags":
        parts.append(f"bits are set {int(of('rise_count'))} times in {envs}, and stay")
    if kind in ("score", "lives") and of("shown") > 0.6:
        row, column = divmod(int(of("shown_cell")) % 1024, 32)
        parts.append(f"the picture shows its digits (column {column}, row {row} of the tile map)")
    parts.append(f"from {span}")
    if causes.poked[byte]:
        stays, draws = causes.stays_late[byte], causes.draws_late[byte]
        parts.append("a changed value stays" if stays > 0.5 else "a changed value is overwritten")
        if draws > 0.2:
            parts.append(f"and shows in {percent(draws)} of the pictures")
    return ", ".join(parts)
