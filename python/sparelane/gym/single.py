"""A Gymnasium environment with one agent, which sets the window or the pace of one flow."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sparelane.gym.episodes import TASK, Episodes
from sparelane.gym.flow import LARGEST, OBSERVED, Observation, Reward, Sets, number_of
from sparelane.scenario.settings import Settings
from sparelane.simulation.simulate import Scenario


class CongestionEnv(gymnasium.Env[Observation, np.ndarray[Any, np.dtype[np.float32]]]):
    """An agent that sets the window or the pace of one flow.

    An observation is an array of seven `float32` (`sparelane.gym.OBSERVED`). An action is an array with one number a,
    limited to the range from -1 to 1, that multiplies the window or the pace by 2^a. The reward is that of `Reward`. An
    episode is truncated when the run ends, and terminated when the flow is complete.

    Args:
        scenario: As for `sparelane.run`; the agent's flow belongs to a scheme with `controller = "agent"`. For a list
            or range of values, each episode draws a new value. The default is one flow on a link of 20 Mb/s.
        step_s: The simulated time of a step, seconds.
        flow: The number of the agent's flow, in order of start.
        sets: `"window"` or `"pace"`.
        reward: The reward of a step.
        set: Overrides of the scenario. `{"scheme.agent.law": "newreno"}` lets NewReno decide, for comparison.

    Raises:
        ValueError: An argument is out of range.
        ScenarioError: The scenario is not valid.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Scenario = TASK,
        *,
        step_s: float = 0.05,
        flow: int = 0,
        sets: Sets = "window",
        reward: Reward | None = None,
        set: Settings | None = None,
    ) -> None:
        self.episodes = Episodes(
            scenario, step_s=step_s, flows=[flow], sets=sets, reward=reward or Reward(), settings=set
        )
        self.flow = flow
        self.observation_space = spaces.Box(-LARGEST, LARGEST, (len(OBSERVED),), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode: a run with a new seed and new values of the keys that vary.

        Args:
            seed: Seeds the environment's generator, which draws the seed and values of runs. `None` continues it.
            options: `{"set": {"topology.bottleneck_rate": "5Mbps"}}` has overrides for this episode only. They may be
                lists and ranges.

        Returns:
            The first observation, and `now_s` and `drawn`, the values of the keys that vary.

        Raises:
            ValueError: An option is unknown, or the agent's flow cannot be steered.
            ScenarioError: The scenario cannot be run with these values.
        """
        super().reset(seed=seed)
        observations = self.episodes.begin(self.np_random, options)
        return observations[self.flow], self.episodes.facts()

    def step(
        self, action: np.ndarray[Any, np.dtype[np.float32]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the window or the pace, and advances the run by a step.

        Raises:
            ValueError: The action is not one finite number. The run does not advance.
            RuntimeError: The episode is over, or none has started.
        """
        observations, is_over = self.episodes.step({self.flow: number_of(action, self.flow)})
        observation = observations[self.flow]
        terminated = self.episodes.agents[self.flow].is_over
        return observation, self.episodes.reward.of(observation), terminated, is_over, self.episodes.facts()

    def close(self) -> None:
        """Ends the current run and frees its memory."""
        self.episodes.close()
