"""Links whose rate, delay or loss changes during a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sparelane

STEP = """\
duration = "10s"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "1Gbps"
bottleneck_rate = "100Mbps"
bottleneck_delay = "18ms"
[queue]
limit = "1bdp"
[scheme.c]
controller = "cubic"
[workload]
kind = "bulk"
"""
CHANGE = {"at": "2s", "between": ["west", "east"], "rate": "5Mbps"}


def delivered(result: Any) -> float:
    """The bytes of the first flow that arrived."""
    return float(result.flows["delivered_bytes"][0])


def test_a_flow_gets_the_rate_that_the_link_has_at_each_time() -> None:
    # The window fills the path at both rates, and the queue never fills.
    window = {"scheme.c.controller": "constant", "scheme.c.window": 60, "topology.bottleneck_delay": "1ms"}
    result = sparelane.run(STEP, set=window | {"queue.limit": "100packets", "change": [CHANGE]})
    # Payload is 1460 of 1500 bytes.
    upper = (2 * 100e6 + 8 * 5e6) / 8 * 1460 / 1500
    assert 0.995 * upper < delivered(result) <= upper
    rates = {(row["from"], row["to"]): row["rate_bps"] for row in result.links.iter_rows(named=True)}
    assert rates["west", "east"] == (2 * 100e6 + 8 * 5e6) / 10
    assert rates["left0", "west"] == 1e9


def test_the_former_name_of_changes_gives_the_same_run() -> None:
    runs = [sparelane.run(STEP, set={name: [CHANGE]}) for name in ("change", "emulate.change")]
    assert runs[0].digest == runs[1].digest
    assert runs[0].digest != sparelane.run(STEP).digest


def test_a_link_that_is_down_loses_what_arrives_and_flows_recover() -> None:
    down = [CHANGE | {"rate": "100Mbps", "down": True}, CHANGE | {"at": "4s", "rate": "100Mbps", "down": False}]
    result = sparelane.run(STEP, set={"change": down})
    # Two seconds are lost, and at most as many again until the backed-off timer fires.
    whole = 10 * 100e6 / 8 * 1460 / 1500
    assert 0.55 * whole < delivered(result) < 0.8 * whole
    assert result.flows["timeouts"][0] > 0


def test_a_shorter_delay_is_a_shorter_round_trip() -> None:
    settings = {"scheme.c.controller": "constant", "scheme.c.window": 10}
    change = {"at": "5s", "between": ["west", "east"], "delay": "8ms"}
    result = sparelane.run(STEP, set=settings | {"change": [change]})
    # A window of ten packets every round trip of 40 ms, and then of 20 ms. A packet takes 12 us per access link and
    # 120 us on the bottleneck, and its acknowledgment 4 us.
    trips = 5 / 40.15e-3 + 5 / 20.15e-3
    assert delivered(result) == pytest.approx(10 * 1460 * trips, rel=0.01)


def test_the_rate_of_a_change_can_be_an_axis_of_a_sweep(tmp_path: Path) -> None:
    table = '[[change]]\nat = "1s"\nbetween = ["west", "east"]\nrate = "5Mbps"\n'
    rates = {"change.0.rate": ["5Mbps", "20Mbps"], "duration": "2s"}
    sweep = sparelane.sweep(STEP + table, set=rates, output=tmp_path / "o", workers=1, progress=False)
    assert sorted(sweep.runs["change.0.rate"].unique()) == ["20Mbps", "5Mbps"]
