"""Game Boys stepped by a policy in JAX, without a copy: an example for docs/native.md.

python docs/jax_steps.py --num-envs 4096 --steps 100 --device cuda
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import torch

from gbxcule_puffer.env import GBxCuLEEnv


class JaxEnv:
    """GBxCuLEEnv with JAX's arrays: they are views of the env's memory, which the next step overwrites.

    DLPack carries the order of work too: JAX waits for the env's stream, and the env's stream waits for the actions.
    """

    def __init__(self, rom: str, num_envs: int, device: str, **options: Any) -> None:
        self.env = GBxCuLEEnv(rom, num_envs, device, io="torch", info_mode="none", **options)
        index = self.env.device.index
        self.gpu = -1 if index is None else index  # -1 leaves torch's current GPU, which JAX may have changed, as it is

    def reset(self, seed: int) -> jax.Array:
        """Begins an episode in every env; returns observations, uint8."""
        with torch.cuda.device(self.gpu):
            observations = jnp.from_dlpack(self.env.reset(seed)[0])
        self.device = observations.device
        return observations

    def step(self, actions: jax.Array) -> tuple[jax.Array, ...]:
        """(observations, rewards, terminals, truncations) after an action, int32, in every env."""
        given = torch.from_dlpack(jax.device_put(actions, self.device))  # copies those of another device
        with torch.cuda.device(self.gpu):
            return tuple(jnp.from_dlpack(array) for array in self.env.step(given)[:4])


@jax.jit
def act(weights: jax.Array, observations: jax.Array, key: jax.Array) -> jax.Array:
    """Actions sampled from a linear policy, int32."""
    pixels = observations.reshape(len(observations), -1) / 3.0
    return jax.random.categorical(key, pixels @ weights).astype(jnp.int32)


def play(env: JaxEnv, steps: int, seed: int = 0) -> tuple[jax.Array, float]:
    """Plays with random weights; returns each env's sum of rewards, and the seconds."""
    observations = env.reset(seed)
    with jax.default_device(env.device):
        key = jax.random.key(seed)
        weights = 0.1 * jax.random.normal(key, (observations[0].size, env.env.codec.num_actions))
        total = jnp.zeros(len(observations))
    start = time.perf_counter()
    for step in range(steps):
        actions = act(weights, observations, jax.random.fold_in(key, step))
        observations, rewards, _, _ = env.step(actions)
        total = jax.block_until_ready(total + rewards)  # read before the next step overwrites them
    return total, time.perf_counter() - start


def main(argv: Sequence[str] | None = None) -> None:
    """Plays HOMEWARD, and prints the steps a second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args(argv)
    env = JaxEnv("homeward", args.num_envs, args.device)
    play(env, 10)  # compiles
    total, seconds = play(env, args.steps)
    rate = args.num_envs * args.steps / seconds
    print(f"{args.num_envs} Game Boys on {args.device}: {rate:,.0f} steps/s, mean reward {float(total.mean()):.3f}")


if __name__ == "__main__":
    main()
