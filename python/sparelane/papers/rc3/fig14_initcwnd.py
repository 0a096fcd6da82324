"""NSDI 2014, Fig. 14(a): RC3 against TCP with a larger initial window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES, reduction
from sparelane.papers.rc3.internet2 import AVERAGES, BASELINE, BYTES, FCT, FLOWS, RC3, REDUCTION
from sparelane.reports import plots

WINDOWS = {f"window {window}": window for window in (10, 50)}
NAMES = (*WINDOWS, RC3)
LOOKS = {"window 10": plots.MODEL, "window 50": plots.THIRD, RC3: plots.RC3}

FCT_OF_TCP = Metric("FCT of TCP", "s")
SLOWER, SMALL_SLOWER = Metric("sizes made slower"), Metric("small sizes made slower")

# TCP's time, the scheme's and the reduction.
PRINTED: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "window 10": {FLOWS: (0.135, 0.117, 13.21), BYTES: (0.443, 0.362, 17.87)},
    "window 50": {FLOWS: (0.135, 0.102, 24.33), BYTES: (0.443, 0.272, 38.24)},
    RC3: {FLOWS: (0.135, 0.076, 43.54), BYTES: (0.443, 0.114, 74.35)},
}

SIZES = [segments * MSS_BYTES for segments in FLOW_SIZES]

ALL = "all flows"


def of_size(size_bytes: int, name: str) -> Key:
    """The reduction of flows of a size."""
    return Key(f"{size_bytes} bytes", REDUCTION, name)


# Flows that fit TCP's initial window of 4 have nothing to gain from a larger one.
SMALL = [size for size in SIZES if size <= 4 * MSS_BYTES]


def plan(effort: Effort) -> Sequence[Simulation]:
    """The baseline, and TCP with larger windows."""
    larger = [_run(name, seed, effort) for name in WINDOWS for seed in effort.seed_numbers()]
    return [*internet2.plan([BASELINE], effort), *larger]


def _run(name: str, seed: int, effort: Effort) -> Simulation:
    """What is compared with TCP's baseline under this name."""
    if name == RC3:
        return internet2.rc3_run(BASELINE, seed, effort)
    return internet2.tcp_run(BASELINE.varied(name, f"scheme.tcp.initial_window={WINDOWS[name]}"), seed, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions over all flows, then by size, then what the paper claims of sizes."""
    flows = {name: [_matched(name, seed, effort, outcomes) for seed in effort.seed_numbers()] for name in NAMES}
    rows = [
        *(row for name in NAMES for row in _mean_rows(name, flows[name])),
        *(row for name in NAMES for row in _size_rows(name, flows[name])),
    ]
    return Evaluation(tuple(rows), internet2.notes(effort))


def _matched(name: str, seed: int, effort: Effort, outcomes: Outcomes) -> pl.DataFrame:
    regular = outcomes[internet2.tcp_run(BASELINE, seed, effort)].flows
    return internet2.matched(regular, outcomes[_run(name, seed, effort)].flows, effort)


def _mean_rows(name: str, runs: Sequence[pl.DataFrame]) -> Iterable[Row]:
    for average in AVERAGES:
        times = internet2.all_mean_times(runs, average)
        regular_s, other_s, cut = PRINTED[name][average]
        yield measured(Key(ALL, FCT_OF_TCP, name, average), regular_s, [regular for regular, _ in times])
        yield measured(Key(ALL, FCT, name, average), other_s, [other for _, other in times])
        yield measured(Key(ALL, REDUCTION, name, average), cut, [reduction(*pair) for pair in times])


def _size_rows(name: str, runs: Sequence[pl.DataFrame]) -> Iterable[Row]:
    by_run = [internet2.reductions_by_size(flows) for flows in runs]
    for size in SIZES:
        yield measured(of_size(size, name), None, [cuts[size] for cuts in by_run if size in cuts])
    slower = [[size for size, cut in cuts.items() if cut < 0.0] for cuts in by_run]
    if name == RC3:
        yield measured(Key(ALL, SLOWER, name), 0, [float(len(sizes)) for sizes in slower])
    else:
        small = [float(len(set(sizes).intersection(SMALL))) for sizes in slower]
        yield measured(Key(ALL, SMALL_SLOWER, name), len(SMALL), small)


def draw(evaluation: Evaluation) -> Figure:
    """Reductions over all flows, and by size."""
    drawing, [means, sizes] = plots.figure(2, width_inches=plots.PAGE_INCHES)
    bars = [
        plots.Bars.of_rows(
            name, LOOKS[name], [evaluation.find(Key(ALL, REDUCTION, name, average)) for average in AVERAGES]
        )
        for name in NAMES
    ]
    plots.grouped_bars(means, list(AVERAGES), bars)
    means.set_xlabel("average")
    for name in NAMES:
        rows = [evaluation.find(of_size(size, name)) for size in SIZES]
        plots.points(sizes, name, LOOKS[name], SIZES, rows)
    sizes.axhline(0.0, color="black", linewidth=0.6)
    sizes.set_xscale("log")
    sizes.set_xlabel("flow size (bytes)")
    for axes in (means, sizes):
        axes.set_ylabel("reduction of mean\ncompletion time (%)")
        plots.legend_above(axes, 4)
    return drawing


METRICS = named(FCT, FCT_OF_TCP, REDUCTION, SLOWER, SMALL_SLOWER)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
