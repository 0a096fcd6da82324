"""A Gymnasium environment: one agent sets the window, or the pace, of one flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sparelane.gym.course import SEEDS, Course
from sparelane.gym.flow import LARGEST, OBSERVED, Observation, Reward, Sets
from sparelane.settings import Settings


class CongestionEnv(gymnasium.Env[Observation, np.ndarray[Any, np.dtype[np.float32]]]):
    """One flow of a scenario, step by step.

    An observation has seven numbers (`sparelane.gym.OBSERVED`). An action is one number from -1 to 1: the window, or
    the pace, is multiplied by two to its power. The reward is `Reward`'s. An episode is truncated where the run ends,
    and terminated where the flow does.

    Args:
        scenario: as for `sparelane.run`, with the agent's flow under a scheme with `controller = "agent"`.
        step_s: the simulated time of a step, seconds.
        flow: the number of the agent's flow, in order of start.
        sets: `"window"` or `"pace"`.
        reward: what a step is worth.
        set: values that replace the scenario's: `{"scheme.agent.law": "newreno"}` lets NewReno decide, to compare with.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path,
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
        """Starts a run under a seed drawn from the environment's generator, which `seed` sets."""
        super().reset(seed=seed)
        observations = self.course.begin(int(self.np_random.integers(SEEDS)))
        return observations[self.flow], {"now_s": self.course.now_s}

    def step(
        self, action: np.ndarray[Any, np.dtype[np.float32]]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets the window or the pace, and goes on for a step."""
        observations, is_over = self.course.step({self.flow: float(np.asarray(action).reshape(-1)[0])})
        observation = observations[self.flow]
        terminated = self.course.agents[self.flow].is_over
        return observation, self.course.reward.of(observation), terminated, is_over, {"now_s": self.course.now_s}
