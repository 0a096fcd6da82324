"""The run behind an environment: a scenario with flows under the controller "agent", advanced in steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparelane import _native, api
from sparelane.gym.flow import FlowAgent, Observation, Reward, Sets
from sparelane.plugins.registry import REGISTRY
from sparelane.settings import Settings, override_texts

# Seeds of runs are drawn below this.
SEEDS = 2**31 - 1

# How long a run may wait for its agents' flows to open, as a share of its duration.
LONGEST_WAIT = 0.5


class Course:
    """A scenario and how it is gone through; `begin` starts a run, `step` advances it.

    Args:
        scenario: as for `sparelane.run`; the flows of agents are under a scheme with `controller = "agent"`.
        step_s: the simulated time of a step.
        flows: the numbers of the agents' flows, in order of start.
        sets: whether agents set the window, or the pace; for a pace, the scheme has a `pace` to begin with.
        reward: what a step is worth.
        settings: values that replace the scenario's.
    """

    def __init__(
        self,
        scenario: str | Path,
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
        self.text, self.name, self.folder = api.read(scenario)
        self.step_s = step_s
        self.flows = tuple(flows)
        self.sets: Sets = sets
        self.reward = reward
        self.overrides = override_texts(settings)
        self.run: _native.Stepper | None = None
        self.agents: dict[int, FlowAgent] = {}
        self.now_s = 0.0

    def begin(self, seed: int) -> dict[int, Observation]:
        """Starts a run under this seed and goes on until all agents' flows are open; gives what each sees then.

        Raises:
            ScenarioError: the scenario cannot be run.
            ValueError: a flow is under another controller, does not open in the first half of the run, or has no pace
                to set.
        """
        overrides = [*self.overrides, f"seed={seed}"]
        self.run = _native.Stepper(self.text, self.name, str(self.folder), overrides, REGISTRY.catalogue())
        self.now_s = 0.0
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
                'the scheme of the agents has no pace to set; allowed: pace = "1Mbps" beside controller = "agent"'
            )
        self.agents = {flow: FlowAgent(flow, self.run.mss_bytes, self.run.slowest_bps) for flow in self.flows}
        return {flow: agent.observe(self.run, self.now_s) for flow, agent in self.agents.items()}

    def step(self, actions: Mapping[int, float]) -> tuple[dict[int, Observation], bool]:
        """Acts, goes on for a step, and gives what each agent that acted sees then, and whether the run is over."""
        if self.run is None:
            raise RuntimeError("reset comes before step")
        for flow, action in actions.items():
            self.agents[flow].act(self.run, self.sets, action)
        self.now_s += self.step_s
        is_over = self.run.advance(self.now_s)
        return {flow: self.agents[flow].observe(self.run, self.step_s) for flow in actions}, is_over
