"""evaluate.py: whole episodes only, the same number from each env; intervals; trajectories and GIFs of checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from PIL import Image

from cleanrl_style import a2c_overlap, evaluate
from gbxcule_puffer.tasks.actions import DEFAULT_CODEC, get_codec
from gbxcule_puffer.tasks.observe.layout import shades_layout
from gbxcule_puffer.toy import ToyEnv
from gbxcule_puffer.trainers.checkpoints import read_checkpoint
from gbxcule_puffer.trainers.evaluation import Play, Policy, assess, lowest_success, random_policy, wilson_interval
from gbxcule_puffer.trainers.evaluation import evaluate as play_episodes
from tests.support.training_runs import toy_run

SIZE = ToyEnv(1).single_observation_space.shape[-1]  # pixels


class CountingEnv:
    """Env i succeeds in every (i + 1)-th episode: after 2 steps, where the others are cut after 10."""

    codec = get_codec(DEFAULT_CODEC)
    stages: tuple[SimpleNamespace, ...] = ()
    has_success = True

    def __init__(self, num_envs: int) -> None:
        self.num_envs, self.device, self.max_steps = num_envs, torch.device("cpu"), 10
        self.single_action_space = gymnasium.spaces.Discrete(8)
        self.period = torch.arange(num_envs) + 1
        self.failures = torch.zeros(num_envs, dtype=torch.bool)

    def statistics(self) -> dict[str, torch.Tensor]:
        return {"task/steps": self.steps, "task/row": torch.arange(self.num_envs).double()}

    def reset(self, seed: int) -> tuple[torch.Tensor, list]:
        self.age, self.episode = torch.zeros(self.num_envs), torch.zeros(self.num_envs)
        return torch.zeros((self.num_envs, 1)), []

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.age += 1
        self.steps = self.age.double().clone()  # of the episode, before it begins anew
        terminals = (self.age == 2) & (self.episode % self.period == self.period - 1)
        truncations = (self.age == 10) & ~terminals
        self.episode += terminals | truncations
        self.age *= ~(terminals | truncations)
        return torch.zeros((self.num_envs, 1)), torch.ones(self.num_envs), terminals, truncations, torch.empty(0)


def both(sampled: Policy, greedy: Policy, env: Any, episodes: int) -> list[dict[str, float]]:
    return [play_episodes(sampled, env, episodes, 1), play_episodes(greedy, env, env.num_envs, 1)]


@pytest.mark.parametrize(
    ("num_envs", "episodes", "rate", "played"), [(1, 6, 1.0, 6), (2, 12, 0.75, 12), (3, 16, 0.61, 18)]
)
def test_every_env_plays_as_many_whole_episodes(num_envs: int, episodes: int, rate: float, played: int) -> None:
    """The first episodes to end anywhere would all be successes of env 0."""
    env: Any = CountingEnv(num_envs)
    result = play_episodes(random_policy(env, 1), env, episodes, 1)
    assert result["success_rate"] == pytest.approx(rate, abs=0.01)
    assert result["episodes"] == played
    assert result["median_steps"] == 2
    assert result["return"] == pytest.approx(2 * rate + 10 * (1 - rate), abs=0.1)
    assert result["task/steps"] == result["return"], "a statistic is of the episodes that count, in their last steps"
    assert result["task/row"] == pytest.approx((num_envs - 1) / 2)


def test_a_task_that_cannot_succeed_has_no_success() -> None:
    env: Any = CountingEnv(2)
    env.has_success = False
    policy = random_policy(env, 1)
    found = assess(*both(policy, policy, env, 4))
    names = {"episodes", "return", "task/steps", "task/row", "greedy_return", "greedy_task/steps", "greedy_task/row"}
    assert set(found) == {f"eval/{name}" for name in names}
    assert lowest_success(found, greedy=True) < 0, "no run ends because nothing can succeed"


class StagedEnv(CountingEnv):
    """Env 0's episodes are of the stages easy and hard in turn, the others' of hard, and named where they begin."""

    stages = (SimpleNamespace(name="easy"), SimpleNamespace(name="hard"))

    @property
    def stage(self) -> torch.Tensor:
        return torch.where(self.period == 1, self.episode.long() % 2, 1)


def test_each_stage_has_its_rate() -> None:
    env: Any = StagedEnv(2)
    result = play_episodes(random_policy(env, 1), env, 16, 1)
    # Env 0 always succeeds, env 1 in every second episode: 4 easy ones, and 4 + 4 of 12 hard ones.
    assert result["stage/easy/success_rate"] == 1
    assert result["stage/hard/success_rate"] == pytest.approx(8 / 12)
    assert result["success_rate"] == pytest.approx(12 / 16)
    policy = random_policy(env, 1)
    assert lowest_success(assess(*both(policy, policy, env, 16))) == pytest.approx(8 / 12), (
        "what --stop-at-success waits for"
    )
    env = CountingEnv(2)
    assert lowest_success(assess(*both(policy, policy, env, 16))) == pytest.approx(3 / 4)


def test_a_greedy_policy_that_is_stuck_keeps_a_run_from_ending() -> None:
    env = ToyEnv(20)
    rows, still = env.side * 4, torch.zeros(20, dtype=torch.int64)

    def solve(obs: torch.Tensor, starts: Any = None) -> torch.Tensor:
        """Up or down to the middle row, then left or right."""
        cell = (obs[:, -1] == 3).flatten(1).int().argmax(1)
        row, column = cell // rows // 4 - 2, cell % rows // 4 - 2
        names = torch.where(row > 0, 4, torch.where(row < 0, 5, torch.where(column > 0, 6, 7)))
        return names  # UP, DOWN, LEFT, RIGHT

    result = assess(*both(solve, lambda obs, starts=None: still, env, 20))
    assert result["eval/success_rate"] == 1 and result["eval/greedy_success"] == 0
    assert result["eval/greedy_return"] == pytest.approx(-0.16, abs=1e-4) and "eval/greedy_median_steps" not in result
    assert lowest_success(result) == 1 and lowest_success(result, greedy=True) == 0
    equal = assess(*both(solve, solve, env, 20))
    assert lowest_success(equal, greedy=True) == 1
    assert equal["eval/greedy_median_steps"] == equal["eval/median_steps"]


def test_policies_beside_each_other_have_rows_of_their_own() -> None:
    """Beside a slow count of each row's episodes; two rows are nobody's."""
    actions, episodes = [4, 5, 7], [12, 4, 8]
    makers = [lambda env, action=action: lambda obs, starts=None: torch.full((len(obs),), action) for action in actions]
    found = Play(makers, ToyEnv(14), 4, episodes, 1).go().results()
    env = ToyEnv(14)
    env.reset(seed=1)
    pressed = torch.tensor(actions).repeat_interleave(4)
    ended: list[list[tuple[float, bool]]] = [[] for _ in range(12)]
    returns = torch.zeros(14)
    for _ in range(200):
        _, rewards, terminals, truncations, _ = env.step(torch.cat([pressed, torch.zeros(2, dtype=torch.int64)]))
        returns += rewards
        for row in (terminals | truncations)[:12].nonzero().flatten().tolist():
            ended[row].append((float(returns[row]), bool(terminals[row])))
            returns[row] = 0
    for number, (result, count) in enumerate(zip(found, episodes, strict=True)):
        own = [episode for row in ended[4 * number : 4 * number + 4] for episode in row[: count // 4]]
        assert result["episodes"] == count == len(own)
        assert result["return"] == pytest.approx(np.mean([total for total, _ in own]))
        assert result["success_rate"] == np.mean([won for _, won in own])
    assert len({result["return"] for result in found}) == 3


def test_an_evaluation_that_is_cut_has_no_statistics() -> None:
    """Those of rows whose episodes have not ended mean nothing. One that has whole episodes of all rows has them."""
    env: Any = CountingEnv(3)
    play = Play([lambda part: random_policy(part, 1)], env, 3, [30], 1)
    for _ in range(5):
        play._step()
    (cut,) = play.results()
    assert (cut["cut_at"], cut["episodes"], cut["return"]) == (5, 3, pytest.approx((2 + 5 + 5) / 3))
    assert not {name for name in cut if "/" in name} and cut["success_rate"] == pytest.approx(1 / 3)
    for _ in range(5):
        play._step()
    (whole,) = play.results()
    assert "cut_at" not in whole and whole["episodes"] == 3
    assert whole["task/steps"] == pytest.approx((2 + 10 + 10) / 3)


def test_one_env_and_many_measure_the_same_rate() -> None:
    rates = []
    for num_envs in (1, 40):
        env = ToyEnv(num_envs)
        rates.append(play_episodes(random_policy(env, 1), env, 400, 1)["success_rate"])
    assert abs(rates[0] - rates[1]) < 0.12, "five standard deviations"


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),  # from the closed formula, evaluated by hand with z = 1.96
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (95, 100, 0.8882, 0.9785)],
)
def test_wilson_interval(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.fixture(scope="module", params=["none", "gru"])
def run_dir(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(f"run_{request.param}")
    assert a2c_overlap.main(toy_run(folder, recurrent=request.param)) == 0
    return folder


def test_a_checkpoint_is_evaluated(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = {name: str(tmp_path / name) for name in ("out.json", "episode.json", "episode.gif")}
    flags = [
        "--episodes",
        "20",
        "--json",
        out["out.json"],
        "--trajectory",
        out["episode.json"],
        "--gif",
        out["episode.gif"],
    ]
    assert evaluate.main([str(run_dir / "checkpoint.pt"), *flags]) == 0
    sampled, greedy, filmed = capsys.readouterr().out.splitlines()
    assert sampled.startswith("sampled  success 0.")
    assert greedy.startswith("greedy")
    assert filmed.startswith("filmed")
    result = json.loads(Path(out["out.json"]).read_text())
    assert result["sampled"]["episodes"] == 20
    assert result["sampled"]["success_low"] <= result["sampled"]["success_rate"] <= result["sampled"]["success_high"]

    flags = ["--episodes", "20", "--json", "-", "--trajectory", out["episode.json"]]
    assert evaluate.main([str(run_dir / "checkpoint.pt"), *flags]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == result, "nothing else is on stdout"
    assert printed.err.splitlines() == [sampled, greedy, filmed]

    episode = json.loads(Path(out["episode.json"]).read_text())
    steps = len(episode["actions"])
    assert 1 <= steps <= 16
    assert len(episode["rewards"]) == steps
    with Image.open(out["episode.gif"]) as gif:
        assert gif.size == (320, 320)
        assert getattr(gif, "n_frames", 1) <= steps + 1


def test_the_trajectory_is_the_policy_s_own(run_dir: Path, tmp_path: Path) -> None:
    """The greedy actions, worked out again with the checkpoint's model, step by step."""
    path = tmp_path / "episode.json"
    flags = ["--policy", "greedy", "--episodes", "1", "--num-envs", "1", "--seed", "7", "--trajectory", str(path)]
    assert evaluate.main([str(run_dir / "checkpoint.pt"), *flags]) == 0
    checkpoint = read_checkpoint(run_dir / "checkpoint.pt")
    gru = checkpoint["args"]["recurrent"] == "gru"
    model = a2c_overlap.Agent(shades_layout(1, SIZE, SIZE), 8, gru)
    model.load_state_dict(checkpoint["model"])
    env, state, actions = ToyEnv(1, seed=7), torch.zeros((1, model.state_size)), []
    env.reset(seed=7)
    while not env.final_mask[0]:
        with torch.no_grad():
            logits, _, state = model(env.observations, state)
        actions.append(env.codec.actions[int(logits.argmax())])
        env.step(logits.argmax(1))
    assert json.loads(path.read_text())["actions"] == actions


def test_what_succeeds_is_filmed(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy that nearly always does anything, and likeliest of all nothing: sampled it sometimes succeeds, greedy it
    never does."""
    state = read_checkpoint(run_dir / "checkpoint.pt")
    state["model"] = {name: torch.zeros_like(tensor) for name, tensor in state["model"].items()}
    state["model"]["policy.bias"][0] = 0.01
    torch.save(state, tmp_path / "idle.pt")
    for flags, policy, success in (([], "sampled", True), (["--policy", "greedy"], "greedy", False)):
        paths = ["--trajectory", str(tmp_path / "out.json"), "--gif", str(tmp_path / "out.gif")]
        assert evaluate.main([str(tmp_path / "idle.pt"), *paths, *flags]) == 0
        filmed = json.loads((tmp_path / "out.json").read_text())
        assert (filmed["policy"], filmed["success"]) == (policy, success)
        ends = "reaches the goal" if success else "does not reach the goal"
        assert f"filmed   {policy}: an episode that {ends}, {len(filmed['actions'])} steps" in capsys.readouterr().out


def test_wrong_input_is_one_line(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(run_dir / "checkpoint.pt")
    state = read_checkpoint(good)
    torch.save({**state, "exp_name": "os"}, tmp_path / "other.pt")
    torch.save({**state, "env_config": {**state["env_config"], "stack_k": 4}}, tmp_path / "stack.pt")
    old = {name: tensor for name, tensor in state["model"].items() if name != "convolutions.1.weight"}
    torch.save({**state, "model": {**old, "convolutions.0.weight": torch.zeros(16, 1, 8, 8)}}, tmp_path / "old.pt")
    for arguments, message in (
        (["nowhere.pt"], "nowhere.pt: cannot be read"),
        ([str(tmp_path / "old.pt")], "the checkpoint's network is not this version's"),
        ([good, "--episodes", "0"], "--episodes 0 must be at least 1"),
        ([good, "--device", "abacus"], "abacus"),
        ([good, "--gif", str(tmp_path / "no/such/a.gif")], "is not a folder"),
        ([str(tmp_path / "other.pt")], "of trainer 'os': give one of a2c_overlap, a2c_streaming"),
        ([str(tmp_path / "stack.pt")], "stack_k 4, not 1"),
    ):
        assert evaluate.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line


def test_an_evaluation_cannot_be_resumed(
    run_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C advised --resume, which it does not have."""

    def stop(args: evaluate.Args) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "run", stop)
    assert evaluate.main([str(run_dir)]) == 130
    assert capsys.readouterr().err == "\nevaluate: interrupted\n"
    low = {"success_rate": 0.0, "success_low": 0.0, "success_high": 0.2, "return": -1.0, "episodes": 20.0}
    assert "0.200), mean return -1.00, 20" in evaluate.shown("greedy", low), "no steps where nothing succeeded"


def test_masks_are_not_needed_to_play(run_dir: Path) -> None:
    """Without `starts` a policy resets its memory where the env says that episodes begin."""
    env = ToyEnv(16, max_steps=4)
    checkpoint = read_checkpoint(run_dir / "checkpoint.pt")
    policies = [a2c_overlap.load_policy(checkpoint, env, 1, greedy=True) for _ in range(2)]
    obs, _ = env.reset()
    starts = torch.ones(16, dtype=torch.bool)
    with torch.no_grad():
        for _ in range(10):
            actions = policies[0](obs, starts)
            np.testing.assert_array_equal(actions, policies[1](obs))
            obs, _, terminals, truncations, _ = env.step(actions)
            starts = terminals | truncations
