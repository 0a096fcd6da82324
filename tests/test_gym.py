"""Tests of the environments for reinforcement learning: interfaces, repeatability, observations and rewards."""

from __future__ import annotations

import importlib.util
import math
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("pettingzoo", reason="pettingzoo is not installed")

import gymnasium
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

import sparelane as sl
from sparelane.gym import OBSERVED, REGISTERED, CongestionEnv, CongestionParallelEnv, Reward

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


def steps(env: Any, count: int, action: float = 0.0) -> list[float]:
    """Returns all numbers in the observations of some steps."""
    return [float(number) for _ in range(count) for number in env.step(np.array([action], dtype=np.float32))[0]]


def env(more: Mapping[str, object] | None = None, **arguments: Any) -> CongestionEnv:
    return CongestionEnv(SCENARIO, set={"workload.flows": 1, **(more or {})}, **arguments)


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


def test_a_larger_window_increases_the_rate_and_then_the_delay() -> None:
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


def test_an_action_multiplies_the_pace_with_sets_pace() -> None:
    course = CongestionEnv(SCENARIO, sets="pace", set={"workload.flows": 1, "scheme.agent.pace": "5Mbps"})
    course.reset(seed=1)
    rates = [course.step(np.array([action], dtype=np.float32))[0][0] for action in [0] * 10 + [1] + [0] * 10]
    assert np.mean(rates[5:10]) == pytest.approx(0.25, rel=0.1)
    assert np.mean(rates[-5:]) == pytest.approx(0.5, rel=0.1)
    with pytest.raises(ValueError, match="no pace to set; allowed: pace"):
        env(sets="pace").reset(seed=1)


def test_actions_have_no_effect_on_a_law_in_place_of_the_agent() -> None:
    def windows(action: float) -> list[float]:
        course = CongestionEnv(SCENARIO, set={"workload.flows": 1, "scheme.agent.law": "newreno"})
        course.reset(seed=3)
        return [float(course.step(np.array([action], dtype=np.float32))[0][4]) for _ in range(30)]

    assert windows(1.0) == windows(-1.0)
    assert len(set(windows(0.0))) > 5


def test_an_agent_is_removed_when_its_flow_ends() -> None:
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
def test_invalid_arguments_are_refused_with_the_reason(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        env(**change).reset(seed=1)


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize("form", ["{}", "sparelane.gym:{}"])
def test_gymnasium_makes_the_registered_environments_by_name(form: str, name: str) -> None:
    made = gymnasium.make(form.format(name))
    assert made.spec is not None
    assert made.spec.id == name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(made.unwrapped, skip_render_check=True)


def test_make_passes_its_arguments_to_the_environment() -> None:
    made = gymnasium.make("sparelane/Pace-v0", scenario=SCENARIO, set={"scheme.agent.pace": "5Mbps"}, step_s=0.5)
    _, info = made.reset(seed=1)
    assert info["now_s"] == 0.5
    assert made.step(np.zeros(1, dtype=np.float32))[0][5] == pytest.approx(0.25)


def test_an_agent_can_fill_the_link_of_each_registered_environment() -> None:
    for name in REGISTERED:
        made = gymnasium.make(name)
        made.reset(seed=2)
        for _ in range(60):
            made.step(np.array([0.3], dtype=np.float32))
        assert max(steps(made, 20)[::7]) > 0.9, name


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_environments_of_a_vector_have_separate_networks(mode: str) -> None:
    vector = gymnasium.make_vec("sparelane/VariedWindow-v0", num_envs=3, vectorization_mode=mode)
    _, info = vector.reset(seed=5)
    assert len(set(info["drawn"]["topology.bottleneck_rate"])) == 3
    observations, rewards, *_ = vector.step(vector.action_space.sample())
    assert observations.shape == (3, len(OBSERVED))
    assert len(set(rewards.tolist())) == 3
    vector.close()


def test_options_of_reset_change_the_network_of_one_episode() -> None:
    course = env()

    def first(options: dict[str, Any] | None) -> list[float]:
        course.reset(seed=1, options=options)
        return steps(course, 10)

    usual = first(None)
    slow = first({"set": {"topology.bottleneck_rate": "5Mbps"}})
    assert slow != usual
    assert slow[-7] > 3 * usual[-7], "the rate is a share of the slowest cable"
    assert first({}) == usual
    made_slow = env(more={"topology.bottleneck_rate": "5Mbps"})
    made_slow.reset(seed=1)
    assert steps(made_slow, 10) == slow


def test_options_of_reset_reach_every_agent_of_a_parallel_environment() -> None:
    course = CongestionParallelEnv(SCENARIO, flows=[0, 2])

    def rates(options: dict[str, Any] | None) -> list[float]:
        _, infos = course.reset(seed=1, options=options)
        assert set(infos) == {"flow_0", "flow_2"}
        for _ in range(10):
            observations, *_ = course.step({agent: np.zeros(1, dtype=np.float32) for agent in course.agents})
        return [float(observation[0]) for observation in observations.values()]

    assert max(rates({"set": {"topology.bottleneck_rate": "200Mbps"}})) < min(rates(None)) / 5


def test_lists_and_ranges_are_drawn_for_each_episode_from_the_seed() -> None:
    varied = {
        "topology.bottleneck_rate": {"from": "5Mbps", "to": "50Mbps", "log": True},
        "topology.bottleneck_delay": {"from": "5ms", "to": "25ms", "step": "10ms"},
        "queue.limit": {"from": "10packets", "to": "99packets"},
        "link.0.loss": [0.0, 0.001],
    }

    def episodes(course: CongestionEnv) -> list[dict[str, Any]]:
        return [course.reset(seed=3)[1]["drawn"], *(course.reset()[1]["drawn"] for _ in range(40))]

    drawn = episodes(env(more=varied))
    assert drawn == episodes(env(more=varied))
    assert all(set(one) == set(varied) for one in drawn)
    rates = [float(one["topology.bottleneck_rate"].removesuffix("Mbps")) for one in drawn]
    assert len(set(rates)) == 41
    assert 5 <= min(rates) < 10 < 25 < max(rates) <= 50
    assert {one["topology.bottleneck_delay"] for one in drawn} == {"5ms", "15ms", "25ms"}
    limits = [int(one["queue.limit"].removesuffix("packets")) for one in drawn]
    assert 10 <= min(limits) < 30 < 80 < max(limits) <= 99
    assert {one["link.0.loss"] for one in drawn} == {0.0, 0.001}


def test_the_drawn_network_is_simulated() -> None:
    course = env(more={"topology.bottleneck_rate": ["5Mbps", "40Mbps"]})
    _, info = course.reset(seed=1)
    fixed = env(more=info["drawn"])
    fixed.reset(seed=1)
    assert steps(course, 20) == steps(fixed, 20)


def test_a_fixed_network_draws_nothing() -> None:
    _, info = env().reset(seed=1)
    assert info["drawn"] == {}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bandwidth": 3}, "options has 'bandwidth', which reset does not know; allowed: 'set'"),
        ({"set": {}, "seed": 3}, "options has 'seed'"),
        ({"set": 3}, r"options\['set'\] is 3; allowed: a dictionary"),
        ([1], r"options is \[1\]; allowed: a dictionary"),
        ({"set": {"topology.pairz": 3}}, 'topology.pairz: unknown key.*did you mean "pairs"'),
        ({"set": {"queue.limit": []}}, "--set queue.limit: an empty list"),
        (
            {"set": {"topology.bottleneck_rate": {"from": "5Mbps", "to": "3Mbps"}}},
            "--set topology.bottleneck_rate: to = .* is not above from",
        ),
        ({"set": {"topology.bottleneck_rate": {"from": "0Mbps", "to": "3Mbps", "log": True}}}, "from above 0"),
        ({"set": {"scheme.agent.controller": "cubic"}}, 'flow 0 has another controller; allowed: flows under "agent"'),
    ],
)
def test_unknown_options_of_reset_are_refused(options: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        env().reset(seed=1, options=options)
    with pytest.raises(ValueError, match=expected):
        CongestionParallelEnv(SCENARIO, flows=[0, 1]).reset(seed=1, options=options)


@pytest.mark.parametrize("action", [math.nan, math.inf, -math.inf, [math.nan], [0.1, 0.2], [], None, "up", {"a": 1}])
def test_an_action_that_is_not_one_finite_number_is_refused_by_agent_and_flow(action: Any) -> None:
    course, several = env(), CongestionParallelEnv(SCENARIO, flows=[0, 2])
    refused = re.escape(f"{action!r}; allowed: one finite number")
    course.reset(seed=1)
    with pytest.raises(ValueError, match=rf"the action of flow 0 \(agent flow_0\) is {refused}"):
        course.step(action)
    several.reset(seed=1)
    with pytest.raises(ValueError, match=rf"the action of flow 2 \(agent flow_2\) is {refused}"):
        several.step({"flow_0": np.zeros(1), "flow_2": action})  # type: ignore[dict-item]
    fresh = env()
    fresh.reset(seed=1)
    assert steps(course, 5) == steps(fresh, 5), "a refused action changes nothing"


def test_actions_outside_the_space_are_clipped() -> None:
    def after(action: float) -> list[float]:
        course = env()
        course.reset(seed=1)
        return steps(course, 5, action)

    assert after(7.0) == after(1.0)
    assert after(-7.0) == after(-1.0)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [({"flow_0": [0.0]}, "no action of agent flow_1"), ({"flow_0": [0], "flow_1": [0], "flow_7": [0]}, "'flow_7'")],
)
def test_a_parallel_step_names_the_agent_whose_action_is_missing_or_unknown(actions: Any, expected: str) -> None:
    course = CongestionParallelEnv(SCENARIO, flows=[0, 1])
    course.reset(seed=1)
    with pytest.raises(ValueError, match=expected):
        course.step(actions)


def test_a_step_outside_an_episode_is_refused() -> None:
    course = env(step_s=1.0)
    with pytest.raises(RuntimeError, match="no episode is active; allowed: reset"):
        course.step(np.zeros(1, dtype=np.float32))
    course.reset(seed=1)
    while not course.step(np.zeros(1, dtype=np.float32))[3]:
        pass
    with pytest.raises(RuntimeError, match="the episode is over; allowed: reset"):
        course.step(np.zeros(1, dtype=np.float32))
    course.reset()
    course.close()
    with pytest.raises(RuntimeError, match="no episode is active"):
        course.step(np.zeros(1, dtype=np.float32))


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
    learned, before = example.evaluate(weights), example.evaluate(still)
    newreno = example.evaluate(still, **{"scheme.agent.law": "newreno"})
    assert learned > 2 * max(newreno, before), (learned, newreno, before)
