"""Compares each of the kernel's controllers with ours: completion times, data in flight, queues and link use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.claims import Value, largest_difference, median_difference, unexplained
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, Row
from sparelane.papers.engine.rows import measured as mean_row
from sparelane.papers.linux import figure, measured
from sparelane.papers.linux.paths import (
    CHANGING_PATHS,
    CHANGING_RUNS,
    IDLE_RUNS,
    PATHS,
    QUICK_CHANGING_RUNS,
    QUICK_IDLE_RUNS,
    QUICK_RUNS,
    RUNS,
    SIDES,
    Path,
    Run,
    Side,
)
from sparelane.papers.linux.rows import FCT
from sparelane.papers.linux.rows import METRICS as OVER_TIME

# A note lists differences between this and twice this, with their reasons. Larger ones have reasons in their rows.
NAMED = 0.05


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs of an experiment.

    Attributes:
        full: the runs of the full effort.
        quick: the runs of the quick effort.
        draw: draws the figure.
        shown: the paths whose flows the figure shows over time.
        series: the samples that it shows of a run.
    """

    full: tuple[Run, ...]
    quick: tuple[Run, ...]
    draw: Callable[[Evaluation], Figure]
    shown: tuple[Path, ...] = ()
    series: Callable[[Run, Side, Outcome], pl.DataFrame] = measured.series

    def of(self, effort: Effort) -> tuple[Run, ...]:
        """Returns the runs of an effort."""
        return self.quick if effort.name == "quick" else self.full


# What the key `runs` of a file names.
CHOICES: Mapping[str, Chosen] = {
    "paths": Chosen(RUNS, QUICK_RUNS, figure.draw, PATHS[1:2]),
    "bursts": Chosen(IDLE_RUNS, QUICK_IDLE_RUNS, figure.draw_bursts),
    "changes": Chosen(CHANGING_RUNS, QUICK_CHANGING_RUNS, figure.draw_changes, CHANGING_PATHS, measured.queue_series),
}


def plan(effort: Effort, chosen: Chosen) -> Sequence[Simulation]:
    """Returns both sides of each run, under each seed that changes the result."""
    return list(
        dict.fromkeys(
            run.simulation(seed, side)
            for run in chosen.of(effort)
            for seed in run.seeds(effort.seed_numbers())
            for side in SIDES
        )
    )


def evaluate(effort: Effort, outcomes: Outcomes, chosen: Chosen, smaller: Mapping[Key, str]) -> Evaluation:
    """Returns our numbers and Linux's, as means over seeds.

    Args:
        effort: the effort.
        outcomes: the outcomes of the plan.
        chosen: the runs.
        smaller: the reasons for differences that a note lists, by row.
    """
    runs = chosen.of(effort)
    tables = [
        measured.rows(run, seed, side, outcomes[run.simulation(seed, side)])
        for run in runs
        for seed in run.seeds(effort.seed_numbers())
        for side in SIDES
    ]
    found = pl.concat(tables)
    shown = [run for run in runs if run.path in chosen.shown and not run.variant]
    series = [chosen.series(run, side, outcomes[run.simulation(1, side)]) for run in shown for side in SIDES]
    rows = tuple(
        row
        for run in runs
        for row in _rows(run, found.filter(path=run.path.name, controller=run.controller, variant=run.variant))
    )
    curves = {"runs": found} | ({"series": pl.concat(series)} if series else {})
    return Evaluation(rows, _notes(rows, smaller), curves)


def _rows(run: Run, found: pl.DataFrame) -> list[Row]:
    """A row for each size and quantity. Quantities over time need a largest flow that lasts long enough."""
    rows = []
    for size in run.path.sizes:
        for metric, column, scale in OVER_TIME:
            ours, linux = (found.filter(size=size, side=side)[column] * scale for side in SIDES)
            if metric is not FCT and linux.null_count():
                continue
            key = Key(run.path.name, metric, run.controller, traffic=size, variant=run.variant)
            if ours.null_count() or linux.null_count():
                rows.append(Row(key, None, None))
            else:
                rows.append(mean_row(key, float(linux.mean()), ours.to_list()))  # type: ignore[arg-type]
    return rows


def _share(row: Row) -> float:
    """The absolute difference between our number and Linux's, as a share of the latter."""
    if not row.paper or row.value is None:
        return float("inf") if row.value != row.paper else 0.0
    return abs(row.value / row.paper - 1)


def _notes(rows: Sequence[Row], smaller: Mapping[Key, str]) -> tuple[str, ...]:
    times = [_share(row) for row in rows if row.key.metric == FCT]
    above = [sum(share > bound for share in times) for bound in (NAMED, 2 * NAMED)]
    notes = [
        f"Completion times differ by {100 * float(np.median(times)):.3f} % in the median of {len(times)}, without "
        f"their signs; {above[0]} by more than 5 %, {above[1]} by more than 10 %."
    ]
    between = [row for row in rows if NAMED < _share(row) <= 2 * NAMED]
    if between:
        listed = "; ".join(
            f"{row.key.words} {100 * (row.value / row.paper - 1):+.1f} %: "  # type: ignore[operator]
            f"{smaller.get(row.key, NOT_EXPLAINED)}"
            for row in between
        )
        notes.append(f"Between 5 and 10 %: {listed}.")
    return tuple(notes)


METRICS = named(FCT, *(metric for metric, *_ in OVER_TIME))
VALUES: Mapping[str, Callable[..., Value]] = {
    "median difference": lambda: median_difference(lambda row: row.key.metric == FCT),
    "largest difference": lambda *settings: largest_difference(
        lambda row: row.key.metric == FCT and row.key.setting in settings
    ),
    "unexplained times": lambda: unexplained(lambda row: row.key.metric == FCT),
    "unexplained means": lambda: unexplained(lambda row: row.key.metric != FCT),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    smaller = {key: text for part in templates(declared.rest, "smaller") for key, text in declared.rows.reasons(part)}
    chosen = declared.rest.one_of("runs", CHOICES)
    declared.rest.finish()
    evaluated = partial(evaluate, chosen=chosen, smaller=smaller)
    return declared.experiment(partial(plan, chosen=chosen), evaluated, chosen.draw)
