"""The transfers of RAPID's tables: their schemes, and what is measured of one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sparelane.papers.engine.base import Outcome
from sparelane.papers.engine.rows import Metric
from sparelane.reports import plots

# The schemes of the paper's tables by their names in the scenario, and as the paper writes them.
SCHEMES: Mapping[str, str] = {
    "rapid": "RAPID",
    "newreno": "New Reno",
    "vegas": "Vegas",
    "bic": "BIC",
    "cubic": "CUBIC",
    "highspeed": "HighSpeed",
    "h-tcp": "H-TCP",
    "hybla": "Hybla",
    "lp": "LP",
    "scalable": "Scalable",
    "yeah": "YeAH",
    "fast": "FAST",
    "illinois": "Illinois",
    "westwood": "Westwood",
    "veno": "Veno",
}

# Those that a figure with room for a few curves shows: the paper's choice, and New Reno.
SHOWN: Mapping[str, plots.Look] = {
    "rapid": plots.RC3,
    "scalable": plots.THIRD,
    "cubic": plots.FIFTH,
    "newreno": plots.TCP,
}

THROUGHPUT = Metric("throughput", "Gb/s")
LOSS = Metric("loss", "%", is_loss_rate=True)

# A receiver that stalls for 10 ms each second and pauses the switch meanwhile, so that nothing is lost behind it.
PAUSES = ("host_at.0.ring=1512", "host_at.0.stall_every=1s", "host_at.0.stall_length=10ms")


def transfer(outcome: Outcome) -> pl.DataFrame:
    """The row of the transfer, the first flow from left0."""
    return outcome.flows.filter(pl.col("src") == "left0").sort("id").head(1)


def gbps(outcome: Outcome, counted_s: float) -> float:
    """What the transfer's receiver got in the `counted_s` seconds that the scenario measures, Gb/s of payload."""
    return float(transfer(outcome)["measured_bytes"].item()) * 8 / counted_s / 1e9


def loss_percent(outcome: Outcome) -> float:
    """Packets of the transfer that were lost, in percent of those that it sent."""
    row = transfer(outcome)
    return 100 * float(row["lost_packets"].item()) / float(row["sent_packets_0"].item())
