"""RAPID, section IV-B and Fig. 6: the precision of the gaps between packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane import rapid
from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.reports import plots

# The senders of the gaps, with the mean delay of their timers and their looks.
EXACT = "PAUSE frames"
SENDERS: Mapping[str, tuple[str, plots.Look]] = {
    EXACT: ("0s", plots.RC3),
    "timer in the kernel": ("2us", plots.TCP),
    "user-level sender": ("50us", plots.THIRD),
}
# The average rates of p-streams in b/s. The highest rate of the last p-stream is just below the interface's.
AVERAGES_BPS = tuple(base * 10**power for power in (5, 6, 7, 8, 9) for base in (1, 2.5, 8))
QUICK_AVERAGES_BPS = (1e5, 1e7, 1e9, 8e9)
# The number of packets at each rate.
PACKETS = 200
# The largest error that counts as exact, in microseconds (section IV-B).
EXACT_US = 1.0
WITHIN = Metric("gaps within 1 us", "%")
ERROR = Metric("error", "us")


def cells_of(sender: str, effort: Effort) -> Iterator[Cell]:
    """Yields one sender at every rate that the p-streams probe."""
    averages = AVERAGES_BPS if effort.name == "full" else QUICK_AVERAGES_BPS
    timer_error, _ = SENDERS[sender]
    for rate_bps in (rate for average in averages for rate in np.unique(rapid.p_stream(average).rate_bps)):
        gap_s = testbed.WIRE_BYTES * 8 / rate_bps
        yield Cell(
            testbed.SCENARIO,
            (
                f'scheme.paced={{controller="constant", window=100000, pace="{rate_bps:.0f}bps"}}',
                "workload.scheme=paced",
                f"workload.size={PACKETS}packets",
                f"duration={1 + 2 * PACKETS * gap_s:.6f}s",
                "host_at=[]",
                f"host.timer_error={timer_error}",
                f"packets.count={PACKETS}",
            ),
            f"{sender} {rate_bps:.3g} b/s",
            cost=0.01,
        )


def cells(effort: Effort) -> Iterator[Cell]:
    """Yields every sender at every rate."""
    return (cell for sender in SENDERS for cell in cells_of(sender, effort))


def errors_us(packets: pl.DataFrame) -> np.ndarray:
    """Returns the actual minus the intended gap of every two packets, in microseconds."""
    return np.diff((packets["departed_s"] - packets["due_s"]).to_numpy()) * 1e6


def evaluate(runs: Runs) -> Evaluation:
    """Returns the sizes of errors and their distribution for each sender."""
    rows: list[Row] = []
    curves: dict[str, pl.DataFrame] = {}
    for sender in SENDERS:
        by_seed = [
            np.concatenate([errors_us(outcome.packets) for outcome in found])
            for found in runs.together(*cells_of(sender, runs.effort))
        ]
        sizes = [np.abs(errors) for errors in by_seed]
        within = [100.0 * float((size <= EXACT_US).mean()) for size in sizes]
        # PAUSE frames make the same gaps with every seed.
        rows.append(measured(Key(sender, WITHIN), None, within[:1] if sender == EXACT else within))
        for share in (50, 95):
            values = [float(np.percentile(size, share)) for size in sizes]
            rows.append(measured(Key(sender, ERROR, average=f"{share}th percentile"), None, values))
        shares = np.linspace(0.0, 1.0, 501)
        curves[sender] = pl.DataFrame({"error_us": np.quantile(np.concatenate(by_seed), shares), "share": shares})
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Returns the distributions of the error."""
    drawing, [axes] = plots.figure()
    for sender, (_, look) in SENDERS.items():
        curve = evaluation.curves[sender]
        plots.line(axes, sender, look, curve["error_us"].to_list(), curve["share"].to_list())
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlabel("actual gap less intended gap (us)")
    axes.set_ylabel("share of gaps")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named(WITHIN)
