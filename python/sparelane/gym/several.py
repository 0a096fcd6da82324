"""A PettingZoo environment with several flows, each with an agent. All agents act in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from sparelane.gym.episodes import Episodes
from sparelane.gym.flow import LARGEST, OBSERVED, Observation, Reward, Sets, number_of
from sparelane.scenario.settings import Settings
from sparelane.simulation.simulate import Scenario

# The placeholder options that PettingZoo's API test passes to `reset`.
PLACEHOLDER = {"options": 1}


class CongestionParallelEnv(ParallelEnv):  # type: ignore[misc]
    """Several flows of a scenario, each with an agent as in `CongestionEnv`.

    Agents are named `flow_0`, `flow_1` and so on, by the numbers of their flows. An agent leaves when its flow is
    complete.

    Args:
        scenario: As for `CongestionEnv`.
        step_s: The simulated time of a step, seconds.
        flows: The numbers of the agents' flows, in order of start.
        sets: `"window"` or `"pace"`.
        reward: The reward of a step.
        set: Overrides of the scenario.

    Raises:
        ValueError: An argument is out of range.
        ScenarioError: The scenario is not valid.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "sparelane_congestion_v0", "render_modes": []}

    def __init__(
        self,
        scenario: Scenario,
        *,
        step_s: float = 0.05,
        flows: Sequence[int] = (0, 1),
        sets: Sets = "window",
        reward: Reward | None = None,
        set: Settings | None = None,
    ) -> None:
        self.episodes = Episodes(
            scenario, step_s=step_s, flows=flows, sets=sets, reward=reward or Reward(), settings=set
        )
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
        """Starts an episode. Arguments are those of `CongestionEnv.reset`.

        Returns:
            The first observation of each agent, and `now_s` and `drawn` for each agent.

        Raises:
            ValueError: An option is unknown, or a flow cannot be steered.
            ScenarioError: The scenario cannot be run with these values.
        """
        if seed is not None:
            self.random, _ = seeding.np_random(seed)
        observations = self.episodes.begin(self.random, None if options == PLACEHOLDER else options)
        self.agents = list(self.possible_agents)
        return self._named(observations), {agent: self.episodes.facts() for agent in self.agents}

    def step(
        self, actions: dict[str, np.ndarray[Any, np.dtype[np.float32]]]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Sets the windows or paces of all agents, and advances the run by a step.

        Args:
            actions: One number for each agent in `agents`. Actions of agents that have left are ignored.

        Raises:
            ValueError: An action is missing, belongs to an unknown agent, or is not one finite number. The run does not
                advance.
            RuntimeError: The episode is over, or none has started.
        """
        missing = next((agent for agent in self.agents if agent not in actions), None)
        if missing is not None:
            raise ValueError(f"no action of agent {missing}; allowed: one for each of {', '.join(self.agents)}")
        unknown = next((agent for agent in actions if agent not in self.flow_of), None)
        if unknown is not None:
            raise ValueError(f"an action of {unknown!r}; allowed: agents {', '.join(self.possible_agents)}")
        acting = {self.flow_of[agent]: number_of(actions[agent], self.flow_of[agent]) for agent in self.agents}
        seen, is_over = self.episodes.step(acting)
        observations = self._named(seen)
        rewards = {agent: self.episodes.reward.of(observation) for agent, observation in observations.items()}
        terminated = {agent: self.episodes.agents[self.flow_of[agent]].is_over for agent in self.agents}
        truncated = dict.fromkeys(self.agents, is_over)
        infos = {agent: self.episodes.facts() for agent in self.agents}
        self.agents = [agent for agent in self.agents if not (terminated[agent] or is_over)]
        return observations, rewards, terminated, truncated, infos

    def close(self) -> None:
        """Ends the current run and frees its memory."""
        self.episodes.close()

    def _named(self, by_flow: dict[int, Observation]) -> dict[str, Observation]:
        return {f"flow_{flow}": observation for flow, observation in by_flow.items()}
