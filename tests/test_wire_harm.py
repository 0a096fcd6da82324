"""Tests of `sparelane harm` on a path between namespaces of this machine."""

import json
import subprocess
from typing import Any

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.emulation.namespaces import missing
from sparelane.wire import transfer
from sparelane.wire.harm import FlowStatistics, Harm, head_of

WHY_NOT = missing()


def harm(*more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    line = ["harm", "--local", "--rate", "20", "--seconds", "1.5", "--rounds", "1", "--json", *more]
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_a_tcp_flow_is_measured_alone_and_in_competition() -> None:
    report: dict[str, Any] = json.loads(harm().stdout)
    assert 15e6 < report["alone"]["bps"] < 21e6, report
    for measured in ("beside_tcp", "beside_head", "beside"):
        assert 0 < report[measured]["bps"] < report["alone"]["bps"], report
    assert report["transfer_bps"] > 1e6
    assert report["alone"]["rtt_p99_s"] >= report["alone"]["rtt_median_s"] > 0
    lost = (report["beside_head"]["bps"] - report["beside"]["bps"]) / report["alone"]["bps"]
    assert report["judged"] == [report["tail_lost_share"], report["tail_added_p99_s"]]
    assert report["tail_lost_share"] == pytest.approx(lost)


def measured(mbps: float, p99_ms: float) -> FlowStatistics:
    return FlowStatistics(mbps * 1e6, p99_ms * 0.8e-3, p99_ms * 1e-3, 0)


def test_the_share_of_the_head_does_not_count_as_harm_of_the_tail() -> None:
    with_head = Harm(measured(50, 20), measured(25, 22), measured(26, 21), measured(25.9, 21.5), 24e6)
    assert with_head.lost_share == pytest.approx(0.482)
    assert list(with_head.judged) == pytest.approx([0.002, 0.0005])
    without_tail = Harm(measured(50, 20), measured(25, 22), None, measured(25, 22), 25e6)
    assert without_tail.tail_lost_share is None
    assert list(without_tail.judged) == pytest.approx([0.5, 0.002])


def test_the_head_alone_is_the_inner_controller_in_one_class() -> None:
    options = transfer.Options(settings={"inner": "bbr", "inner.quantum": "10", "levels": "10,20"}, mtu=1400)
    head = head_of(options)
    assert head is not None
    assert (head.controller, head.settings, head.dscp, head.mtu) == ("bbr", {"quantum": "10"}, (0,), 1400)
    usual = head_of(transfer.Options())
    assert usual is not None
    assert usual.controller == "cubic"
    assert head_of(transfer.Options(controller="bbr")) is None
    assert head_of(transfer.Options(dscp=(0,))) is None, "a transfer of one class has no tail"


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_too_much_harm_exits_with_3_and_an_unknown_controller_with_2() -> None:
    without_tail = ["--cc", "cubic", "--most-loss"]
    assert "the transfer costs" in harm(*without_tail, "0.001", code=3).stderr
    assert json.loads(harm(*without_tail, "100").stdout)["beside_head"] is None
    assert 'no congestion control "nonesuch"' in harm("--tcp-cc", "nonesuch", code=2).stderr
    assert 'no congestion control "nonesuch"' in harm("--other-cc", "nonesuch", code=2).stderr


def test_missing_arguments_are_named() -> None:
    done = subprocess.run([*SPARELANE, "harm"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "or --local, or --serve" in done.stderr
