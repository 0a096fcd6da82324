"""Requests: flows that a client asked for together."""

from __future__ import annotations

import polars as pl


def request_table(flows: pl.DataFrame) -> pl.DataFrame:
    """One row per request of `flows`, the flows of a result, in order of start.

    A request ends when the last of its flows does: `finish_s` and `completion_s` are null while one of them has not.

    Columns: `request`, `scheme`, `client` (who receives), `flows` (how many), `size_bytes` (of all together),
    `largest_bytes` (of the largest), `start_s`, `finish_s`, `completion_s`.
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
