"""What the reader of a run should be told: what its means leave out, what did not happen, what may be an artefact."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from sparelane.result import Result

# A link this busy may be a bottleneck.
BUSY = 0.9
# Fewer packets than this in step with each other are no pattern.
FEWEST_PACKETS = 1000
# Below this, Jain's index of equal flows is suspicious.
UNEVEN = 0.8


def notices(result: Result) -> list[str]:
    """Sentences about a run, the most important first; none for most."""
    scenario = tomllib.loads(result.scenario)
    end_s = result.totals["end_s"]
    if result.flows.is_empty():
        return [
            *result.notices,
            f"no flow started by the end of the run, {end_s:g} s: the workload is empty, or starts later",
        ]
    return [*result.notices, *_unfinished(result), *_not_sampled(result, scenario), *_in_step(result)]


def _unfinished(result: Result) -> Iterator[str]:
    sized = result.flows.filter(pl.col("size_bytes").is_not_null())
    left = sized["completion_s"].null_count()
    if left:
        yield (
            f"completion times and slowdowns are of finished flows alone: {left} of {sized.height} flows had not "
            "finished by the end of the run"
        )
    silent = result.flows.filter(pl.col("delivered_bytes") == 0).height
    if silent:
        yield f"{silent} of {result.flows.height} flows delivered nothing"


def _not_sampled(result: Result, scenario: dict[str, object]) -> Iterator[str]:
    sample = scenario.get("sample")
    asked = sample.get("flows", []) if isinstance(sample, dict) else []
    started = result.flows.height
    missing = [str(flow) for flow in asked if isinstance(flow, int) and flow >= started]
    if missing:
        many = "s" if len(missing) > 1 else ""
        yield f"[sample] asks for flow{many} {', '.join(missing)}; only {started} started, numbered from 0"


def _in_step(result: Result) -> Iterator[str]:
    """Phase effects: packets of equal hosts that come in step may always find the same place in a full queue."""
    uneven = result.summary().service.filter(pl.col("jain") < UNEVEN)
    if uneven.is_empty():
        return
    links = result.links.with_columns(pl.col("from", "to").cast(pl.String))
    hosts = result.flows.select(pl.col("src").cast(pl.String)).unique()
    uplinks = links.join(hosts, left_on="from", right_on="src", how="semi")
    busy = (
        links.join(hosts, left_on="from", right_on="src", how="anti")
        .filter(8 * pl.col("sent_bytes") > BUSY * pl.col("rate_bps") * result.totals["end_s"])
        .filter(pl.col("sent_packets") > FEWEST_PACKETS)
        .join(uplinks.select("rate_bps").unique(), on="rate_bps", how="semi")
    )
    for link in busy.sort("sent_bytes", descending=True).head(1).iter_rows(named=True):
        yield (
            f"flows of scheme {', '.join(uneven['scheme'])} have uneven shares, and hosts send at exactly the rate "
            f"of the bottleneck from {link['from']} to {link['to']}: their packets may come in step, so that drops "
            "always hit the same flows (a phase effect, no property of the controller); jitter breaks the step: "
            '--set host.ack_cost="20us"'
        )
