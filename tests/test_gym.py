"""Learning environments: they pass the checkers of their interfaces, repeat under a seed, and reward what they say."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("pettingzoo", reason="pettingzoo is not installed")

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

import sparelane as sl
from sparelane.gym import OBSERVED, CongestionEnv, CongestionParallelEnv, Reward

SCENARIO = """
duration = "4s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "20Mbps"
bottleneck_delay = "10ms"
[queue]
limit = "100packets"
[scheme.agent]
controller = "agent"
[[workload]]
kind = "bulk"
flows = 3
size = "unlimited"
[[link]]
between = ["west", "east"]
loss = 0.002
"""


def env(**more: object) -> CongestionEnv:
    return CongestionEnv(SCENARIO, set={"workload.flows": 1}, **more)  # type: ignore[arg-type]


def episode(env: CongestionEnv, seed: int, action: float) -> list[float]:
    env.reset(seed=seed)
    rewards, truncated = [], False
    while not truncated:
        _, reward, terminated, truncated, _ = env.step(np.array([action], dtype=np.float32))
        assert not terminated
        rewards.append(reward)
    return rewards


def test_the_environment_passes_gymnasiums_checker() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(env(), skip_render_check=True)


def test_the_parallel_environment_passes_pettingzoos_tests() -> None:
    parallel_api_test(CongestionParallelEnv(SCENARIO, flows=[0, 1, 2]), num_cycles=200)
    parallel_seed_test(lambda: CongestionParallelEnv(SCENARIO, flows=[0, 2]), num_cycles=30)


def test_an_episode_repeats_under_its_seed() -> None:
    rewards = [episode(env(), seed, 0.1) for seed in (7, 7, 8)]
    assert rewards[0] == rewards[1] != rewards[2]


def test_a_wider_window_brings_rate_and_then_delay() -> None:
    course = env(reward=Reward(delay_weight=0.0, loss_weight=0.0))
    seen = []
    course.reset(seed=1)
    for action in [0.0] * 10 + [0.5] * 10 + [0.0] * 20:
        observation, reward, *_ = course.step(np.array([action], dtype=np.float32))
        assert reward == pytest.approx(float(observation[0]))
        seen.append(observation)
    rate, delay = (np.array([observation[place] for observation in seen]) for place in (0, 1))
    assert rate[5:10].mean() < 0.4
    assert rate[30:].mean() > 0.9
    assert delay[30:].mean() > 5 * max(delay[5:10].mean(), 0.01)


def test_a_pace_is_steered_where_there_is_one() -> None:
    course = CongestionEnv(SCENARIO, sets="pace", set={"workload.flows": 1, "scheme.agent.pace": "5Mbps"})
    course.reset(seed=1)
    rates = [course.step(np.array([action], dtype=np.float32))[0][0] for action in [0] * 10 + [1] + [0] * 10]
    assert np.mean(rates[5:10]) == pytest.approx(0.25, rel=0.1)
    assert np.mean(rates[-5:]) == pytest.approx(0.5, rel=0.1)
    with pytest.raises(ValueError, match="no pace to set; allowed: pace"):
        env(sets="pace").reset(seed=1)


def test_a_law_in_the_agents_place_is_left_alone() -> None:
    def windows(action: float) -> list[float]:
        course = CongestionEnv(SCENARIO, set={"workload.flows": 1, "scheme.agent.law": "newreno"})
        course.reset(seed=3)
        return [float(course.step(np.array([action], dtype=np.float32))[0][4]) for _ in range(30)]

    assert windows(1.0) == windows(-1.0)
    assert len(set(windows(0.0))) > 5


def test_an_agent_whose_flow_ends_leaves() -> None:
    course = CongestionParallelEnv(SCENARIO, flows=[0, 1], set={"workload.size": "40packets", "link.0.loss": 0.0})
    course.reset(seed=1)
    left = False
    for _ in range(60):
        _, _, terminated, _, _ = course.step({agent: np.zeros(1, dtype=np.float32) for agent in course.agents})
        left |= any(terminated.values())
        if not course.agents:
            break
    assert left
    assert course.agents == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"step_s": 0.0}, "step_s is 0.0; allowed"),
        ({"sets": "rate"}, "sets is 'rate'; allowed"),
        ({"flow": -1}, "flows is"),
        ({"flow": 9}, "flow 9 is not open"),
    ],
)
def test_what_cannot_be_says_why(change: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        env(**change).reset(seed=1)


def test_a_scenario_without_agents_is_refused() -> None:
    with pytest.raises(ValueError, match='another controller; allowed: flows under "agent"'):
        CongestionEnv(SCENARIO.replace('"agent"', '"cubic"').replace("scheme.agent", "scheme.tcp")).reset(seed=1)
    with pytest.raises(sl.ScenarioError, match='"agent": unknown'):
        sl.run(SCENARIO)


def test_the_example_learns_to_beat_newreno() -> None:
    path = Path(__file__).parents[1] / "examples" / "learn" / "train.py"
    spec = importlib.util.spec_from_file_location("train_example", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    still = np.zeros(len(OBSERVED) + 1)
    weights = example.train(iterations=6, population=16, kept=4, episodes=1)
    learned, before = example.judge(weights), example.judge(still)
    newreno = example.judge(still, **{"scheme.agent.law": "newreno"})
    assert learned > 2 * max(newreno, before), (learned, newreno, before)
