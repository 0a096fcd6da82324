"""What can be drawn of a single run: what was sampled over time, and the completion times of flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sparelane import stored
from sparelane.charts.panel import Line, Panel, thinned
from sparelane.units import scale

if TYPE_CHECKING:
    from sparelane.result import Result

# Flows of so many different sizes, or fewer, are drawn size by size; more, in three ranges a decade.
SEPARATE_SIZES = 15
RANGES_A_DECADE = 3
# Of more flows than this, throughputs are drawn as a distribution.
SEPARATE_FLOWS = 12

# Quantities over time: name of the panel, the quantity, the title, and the axis.
OVER_TIME = (
    ("window", "cwnd_bytes", "Congestion window", "congestion window", "B"),
    ("rtt", "srtt_s", "Round trip", "smoothed round-trip time", "s"),
    ("queue", "backlog_bytes", "Queue", "backlog", "B"),
)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a run that are drawn and summed up, under the name that the run has in legends."""

    name: str
    flows: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame
    series: pl.DataFrame
    end_s: float


def of_result(result: Result, name: str = "") -> Tables:
    """The tables of a result."""
    return Tables(name, result.flows, result.links, result.drops, result.series, result.totals["end_s"])


def read(folder: Path, name: str = "") -> Tables:
    """The tables that `sparelane run -o` saved in a folder, in any of its formats.

    Raises:
        SavedResultsError: a table is missing, is malformed, or was written by another version.
    """
    content = stored.about(folder)
    flows, links, drops, series = (stored.table(folder, table) for table in ("flows", "links", "drops", "series"))
    return Tables(name, flows, links, drops, series, float(content["totals"]["end_s"]))


def panels(runs: Sequence[Tables]) -> list[Panel]:
    """Every panel of which the runs have something to show."""
    found = [*_over_time(runs), *_link_use(runs), *_by_size(runs), *_distributions(runs), *_throughputs(runs)]
    return [panel for panel in found if panel.lines]


def _label(run: Tables, what: str) -> str:
    return ": ".join(part for part in (run.name, what) if part)


def _over_time(runs: Sequence[Tables]) -> Iterator[Panel]:
    for name, quantity, title, axis, unit in OVER_TIME:
        lines = []
        for run in runs:
            some = run.series.filter((pl.col("quantity") == quantity) & pl.col("value").is_not_null())
            for (probe, *_), samples in some.group_by("probe", maintain_order=True):
                lines.append((_label(run, _probe(run, str(probe))), samples["time_s"], samples["value"]))
        if lines:
            largest = max(float(values.max() or 0.0) for _, _, values in lines)  # type: ignore[arg-type]
            size, told = scale(largest, unit)
            drawn = [
                Line(label, *thinned(time.to_numpy(), (values / size).to_numpy()), is_step=True)
                for label, time, values in lines
            ]
            yield Panel(name, title, "time (s)", f"{axis} ({told})", drawn)


def _probe(run: Tables, probe: str) -> str:
    """A probe's name, with the scheme of a flow."""
    if not probe.startswith("flow "):
        return probe.replace("->", "→")
    schemes = run.flows.filter(pl.col("id") == int(probe.removeprefix("flow ")))["scheme"]
    return f"{probe} ({schemes[0]})" if len(schemes) else probe


def _link_use(runs: Sequence[Tables]) -> Iterator[Panel]:
    lines = []
    for run in runs:
        sent = run.series.filter(pl.col("quantity") == "sent_bytes")
        rates = {f"{one['from']}->{one['to']}": one["rate_bps"] for one in run.links.iter_rows(named=True)}
        for (probe, *_), samples in sent.group_by("probe", maintain_order=True):
            time = samples["time_s"].to_numpy()
            rate = rates.get(str(probe))
            if len(time) > 1 and rate:
                use = 100 * 8 * samples["value"].to_numpy()[1:] / (np.diff(time) * rate)
                lines.append(Line(_label(run, _probe(run, str(probe))), *thinned(time[1:], use), is_step=True))
    yield Panel("links", "Use of links", "time (s)", "share of the link's rate (%)", lines)


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
                    lines.append(Line(_label(run, scheme), x, y, low, high, is_marked=True))
        yield Panel(name, title, "size (kB)", axis, lines, is_x_log=True, is_y_log=True, note=note)


def _sized(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows with the range of sizes that each is in."""
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
                    lines.append(Line(_label(run, scheme), *thinned(values, share), is_step=True))
        title = f"Distribution of {'completion times' if column == 'completion_s' else 'slowdowns'}"
        yield Panel(name, title, axis, "share of finished flows", lines, is_x_log=True)


def _throughputs(runs: Sequence[Tables]) -> Iterator[Panel]:
    """The mean rates of flows without end."""
    lines = []
    largest = 0.0
    for run in runs:
        lasted = pl.when(pl.col("finish_s").is_null()).then(run.end_s).otherwise(pl.col("finish_s")) - pl.col("start_s")
        endless = run.flows.filter(pl.col("size_bytes").is_null()).with_columns(
            pl.col("scheme").cast(pl.String), rate=8 * pl.col("delivered_bytes") / lasted
        )
        for (scheme, *_), flows in endless.group_by("scheme", maintain_order=True):
            lines.append((_label(run, str(scheme)), flows["id"].to_numpy(), flows["rate"].to_numpy()))
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
