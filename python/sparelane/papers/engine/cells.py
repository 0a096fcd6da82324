"""The cells of an experiment: the settings that it simulates, once with each seed.

An experiment lists its cells for an effort. The plan of simulations follows from them, and `Runs` returns the outcomes
by cell. An experiment therefore states only how its settings differ and how to compute its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from sparelane.papers.engine.base import Effort, Outcome, Outcomes, Simulation
from sparelane.papers.engine.rows import Key, Metric, joined


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting of an experiment.

    Attributes:
        scenario: the name of a shipped scenario.
        settings: overrides, each `key=value`.
        label: a name for people and for file names, to which the seed is appended; by default the parts of keys below.
        cost: the expected work of one run, relative to other cells.
        keep_flows: saves the table of flows of the first seed next to the rows.
        on: the simulator, or a kernel that `sparelane linux build` builds.
        most_seeds: the largest number of seeds; 1 if the run does not depend on its seed, `None` for no limit.
        setting: the setting in the keys of its rows.
        scheme: the scheme in the keys of its rows.
        variant: what differs from the paper, in the keys of its rows.
        from_s: the time in seconds from which on a run is measured, if its statistics need it.
        stop_s: the simulated seconds of a run, if its statistics need them.
    """

    scenario: str
    settings: tuple[str, ...]
    label: str = ""
    cost: float = 1.0
    keep_flows: bool = False
    on: Literal["simulator", "linux"] = "simulator"
    most_seeds: int | None = None
    setting: str = ""
    scheme: str = ""
    variant: str = ""
    from_s: float = 0.0
    stop_s: float = 0.0

    def key(self, metric: Metric, average: str = "", traffic: str = "") -> Key:
        """Returns the key of a row of this cell."""
        return Key(self.setting, metric, self.scheme, average, traffic, self.variant)

    def varied(self, label: str, *settings: str) -> Cell:
        """Returns the same cell with further overrides."""
        return replace(self, label=label, settings=(*self.settings, *settings))

    def simulation(self, seed: int) -> Simulation:
        """Returns the run of this cell with a seed."""
        return Simulation(
            self.scenario,
            self.settings,
            seed,
            label=f"{self.label or joined(self.setting, self.variant, self.scheme)} seed {seed}",
            cost=self.cost,
            keep_flows=self.keep_flows and seed == 1,
            on=self.on,
        )

    def simulations(self, effort: Effort) -> list[Simulation]:
        """Returns the runs of this cell, in the order of the seeds."""
        return [self.simulation(seed) for seed in effort.seed_numbers()[: self.most_seeds]]


def plan(cells: Iterable[Cell], effort: Effort) -> list[Simulation]:
    """Returns the runs of all cells, without repetitions."""
    return list(dict.fromkeys(simulation for cell in cells for simulation in cell.simulations(effort)))


@dataclass(frozen=True, slots=True)
class Runs:
    """The outcomes of an experiment's cells.

    Attributes:
        effort: the effort that the cells were simulated with.
        outcomes: all outcomes, by simulation.
    """

    effort: Effort
    outcomes: Outcomes

    def of(self, cell: Cell) -> list[Outcome]:
        """Returns the outcomes of a cell, in the order of the seeds."""
        return [self.outcomes[simulation] for simulation in cell.simulations(self.effort)]

    def together(self, *cells: Cell) -> Iterator[tuple[Outcome, ...]]:
        """Yields, for each seed, the outcomes of several cells."""
        return zip(*map(self.of, cells), strict=True)

    def values(self, statistic: Callable[..., float], *cells: Cell) -> list[float]:
        """Returns a statistic of the outcomes of one or more cells, one value per seed."""
        return [statistic(*found) for found in self.together(*cells)]
