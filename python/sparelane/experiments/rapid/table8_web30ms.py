"""RAPID, Table VIII and Fig. 11: each protocol beside web users, with a round trip of 30 ms."""

from __future__ import annotations

from sparelane.experiments.rapid.printed import TABLE_VIII
from sparelane.experiments.rapid.web_table import WebTable, experiment

EXPERIMENT = experiment("rapid/table8-web30ms", "VIII", WebTable(TABLE_VIII, round_trip_ms=30))
