"""NSDI 2014, Fig. 10: how completion times are distributed, at two flow sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, ours
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import BASELINE, FCT, RC3, REDUCTION, TCP
from sparelane.reports import plots

# Bytes of five and of 1187 segments: the paper's "7.3KB" and "1.7MB".
SIZES: Mapping[int, str] = {7300: "7.3 KB", 1733020: "1.7 MB"}
PERCENTILES: Mapping[int, str] = {1: "1st", 50: "50th", 99: "99th"}
TAILS = (1, 99)
SHORTER = Metric("runs in which its FCT is shorter", "%")
SCHEMES = ((TCP, "regular_s", plots.TCP), (RC3, "other_s", plots.RC3))

# Steps of the saved curves, percent.
CURVE = [step / 4 for step in range(401)]

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "A percentile is taken over the flows of one size in one run, TCP's and RC3's each on their own, with straight "
    "lines between neighbouring flows; the curves are of the flows of all runs together.",
    'The paper prints no numbers here. Its claim, "even the 1st and 99th percentiles improve by using RC3", stands as '
    "100 % of the runs.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The baseline."""
    return internet2.plan([BASELINE], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Percentiles under both schemes, and the curves."""
    runs = internet2.all_pairs(BASELINE, effort, outcomes)
    rows: list[Row] = []
    curves: dict[str, Sequence[float]] = {"percent of flows": CURVE}
    for size, name in SIZES.items():
        by_run = [flows for run in runs if not (flows := run.filter(pl.col("size_bytes") == size)).is_empty()]
        rows += _rows(name, by_run)
        if by_run:
            pooled = pl.concat(by_run)
            curves |= {_curve(name, label): _percentiles(pooled, column, CURVE) for label, column, _ in SCHEMES}
    return Evaluation(tuple(rows), internet2.notes(effort), {"cdf": pl.DataFrame(curves)})


def _rows(name: str, runs: Sequence[pl.DataFrame]) -> Iterable[Row]:
    for percent, ordinal in PERCENTILES.items():
        tcp, rc3 = ([_percentiles(run, column, [percent])[0] for run in runs] for _, column, _ in SCHEMES)
        average = f"{ordinal} percentile"
        yield measured(Key(name, FCT, TCP, average), None, tcp)
        yield measured(Key(name, FCT, RC3, average), None, rc3)
        cuts = [reduction(*times) for times in zip(tcp, rc3, strict=True)]
        yield measured(Key(name, REDUCTION, RC3, average), None, cuts)
        if percent in TAILS:
            better = [100.0 * (theirs > ours) for theirs, ours in zip(tcp, rc3, strict=True)]
            yield measured(Key(name, SHORTER, RC3, average), 100.0, better)


def _percentiles(flows: pl.DataFrame, column: str, percents: Sequence[float]) -> list[float]:
    return [float(value) for value in np.percentile(flows[column].to_numpy(), percents)]


def _curve(name: str, label: str) -> str:
    return f"{name} {label} (s)"


def draw(evaluation: Evaluation) -> Figure:
    """One panel for each size."""
    drawing, panels = plots.figure(len(SIZES), width_inches=plots.PAGE_INCHES)
    curves = evaluation.curves["cdf"]
    for axes, name in zip(panels, SIZES.values(), strict=True):
        for label, _, look in SCHEMES:
            if _curve(name, label) in curves:
                x, y = curves[_curve(name, label)], curves["percent of flows"]
                plots.line(axes, f"{label}, {name}", look, x.to_list(), y.to_list())
        for percent in TAILS:
            axes.axhline(percent, color="0.5", linewidth=0.6, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlabel("completion time (s)")
        axes.set_ylabel("flows (%)")
        axes.set_ylim(0.0, 103.0)
        plots.legend_above(axes, 2)
    return drawing


CLAIMS = tuple(
    Claim(
        f"Even the {PERCENTILES[percent]} percentile of flows of {name} improves (section 5.1.2)",
        ours(Key(name, REDUCTION, RC3, f"{PERCENTILES[percent]} percentile")),
        full=at_least(0.0),
        quick=at_least(-1.0),
    )
    for name in SIZES.values()
    for percent in TAILS
)


EXPERIMENT = Experiment(
    id="rc3/fig10-cdf",
    title="How completion times are distributed at 7.3 KB and 1.7 MB",
    source="Mittal et al., NSDI 2014, section 5.1.2 and Fig. 10",
    method="Internet2 topology, 1 Gb/s, 40 ms, 30 % load; the distribution of completion times of two of the eleven "
    "sizes, under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=2.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
