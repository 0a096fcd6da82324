"""What the reader of a run is told besides its numbers."""

import pytest

import sparelane
from sparelane.notices import notices

BULK = """\
title = "equal flows"
duration = "{duration}"

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "{access}"
bottleneck_rate = "100Mbps"
bottleneck_delay = "5ms"

[queue]
limit = "100packets"

[scheme.cubic]
controller = "cubic"

[workload]
kind = "bulk"
size = "{size}"
start = "{start}"
"""


def said(*, duration: str = "1s", access: str = "1Gbps", size: str = "10kB", start: str = "0s", more: str = "") -> str:
    text = BULK.format(duration=duration, access=access, size=size, start=start)
    return "; ".join(notices(sparelane.run(text + more)))


def test_a_run_without_surprises_has_no_notice() -> None:
    assert said() == ""


def test_means_are_said_to_leave_out_what_did_not_finish() -> None:
    assert "4 of 4 flows had not finished" in said(size="1GB")


def test_a_workload_that_starts_after_the_end_is_told() -> None:
    assert said(start="2s") == "no flow started by the end of the run, 1 s: the workload is empty, or starts later"


def test_a_sampled_flow_that_never_starts_is_told() -> None:
    assert "[sample] asks for flows 4, 9; only 4 started" in said(more="[sample]\nflows = [0, 4, 9]\n")


@pytest.mark.parametrize(("access", "is_told"), [("100Mbps", True), ("1Gbps", False)])
def test_phase_effects_are_told_where_hosts_send_at_the_bottlenecks_rate(access: str, is_told: bool) -> None:
    assert ("phase effect" in said(duration="20s", access=access, size="unlimited")) is is_told


def test_jitter_of_hosts_breaks_the_step() -> None:
    jitter = '[host]\nack_cost = "100us"\n'
    assert "phase effect" not in said(duration="20s", access="100Mbps", size="unlimited", more=jitter)
