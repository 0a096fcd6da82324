"""Transfers over paths whose round trip is longer than the timers of controllers."""

from __future__ import annotations

import pytest

import sparelane

FAR = """\
duration = "120min"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "10Mbps"
bottleneck_rate = "1Mbps"
bottleneck_delay = "39.99s"
access_delay = "5ms"
[queue]
limit = "2bdp"
[transport]
initial_rto = "200s"
max_rto = "1000s"
syn_timeout = "200s"
[scheme.x]
controller = "newreno"
[workload]
kind = "bulk"
size = "1MB"
"""


def round_trips(**scheme: str) -> float:
    """Returns the duration of the transfer in round trips of 80 s."""
    flows = sparelane.run(FAR, set={f"scheme.x.{key}": value for key, value in scheme.items()}).flows
    return float(flows["completion_s"][0]) / 80


@pytest.mark.parametrize(("controller", "key"), [("bbr", "min_rtt_window"), ("bbr3", "probe_rtt_interval")])
def test_bbr_spends_every_second_round_trip_in_probe_rtt_if_a_round_trip_outlasts_its_filter(
    controller: str, key: str
) -> None:
    others = round_trips()
    assert round_trips(controller=controller, **{key: "60min"}) < others + 1.5
    # Growth needs two round trips instead of one, and the samples of PROBE_RTT do not count.
    assert round_trips(controller=controller) > 4 * others
