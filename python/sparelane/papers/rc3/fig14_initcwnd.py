"""Compares RC3 and larger initial windows with TCP: NSDI 2014, Fig. 14(a)."""

from __future__ import annotations

from collections.abc import Iterable

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES, reduction
from sparelane.papers.rc3.internet2 import AVERAGES, BASELINE, FCT, RC3, REDUCTION, Setting

ALL = "all flows"
FCT_OF_TCP = Metric("FCT of TCP", "s")
SLOWER, SMALL_SLOWER = Metric("sizes made slower"), Metric("small sizes made slower")
METRICS = named(FCT, FCT_OF_TCP, REDUCTION, SLOWER, SMALL_SLOWER)

WINDOWS = {
    f"window {window}": Setting(f"window {window}", (f"scheme.tcp.initial_window={window}",)) for window in (10, 50)
}
NAMES = (*WINDOWS, RC3)

# Flows that fit TCP's initial window of 4 gain nothing from a larger one.
SMALL = {size for size in internet2.SIZES_BYTES if size <= 4 * MSS_BYTES}


def cell(name: str, effort: Effort) -> Cell:
    """Returns the run that is compared with the baseline's TCP."""
    return BASELINE.cell("rc3", effort) if name == RC3 else WINDOWS[name].cell("tcp", effort)


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields the baseline, and TCP with larger windows."""
    return (BASELINE.cell("tcp", effort), *(cell(name, effort) for name in NAMES))


def evaluate(runs: Runs) -> Evaluation:
    """Returns completion times and reductions over all flows, then by size, with the number of slower sizes."""
    frames = {name: internet2.against_tcp(runs, BASELINE, cell(name, runs.effort)) for name in NAMES}
    rows: list[Row] = []
    for name, found in frames.items():
        for average in AVERAGES:
            times = internet2.all_mean_times(found, average)
            rows += [
                measured(Key(ALL, FCT_OF_TCP, name, average), None, [tcp_s for tcp_s, _ in times]),
                measured(Key(ALL, FCT, name, average), None, [other_s for _, other_s in times]),
                measured(Key(ALL, REDUCTION, name, average), None, [reduction(*pair) for pair in times]),
            ]
    for name, found in frames.items():
        rows += internet2.size_rows({name: found})
        slower = [{size for size, cut in internet2.reductions_by_size(flows).items() if cut < 0.0} for flows in found]
        counted = slower if name == RC3 else [sizes & SMALL for sizes in slower]
        metric = SLOWER if name == RC3 else SMALL_SLOWER
        rows.append(measured(Key(ALL, metric, name), None, [float(len(sizes)) for sizes in counted]))
    return Evaluation(tuple(rows), internet2.notes(runs.effort))
