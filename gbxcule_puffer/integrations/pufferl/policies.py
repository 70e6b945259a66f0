"""Policies for PufferLib's trainer: a CNN on the screen, and the same CNN in front of an LSTM.

They follow PufferLib's contract (encode_observations, decode_actions, forward, forward_eval) and take every kind of
observation: shades or colours, stacked or not, with vectors or without.
"""

from __future__ import annotations

from typing import Any

import pufferlib.models
import torch
from torch import nn

from gbxcule_puffer.env import GBxCuLEEnv
from gbxcule_puffer.trainers.blocks import Patches, layer_init, object_layers


class PixelCNN(nn.Module):
    """Two strided convolutions on the pictures, a hidden layer for their features and the other vectors, and a policy
    and a value head."""

    is_continuous = False  # what PufferLib's LSTM wrapper asks

    def __init__(self, env: GBxCuLEEnv, hidden_size: int = 256) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.layout = env.layout
        shape = self.layout.picture_shape
        self.trunk = object_layers(self.layout) or nn.Sequential(
            Patches(self.layout.kind.most),
            layer_init(nn.Conv2d(16 * shape[0], 16, 2)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 4, stride=2)),
            nn.Flatten(),  # before ReLU: on a CPU, gradients in two orders of memory take it ten times as long
            nn.ReLU(),
        )
        features = self.trunk(torch.zeros(1, *shape)).shape[1] + self.layout.vector_size
        self.hidden = nn.Sequential(layer_init(nn.Linear(features, hidden_size)), nn.ReLU())
        self.choices = [*env.codec.factors] or [env.codec.num_actions]
        self.policy = layer_init(nn.Linear(hidden_size, sum(self.choices)), 0.01)
        self.value = layer_init(nn.Linear(hidden_size, 1), 1.0)

    def forward(self, observations: torch.Tensor, state: object = None) -> tuple[Any, torch.Tensor]:
        """Logits (batch, num_actions) and values (batch, 1) of observations (batch, *shape)."""
        return self.decode_actions(self.encode_observations(observations, state))

    forward_eval = forward

    def encode_observations(self, observations: torch.Tensor, state: object = None) -> torch.Tensor:
        """Hidden features (batch, hidden_size)."""
        return self.hidden(self.layout.join(self.trunk(self.layout.pixels(observations)), observations))

    def decode_actions(self, hidden: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """Logits (batch, num_actions), or a tuple of those of each choice, and values (batch, 1)."""
        logits = self.policy(hidden)
        return logits if len(self.choices) == 1 else logits.split(self.choices, 1), self.value(hidden)


class PixelLSTM(pufferlib.models.LSTMWrapper):  # pyright: ignore[reportAttributeAccessIssue]
    """PufferLib's LSTM between the features and the heads of a PixelCNN."""

    def __init__(self, env: GBxCuLEEnv, policy: PixelCNN, input_size: int = 256, hidden_size: int = 256) -> None:
        super().__init__(env, policy, input_size, hidden_size)
        # The wrapper has just set all weights to gain 1: restore a first policy that tries every button.
        layer_init(policy.policy, 0.01)
