"""Summarises a run in four small tables."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from sparelane.common import percentiles
from sparelane.simulation import columns
from sparelane.simulation.columns import documented_tables
from sparelane.simulation.goodput import goodput_bps, jain, open_rates_bps

if TYPE_CHECKING:
    from sparelane.simulation.result import Result

BUSIEST = 5
# The columns of flows that goodput and fairness are computed from.
SERVED = ("start_s", "finish_s", "delivered_bytes")


@documented_tables(columns.SUMMARY)
@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run.

    Attributes:
        schemes: Flows and completion times, one row per scheme.
        service: Goodput, repair and delay, one row per scheme.
        links: The busiest directions of cables, in order of utilisation.
        drops: Packets over all queues, one row per priority.
        remarks: Sentences about the tables, such as percentiles for which there are too few flows.
    """

    schemes: pl.DataFrame
    service: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame
    remarks: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The tables as HTML, for notebooks."""
        titles = (
            ("Flows and completion times", self.schemes),
            ("Goodput, repair and delay", self.service),
            ("Busiest links", self.links),
            ("Packets by class, over all queues", self.drops),
        )
        remarks = "".join(f"<p>note: {html.escape(remark)}</p>" for remark in self.remarks)
        return "".join(f"<h4>{title}</h4>{table._repr_html_()}" for title, table in titles) + remarks


def summarise(result: Result) -> Summary:
    """Computes the summary of a run."""
    return of_tables(result.flows, result.links, result.drops, result.totals["end_s"])


def of_tables(flows: pl.DataFrame, links: pl.DataFrame, drops: pl.DataFrame, end_s: float) -> Summary:
    """Computes the summary from the tables of a run, which may be saved ones."""
    schemes = _schemes(flows)
    return Summary(schemes, _service(flows, end_s), _links(links, end_s), _drops(drops), _remarks(schemes))


SCHEMES: Mapping[str, type[pl.DataType]] = {
    "scheme": pl.String,
    "flows": pl.UInt32,
    "finished": pl.UInt32,
    "mean_s": pl.Float64,
    "median_s": pl.Float64,
    "p95_s": pl.Float64,
    "p99_s": pl.Float64,
    "p999_s": pl.Float64,
    "slowdown": pl.Float64,
    "p99_slowdown": pl.Float64,
}


def _schemes(flows: pl.DataFrame) -> pl.DataFrame:
    rows = [_completed(str(scheme), own) for (scheme, *_), own in flows.group_by("scheme", maintain_order=True)]
    return pl.DataFrame(rows, schema=SCHEMES, orient="row")


def _completed(scheme: str, flows: pl.DataFrame) -> tuple[object, ...]:
    """A row of the table of schemes."""
    times = flows["completion_s"].cast(pl.Float64).drop_nulls()
    slowdowns = (flows["completion_s"].cast(pl.Float64) / flows["ideal_s"].cast(pl.Float64)).drop_nulls()
    slowdowns = slowdowns.filter(slowdowns.is_finite())
    return (
        scheme,
        flows.height,
        len(times),
        times.mean(),
        times.median(),
        *(percentiles.percentile(times.to_numpy(), share) for share in percentiles.TAILS),
        slowdowns.mean(),
        percentiles.percentile(slowdowns.to_numpy(), 0.99),
    )


def _remarks(schemes: pl.DataFrame) -> tuple[str, ...]:
    """A sentence if there are too few finished flows for the 99th percentile."""
    counts = [(name, count) for name, count in schemes.select("scheme", "finished").rows() if count]
    remark = percentiles.remark(0.99, "finished flows", counts)
    return () if remark is None else (remark,)


SERVICE: Mapping[str, type[pl.DataType]] = {
    "scheme": pl.String,
    "goodput_bps": pl.Float64,
    "retransmitted": pl.Float64,
    "timeouts": pl.Int64,
    "rtt_s": pl.Float64,
    "queueing_s": pl.Float64,
    "jain": pl.Float64,
}


def _service(flows: pl.DataFrame, end_s: float) -> pl.DataFrame:
    rows = [_served(str(scheme), own, end_s) for (scheme, *_), own in flows.group_by("scheme", maintain_order=True)]
    return pl.DataFrame(rows, schema=SERVICE, orient="row")


def _served(scheme: str, flows: pl.DataFrame, end_s: float) -> tuple[object, ...]:
    """A row of the table of service, for the flows of one scheme."""
    start_s, finish_s, delivered = (flows[name].cast(pl.Float64).fill_null(math.nan).to_numpy() for name in SERVED)
    first_class = int(flows["sent_packets_0"].sum())
    srtt_s, min_rtt_s = flows["srtt_s"].cast(pl.Float64), flows["min_rtt_s"].cast(pl.Float64)
    return (
        scheme,
        goodput_bps(start_s, finish_s, delivered, end_s),
        int(flows["retransmissions"].sum()) / first_class if first_class else None,
        int(flows["timeouts"].sum()),
        srtt_s.mean(),
        (srtt_s - min_rtt_s).mean(),
        jain(open_rates_bps(start_s, finish_s, delivered, end_s)),
    )


def _links(links: pl.DataFrame, end_s: float) -> pl.DataFrame:
    return (
        links.select(
            pl.col("from", "to").cast(pl.String),
            utilisation=8 * pl.col("sent_bytes") / (pl.col("rate_bps") * end_s) if end_s else pl.lit(0.0),
            peak_backlog_bytes="peak_backlog_bytes",
        )
        .sort("utilisation", descending=True, maintain_order=True)
        .head(BUSIEST)
    )


def _drops(drops: pl.DataFrame) -> pl.DataFrame:
    return (
        drops.group_by("class")
        .agg(arrived=pl.sum("arrived_packets"), dropped=pl.sum("dropped_packets"))
        .filter(pl.col("arrived") > 0)
        .with_columns(share=pl.col("dropped") / pl.col("arrived"))
        .sort("class")
    )
