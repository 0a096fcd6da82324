"""Links whose rate, delay or loss changes during a run, and links that follow a trace."""

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


# Eight opportunities in ten milliseconds.
OPPORTUNITIES = "1\n1\n2\n4\n4\n4\n7\n10\n"
RATES = "time_s,rate_mbps\n0,2\n1,18\n"


def with_trace(folder: Path, content: str, more: str = "") -> Path:
    """A scenario whose bottleneck follows a trace in both directions."""
    (folder / "t.trace").write_text(content)
    link = '[[link]]\nbetween = ["west", "east"]\ntrace = "t.trace"\n'
    (folder / "s.toml").write_text(STEP.replace('limit = "1bdp"', 'limit = "10MB"') + link + more)
    return folder / "s.toml"


@pytest.mark.parametrize(("content", "mbps"), [(OPPORTUNITIES, 9.6), (RATES, 10.0)])
@pytest.mark.parametrize("kind", ["fifo", "priority", "codel"])
def test_a_flow_without_end_uses_every_opportunity_of_a_trace(
    content: str, mbps: float, kind: str, tmp_path: Path
) -> None:
    settings = {"scheme.c.controller": "constant", "scheme.c.window": 400, "queue.kind": kind, "measure.from": "2s"}
    result = sparelane.run(
        with_trace(tmp_path, content),
        set=settings | ({"queue.target": "9s", "queue.interval": "9s"} if kind == "codel" else {}),
    )
    # Acknowledgments have 40 bytes and share opportunities of the other direction.
    expected = mbps * 1460 / 1500
    assert result.flows["measured_bytes"][0] * 8 / 8e6 == pytest.approx(expected, rel=0.005)
    rates = {(row["from"], row["to"]): row["rate_bps"] for row in result.links.iter_rows(named=True)}
    assert rates["west", "east"] == pytest.approx(mbps * 1e6, rel=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.trace: this file is empty"),
        ("5\n4\n", "t.trace:2: times go back; allowed: times in order"),
        ("0\n0\n", "the trace lasts 0s"),
        ("time_s,rate_mbps\n0,0\n1,0\n", "the mean rate is 0 bit/s; allowed: at least 1000 bit/s"),
        ("1\n2\n\x00\x01\x02", "not a text file: this is binary data"),
        ("hello world\n", "`hello world` begins no trace"),
        ("0 0 3 1000\n", "allowed: whole milliseconds (Mahimahi), or CSV"),
    ],
)
def test_files_that_are_no_traces_are_refused(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(sparelane.ScenarioError) as refused:
        sparelane.run(with_trace(tmp_path, content))
    assert message in str(refused.value)


def test_a_huge_trace_is_refused_without_reading_it(tmp_path: Path) -> None:
    scenario = with_trace(tmp_path, "")
    with (tmp_path / "t.trace").open("wb") as file:
        file.truncate(2 << 30)
    with pytest.raises(sparelane.ScenarioError, match="larger than 64 MiB"):
        sparelane.run(scenario)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('rate = "5Mbps"\n', "a trace is also given; allowed: one of the two"),
        ('[[link]]\nselect = "core"\nrate = "5Mbps"\n', "a table above gives this link a trace"),
        (
            '[[change]]\nat = "1s"\nselect = "core"\nrate = "5Mbps"\n',
            "this link follows a trace; allowed: changes of delay, loss, down",
        ),
        (
            'pause = { xoff = "20packets", xon = "10packets" }\n',
            'the link from "west" to "east" follows a trace, so it cannot be paused',
        ),
        (
            '[[link]]\nbetween = ["left0", "west"]\npause = { xoff = "20packets", xon = "10packets" }\n',
            'the link from "west" to "east" follows a trace, so it cannot be paused',
        ),
    ],
)
def test_a_link_with_a_trace_has_neither_a_rate_nor_pause(more: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(sparelane.ScenarioError) as refused:
        sparelane.run(with_trace(tmp_path, OPPORTUNITIES, more))
    assert message in str(refused.value)


def test_a_link_that_follows_a_trace_can_change_its_delay(tmp_path: Path) -> None:
    change = '[[change]]\nat = "5s"\nselect = "core"\ndelay = "118ms"\n'
    settings = {"scheme.c.controller": "constant", "scheme.c.window": 2}
    result = sparelane.run(with_trace(tmp_path, OPPORTUNITIES, change), set=settings)
    before = sparelane.run(with_trace(tmp_path, OPPORTUNITIES), set=settings)
    assert 0.5 < delivered(result) / delivered(before) < 0.65


def test_results_contain_a_copy_of_the_trace(tmp_path: Path) -> None:
    first = sparelane.run(with_trace(tmp_path, OPPORTUNITIES), set={"duration": "1s"})
    first.save(tmp_path / "o")
    (tmp_path / "t.trace").unlink()
    assert sparelane.run(tmp_path / "o" / "run.json").digest == first.digest
