"""NSDI 2014, Fig. 13: what throughput flows of each size get, and how equal flows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES
from sparelane.papers.rc3.internet2 import BASELINE, RC3, TCP
from sparelane.reports import plots

SIZES = [segments * MSS_BYTES for segments in FLOW_SIZES]
SCHEMES = {TCP: "regular_s", RC3: "other_s"}
ALONE = "alone"
LOOKS = {TCP: plots.TCP, RC3: plots.RC3}
THROUGHPUT = Metric("throughput", "Mb/s")
JAIN = Metric("Jain's index of throughput")
JAIN_OVER_ALONE = Metric("Jain's index of throughput over alone")


def key(size_bytes: int, scheme: str) -> Key:
    """The median throughput of flows of a size."""
    return Key(f"{size_bytes} bytes", THROUGHPUT, scheme, "median")


def plan(effort: Effort) -> Sequence[Simulation]:
    """The baseline."""
    return internet2.plan([BASELINE], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Median throughput by size, and Jain's index."""
    runs = internet2.all_pairs(BASELINE, effort, outcomes)
    medians = [_medians(run) for run in runs]
    rows: list[Row] = [
        measured(key(size, scheme), None, [run[size][scheme] for run in medians if size in run])
        for size in SIZES
        for scheme in (*SCHEMES, ALONE)
    ]
    known = [run for run in runs if not run.is_empty()]
    for metric, relative in ((JAIN, False), (JAIN_OVER_ALONE, True)):
        rows += [
            measured(Key("all sizes", metric, scheme), None, [jain(_speeds(run, column, relative)) for run in known])
            for scheme, column in SCHEMES.items()
        ]
    return Evaluation(tuple(rows), internet2.notes(effort))


def _medians(flows: pl.DataFrame) -> Mapping[int, Mapping[str, float]]:
    """Median throughput in Mb/s by size and scheme."""
    columns = SCHEMES | {ALONE: "ideal_s"}
    mbps = [(8e-6 * pl.col("size_bytes") / pl.col(column)).median().alias(name) for name, column in columns.items()]
    table = flows.group_by("size_bytes").agg(mbps)
    return {row.pop("size_bytes"): row for row in table.iter_rows(named=True)}


def _speeds(flows: pl.DataFrame, column: str, relative: bool) -> Sequence[float]:
    best = pl.col("ideal_s") if relative else pl.col("size_bytes")
    return flows.select(best / pl.col(column)).to_series().to_list()


def draw(evaluation: Evaluation) -> Figure:
    """Median throughput against flow size."""
    drawing, [axes] = plots.figure()
    for scheme, look in LOOKS.items():
        plots.points(axes, scheme, look, SIZES, _median_rows(evaluation, scheme))
    alone = [row.value for row in _median_rows(evaluation, ALONE)]
    known = [(size, best) for size, best in zip(SIZES, alone, strict=True) if best is not None]
    plots.line(axes, ALONE, plots.MODEL, [size for size, _ in known], [best for _, best in known])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel("median throughput (Mb/s)")
    plots.legend_above(axes, 3)
    return drawing


def _median_rows(evaluation: Evaluation, scheme: str) -> Sequence[Row]:
    return [evaluation.find(key(size, scheme)) for size in SIZES]


def _of_alone_over_the_largest(evaluation: Evaluation) -> float:
    """RC3's median throughput over that of a flow that is alone: of flows of 105,120 bytes, over the largest's."""
    medium, largest = (
        evaluation.ours(key(size, RC3)) / evaluation.ours(key(size, ALONE)) for size in (SIZES[6], SIZES[-1])
    )
    return medium / largest


METRICS = named(THROUGHPUT)
VALUES = {"medium over large": lambda: _of_alone_over_the_largest}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
