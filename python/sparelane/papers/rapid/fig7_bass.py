"""RAPID, Figs. 2c and 7: gaps of p-streams behind coalesced interrupts, and what BASS makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane import rapid
from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.papers.rapid.streams import Samples, samples
from sparelane.reports import plots

# P-streams are logged from here on, and so many are looked at; figures show the first.
FROM_S = 1.0
STREAMS = 40
RATIO = Metric("receive gap over send gap")
LOGGED_PACKETS = (STREAMS + 4) * 64


def simulation(seed: int) -> Simulation:
    """A transfer alone, with a log."""
    return testbed.simulation(
        "rapid",
        seed,
        FROM_S + 0.1,
        label="gaps",
        settings=(f"packets.from={FROM_S:g}s", f"packets.count={LOGGED_PACKETS}", testbed.QUICK_START),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """One for each seed."""
    return [simulation(seed) for seed in effort.seed_numbers()]


def smooth(logged: Samples) -> pl.DataFrame:
    """Gaps, microseconds, raw and after BASS, each with the p-stream whose end completes its event."""
    tables: list[pl.DataFrame] = []
    left = 0
    for stream in range(STREAMS):
        end = int(np.searchsorted(logged.stream, stream, side="right"))
        send, receive = logged.send_s[left:end], logged.receive_s[left:end]
        found = rapid.smooth(send, receive, in_event=left < int(np.searchsorted(logged.stream, stream)))
        tables.append(
            pl.DataFrame(
                {
                    "stream": np.full(found.end, stream),
                    "send_us": send[: found.end] * 1e6,
                    "receive_us": receive[: found.end] * 1e6,
                    "smooth_send_us": found.send_s[: found.end] * 1e6,
                    "smooth_receive_us": found.receive_s[: found.end] * 1e6,
                }
            )
        )
        left += found.end
    return pl.concat(tables)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """How uneven receive gaps are, before and after."""
    tables = [smooth(samples(outcomes[simulation(seed)].packets)) for seed in effort.seed_numbers()]
    rows: list[Row] = []
    for row, prefix in (("raw gaps", ""), ("after BASS", "smooth_")):
        ratios = [(table[f"{prefix}receive_us"] / table[f"{prefix}send_us"]).to_numpy() for table in tables]
        rows.append(measured(Key(row, RATIO, average="spread"), None, [float(r.std()) for r in ratios]))
        rows.append(measured(Key(row, RATIO, average="mean"), None, [float(r.mean()) for r in ratios]))
    return Evaluation(tuple(rows), curves={"gaps": tables[0]})


def draw(evaluation: Evaluation) -> Figure:
    """One p-stream, raw and smoothed."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    gaps = evaluation.curves["gaps"]
    gaps = gaps.filter(pl.col("stream").is_in([1, 2]))
    places = list(range(gaps.height))
    for axes, prefix, title in zip(panels, ("", "smooth_"), ("raw", "after BASS"), strict=True):
        axes.plot(places, gaps[f"{prefix}receive_us"].to_list(), label="receive gap", color=plots.TCP.ink, marker=".")
        sent: Mapping[str, Any] = {"color": plots.RC3.ink, "linestyle": "--"}
        axes.plot(places, gaps[f"{prefix}send_us"].to_list(), label="send gap", **sent)
        axes.set_xlabel(f"sample of two p-streams, {title}")
        axes.set_ylabel("gap (us)")
        if not prefix:
            axes.set_ylim(bottom=0.0)
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(RATIO)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
