"""The last pictures of each env; nothing is allocated per step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gbxcule_puffer.tasks.observe.layout import ObservationLayout
from gbxcule_puffer.tasks.observe.pictures import FORMS


class FrameStack:
    """The last `stack_k` pictures of each env in `observations` (num_envs, *layout.shape), which env/step_end/parts.py
    fills.

    colors: those of a Game Boy Color, shape as of the screen, uint16.

    screen: the emulator's, or for tiles and objects ObjectReader.values, which are copied as they are.

    Without `out`, with stack_k 1, pictures in the screen's own form and no vectors, `observations` is a view of the
    screen itself, or of the colours: no shift, no copy.
    """

    def __init__(
        self,
        screen: torch.Tensor,
        layout: ObservationLayout,
        out: torch.Tensor | None = None,
        colors: torch.Tensor | None = None,
    ) -> None:
        kind = layout.kind
        drawn = screen if not kind.in_color else colors if kind.dtype == np.uint16 else None
        if drawn is not None and (kind.rows, kind.row_values) != drawn.shape[-2:]:
            drawn = None
        in_place = out is None and layout.stack_k == 1 and drawn is not None and not layout.vectors
        if in_place and drawn is not None:
            out = drawn.view(len(drawn), *layout.shape)
        elif out is None:
            dtype = getattr(torch, str(layout.box.dtype))
            out = torch.zeros((len(screen), *layout.shape), dtype=dtype, device=screen.device)
        self.observations, self.layout = out, layout
        self.members: dict[str, Any] = {
            "screen": screen.view(len(screen), -1).view(torch.int32),
            "observations": layout.words(out),
            "stack_k": layout.stack_k,
            "form": FORMS.index(kind.form if kind.is_picture else "shades"),
            "rows": kind.rows,
            "columns": kind.row_values,
            "in_place": int(in_place),
        }
        if kind.in_color:
            self.members["has_colors"] = int(colors is not None)
            if colors is not None:
                self.members["colors"] = colors.view(len(colors), -1).view(torch.int32)
