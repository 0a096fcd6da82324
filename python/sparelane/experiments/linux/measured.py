"""What is kept of a run: a row a flow, and how window and queue went while it lasted."""

from __future__ import annotations

import polars as pl

from sparelane.experiments.linux.paths import Path, turns
from sparelane.result import Result

SCHEMA = {
    "path": pl.String,
    "seed": pl.Int64,
    "side": pl.String,
    "controller": pl.String,
    "size": pl.String,
    "completion_s": pl.Float64,
    "retransmissions": pl.Int64,
    "mean_window_bytes": pl.Float64,
    "mean_queue_bytes": pl.Float64,
    "link_use": pl.Float64,
}
BOTTLENECK = "west->east"
# Averages of shorter flows would be of too few samples, seconds.
LEAST_SAMPLED_S = 0.5


def rows(path: Path, seed: int, side: str, result: Result) -> pl.DataFrame:
    """A row a flow. Averages over time are of each controller's largest flow, null where it is short."""
    series = result.series.with_columns(pl.col("probe", "quantity").cast(pl.String))
    rate_bps = float(result.links.filter(pl.col("from").cast(pl.String) == "west", _to("east"))["rate_bps"][0])
    found = []
    for number, ((controller, size, start_s), flow) in enumerate(
        zip(turns(path, seed), result.flows.iter_rows(named=True), strict=True)
    ):
        lasted_s = flow["completion_s"]
        averages: tuple[float | None, ...] = (None, None, None)
        if lasted_s is not None and size == path.sizes[-1] and lasted_s >= LEAST_SAMPLED_S:
            during = series.filter(pl.col("time_s").is_between(start_s + 0.05, start_s + lasted_s))
            sent = _mean(during, BOTTLENECK, "sent_bytes")
            averages = (
                _mean(during, f"flow {number}", "cwnd_bytes"),
                _mean(during, BOTTLENECK, "backlog_bytes"),
                None if sent is None else sent * 8 / 0.05 / rate_bps,
            )
        found.append((path.name, seed, side, controller, size, lasted_s, flow["retransmissions"], *averages))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def series(path: Path, side: str, result: Result) -> pl.DataFrame:
    """The windows of each controller's largest flow, and the queue, with time from the flow's start."""
    whole = result.series.with_columns(pl.col("probe", "quantity").cast(pl.String))
    parts = []
    for number, (controller, size, start_s) in enumerate(turns(path)):
        lasted_s = result.flows["completion_s"][number]
        if size != path.sizes[-1] or lasted_s is None:
            continue
        chosen = (
            ((pl.col("probe") == f"flow {number}") & (pl.col("quantity") == "cwnd_bytes"))
            | ((pl.col("probe") == BOTTLENECK) & (pl.col("quantity") == "backlog_bytes"))
        ) & pl.col("time_s").is_between(start_s, start_s + lasted_s)
        parts.append(
            whole.filter(chosen).select(
                pl.lit(side).alias("side"),
                pl.lit(controller).alias("controller"),
                (pl.col("time_s") - start_s).round(3).alias("time_s"),
                "quantity",
                "value",
            )
        )
    return pl.concat(parts)


def _to(name: str) -> pl.Expr:
    return pl.col("to").cast(pl.String) == name


def _mean(during: pl.DataFrame, probe: str, quantity: str) -> float | None:
    values = during.filter(pl.col("probe") == probe, pl.col("quantity") == quantity)["value"]
    return float(values.mean()) if len(values) else None  # type: ignore[arg-type]
