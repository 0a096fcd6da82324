"""Compares the distributions of completion times of two flow sizes: NSDI 2014, Fig. 10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.cells import Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import BASELINE, FCT, RC3, REDUCTION, TCP
from sparelane.reports import plots

# The bytes of five and of 1187 segments: the paper's "7.3KB" and "1.7MB".
SIZES: Mapping[int, str] = {7300: "7.3 KB", 1733020: "1.7 MB"}
PERCENTILES: Mapping[int, str] = {1: "1st", 50: "50th", 99: "99th"}
TAILS = (1, 99)
SHORTER = Metric("runs in which its FCT is shorter", "%")
SCHEMES = ((TCP, "regular_s", plots.TCP), (RC3, "other_s", plots.RC3))

# The percentages of the saved curves.
CURVE = [step / 4 for step in range(401)]

# TCP and RC3 at the baseline.
cells = partial(internet2.both, BASELINE)


def evaluate(runs: Runs) -> Evaluation:
    """Returns percentiles under both schemes, and the curves."""
    frames = internet2.pairs(runs, BASELINE)
    rows: list[Row] = []
    curves: dict[str, Sequence[float]] = {"percent of flows": CURVE}
    for size, name in SIZES.items():
        by_run = [flows for frame in frames if not (flows := frame.filter(pl.col("size_bytes") == size)).is_empty()]
        rows += _rows(name, by_run)
        if by_run:
            pooled = pl.concat(by_run)
            curves |= {_curve(name, label): _percentiles(pooled, column, CURVE) for label, column, _ in SCHEMES}
    return Evaluation(tuple(rows), internet2.notes(runs.effort), {"cdf": pl.DataFrame(curves)})


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
            yield measured(Key(name, SHORTER, RC3, average), None, better)


def _percentiles(flows: pl.DataFrame, column: str, percents: Sequence[float]) -> list[float]:
    return [float(value) for value in np.percentile(flows[column].to_numpy(), percents)]


def _curve(name: str, label: str) -> str:
    return f"{name} {label} (s)"


def draw(evaluation: Evaluation) -> Figure:
    """Draws a panel for each size."""
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


METRICS = named(REDUCTION, SHORTER)
