"""Reduces a run to one row per flow, and to averages and series of the largest flow and the bottleneck's queue."""

from __future__ import annotations

import polars as pl

from sparelane.papers.engine.base import Outcome
from sparelane.papers.linux.paths import Path, Run, Side

SCHEMA = {
    "path": pl.String,
    "controller": pl.String,
    "variant": pl.String,
    "size": pl.String,
    "seed": pl.Int64,
    "side": pl.String,
    "completion_s": pl.Float64,
    "retransmissions": pl.Int64,
    "mean_in_flight_bytes": pl.Float64,
    "mean_queue_bytes": pl.Float64,
    "link_use": pl.Float64,
}
BOTTLENECK = "west->east"
# Shorter flows have no averages, because they have too few samples.
LEAST_SAMPLED_S = 0.5


def rows(run: Run, seed: int, side: Side, outcome: Outcome) -> pl.DataFrame:
    """Returns one row per flow. Only the sampled flow has averages over time, and only if it lasts long enough."""
    found = []
    for number, (size, flow) in enumerate(zip(run.path.sizes, outcome.flows.iter_rows(named=True), strict=True)):
        lasted_s = flow["completion_s"]
        averages: tuple[float | None, ...] = (None, None, None)
        if number == run.path.sampled and lasted_s is not None and lasted_s >= LEAST_SAMPLED_S:
            averages = _averages(run.path, outcome)
        names = (run.path.name, run.controller, run.variant, size, seed, side)
        found.append((*names, lasted_s, flow["retransmissions"], *averages))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def series(run: Run, side: Side, outcome: Outcome) -> pl.DataFrame:
    """Returns the sampled flow's data in flight and the bottleneck's queue over the time since the flow's start."""
    chosen = _during(run.path, outcome).filter(
        ((pl.col("probe") == f"flow {run.path.sampled}") & (pl.col("quantity") == "in_flight_bytes"))
        | ((pl.col("probe") == BOTTLENECK) & (pl.col("quantity") == "backlog_bytes"))
    )
    return _labelled(chosen, run, side)


def queue_series(run: Run, side: Side, outcome: Outcome) -> pl.DataFrame:
    """Returns every fourth sample of the bottleneck's queue over the time since the flow's start, with the path."""
    during = _during(run.path, outcome).filter(probe=BOTTLENECK, quantity="backlog_bytes")
    labelled = _labelled(during.gather_every(4), run, side)
    return labelled.select(pl.lit(run.path.name).alias("path"), pl.all())


def _labelled(chosen: pl.DataFrame, run: Run, side: Side) -> pl.DataFrame:
    """Returns samples with the controller and the side."""
    return chosen.select(
        pl.lit(run.controller).alias("controller"),
        pl.lit(side).alias("side"),
        pl.col("time_s").round(6),
        "quantity",
        "value",
    )


def _during(path: Path, outcome: Outcome) -> pl.DataFrame:
    """Returns the samples during the sampled flow, with the time since its start."""
    flow = outcome.flows.row(path.sampled, named=True)
    start_s, lasted_s = flow["start_s"], flow["completion_s"]
    since = outcome.series.with_columns(pl.col("probe", "quantity").cast(pl.String), pl.col("time_s") - start_s)
    return since.filter(pl.col("time_s").is_between(0, lasted_s))


def _averages(path: Path, outcome: Outcome) -> tuple[float | None, ...]:
    """Returns the mean bytes in flight, the mean bytes in the queue, and the link use over whole sample intervals."""
    during = _during(path, outcome)
    sent = during.filter(probe=BOTTLENECK, quantity="sent_bytes")
    used = None
    if sent.height > 1:
        # A link whose rate changes has the bytes that it could have sent as samples.
        offered = during.filter(probe=BOTTLENECK, quantity="offered_bytes")
        span_s = sent["time_s"][-1] - sent["time_s"][0]
        room = 8 * float(offered["value"][1:].sum()) if offered.height else span_s * _bits(path.rate)
        used = 8 * float(sent["value"][1:].sum()) / room
    return _mean(during, f"flow {path.sampled}", "in_flight_bytes"), _mean(during, BOTTLENECK, "backlog_bytes"), used


def _bits(rate: str) -> float:
    """Returns a path's rate in bits per second."""
    number, unit = rate[:-4], rate[-4:]
    return float(number) * {"Mbps": 1e6, "Gbps": 1e9}[unit]


def _mean(during: pl.DataFrame, probe: str, quantity: str) -> float | None:
    values = during.filter(pl.col("probe") == probe, pl.col("quantity") == quantity)["value"]
    return float(values.mean()) if len(values) else None  # type: ignore[arg-type]
