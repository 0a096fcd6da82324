"""Measures the throughput of flows by size, and fairness between flows: NSDI 2014, Fig. 13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from sparelane.papers.engine.cells import Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.internet2 import BASELINE, RC3, SIZES_BYTES, TCP

SCHEMES = {TCP: "regular_s", RC3: "other_s"}
ALONE = "alone"
THROUGHPUT = Metric("throughput", "Mb/s")
JAIN = Metric("Jain's index of throughput")
JAIN_OVER_ALONE = Metric("Jain's index of throughput over alone")
METRICS = named(THROUGHPUT)


def key(size_bytes: int, scheme: str) -> Key:
    """Returns the key of the median throughput of flows of one size."""
    return Key(f"{size_bytes} bytes", THROUGHPUT, scheme, "median")


# TCP and RC3 at the baseline.
cells = partial(internet2.both, BASELINE)


def evaluate(runs: Runs) -> Evaluation:
    """Returns the median throughput by size, and Jain's index."""
    frames = internet2.pairs(runs, BASELINE)
    medians = [_medians(flows) for flows in frames]
    rows: list[Row] = [
        measured(key(size, scheme), None, [found[size][scheme] for found in medians if size in found])
        for size in SIZES_BYTES
        for scheme in (*SCHEMES, ALONE)
    ]
    known = [flows for flows in frames if not flows.is_empty()]
    for metric, relative in ((JAIN, False), (JAIN_OVER_ALONE, True)):
        rows += [
            measured(
                Key("all sizes", metric, scheme), None, [jain(_speeds(flows, column, relative)) for flows in known]
            )
            for scheme, column in SCHEMES.items()
        ]
    return Evaluation(tuple(rows), internet2.notes(runs.effort))


def _medians(flows: pl.DataFrame) -> Mapping[int, Mapping[str, float]]:
    """Returns the median throughput in Mb/s by size and scheme."""
    columns = SCHEMES | {ALONE: "ideal_s"}
    mbps = [(8e-6 * pl.col("size_bytes") / pl.col(column)).median().alias(name) for name, column in columns.items()]
    table = flows.group_by("size_bytes").agg(mbps)
    return {row.pop("size_bytes"): row for row in table.iter_rows(named=True)}


def _speeds(flows: pl.DataFrame, column: str, relative: bool) -> Sequence[float]:
    """Returns the throughput of each flow, absolute or relative to the flow's throughput alone."""
    best = pl.col("ideal_s") if relative else pl.col("size_bytes")
    return flows.select(best / pl.col(column)).to_series().to_list()


def _of_alone_over_the_largest(evaluation: Evaluation) -> float:
    """Returns the share that RC3 keeps of the throughput alone: of flows of 105,120 bytes, over the largest flows'."""
    medium, largest = (
        evaluation.ours(key(size, RC3)) / evaluation.ours(key(size, ALONE))
        for size in (SIZES_BYTES[6], SIZES_BYTES[-1])
    )
    return medium / largest


VALUES = {"medium over large": lambda: _of_alone_over_the_largest}
