"""The episodes of an environment: runs of a scenario whose flows use the controller "agent", advanced in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparelane import _native
from sparelane.gym import networks
from sparelane.gym.flow import FlowAgent, Observation, Reward, Sets
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario.settings import Settings, override_texts
from sparelane.simulation import simulate

# Upper bound of the seeds of runs.
SEEDS = 2**31 - 1

# All flows of agents must be open within this share of the run's duration.
LONGEST_WAIT = 0.5

# The only option of `reset`, with overrides of the scenario for one episode.
SET = "set"

# The default scenario of an environment.
TASKS = Path(__file__).parent / "tasks"
TASK = TASKS / "window.toml"


class Episodes:
    """A scenario and its current run. `begin` starts a run, and `step` advances it.

    Args:
        scenario: As for `sparelane.run`; the flows of agents belong to a scheme with `controller = "agent"`. For a list
            or range of values, each run draws a new value: see `sparelane.gym.networks`.
        step_s: The simulated time of a step, seconds.
        flows: The numbers of the agents' flows, in order of start.
        sets: The agents' action: `"window"` or `"pace"`. To set the pace, the scheme needs an initial `pace`.
        reward: The reward of a step.
        settings: Overrides of the scenario, which may be lists and ranges.

    Raises:
        ValueError: An argument is out of range.
        ScenarioError: A list or a range is not valid.
    """

    def __init__(
        self,
        scenario: simulate.Scenario,
        *,
        step_s: float,
        flows: Sequence[int],
        sets: Sets,
        reward: Reward,
        settings: Settings | None,
    ) -> None:
        if not 1e-6 <= step_s <= 1e3:
            raise ValueError(f"step_s is {step_s}; allowed: seconds from 0.000001 to 1000")
        if sets not in ("window", "pace"):
            raise ValueError(f"sets is {sets!r}; allowed: 'window', 'pace'")
        if not flows or len(set(flows)) < len(flows) or min(flows) < 0:
            raise ValueError(f"flows is {list(flows)}; allowed: numbers of flows from 0, at least one, none twice")
        self.text, self.name, self.folder = simulate.read(scenario)
        self.step_s = step_s
        self.flows = tuple(flows)
        self.sets: Sets = sets
        self.reward = reward
        self.overrides = override_texts(settings)
        self.draws = networks.draws(self.text, self.name, self.overrides)
        self.drawn: dict[str, Any] = {}
        self.is_over = False
        self.run: _native.Stepper | None = None
        self.agents: dict[int, FlowAgent] = {}
        self.now_s = 0.0

    def begin(self, random: np.random.Generator, options: Mapping[str, Any] | None = None) -> dict[int, Observation]:
        """Starts a run and advances it until all agents' flows are open. Returns the first observation of each agent.

        Args:
            random: Draws the seed of the run, and then one value for each key with a list or a range.
            options: `{"set": {...}}` has overrides for this run only.

        Raises:
            ScenarioError: The scenario cannot be run.
            ValueError: An option is unknown; or a flow has another controller, does not open in the first half of the
                run, or has no pace to set.
        """
        settings = settings_of(options)
        draws = self.draws
        if settings:
            draws = networks.draws(self.text, self.name, [*self.overrides, *settings])
        seed = int(random.integers(SEEDS))
        drawn = {draw.key: draw.draw(random) for draw in draws}
        overrides = [*self.overrides, *settings, *networks.texts(drawn), f"seed={seed}"]
        self.run = None
        run = _native.Stepper(self.text, self.name, str(self.folder), overrides, REGISTRY.catalogue())
        self.run, self.drawn, self.is_over = run, drawn, False
        self.now_s = 0.0
        # Agents can act only when all of their flows are open.
        waiting = list(self.flows)
        while waiting:
            self.now_s += self.step_s
            is_over = self.run.advance(self.now_s)
            waiting = [flow for flow in waiting if self.run.view(flow) is None]
            if waiting and (is_over or self.now_s > LONGEST_WAIT * self.run.duration_s):
                raise ValueError(f"flow {waiting[0]} is not open together with the others in the first half of the run")
        views = {flow: self.run.view(flow) for flow in self.flows}
        if self.sets == "pace" and any(view is not None and view.pacing_bps is None for view in views.values()):
            raise ValueError(
                'the scheme of the agents has no pace to set; allowed: pace = "1Mbps" next to controller = "agent"'
            )
        self.agents = {flow: FlowAgent(flow, self.run.mss_bytes, self.run.slowest_bps) for flow in self.flows}
        return {flow: agent.observe(self.run, self.now_s) for flow, agent in self.agents.items()}

    def step(self, actions: Mapping[int, float]) -> tuple[dict[int, Observation], bool]:
        """Applies the actions and advances the run by a step.

        Args:
            actions: A finite number for each agent's flow.

        Returns:
            The observation of each agent that acted, and `True` if the run is over.

        Raises:
            RuntimeError: No run is active.
        """
        if self.run is None:
            raise RuntimeError("no episode is active; allowed: reset, then step")
        if self.is_over:
            raise RuntimeError("the episode is over; allowed: reset, which starts the next one")
        for flow, action in actions.items():
            self.agents[flow].act(self.run, self.sets, action)
        self.now_s += self.step_s
        self.is_over = self.run.advance(self.now_s)
        return {flow: self.agents[flow].observe(self.run, self.step_s) for flow in actions}, self.is_over

    def close(self) -> None:
        """Ends the current run and frees its memory."""
        self.run = None

    def facts(self) -> dict[str, Any]:
        """The `info` of an observation: the simulated time, and the values that were drawn for this run."""
        return {"now_s": self.now_s, "drawn": dict(self.drawn)}


def settings_of(options: Mapping[str, Any] | None) -> list[str]:
    """The overrides in the options of `reset`, each `KEY=VALUE`.

    Raises:
        ValueError: An option is unknown, or its value has the wrong type.
    """
    if options is None:
        return []
    if not isinstance(options, Mapping):
        raise ValueError(f"options is {options!r}; allowed: a dictionary, as in {{'{SET}': {{'queue.limit': '1bdp'}}}}")
    unknown = next((key for key in options if key != SET), None)
    if unknown is not None:
        raise ValueError(
            f"options has {unknown!r}, which reset does not know; allowed: {SET!r}, a dictionary of keys of the "
            f"scenario, as in {{'{SET}': {{'topology.bottleneck_rate': '5Mbps'}}}}"
        )
    settings = options.get(SET)
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"options[{SET!r}] is {settings!r}; allowed: a dictionary of keys of the scenario")
    return override_texts(settings)
