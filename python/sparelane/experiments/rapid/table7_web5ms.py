"""RAPID, Table VII and Fig. 11: each protocol beside web users, with a round trip of 5 ms."""

from __future__ import annotations

from sparelane.experiments.rapid.printed import TABLE_VII
from sparelane.experiments.rapid.web_table import WebTable, experiment

EXPERIMENT = experiment("rapid/table7-web5ms", "VII", WebTable(TABLE_VII, round_trip_ms=5))
