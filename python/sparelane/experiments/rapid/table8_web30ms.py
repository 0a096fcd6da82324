"""RAPID, Table VIII and Fig. 11: each protocol beside web users, with a round trip of 30 ms."""

from __future__ import annotations

from sparelane.experiments.rapid.printed import TABLE_VIII
from sparelane.experiments.rapid.web_table import WebTable, experiment

# What the queues of the switch hold decides for the others, and not for RAPID: how gentle they are, and how fast.
BUFFERS = tuple((scheme, limit) for limit in ("1MB", "2MB", "3MB") for scheme in ("rapid", "illinois", "bic", "yeah"))

EXPERIMENT = experiment("rapid/table8-web30ms", "VIII", WebTable(TABLE_VIII, round_trip_ms=30, buffers=BUFFERS))
