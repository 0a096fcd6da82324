"""Links that change during a run, follow a trace, or delay, lose, double and drop single packets."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sparelane
from sparelane.scenario import library

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


def test_packets_overtake_others_after_a_change_that_reorders_and_not_otherwise() -> None:
    # The window fills the path. At 100 Mb/s, 83 packets fit into the 10 ms by which the delay falls.
    settings = {"scheme.c.controller": "constant", "scheme.c.window": 330}
    change = {"at": "5s", "between": ["west", "east"], "from": "west", "delay": "8ms"}
    kept, reordered = (
        sparelane.run(STEP, set=settings | {"change": [change | {"reorder": reorder}]}) for reorder in (False, True)
    )
    assert kept.flows["retransmissions"][0] == 0
    assert 75 <= reordered.flows["retransmissions"][0] <= 84
    assert 82 <= counts(reordered, "west", "east")["reordered_packets"] <= 84
    assert sum(kept.links["reordered_packets"]) == counts(reordered, "east", "west")["reordered_packets"] == 0
    assert reordered.flows["lost_packets"][0] == kept.flows["lost_packets"][0] == 0


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


@pytest.mark.parametrize(("content", "mbps"), [(OPPORTUNITIES, 9.6), (RATES, 10.0)])
def test_a_sampled_link_has_the_bytes_that_its_trace_offered(content: str, mbps: float, tmp_path: Path) -> None:
    sample = {"sample.interval": "10ms", "sample.links": [["west", "east"], ["left0", "west"]]}
    series = sparelane.run(with_trace(tmp_path, content), set=sample).series
    offered = series.filter(pl.col("quantity") == "offered_bytes")
    # The access link has a constant rate.
    assert offered["probe"].unique().to_list() == ["west->east"]
    assert offered["value"].sum() * 8 / 10 == pytest.approx(mbps * 1e6)
    sent = series.filter((pl.col("quantity") == "sent_bytes") & (pl.col("probe") == "west->east"))
    assert (sent["value"].cum_sum() <= offered["value"].cum_sum()).all()


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
        # Without this text, the file would be refused as binary data.
        file.write(b"1\n" * 4096)
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


def with_effects(effects: dict[str, Any], **more: Any) -> Any:
    """A run in which the bottleneck, from west to east, has these effects."""
    link = {"between": ["west", "east"], "effects_from": "west"} | effects
    return sparelane.run(STEP, set={"queue.limit": "10MB", "link": [link]} | more)


WINDOW = {"scheme.c.controller": "constant", "scheme.c.window": 60}
ONE = {"scheme.c.controller": "constant", "scheme.c.window": 1, "duration": "100s"}


def counts(result: Any, start: str, end: str) -> dict[str, Any]:
    """The row of a link."""
    rows: list[dict[str, Any]] = result.links.rows(named=True)
    (row,) = (row for row in rows if (row["from"], row["to"]) == (start, end))
    return row


@pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto"])
def test_jitter_keeps_the_mean_round_trip_and_shortens_the_least(distribution: str) -> None:
    plain = sparelane.run(STEP, set=ONE)
    jitter = with_effects({"jitter": "3ms", "jitter_distribution": distribution}, **ONE)
    # Some 2500 round trips of 40 ms: the standard error of the mean is below 0.2 % of it.
    assert delivered(jitter) == pytest.approx(delivered(plain), rel=0.01)
    least = float(plain.flows["min_rtt_s"][0]) - float(jitter.flows["min_rtt_s"][0])
    lead = {"uniform": 3e-3, "normal": 12e-3, "pareto": 3e-3 * 0.5 / 0.75**0.5}[distribution]
    assert 0.75 * lead < least <= lead


def test_jitter_reorders_packets_only_if_asked() -> None:
    kept = with_effects({"jitter": "5ms"}, **WINDOW)
    mixed = with_effects({"jitter": "5ms", "jitter_reorders": True}, **WINDOW)
    assert kept.flows["retransmissions"][0] == 0
    assert mixed.flows["retransmissions"][0] > 10
    assert counts(mixed, "west", "east")["lost_packets"] == 0
    assert sum(kept.links["reordered_packets"]) == 0 < counts(mixed, "west", "east")["reordered_packets"]


def test_three_packets_that_overtake_one_trigger_a_retransmission_and_two_do_not() -> None:
    def retransmissions(distance: int) -> int:
        reorder = {"reorder": 0.001, "reorder_distance": distance, "reorder_within": "1s"}
        return int(with_effects(reorder, **WINDOW | {"transport.limited_transmit": False}).flows["retransmissions"][0])

    # Of some 16,000 packets, 16 are held back.
    assert retransmissions(2) == 0
    assert 4 < retransmissions(3) < 40


def test_a_packet_without_followers_is_held_back_for_the_given_time() -> None:
    plain = sparelane.run(STEP, set=ONE)
    held = with_effects({"reorder": 1.0, "reorder_within": "40.15ms"}, **ONE)
    # Each round trip of 40.15 ms is as long again.
    assert delivered(held) == pytest.approx(delivered(plain) / 2, rel=0.02)


def test_doubled_packets_cross_the_next_link_and_are_delivered_once() -> None:
    plain = sparelane.run(STEP, set=WINDOW)
    doubled = with_effects({"duplicate": "10%"}, **WINDOW)
    # Both directions of the bottleneck double packets. A few packets are between the two links at the end.
    first, second = (counts(doubled, *ends) for ends in (("west", "east"), ("east", "right0")))
    assert first["duplicated_packets"] == pytest.approx(0.1 * first["sent_packets"], rel=0.1)
    assert second["sent_packets"] == pytest.approx(first["sent_packets"] + first["duplicated_packets"], abs=5)
    assert second["duplicated_packets"] == sum(doubled.links["reordered_packets"]) == 0
    assert delivered(doubled) == pytest.approx(delivered(plain), rel=0.02)
    assert doubled.flows["retransmissions"][0] == 0


@pytest.mark.parametrize(
    ("effect", "share"),
    [
        ({"corrupt": "2%"}, 0.02),
        ({"burst_loss": {"p": "1%", "r": "25%"}}, 0.01 / 0.26),
        ({"burst_loss": {"p": "1%", "r": "25%", "1-h": "50%", "1-k": "1%"}}, (0.5 * 0.01 + 0.01 * 0.25) / 0.26),
        ({"corrupt": "2%", "loss": "1%", "loss_from": "west"}, 1 - 0.98 * 0.99),
    ],
)
def test_a_link_loses_the_share_of_packets_that_the_model_says(effect: dict[str, Any], share: float) -> None:
    row = counts(with_effects(effect, **WINDOW), "west", "east")
    # Bursts of four packets make the standard error of 15,000 packets some 10 % of the share.
    assert row["lost_packets"] / row["sent_packets"] == pytest.approx(share, rel=0.25)


def test_a_policer_passes_its_rate_and_its_burst() -> None:
    traffic = {"kind": "constant", "from": ["left0"], "to": ["right0"], "rate": "20Mbps", "packet": "1500B"}
    policer = {"policer": {"rate": "10Mbps", "burst": "100kB"}}
    result = with_effects(policer, cross_traffic=traffic, workload={"kind": "bulk", "size": "1B"})
    passed = result.cross_traffic["delivered_packets"][0] * 1500
    # Packets that cross the link at the end of the run are missing: 20 ms.
    assert 10e6 / 8 * 9.97 + 100e3 - 3000 < passed <= 10e6 / 8 * 10 + 100e3


def test_bbr_three_loses_less_at_a_policer_than_cubic_sends_too_much() -> None:
    policer = {"policer": {"rate": "10Mbps", "burst": "100kB"}}
    result = with_effects(policer, **{"scheme.c.controller": "bbr3", "duration": "20s"})
    assert 0.8 < delivered(result) * 8 / 20 / (10e6 * 1460 / 1500) <= 1.05


def test_effects_meet_the_same_packets_whatever_other_effects_there_are() -> None:
    lossy = with_effects({"corrupt": "2%"}, **ONE)
    more = with_effects({"corrupt": "2%", "jitter": "1us"}, **ONE)
    assert lossy.flows["retransmissions"][0] == pytest.approx(more.flows["retransmissions"][0], abs=1)


def test_a_queue_can_differ_at_one_port_of_a_router() -> None:
    # Both directions of the bottleneck are full; the queue of one of them is short.
    settings = {"scheme.c.controller": "cubic", "workload.pairs": [["left0", "right0"], ["right0", "left0"]]}
    port = {"between": ["west", "east"], "from": "east", "limit": "10packets"}
    result = sparelane.run(STEP, set=settings | {"queue.limit": "400packets", "queue_at": [port]})
    peaks = [counts(result, *ends)["peak_backlog_bytes"] for ends in (("west", "east"), ("east", "west"))]
    assert peaks[0] > 200 * 1500 > 12 * 1500 > peaks[1]


def test_the_traces_of_lte_are_those_of_their_generator() -> None:
    generator = runpy.run_path("benches/lte_trace.py")
    for name in generator["LINKS"]:
        assert (library.FOLDER / "traces" / f"{name}.csv").read_text() == generator["trace"](name)


def test_cubic_fills_the_queue_of_an_lte_link_and_vegas_does_not() -> None:
    delays = {}
    for controller in ("vegas", "cubic"):
        result = sparelane.run("lte", set={"duration": "20s", "scheme.tcp.controller": controller})
        delays[controller] = float(result.flows["srtt_s"][0])
        # The trace has 25 Mb/s in the mean.
        assert 10e6 < delivered(result) * 8 / 20 < 30e6
    assert delays["cubic"] > 3 * delays["vegas"]
