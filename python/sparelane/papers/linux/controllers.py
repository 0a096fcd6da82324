"""Each of the kernel's controllers beside ours: completion times, what is in flight, queues and the use of the link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value, at_most
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, MissingNumberError, Row
from sparelane.papers.engine.rows import measured as mean_row
from sparelane.papers.linux import measured
from sparelane.papers.linux.figure import draw
from sparelane.papers.linux.paths import PATHS, QUICK_RUNS, RUNS, SIDES, Run
from sparelane.papers.linux.reasons import REASONS, SMALLER
from sparelane.papers.linux.rows import FCT, METRICS

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
        for metric, column, scale in METRICS:
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


CLAIMS = (
    Claim("The median difference of completion times is under 3 %", _median, full=at_most(3.0), quick=at_most(3.0)),
    Claim(
        "No completion time differs by more than 10 % without a reason: how many do",
        _unexplained(True),
        full=at_most(0.0),
    ),
    Claim(
        "No flight, queue or use of the link differs by more than 10 % without a reason: how many do",
        _unexplained(False),
        full=at_most(0.0),
    ),
)

EXPERIMENT = Experiment(
    id="linux/controllers",
    title="Each of Linux's controllers beside ours",
    source="Linux 6.12",
    method="Three flows of each controller over seven paths, one flow after the other: on the TCP of Linux in virtual "
    "time (`sparelane run linux-controllers --on linux`) and in the simulator. Where other pages have a paper's "
    "number, this one has Linux's.",
    assumptions=(
        'The simulator\'s side has `preset = "linux"` and `delayed_ack = false`: hosts of Linux acknowledge nearly '
        "every packet here, since the receiving program reads each at once.",
        "On paths with losses each segment's first transmission is lost with the path's probability. Which ones are "
        "lost is drawn from the seed, and is the same on both sides and for all controllers: a difference is not one "
        "of chance. Acknowledgments are not lost.",
        "TCP-LP reads delays from timestamps whose beginnings are drawn, in a clock of milliseconds whose speed it "
        'guesses, and CDG draws when it gives way; ours do the same with `like = "linux"`. They run under each seed on '
        "all paths; others, where nothing is lost, once.",
        "What is in flight, queues and the use of the link are means over the largest flow of a path, where that lasts "
        "half a second, sampled every 7.3 ms.",
        "The kernel's tcp_nv is recommended by its author within a data centre only, where all flows are of it. On "
        "these paths its window seldom fills the link.",
        "The clock of User-Mode Linux ticks every 10 ms (CONFIG_HZ=100; distributions have 1 or 4 ms). Westwood "
        'measures by that clock, and ours has `tick = "10ms"` here in place of 1 ms. A probe of the tail waits two '
        "ticks longer there than two round trips.",
    ),
    full=Effort("full", seeds=20),
    quick=Effort("quick", seeds=1),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
    needs_kernel="linux",
    witness="Linux",
)
