"""A run in three small tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from sparelane.result import Result

BUSIEST = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """What most readers look at first.

    Attributes:
        schemes: per scheme `flows`, `finished`, and of the finished ones `mean_s`, `median_s` and `p99_s`, the
            completion times in seconds.
        links: the directions of cables with the most traffic: `from`, `to`, `utilisation` (0 to 1), and
            `peak_backlog_bytes`.
        drops: per class `arrived`, `dropped`, and `share` of the arrived (0 to 1), over all queues.
    """

    schemes: pl.DataFrame
    links: pl.DataFrame
    drops: pl.DataFrame

    def _repr_html_(self) -> str:
        """The three tables, for notebooks."""
        titles = (("Flows and completion times", self.schemes), ("Busiest links", self.links), ("Packets", self.drops))
        return "".join(f"<h4>{title}</h4>{table._repr_html_()}" for title, table in titles)


def summarise(result: Result) -> Summary:
    """The summary of a run."""
    return Summary(_schemes(result.flows), _links(result.links, result.totals["end_s"]), _drops(result.drops))


def _schemes(flows: pl.DataFrame) -> pl.DataFrame:
    completion = pl.col("completion_s")
    return (
        flows.group_by("scheme", maintain_order=True)
        .agg(
            flows=pl.len(),
            finished=completion.count(),
            mean_s=completion.mean(),
            median_s=completion.median(),
            p99_s=completion.quantile(0.99, "linear"),
        )
        .with_columns(pl.col("scheme").cast(pl.String))
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
