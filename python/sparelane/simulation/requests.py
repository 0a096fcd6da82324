"""The table of requests: groups of flows that a client requested together, and rounds of collectives."""

from __future__ import annotations

import polars as pl


def request_table(flows: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per request in a table of flows, in order of start.

    A request finishes with its last flow. Until then, `finish_s` and `completion_s` are null.

    Columns: `request`, `scheme`, `client` (the receiver), `flows` (their number), `size_bytes` (the total),
    `largest_bytes` (the largest flow), `start_s`, `finish_s`, `completion_s`.
    """
    ended = pl.col("finish_s").is_not_null().all()
    return (
        flows.filter(pl.col("request").is_not_null())
        .group_by("request", maintain_order=True)
        .agg(
            scheme=pl.first("scheme"),
            client=pl.first("dst"),
            flows=pl.len(),
            size_bytes=pl.sum("size_bytes"),
            largest_bytes=pl.max("size_bytes"),
            start_s=pl.min("start_s"),
            finish_s=pl.when(ended).then(pl.max("finish_s")),
        )
        .with_columns(completion_s=pl.col("finish_s") - pl.col("start_s"))
    )
