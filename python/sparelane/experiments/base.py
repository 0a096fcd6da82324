"""What an experiment is: the simulations it needs, the numbers it compares, and the figure it draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sparelane.experiments.statistics import estimate

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

Json = dict[str, str | float | None]

# A larger deviation from the paper wants a reason beside it.
POINTS_TOLERATED = 5.0
SHARE_TOLERATED = 0.10


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work goes into an experiment.

    Attributes:
        name: the user's word for it.
        seeds: independent repetitions; their seeds are 1, 2, ...
        stop_s: simulated seconds of each run, where the experiment has a choice; else 0.
    """

    name: Literal["full", "quick"]
    seeds: int
    stop_s: float = 0.0

    def seed_numbers(self) -> range:
        """The seeds, from 1."""
        return range(1, self.seeds + 1)


@dataclass(frozen=True, slots=True)
class Simulation:
    """One run that an experiment asks for. Equal simulations are made once and shared between experiments.

    Attributes:
        scenario: name of a ready-made scenario.
        settings: overrides, each `key=value`.
        seed: of every random draw.
        label: for people and for file names.
        cost: expected work, relative to the other simulations.
        keep_flows: save the table of flows beside the rows.
    """

    scenario: str
    settings: tuple[str, ...]
    seed: int
    label: str = field(compare=False)
    cost: float = field(default=1.0, compare=False)
    keep_flows: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a simulation.

    Attributes:
        flows: one row per flow, as `Result.flows`.
        drops: one row per direction of a cable and class, as `Result.drops`.
        delays: how long packets were under way, as `Result.delays`; empty unless the scenario asks for it.
        series: time series, as `Result.series`; empty unless the scenario asks for any.
        packets: of one flow, as `Result.packets`; empty unless the scenario asks for any.
        digest: of the whole run.
    """

    flows: pl.DataFrame
    drops: pl.DataFrame
    delays: pl.DataFrame
    series: pl.DataFrame
    packets: pl.DataFrame
    digest: str

    def without_tables(self) -> Outcome:
        """The same with empty tables, which keep their columns."""
        return replace(
            self,
            flows=self.flows.clear(),
            drops=self.drops.clear(),
            delays=self.delays.clear(),
            series=self.series.clear(),
            packets=self.packets.clear(),
        )


Outcomes = Mapping[Simulation, Outcome]


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the paper, beside ours.

    Attributes:
        row: which line of the paper's table or point of its figure.
        metric: what is measured.
        unit: of all the numbers; `%` for percentages, whose difference is in percentage points.
        paper: the printed number; `None` where the paper prints none.
        ours: the mean over our runs; `None` where no run gave the number.
        ci95: half the width of its 95 % confidence interval; `None` without repetitions.
        difference: ours - paper.
        reason: why they differ, where that is known.
    """

    row: str
    metric: str
    unit: str
    paper: float | None
    ours: float | None
    ci95: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in the row's unit."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper

    @property
    def deviates(self) -> bool:
        """Whether the difference is large enough to want a reason."""
        if self.paper is None or self.difference is None:
            return False
        tolerated = POINTS_TOLERATED if self.unit == "%" else SHARE_TOLERATED * abs(self.paper)
        return abs(self.difference) > tolerated

    def to_json(self, experiment: str) -> Json:
        """The row as machines read it; `None` where there is no number."""
        return {
            "experiment": experiment,
            "row": self.row,
            "metric": self.metric,
            "unit": self.unit,
            "paper": self.paper,
            "ours": self.ours,
            "ci95": self.ci95,
            "difference": self.difference,
        }


def measured(row: str, metric: str, unit: str, paper: float | None, values: Sequence[float]) -> Row:
    """A row from one value per seed; without values, a row that says so."""
    if not values:
        return Row(row, metric, unit, paper, None, None)
    ours = estimate(values)
    return Row(row, metric, unit, paper, ours.mean, ours.ci95)


def exact(row: str, metric: str, unit: str, paper: float | None, value: float) -> Row:
    """A row whose number does not depend on a seed."""
    return Row(row, metric, unit, paper, value, None)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an experiment found.

    Attributes:
        rows: in the order in which to print them.
        notes: what a reader of the rows should know, found out during the evaluation.
        curves: further tables, by name, that are saved beside the rows and that the figure may draw.
    """

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    curves: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def find(self, row: str, metric: str) -> Row:
        """The row with this name and metric.

        Raises:
            KeyError: there is none.
        """
        for candidate in self.rows:
            if (candidate.row, candidate.metric) == (row, metric):
                return candidate
        raise KeyError((row, metric))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper, and how to redo it.

    Attributes:
        id: `paper/name`.
        title: one line.
        source: where the paper has it.
        method: what the authors did.
        assumptions: what the paper leaves open and how it is settled here.
        full: the effort that the printed comparison deserves.
        quick: seconds.
        plan: the simulations, in order.
        evaluate: rows from their outcomes.
        draw: the figure of an evaluation.
        reasons: why a row deviates, where it does, by row and metric.
    """

    id: str
    title: str
    source: str
    method: str
    assumptions: tuple[str, ...]
    full: Effort
    quick: Effort
    plan: Callable[[Effort], Sequence[Simulation]]
    evaluate: Callable[[Effort, Outcomes], Evaluation]
    draw: Callable[[Evaluation], Figure]
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def judge(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """The evaluation, with the known reasons beside the rows that deviate from the paper."""
        found = self.evaluate(effort, outcomes)
        return replace(found, rows=tuple(self._explain(row) for row in found.rows))

    def _explain(self, row: Row) -> Row:
        return replace(row, reason=self.reasons.get((row.row, row.metric), "")) if row.deviates else row
