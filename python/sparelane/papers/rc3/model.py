"""Computes the gain of RC3 and of larger initial windows by the model: NSDI 2014, section 3 and Fig. 4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.analytic import MSS_BYTES, Path, rc3_smooth, reduction, tcp_smooth
from sparelane.papers.rc3.internet2 import RC3, REDUCTION
from sparelane.reports import plots

PATH = Path(rtt_s=0.040, available_bps=0.7e9)
SIZES = (1, 4, 10, 40, 100, 400, 1000, 4000, 10_000, 100_000)
PEAK = Key("peak of RC3", Metric("size / (A x RTT)"), RC3)
METRICS = named(PEAK.metric)
# The sizes of the curves, from one segment to a hundred thousand, in steps of a fifteenth of an octave.
CURVE_SIZES = [2 ** (step / 15) for step in range(250)]


def rc3_gain(segments: float) -> float:
    """Returns the reduction of the completion time under RC3, in percent."""
    return reduction(tcp_smooth(segments, PATH), rc3_smooth(segments, PATH))


def window_gain(segments: float, window: int) -> float:
    """Returns the reduction of the completion time under TCP with a larger initial window, in percent."""
    return reduction(tcp_smooth(segments, PATH), tcp_smooth(segments, replace(PATH, initial_window=window)))


# The gains by size, with their look and their name in the legend.
GAINS: Mapping[str, tuple[Callable[[float], float], plots.Look, str]] = {
    RC3: (rc3_gain, plots.RC3, RC3),
    "window 10": (partial(window_gain, window=10), plots.TCP, "initial window 10"),
    "window 50": (partial(window_gain, window=50), plots.THIRD, "initial window 50"),
}


def cells(effort: Effort) -> Iterable[Cell]:
    """Returns nothing: the model needs no simulation."""
    del effort
    return ()


def evaluate(runs: Runs) -> Evaluation:
    """Returns the gains at round sizes, the largest gain with its size, and the curves."""
    del runs
    rows = [
        Row(Key(f"{segments * MSS_BYTES} bytes", REDUCTION, scheme), None, gain(segments))
        for segments in SIZES
        for scheme, (gain, _, _) in GAINS.items()
    ]
    peak = max(CURVE_SIZES, key=rc3_gain)
    rows.append(Row(PEAK, None, peak / PATH.pipe_segments))
    rows.append(Row(replace(PEAK, metric=REDUCTION), None, rc3_gain(peak)))
    curves = {scheme: list(map(gain, CURVE_SIZES)) for scheme, (gain, _, _) in GAINS.items()}
    return Evaluation(tuple(rows), curves={"curve": pl.DataFrame({"segments": CURVE_SIZES, **curves})})


def draw(evaluation: Evaluation) -> Figure:
    """Draws the gains against the flow size."""
    drawing, [axes] = plots.figure()
    curve = evaluation.curves["curve"]
    x = (curve["segments"] * MSS_BYTES).to_list()
    for scheme, (_, look, label) in GAINS.items():
        plots.line(axes, label, look, x, curve[scheme].to_list())
    pipe_bytes = PATH.pipe_segments * MSS_BYTES
    axes.axvline(pipe_bytes, color="0.5", linewidth=0.8, linestyle=":")
    axes.annotate("A × RTT", (pipe_bytes, 94), (3, 0), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_ylim(0, 100)
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel("reduction of\ncompletion time (%)")
    plots.legend_above(axes, 3)
    return drawing
