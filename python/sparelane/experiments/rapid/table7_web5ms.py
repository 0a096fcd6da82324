"""RAPID, Table VII and Fig. 11: each protocol beside web users, with a round trip of 5 ms."""

from __future__ import annotations

from sparelane.experiments.base import Effort, Experiment
from sparelane.experiments.rapid import testbed, web, web_table
from sparelane.experiments.rapid.printed import TABLE_VII
from sparelane.experiments.rapid.web_table import WebTable

TABLE = WebTable(TABLE_VII, round_trip_ms=5)

EXPERIMENT = Experiment(
    id="rapid/table7-web5ms",
    title="Beside web users, 5 ms",
    source="RAPID, section V-D, Fig. 11 and Tables I and VII",
    method="One transfer over 10 Gb/s with a round trip of 5 ms beside emulated users of the web, with each protocol; "
    "RAPID with tau = 50 ms and eta = 4.",
    assumptions=(*testbed.ASSUMPTIONS, *web.ASSUMPTIONS),
    full=Effort("full", seeds=3, stop_s=20.0),
    quick=Effort("quick", seeds=1, stop_s=4.0),
    plan=TABLE.plan,
    evaluate=TABLE.evaluate,
    draw=web_table.draw,
)
