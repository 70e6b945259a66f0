"""The trainers' optimizers are torch's, to the bit."""

from __future__ import annotations

import pytest
import torch

from gbxcule_puffer.trainers import blocks


@pytest.mark.parametrize(("own", "torchs"), [(blocks.Adam, torch.optim.Adam), (blocks.RAdam, torch.optim.RAdam)])
def test_steps_and_states_are_torchs(own: type, torchs: type) -> None:
    found = []
    for kind in (own, torchs):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))
        optimizer = kind(model.parameters(), lr=3e-3, eps=1e-5)
        steps = []
        optimizer.register_step_post_hook(lambda *_, steps=steps: steps.append(1))
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(16, 5)).square().mean().backward()
            optimizer.step()
        state = optimizer.state_dict()
        again = kind(model.parameters(), lr=1.0)
        again.load_state_dict(state)
        assert len(steps) == 8 and again.param_groups[0]["lr"] == 3e-3
        assert all(parameter.requires_grad for parameter in model.parameters())
        found.append(([parameter.detach() for parameter in model.parameters()], state))
    (ours, state), (theirs, other) = found
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert state["param_groups"] == other["param_groups"]
    for number, parts in other["state"].items():
        assert all(torch.equal(state["state"][number][name], part) for name, part in parts.items())
