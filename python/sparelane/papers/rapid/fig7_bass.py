"""RAPID, Figs. 2c and 7: the gaps of p-streams after interrupt coalescing, before and after smoothing with BASS.

BASS is the paper's Buffering-Aware Spike Smoothing (section IV-D). The gaps come from a log of packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparelane import rapid
from sparelane.papers.engine.base import Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.reports import plots

# The log starts at this time in seconds, and covers a few more p-streams than are evaluated.
FROM_S = 1.0
STREAMS = 40
LOGGED_PACKETS = (STREAMS + 4) * 64
# At the start of a p-stream, the gap grows by more than this factor.
RISE = 1.02
RATIO = Metric("receive gap over send gap")
# The rows, and the panels of the figure, with the prefixes of their columns.
ROWS = {"raw gaps": "", "after BASS": "smooth_"}
PANELS = {"raw": "", "after BASS": "smooth_"}

CELL = Cell(
    testbed.SCENARIO,
    (
        *testbed.transfer("rapid", FROM_S + 0.1),
        f"packets.from={FROM_S:g}s",
        f"packets.count={LOGGED_PACKETS}",
        testbed.QUICK_START,
    ),
    "gaps",
    cost=FROM_S + 0.1,
)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps between packets with known arrival times, in order.

    Attributes:
        send_s: the gap between the due times of two packets, in seconds.
        receive_s: the gap between their arrivals, in seconds.
        stream: the number of their p-stream, from 0.
    """

    send_s: NDArray[np.float64]
    receive_s: NDArray[np.float64]
    stream: NDArray[np.int64]


def gaps(packets: pl.DataFrame) -> Gaps:
    """Returns the gaps in a log without losses, from the first complete p-stream on."""
    due_s, stamped_s = (packets[name].to_numpy() for name in ("due_s", "stamped_s"))
    gap_s = np.diff(due_s)
    starts = np.flatnonzero(gap_s[1:] > RISE * gap_s[:-1]) + 2
    stream = np.searchsorted(starts, np.arange(len(due_s)), side="right") - 1
    known = np.flatnonzero(packets["stamped_s"].is_not_null().to_numpy())
    known = known[known >= starts[0] - 1]
    return Gaps(np.diff(due_s[known]), np.diff(stamped_s[known]), np.maximum(stream[known[1:]], 0))


def smooth(logged: Gaps) -> pl.DataFrame:
    """Returns gaps in microseconds, raw and after BASS, each with the p-stream at whose end its event is complete."""
    tables: list[pl.DataFrame] = []
    left = 0
    for stream in range(STREAMS):
        begin, end = (int(np.searchsorted(logged.stream, stream, side=side)) for side in ("left", "right"))
        send_s, receive_s = logged.send_s[left:end], logged.receive_s[left:end]
        # An event that is incomplete at the end of a p-stream continues with the next one, as in the controller.
        found = rapid.smooth(send_s, receive_s, in_event=left < begin)
        columns = {"send": send_s, "receive": receive_s, "smooth_send": found.send_s, "smooth_receive": found.receive_s}
        table = {f"{name}_us": values[: found.end] * 1e6 for name, values in columns.items()}
        tables.append(pl.DataFrame({"stream": np.full(found.end, stream), **table}))
        left += found.end
    return pl.concat(tables)


def evaluate(runs: Runs) -> Evaluation:
    """Returns mean and standard deviation of the ratio of gaps, before and after BASS."""
    tables = [smooth(gaps(outcome.packets)) for outcome in runs.of(CELL)]
    rows: list[Row] = []
    for name, prefix in ROWS.items():
        ratios = [(table[f"{prefix}receive_us"] / table[f"{prefix}send_us"]).to_numpy() for table in tables]
        rows.append(measured(Key(name, RATIO, average="spread"), None, [float(one.std()) for one in ratios]))
        rows.append(measured(Key(name, RATIO, average="mean"), None, [float(one.mean()) for one in ratios]))
    return Evaluation(tuple(rows), curves={"gaps": tables[0]})


def draw(evaluation: Evaluation) -> Figure:
    """Returns the gaps of two p-streams, before and after BASS."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    shown = evaluation.curves["gaps"].filter(pl.col("stream").is_in([1, 2]))
    places = list(range(shown.height))
    for axes, (title, prefix) in zip(panels, PANELS.items(), strict=True):
        received, sent = (shown[f"{prefix}{side}_us"].to_list() for side in ("receive", "send"))
        axes.plot(places, received, label="receive gap", color=plots.TCP.ink, marker=".")
        axes.plot(places, sent, label="send gap", color=plots.RC3.ink, linestyle="--")
        axes.set_xlabel(f"sample of two p-streams, {title}")
        axes.set_ylabel("gap (us)")
        if not prefix:
            axes.set_ylim(bottom=0.0)
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(RATIO)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.study(lambda effort: [CELL], evaluate, draw)
