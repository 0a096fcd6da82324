"""A run in a few small tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from sparelane import columns
from sparelane.columns import documented_tables
from sparelane.service import goodput_bps, jain, open_rates_bps

if TYPE_CHECKING:
    from sparelane.result import Result

BUSIEST = 5
# The columns of flows that say what service they had.
SERVED = ("start_s", "finish_s", "delivered_bytes")


@documented_tables(columns.SUMMARY)
@dataclass(frozen=True, slots=True)
class Summary:
    """A run in four small tables.

    Attributes:
        schemes: Flows and completion times, one row per scheme.
        service: Goodput, repair and delay, one row per scheme.
        links: The directions of cables with the most traffic, the busiest first.
        drops: Packets over all queues, one row per priority.
    """

    schemes: pl.DataFrame
    service: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame

    def _repr_html_(self) -> str:
        """The tables, for notebooks."""
        titles = (
            ("Flows and completion times", self.schemes),
            ("Goodput, repair and delay", self.service),
            ("Busiest links", self.links),
            ("Packets by class, over all queues", self.drops),
        )
        return "".join(f"<h4>{title}</h4>{table._repr_html_()}" for title, table in titles)


def summarise(result: Result) -> Summary:
    """The summary of a run."""
    return of_tables(result.flows, result.links, result.drops, result.totals["end_s"])


def of_tables(flows: pl.DataFrame, links: pl.DataFrame, drops: pl.DataFrame, end_s: float) -> Summary:
    """The summary of the tables of a run, also of those that were saved."""
    return Summary(_schemes(flows), _service(flows, end_s), _links(links, end_s), _drops(drops))


def _schemes(flows: pl.DataFrame) -> pl.DataFrame:
    completion = pl.col("completion_s")
    slowdown = completion / pl.col("ideal_s")
    return (
        flows.group_by("scheme", maintain_order=True)
        .agg(
            flows=pl.len(),
            finished=completion.count(),
            mean_s=completion.mean(),
            median_s=completion.median(),
            p99_s=completion.quantile(0.99, "linear"),
            slowdown=slowdown.mean(),
            p99_slowdown=slowdown.quantile(0.99, "linear"),
        )
        .with_columns(pl.col("scheme").cast(pl.String))
    )


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
    """A row of the table of service: the flows of one scheme."""
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
