"""The list of a step's tensors: what follows from it."""

from __future__ import annotations

import torch

from gbxcule_puffer.env.fields import FIELDS, EnvTensors, Episode


def test_a_row_is_a_tensor_a_member_and_a_part_of_the_saved_state() -> None:
    envs, members = EnvTensors(3, torch.device("cpu")), Episode.vars
    for field in FIELDS:
        tensor = getattr(envs, field.name)
        assert tensor.dtype == field.dtype and tensor.shape == (3,)
        assert (field.name in members) == field.in_kernel == (field.name in envs.members())
        assert (field.name in envs.saved()) == field.saved
        tensor.fill_(1 - field.initial)
    envs.clear()
    assert all((getattr(envs, field.name) == field.initial).all() for field in FIELDS)


def test_given_tensors_are_used_as_they_are() -> None:
    rewards = torch.zeros(3)
    assert EnvTensors(3, torch.device("cpu"), rewards=rewards).rewards is rewards
