"""Builds the panels of one or several runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sparelane.common import percentiles
from sparelane.common.units import scale
from sparelane.reports.charts import over_time, scatter
from sparelane.reports.charts.panel import Line, Panel, thinned
from sparelane.simulation import stored

if TYPE_CHECKING:
    from sparelane.simulation.result import Result

# Up to this many different flow sizes are drawn separately; more are grouped in ranges.
SEPARATE_SIZES = 15
RANGES_A_DECADE = 3
# The throughputs of up to this many flows are drawn separately; more as a distribution.
SEPARATE_FLOWS = 12
P95 = 0.95


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a run for panels, and the name of the run in legends."""

    name: str
    flows: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame
    series: pl.DataFrame
    delays: pl.DataFrame
    end_s: float

    def label(self, what: str) -> str:
        """The label of a line of this run in a legend."""
        return ": ".join(part for part in (self.name, what) if part)


def of_result(result: Result, name: str = "") -> Tables:
    """The tables of a result."""
    tables = (result.flows, result.links, result.drops, result.series, result.delays)
    return Tables(name, *tables, result.totals["end_s"])


def read(folder: Path, name: str = "") -> Tables:
    """Reads the tables of a saved run, in any format.

    Raises:
        SavedResultsError: a table is missing, is malformed, or was written by another version.
    """
    content = stored.about(folder)
    names = ("flows", "links", "drops", "series", "delays")
    flows, links, drops, series, delays = (stored.table(folder, table) for table in names)
    return Tables(name, flows, links, drops, series, delays, float(content["totals"]["end_s"]))


def panels(runs: Sequence[Tables]) -> list[Panel]:
    """All panels with data of the runs."""
    found = [
        *over_time.panels(runs),
        *_by_size(runs),
        *_distributions(runs),
        *_throughputs(runs),
        *_against_delay(runs),
    ]
    return [panel for panel in found if panel.lines]


def _finished(run: Tables) -> Iterator[tuple[str, pl.DataFrame]]:
    """Finished flows by scheme."""
    done = run.flows.filter(pl.col("completion_s").is_not_null() & pl.col("size_bytes").is_not_null())
    done = done.with_columns(pl.col("scheme").cast(pl.String), slowdown=pl.col("completion_s") / pl.col("ideal_s"))
    for (scheme, *_), flows in done.group_by("scheme", maintain_order=True):
        yield str(scheme), flows


def _by_size(runs: Sequence[Tables]) -> Iterator[Panel]:
    note = "Means of finished flows of about a size; bars reach from the 10th to the 90th percentile."
    for name, column, title, axis in (
        ("completion", "completion_s", "Completion time by size", "completion time (s)"),
        ("slowdown", "slowdown", "Slowdown by size", "slowdown (completion / least possible)"),
    ):
        lines = []
        for run in runs:
            for scheme, flows in _finished(run):
                grouped = (
                    _sized(flows)
                    .group_by("about", maintain_order=True)
                    .agg(
                        x=pl.col("size_bytes").mean() / 1e3,
                        y=pl.col(column).mean(),
                        low=pl.col(column).quantile(0.1, "linear"),
                        high=pl.col(column).quantile(0.9, "linear"),
                    )
                )
                grouped = grouped.filter(pl.col("y").is_not_null()).sort("x")
                if grouped.height > 1:
                    x, y, low, high = (grouped[key].to_list() for key in ("x", "y", "low", "high"))
                    lines.append(Line(run.label(scheme), x, y, low, high, is_marked=True))
        yield Panel(name, title, "size (kB)", axis, lines, is_x_log=True, is_y_log=True, note=note)


def _sized(flows: pl.DataFrame) -> pl.DataFrame:
    """Adds the range of sizes of each flow as the column `about`."""
    if flows["size_bytes"].n_unique() <= SEPARATE_SIZES:
        return flows.with_columns(about=pl.col("size_bytes").cast(pl.Float64))
    return flows.with_columns(about=(pl.col("size_bytes").log10() * RANGES_A_DECADE).floor())


def _distributions(runs: Sequence[Tables]) -> Iterator[Panel]:
    for name, column, axis in (
        ("cdf", "completion_s", "completion time (s)"),
        ("cdf-slowdown", "slowdown", "slowdown (completion / least possible)"),
    ):
        lines = []
        for run in runs:
            for scheme, flows in _finished(run):
                values = flows[column].drop_nulls().sort().to_numpy()
                if len(values) > 1:
                    share = np.arange(1, len(values) + 1) / len(values)
                    lines.append(Line(run.label(scheme), *thinned(values, share), is_step=True))
        title = f"Distribution of {'completion times' if column == 'completion_s' else 'slowdowns'}"
        yield Panel(name, title, axis, "share of finished flows", lines, is_x_log=True)


def _throughputs(runs: Sequence[Tables]) -> Iterator[Panel]:
    """The mean rates of flows without end."""
    lines = []
    largest = 0.0
    for run in runs:
        endless = _with_rates(run).filter(pl.col("size_bytes").is_null())
        for (scheme, *_), flows in endless.group_by("scheme", maintain_order=True):
            lines.append((run.label(str(scheme)), flows["id"].to_numpy(), flows["rate"].to_numpy()))
            largest = max(largest, float(flows["rate"].max() or 0.0))  # type: ignore[arg-type]
    size, unit = scale(largest, "bit/s")
    if sum(len(ids) for _, ids, _ in lines) <= SEPARATE_FLOWS:
        drawn: list[Line] = []
        places: list[str] = []
        for label, ids, rates in lines:
            at = [float(len(places) + place) for place in range(len(ids))]
            places += [str(id) for id in ids]
            drawn.append(Line(label, at, (rates / size).tolist(), is_marked=True, is_joined=False))
        yield Panel(
            "throughput", "Throughput of flows without end", "flow", f"throughput ({unit})", drawn, places=tuple(places)
        )
        return
    drawn = []
    for label, _, rates in lines:
        values = np.sort(rates / size)
        drawn.append(Line(label, *thinned(values, np.arange(1, len(values) + 1) / len(values)), is_step=True))
    yield Panel("throughput", "Throughput of flows without end", f"throughput ({unit})", "share of flows", drawn)


def _with_rates(run: Tables) -> pl.DataFrame:
    """Adds the mean throughput of each flow from its start to its end as the column `rate`, bits per second."""
    lasted = pl.col("finish_s").fill_null(run.end_s) - pl.col("start_s")
    return run.flows.filter(lasted > 0).with_columns(
        pl.col("scheme").cast(pl.String), rate=8 * pl.col("delivered_bytes") / lasted
    )


def _against_delay(runs: Sequence[Tables]) -> Iterator[Panel]:
    """Throughput against the mean delay of each flow, and against the 95th percentile over packets of each scheme."""
    is_measured = any(not run.delays.is_empty() for run in runs)
    delay = pl.col("mean_delay_s") if is_measured else pl.col("srtt_s") - pl.col("min_rtt_s")
    means, tails = [], []
    for run in runs:
        if is_measured and "mean_delay_s" not in run.flows.columns:
            continue
        flows = _with_rates(run).with_columns(delay=delay)
        for (scheme, *_), own in flows.group_by("scheme", maintain_order=True):
            label = run.label(str(scheme))
            numbers = (own[name].cast(pl.Float64).fill_null(math.nan).to_numpy() for name in ("delay", "rate"))
            means.append(scatter.Cloud(label, label, "", *numbers))
            bins = run.delays.filter(pl.col("scheme").cast(pl.String) == str(scheme))
            if not bins.is_empty():
                tail = percentiles.weighted(bins["delay_s"].to_numpy(), bins["packets"].to_numpy(), P95)
                rate = float(own["rate"].mean() or 0.0)  # type: ignore[arg-type]
                tails.append(
                    scatter.Cloud(label, label, "", np.array([math.nan if tail is None else tail]), np.array([rate]))
                )
    name, words, note = ("mean one-way delay", "mean delay", "") if is_measured else scatter.UNMEASURED
    title, rate_words = f"Throughput against {words}", "throughput of a flow"
    yield scatter.panel("throughput-delay", title, name, rate_words, means, "flows", note)
    title = "Throughput against 95th percentile of delay"
    name = "95th percentile of one-way delay"
    yield scatter.panel("throughput-delay-p95", title, name, f"mean {rate_words}", tails, "schemes", "")
