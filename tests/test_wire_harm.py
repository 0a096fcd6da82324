"""`sparelane harm` on a path between namespaces of this machine."""

import json
import subprocess
from typing import Any

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.emulation.namespaces import missing
from sparelane.wire import transfer as wire
from sparelane.wire.harm import Beside, Harm, head_of

WHY_NOT = missing()


def harm(*more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    line = ["harm", "--local", "--rate", "20", "--seconds", "1.5", "--rounds", "1", "--json", *more]
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_a_tcp_flow_is_measured_alone_and_beside_others() -> None:
    told: dict[str, Any] = json.loads(harm().stdout)
    assert 15e6 < told["alone"]["bps"] < 21e6, told
    for beside in ("beside_tcp", "beside_head", "beside"):
        assert 0 < told[beside]["bps"] < told["alone"]["bps"], told
    assert told["transfer_bps"] > 1e6
    assert told["alone"]["rtt_p99_s"] >= told["alone"]["rtt_median_s"] > 0
    lost = (told["beside_head"]["bps"] - told["beside"]["bps"]) / told["alone"]["bps"]
    assert told["judged"] == [told["tail_lost_share"], told["tail_added_p99_s"]]
    assert told["tail_lost_share"] == pytest.approx(lost)


def beside(mbps: float, p99_ms: float) -> Beside:
    return Beside(mbps * 1e6, p99_ms * 0.8e-3, p99_ms * 1e-3, 0)


def test_what_the_head_takes_is_not_held_against_the_tail() -> None:
    with_head = Harm(beside(50, 20), beside(25, 22), beside(26, 21), beside(25.9, 21.5), 24e6)
    assert with_head.lost_share == pytest.approx(0.482)
    assert list(with_head.judged) == pytest.approx([0.002, 0.0005])
    without_tail = Harm(beside(50, 20), beside(25, 22), None, beside(25, 22), 25e6)
    assert without_tail.tail_lost_share is None
    assert list(without_tail.judged) == pytest.approx([0.5, 0.002])


def test_the_head_alone_is_the_controller_inside_in_one_class() -> None:
    options = wire.Options(settings={"inner": "bbr", "inner.quantum": "10", "levels": "10,20"}, mtu=1400)
    head = head_of(options)
    assert head is not None
    assert (head.controller, head.settings, head.dscp, head.mtu) == ("bbr", {"quantum": "10"}, (0,), 1400)
    usual = head_of(wire.Options())
    assert usual is not None
    assert usual.controller == "cubic"
    assert head_of(wire.Options(controller="bbr")) is None
    assert head_of(wire.Options(dscp=(0,))) is None, "a transfer of one class has no tail"


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_more_harm_than_allowed_ends_with_3_and_a_controller_that_is_not_there_with_2() -> None:
    without_tail = ["--cc", "cubic", "--most-loss"]
    assert "the transfer costs" in harm(*without_tail, "0.001", code=3).stderr
    assert json.loads(harm(*without_tail, "100").stdout)["beside_head"] is None
    assert 'no congestion control "nonesuch"' in harm("--tcp-cc", "nonesuch", code=2).stderr
    assert 'no congestion control "nonesuch"' in harm("--other-cc", "nonesuch", code=2).stderr


def test_what_is_missing_is_told() -> None:
    done = subprocess.run([*SPARELANE, "harm"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "or --local, or --serve" in done.stderr
