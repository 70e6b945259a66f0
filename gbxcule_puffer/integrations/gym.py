"""The environments for Gymnasium: `make_vec` returns a gymnasium.vector.VectorEnv, `make` a gymnasium.Env.

Importing this registers GBxCuLE-v0: `gymnasium.make("gbxcule_puffer.integrations.gym:GBxCuLE-v0", rom=...)`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector.utils import batch_space

from gbxcule_puffer.closing import close_for_good
from gbxcule_puffer.env.options import signature
from gbxcule_puffer.errors import ActionError, ConfigError
from gbxcule_puffer.integrations.images import Shown, first_shown, observation_space, shown
from gbxcule_puffer.integrations.window import QUIT, Window, why_no_window
from gbxcule_puffer.layout import SUITE
from gbxcule_puffer.pictures import mosaic, to_rgb
from gbxcule_puffer.registry import create
from gbxcule_puffer.tasks.observe.layout import Array
from gbxcule_puffer.tasks.observe.pixels import signed

try:
    from gymnasium.vector import AutoresetMode
except ImportError:
    raise ConfigError(
        f"gymnasium {gymnasium.__version__} has no autoreset modes: install gymnasium 1.1 or newer "
        "(PufferLib 3.0.0 holds it at 0.29.1: use an environment without it)"
    ) from None

if TYPE_CHECKING:
    from gbxcule_puffer.baselines.pyboy_puffer_vec import PyBoyPufferVec
    from gbxcule_puffer.env import GBxCuLEEnv

    GameBoys = GBxCuLEEnv | PyBoyPufferVec

ENV_ID = "GBxCuLE-v0"
RENDER_MODES = ("rgb_array", "human")
RENDER_SCALE = 2
WINDOW_SCALE = 4
SHOWN = 64  # Game Boys of a window


def make_vec(
    env: str = "gbxcule",
    num_envs: int = 1,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    copy: bool = True,
    render_mode: str | None = None,
    **options: object,
) -> GameBoyVectorEnv:
    """`num_envs` Game Boys as one VectorEnv. `options` are the arguments of GBxCuLEEnv: rom, device and EnvOptions; or
    game, variant and levels of a folder (docs/games.md).

    env: a name of `env_creator`: gbxcule or a PyBoy baseline.
    autoreset_mode: SAME_STEP; NEXT_STEP: the step after an episode's end ignores its action and begins the next
    episode; or DISABLED: Game Boys whose episode has ended wait for `reset(options={"reset_mask": ...})`.
    render_mode: rgb_array; or human: a window with up to 64 Game Boys, at the console's speed.
    copy: False returns the environment's own buffers, which the next step overwrites.

    Raises: ConfigError and the errors of the environment.
    """
    return GameBoyVectorEnv(_create(env, num_envs, options), autoreset_mode, copy, render_mode)


def make(env: str = "gbxcule", *, render_mode: str | None = None, **options: object) -> GameBoyEnv:
    """One Game Boy as a gymnasium.Env; `options` as for `make_vec`.

    Raises: ConfigError and the errors of the environment.
    """
    return GameBoyEnv(_create(env, 1, options), render_mode)


def _create(env: str, num_envs: int, options: dict[str, object]) -> GameBoys:
    # The statistics are over all envs; Gymnasium's wrappers count each env's episodes.
    return create(env, num_envs=num_envs, **{"info_mode": "none", **options})


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ConfigError(f"autoreset mode {mode!r} is unknown: give one of {names}") from None


def _check_render_mode(mode: str | None) -> str | None:
    if mode not in (None, *RENDER_MODES):
        raise ConfigError(f"render mode {mode!r} is unknown: give 'rgb_array', 'human' or None")
    if mode == "human" and (reason := why_no_window()):
        raise ConfigError(f"render mode 'human': no window can be opened here ({reason}): give 'rgb_array'")
    return mode


class HumanView:
    """The window of render_mode="human", opened with the first picture; after it is closed, nothing more is shown."""

    def __init__(self, steps_per_second: float) -> None:
        self._seconds, self._due = 1 / steps_per_second, 0.0
        self._window: Window | None = None
        self._closed = False

    def show(self, env: GameBoys) -> None:
        """Shows the pictures at the end of the last step, for the duration of a step on the console."""
        if self._closed:
            return
        picture = to_rgb(mosaic(_pictures(env)[:SHOWN]))
        if self._window is None:
            rows, columns, _ = picture.shape
            scale = max(1, WINDOW_SCALE * 144 // max(rows, 144))
            self._window = Window("gbxcule-puffer", rows, columns, scale, "give render_mode='rgb_array'")
        self._window.show(picture)
        self._due = max(self._due, time.monotonic()) + self._seconds
        while (left := self._due - time.monotonic()) > 0:
            event = self._window.event(max(1, int(1000 * left)))
            if event is not None and event.kind == QUIT:
                self.close()
                return

    def close(self) -> None:
        """Closes the window."""
        self._closed = True
        if self._window is not None:
            self._window.close()
            self._window = None


def _pictures(env: GameBoys) -> np.ndarray:
    """The pictures at the end of the last step, before any reset: shades or colours (num_envs, rows, columns)."""
    return env.final_pictures().cpu().numpy()


class GameBoyVectorEnv(gymnasium.vector.VectorEnv):
    """A PufferEnv as a VectorEnv.

    SAME_STEP: when an episode ends, `info["final_obs"]` has its last observation, and `info["_final_obs"]` is set. With
    io="numpy" these exist only in steps that end an episode; final_obs is an array of objects, None elsewhere, as in
    Gymnasium's own vector envs. With io="torch" they always exist, final_obs as one tensor for all envs: to leave them
    out, the host would have to wait for the device.
    NEXT_STEP: `step` returns the last observation of an ended episode; the next step returns the first of the next
    episode, with a reward of 0, and ignores the action.
    DISABLED: `step` returns the last observation of an ended episode, and refuses to continue before a reset.

    `async_reset`, `send` and `recv` work as in EnvPool, for all envs at a time.
    """

    def __init__(self, env: GameBoys, autoreset_mode: AutoresetMode | str, copy: bool, render_mode: str | None) -> None:
        self.autoreset_mode, self.render_mode = _mode(autoreset_mode), _check_render_mode(render_mode)
        self.env, self.num_envs, self.copy = env, env.num_agents, copy
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": [*RENDER_MODES],
            "render_fps": _steps_per_second(env),
        }
        self.single_observation_space = observation_space(env.layout)
        self.single_action_space = _action_space(env)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ended: Any = None  # where not SAME_STEP: envs that wait for their reset; None before the first one
        self._answer: Any = None  # to what was sent
        self._view = HumanView(_steps_per_second(env)) if render_mode == "human" else None

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in all envs, or where options["reset_mask"] (num_envs,) bool is set.

        The same seed gives the same episodes; without a seed, each reset starts others. With a list of seeds, one for
        each Game Boy, each plays what a single one plays with that seed. A mask allows no seed.
        """
        mask = (options or {}).get("reset_mask")
        if isinstance(seed, Sequence | np.ndarray):
            if mask is not None:
                raise ConfigError("reset with a reset_mask takes no list of seeds: leave one of them out")
            seed = [_env_seed(self, each) for each in seed]
        else:
            super().reset(seed=seed)
        if mask is None:
            self.env.reset(seed=seed if isinstance(seed, list) else _env_seed(self, seed))
            if self.render_mode:
                self.env.keep_pictures()
            self._ended = self.env.terminals & False
            return self._parts(self._returned(self.env.observations)), {}
        self._check_mask(mask)
        observations = self.env.reset_envs(mask)
        self._ended = self._ended & ~mask
        # An ended env that is not in the mask goes on waiting, with its last observation.
        waits = self._ended.reshape(-1, *[1] * (len(observations.shape) - 1))
        if self.env.io == "numpy":
            return self._parts(np.where(waits, self.env.final_observation, observations)), {}
        chosen = torch.where(waits, signed(self.env.final_observation), signed(observations))
        return self._parts(chosen.view(observations.dtype)), {}

    def step(self, actions: Array) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of all envs; (num_envs,) actions."""
        if self._ended is None:
            raise ConfigError("step before reset: call reset first")
        if self.autoreset_mode is AutoresetMode.DISABLED and bool(self._ended.any()):
            raise ConfigError('step after an episode ended: reset(options={"reset_mask": terminations | truncations})')
        if self.env.io == "numpy":
            actions = np.asarray(actions)
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        ended = self._returned(self.env.final_mask)
        info: dict[str, Any] = {"stats": infos[0]} if infos else {}
        if self.autoreset_mode is AutoresetMode.DISABLED:
            observations, self._ended = self.env.final_observation, terminations | truncations
        elif self.autoreset_mode is AutoresetMode.NEXT_STEP:
            observations, rewards, terminations, truncations = self._begun_late(rewards, terminations, truncations)
        elif self.env.io == "torch":
            info |= {"final_obs": self._parts(self._returned(self.env.final_observation)), "_final_obs": ended}
        elif ended.any():
            final = np.full(self.num_envs, None, object)
            last = self.env.final_observation
            for index in np.flatnonzero(ended):
                final[index] = first_shown(self.env.layout, last[index : index + 1].copy())
            info |= {"final_obs": final, "_final_obs": ended}
        if self._view:
            self._view.show(self.env)
        ends = map(self._returned, (rewards, terminations, truncations))
        return self._parts(self._returned(observations)), *ends, info  # pyright: ignore[reportReturnType]

    def _begun_late(self, rewards: Array, terminations: Array, truncations: Array) -> tuple[Any, Any, Any, Any]:
        """NEXT_STEP: envs that ended one step ago have played a step of the next episode, which begins again."""
        waited = self._ended
        if self.env.io == "torch" or waited.any():
            self.env.reset_envs(waited)  # their final_observation is the new one
        self._ended = (terminations | truncations) & ~waited
        return self.env.final_observation, rewards * ~waited, terminations & ~waited, truncations & ~waited

    def async_reset(self, seed: int | Sequence[int | None] | None = None) -> None:
        """Starts an episode in all envs; `recv` gives the observations."""
        observations, info = self.reset(seed=seed)
        like = self.env.terminals
        zeros = np.zeros(self.num_envs, np.float32) if self.env.io == "numpy" else self.env.rewards * 0
        self._answer = observations, zeros, like & False, like & False, info

    def send(self, actions: Array, env_id: Array | None = None) -> None:
        """Steps all envs; on a GPU this returns while they play. env_id: the envs in the order of the actions.

        Raises: ActionError unless it has each env once.
        """
        if env_id is not None:
            order = np.asarray(env_id)
            if order.shape != (self.num_envs,) or not np.array_equal(np.sort(order), np.arange(self.num_envs)):
                raise ActionError(f"env_id must have each of the {self.num_envs} envs once: all play in lockstep")
            actions = (
                actions[np.argsort(order)] if self.env.io == "numpy" else actions[torch.from_numpy(order).argsort()]
            )
        self._answer = self.step(actions)

    def recv(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """The results of `send` or `async_reset`, as returned by `step`; info["env_id"] has the envs in order.

        Raises: ConfigError if nothing was sent.
        """
        if self._answer is None:
            raise ConfigError("recv before send: call async_reset or send first")
        (*parts, info), self._answer = self._answer, None
        return *parts, info | {"env_id": np.arange(self.num_envs)}  # pyright: ignore[reportReturnType]

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One RGB picture an env, (144, 160, 3) uint8 (twice that with obs="full"), of where the last step led."""
        if self.render_mode != "rgb_array":
            return None
        return tuple(to_rgb(picture, RENDER_SCALE) for picture in _pictures(self.env))

    def close_extras(self, **_: object) -> None:
        """End the env's own processes and free its buffers; every other call is an error from then on."""
        if self._view:
            self._view.close()
        self.env.close()
        close_for_good(self)

    def _parts(self, observations: Array) -> Shown:
        return shown(self.env.layout, observations)

    def _returned(self, part: Array) -> Array:
        if not self.copy:
            return part
        return part.clone() if isinstance(part, torch.Tensor) else part.copy()

    def _check_mask(self, mask: Array) -> None:
        kind = torch.Tensor if self.env.io == "torch" else np.ndarray
        if not (isinstance(mask, kind) and mask.shape == (self.num_envs,) and str(mask.dtype).endswith("bool")):
            raise ActionError(f"reset_mask must be a {kind.__name__} of bool with shape ({self.num_envs},)")
        if self._ended is None:
            raise ConfigError("reset_mask before the first reset: call reset without it first")


class GameBoyEnv(gymnasium.Env):
    """A PufferEnv of one Game Boy as a gymnasium.Env."""

    def __init__(self, env: GameBoys, render_mode: str | None) -> None:
        if env.io != "numpy":
            raise ConfigError(f"io {env.io!r} is not for a single env: leave it out, or use make_vec")
        self.env, self.render_mode = env, _check_render_mode(render_mode)
        self.metadata = {"render_modes": [*RENDER_MODES], "render_fps": _steps_per_second(env)}
        self._view = HumanView(_steps_per_second(env)) if render_mode == "human" else None
        self.observation_space, self.action_space = observation_space(env.layout), _action_space(env)

    def reset(self, *, seed: int | None = None, options: dict[str, object] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the observation has no axis for envs."""
        super().reset(seed=seed)
        observations, _ = self.env.reset(seed=_env_seed(self, seed))
        if self.render_mode:
            self.env.keep_pictures()
        return first_shown(self.env.layout, observations.copy()), {}

    def step(self, action: int | np.integer | np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; an ended episode needs a reset."""
        _, rewards, terminations, truncations, infos = self.env.step(np.array([action]))
        info = {"stats": infos[0]} if infos else {}
        if self._view:
            self._view.show(self.env)
        ends = bool(terminations[0]), bool(truncations[0])
        return first_shown(self.env.layout, self.env.final_observation.copy()), float(rewards[0]), *ends, info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """An RGB picture (144, 160, 3) uint8 (twice that with obs="full") of where the last step led."""
        return None if self.render_mode != "rgb_array" else to_rgb(_pictures(self.env)[0], RENDER_SCALE)

    def close(self) -> None:
        """End the env and free its buffers; every other call is an error from then on."""
        if self._view:
            self._view.close()
        self.env.close()
        close_for_good(self)


def _action_space(env: GameBoys) -> gymnasium.Space:
    """The env's action space, but MultiBinary if each of several choices has two options."""
    factors = env.codec.factors
    return gymnasium.spaces.MultiBinary(len(factors)) if set(factors) == {2} else env.single_action_space


def _env_seed(env: gymnasium.Env | gymnasium.vector.VectorEnv, seed: int | None) -> int:
    """`seed`, or without one the next sample of the env's np_random, so that each reset differs from the last."""
    return int(env.np_random.integers(2**31)) if seed is None else seed


def _steps_per_second(env: GameBoys) -> float:
    """Of the console: 59.7 frames a second."""
    return round(59.7275 / env.schedule.frames_per_step, 2)


# Editors and `inspect` show the environment's options too.
make_vec.__signature__ = signature(make_vec)  # pyright: ignore[reportFunctionMemberAccess]
make.__signature__ = signature(make)  # pyright: ignore[reportFunctionMemberAccess]

# The suite's games, by the ids of docs/suite.md: GBxCuLE/Orchard-v0, GBxCuLE/OrchardTest-v0 and so on.
for name in SUITE:
    for levels in ("", "-test"):
        words = (name.removeprefix("gbxcule_") + levels).split("-")
        if (suite_id := f"GBxCuLE/{''.join(word.title() for word in words)}-v0") not in gymnasium.registry:
            gymnasium.register(
                suite_id,
                entry_point="gbxcule_puffer.integrations.gym:make",
                vector_entry_point="gbxcule_puffer.integrations.gym:make_vec",
                kwargs={"env": name + levels},
            )

if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="gbxcule_puffer.integrations.gym:make",
        vector_entry_point="gbxcule_puffer.integrations.gym:make_vec",
    )
