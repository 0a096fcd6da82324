"""A Gymnasium environment: one agent sets the window, or the pace, of one flow."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sparelane.gym.course import TASK, Course
from sparelane.gym.flow import LARGEST, OBSERVED, Observation, Reward, Sets, number_of
from sparelane.scenario.settings import Settings
from sparelane.simulation.simulate import Scenario


class CongestionEnv(gymnasium.Env[Observation, np.ndarray[Any, np.dtype[np.float32]]]):
    """An agent that sets the window, or the pace, of one flow.

    An observation is an array of seven `float32` (`sparelane.gym.OBSERVED`). An action is an array of one number: the
    window, or the pace, is multiplied by two to its power. An action outside of -1 to 1 is limited to that range. The
    reward is that of `Reward`. An episode is truncated when the run ends, and terminated when the flow does.

    Args:
        scenario: As for `sparelane.run`, with the agent's flow under a scheme with `controller = "agent"`. A list or
            a range in place of a value gets a new value in each episode. The default is one flow on a link of 20 Mb/s.
        step_s: The simulated time of a step, seconds.
        flow: The number of the agent's flow, in order of start.
        sets: `"window"` or `"pace"`.
        reward: How a step is rewarded.
        set: Values that replace the scenario's: `{"scheme.agent.law": "newreno"}` lets NewReno decide, for comparison.

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
        self.course = Course(scenario, step_s=step_s, flows=[flow], sets=sets, reward=reward or Reward(), settings=set)
        self.flow = flow
        self.observation_space = spaces.Box(-LARGEST, LARGEST, (len(OBSERVED),), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode: a run under a new seed, with newly drawn values of the keys that vary.

        Args:
            seed: Sets the environment's generator, which draws the run's seed and values. `None` draws the next ones.
            options: `{"set": {"topology.bottleneck_rate": "5Mbps"}}` replaces values of the scenario in this episode
                alone. Lists and ranges are drawn from.

        Returns:
            the first observation, and `now_s` and `drawn`, the values of the keys that vary.

        Raises:
            ValueError: An option is unknown, or the agent's flow cannot be steered.
            ScenarioError: The scenario cannot be run with these values.
        """
        super().reset(seed=seed)
        observations = self.course.begin(self.np_random, options)
        return observations[self.flow], self.course.facts()

    def step(
        self, action: np.ndarray[Any, np.dtype[np.float32]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the window or the pace, and advances the run by a step.

        Raises:
            ValueError: The action is not one finite number. The run is then where it was.
            RuntimeError: The episode is over, or none has begun.
        """
        observations, is_over = self.course.step({self.flow: number_of(action, self.flow)})
        observation = observations[self.flow]
        terminated = self.course.agents[self.flow].is_over
        return observation, self.course.reward.of(observation), terminated, is_over, self.course.facts()

    def close(self) -> None:
        """Ends the current run and frees its memory."""
        self.course.close()
