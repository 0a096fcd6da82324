"""Each of the kernel's controllers beside ours: completion times, what is in flight, queues and the use of the link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, MissingNumberError, Row
from sparelane.papers.engine.rows import measured as mean_row
from sparelane.papers.linux import measured
from sparelane.papers.linux.figure import draw
from sparelane.papers.linux.paths import PATHS, QUICK_RUNS, RUNS, SIDES, Run
from sparelane.papers.linux.reasons import SMALLER
from sparelane.papers.linux.rows import FCT
from sparelane.papers.linux.rows import METRICS as OVER_TIME

# Differences above this are named in a note, with their reasons; from 10 % on, reasons stand beside the rows.
NAMED = 0.05
# The path whose flows the figure has.
SHOWN = PATHS[1]


def _runs(effort: Effort) -> tuple[Run, ...]:
    return QUICK_RUNS if effort.name == "quick" else RUNS


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both sides of each run, under each seed that changes anything."""
    return list(
        dict.fromkeys(
            run.simulation(seed, side)
            for run in _runs(effort)
            for seed in run.seeds(effort.seed_numbers())
            for side in SIDES
        )
    )


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Ours beside Linux's, means over seeds."""
    runs = _runs(effort)
    tables = [
        measured.rows(run, seed, side, outcomes[run.simulation(seed, side)])
        for run in runs
        for seed in run.seeds(effort.seed_numbers())
        for side in SIDES
    ]
    found = pl.concat(tables)
    shown = [run for run in runs if run.path == SHOWN and not run.variant]
    series = [measured.series(run, side, outcomes[run.simulation(1, side)]) for run in shown for side in SIDES]
    rows = tuple(
        row
        for run in runs
        for row in _rows(run, found.filter(path=run.path.name, controller=run.controller, variant=run.variant))
    )
    curves = {"runs": found} | ({"series": pl.concat(series)} if series else {})
    return Evaluation(rows, _notes(rows), curves)


def _rows(run: Run, found: pl.DataFrame) -> list[Row]:
    """A row for each size and each quantity; quantities over time are of the largest flow, where it is long enough."""
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
    """How far ours is from Linux's, as a share of that, without its sign."""
    if not row.paper or row.value is None:
        return float("inf") if row.value != row.paper else 0.0
    return abs(row.value / row.paper - 1)


def _notes(rows: Sequence[Row]) -> tuple[str, ...]:
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
            f"{SMALLER.get(row.key, NOT_EXPLAINED)}"
            for row in between
        )
        notes.append(f"Between 5 and 10 %: {listed}.")
    return tuple(notes)


def _median(evaluation: Evaluation) -> float:
    shares = [_share(row) for row in evaluation.rows if row.key.metric == FCT]
    if not shares:
        raise MissingNumberError("a completion time")
    return 100 * float(np.median(shares))


def _unexplained(is_time: bool) -> Value:
    """How many rows differ by more than 10 % and have no reason; at a quick effort none has."""

    def count(evaluation: Evaluation) -> float:
        rows = [row for row in evaluation.rows if (row.key.metric == FCT) == is_time]
        if not rows:
            raise MissingNumberError("a row of the kind")
        return sum((row.value is None or row.deviates) and not row.is_explained for row in rows)

    return count


METRICS = named(FCT, *(metric for metric, *_ in OVER_TIME))
VALUES = {
    "median difference": lambda: _median,
    "unexplained times": lambda: _unexplained(True),
    "unexplained means": lambda: _unexplained(False),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
