"""A PettingZoo environment: several flows, each an agent, which act at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from sparelane.gym.course import SEEDS, Course
from sparelane.gym.flow import LARGEST, OBSERVED, Observation, Reward, Sets
from sparelane.settings import Settings


class CongestionParallelEnv(ParallelEnv):  # type: ignore[misc]
    """Several flows of a scenario, each with an agent as that of `CongestionEnv`.

    Agents are called `flow_0`, `flow_1` and so on, by the numbers of their flows. An agent leaves when its flow is
    complete.

    Args:
        scenario: as for `CongestionEnv`.
        step_s: the simulated time of a step, seconds.
        flows: the numbers of the agents' flows, in order of start.
        sets: `"window"` or `"pace"`.
        reward: what a step is worth.
        set: values that replace the scenario's.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "sparelane_congestion_v0", "render_modes": []}

    def __init__(
        self,
        scenario: str | Path,
        *,
        step_s: float = 0.05,
        flows: Sequence[int] = (0, 1),
        sets: Sets = "window",
        reward: Reward | None = None,
        set: Settings | None = None,
    ) -> None:
        self.course = Course(scenario, step_s=step_s, flows=flows, sets=sets, reward=reward or Reward(), settings=set)
        self.flow_of = {f"flow_{flow}": flow for flow in flows}
        self.possible_agents = list(self.flow_of)
        self.agents: list[str] = []
        self.random, _ = seeding.np_random()
        self.observation_spaces = {
            agent: spaces.Box(-LARGEST, LARGEST, (len(OBSERVED),), np.float32) for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Box(-1.0, 1.0, (1,), np.float32) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Box:
        """The space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Box:
        """The space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Starts a run under a seed drawn from the environment's generator, which `seed` sets."""
        if seed is not None:
            self.random, _ = seeding.np_random(seed)
        observations = self.course.begin(int(self.random.integers(SEEDS)))
        self.agents = list(self.possible_agents)
        return self._named(observations), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, np.ndarray[Any, np.dtype[np.float32]]]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Sets all agents' windows or paces, and goes on for a step."""
        acting = {self.flow_of[agent]: float(np.asarray(actions[agent]).reshape(-1)[0]) for agent in self.agents}
        seen, is_over = self.course.step(acting)
        observations = self._named(seen)
        rewards = {agent: self.course.reward.of(observation) for agent, observation in observations.items()}
        terminated = {agent: self.course.agents[self.flow_of[agent]].is_over for agent in self.agents}
        truncated = dict.fromkeys(self.agents, is_over)
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not (terminated[agent] or is_over)]
        return observations, rewards, terminated, truncated, infos

    def _named(self, by_flow: dict[int, Observation]) -> dict[str, Observation]:
        return {f"flow_{flow}": observation for flow, observation in by_flow.items()}
