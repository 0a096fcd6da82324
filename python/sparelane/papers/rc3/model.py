"""NSDI 2014, section 3 and Fig. 4: what RC3 and larger initial windows gain, by the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.analytic import MSS_BYTES, Path, rc3_smooth, reduction, tcp_smooth
from sparelane.papers.rc3.internet2 import RC3, REDUCTION
from sparelane.reports import plots

PATH = Path(rtt_s=0.040, available_bps=0.7e9)
WINDOWS = (10, 50)
SIZES = (1, 4, 10, 40, 100, 400, 1000, 4000, 10_000, 100_000)

PEAK = Key("peak of RC3", Metric("size / (A x RTT)"), RC3)

# The curves reach from one segment to a hundred thousand, in steps of a fifteenth of an octave.
CURVE_SIZES = [2 ** (step / 15) for step in range(250)]


def rc3_gain(segments: float) -> float:
    """Reduction under RC3, percent."""
    return reduction(tcp_smooth(segments, PATH), rc3_smooth(segments, PATH))


def window_gain(segments: float, window: int) -> float:
    """Reduction under TCP with a larger initial window, percent."""
    return reduction(tcp_smooth(segments, PATH), tcp_smooth(segments, replace(PATH, initial_window=window)))


def plan(effort: Effort) -> Sequence[Simulation]:
    """Nothing to simulate."""
    del effort
    return ()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Reductions at round sizes, where they peak, and the curves."""
    del effort, outcomes
    curve = pl.DataFrame(
        {
            "segments": CURVE_SIZES,
            "RC3": [rc3_gain(segments) for segments in CURVE_SIZES],
            **{f"window {window}": [window_gain(segments, window) for segments in CURVE_SIZES] for window in WINDOWS},
        }
    )
    rows = [row for segments in SIZES for row in _rows(segments)]
    peak = max(CURVE_SIZES, key=rc3_gain)
    rows.append(Row(PEAK, None, peak / PATH.pipe_segments))
    rows.append(Row(Key(PEAK.setting, REDUCTION, RC3), None, rc3_gain(peak)))
    return Evaluation(tuple(rows), curves={"curve": curve})


def _rows(segments: int) -> Sequence[Row]:
    setting = f"{segments * MSS_BYTES} bytes"
    gains = {RC3: rc3_gain(segments)} | {f"window {window}": window_gain(segments, window) for window in WINDOWS}
    return [Row(Key(setting, REDUCTION, scheme), None, gain) for scheme, gain in gains.items()]


def draw(evaluation: Evaluation) -> Figure:
    """Reduction against flow size."""
    drawing, [axes] = plots.figure()
    curve = evaluation.curves["curve"]
    x = curve["segments"] * MSS_BYTES
    looks = (plots.RC3, plots.TCP, plots.THIRD)
    labels = ("RC3", *(f"window {window}" for window in WINDOWS))
    for label, look in zip(labels, looks, strict=True):
        plots.line(axes, label if label == "RC3" else f"initial {label}", look, x.to_list(), curve[label].to_list())
    axes.axvline(PATH.pipe_segments * MSS_BYTES, color="0.5", linewidth=0.8, linestyle=":")
    axes.annotate("A × RTT", (PATH.pipe_segments * MSS_BYTES, 94), (3, 0), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_ylim(0, 100)
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel("reduction of\ncompletion time (%)")
    plots.legend_above(axes, 3)
    return drawing


METRICS = named(PEAK.metric)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
