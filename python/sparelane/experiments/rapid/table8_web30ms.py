"""RAPID, Table VIII and Fig. 11: each protocol beside web users, with a round trip of 30 ms."""

from __future__ import annotations

from sparelane.experiments.rapid import transfers
from sparelane.experiments.rapid.printed import TABLE_VIII
from sparelane.experiments.rapid.web_table import WebTable, experiment

# What the queues of the switch hold decides how gentle the others are, and how fast, and whether RAPID has timeouts.
BUFFERS = tuple((scheme, limit) for limit in ("500KB", "1.5MB") for scheme in ("rapid", "newreno", "illinois", "bic"))

TRIED = (("newreno", "PAUSE frames for 10 ms each second", transfers.PAUSES),)

EXPERIMENT = experiment(
    "rapid/table8-web30ms", "VIII", WebTable(TABLE_VIII, round_trip_ms=30, buffers=BUFFERS, tried=TRIED)
)
