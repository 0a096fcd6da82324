"""Tests of the figures that show how each system works."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import mechanisms
import polars as pl

import sparelane as sl

ROOT = Path(__file__).parents[1]

ROUND_S = 1e-3 * mechanisms.RC3_ROUND_TRIP_MS


def page(name: str) -> str:
    """Returns the text of a system's page as one line."""
    return " ".join((ROOT / "docs" / "systems" / f"{name}.md").read_text(encoding="utf-8").split())


def test_the_run_of_rc3_is_the_example_of_the_paper() -> None:
    sent, received, lost = mechanisms.rc3_packets()
    start_s = sent[0].time_s
    counts = Counter((int((one.time_s - start_s) / ROUND_S), one.dscp) for one in sent)
    # NSDI 2014, section 2.2: 4 packets at priority 0, 40 at 1 and 6 at 2, then 8 at priority 0. Packets 13 to 20 leave
    # at priority 2 in the second round trip, and TCP repeats them in the third, because they are not yet acknowledged.
    expected = {(0, 0): 4, (0, 3): 40, (0, 11): 6, (1, 0): 8, (1, 11): 8, (2, 0): 10}
    assert counts == expected
    assert sorted(lost) == [20, 21]
    tail = [one.sequence for one in sent if one.dscp > 0]
    assert tail == sorted(tail, reverse=True)
    assert len(set(tail)) == len(tail) == 54
    # Once the hole is filled, one acknowledgment covers packets 22 to 66.
    jumps = [(later.acknowledgment - earlier.acknowledgment) // 1460 for earlier, later in pairwise(received)]
    assert max(jumps) == 45
    assert received[-1].acknowledgment == 1 + 66 * 1460


def test_a_p_stream_of_the_run_of_rapid_reaches_the_available_bandwidth() -> None:
    _, _, rates, estimate = mechanisms.rapid_p_stream()
    free_bps = 1e9 * (mechanisms.CAPACITY_GBPS - mechanisms.CROSS_GBPS)
    assert estimate < free_bps < rates.max()
    # The page names both rates.
    assert f"{estimate / 1e9:.2f} Gb/s, because the next rate, {rates.max() / 1e9:.2f} Gb/s" in page("rapid")


def test_the_page_of_rapid_names_the_peak_of_the_queue() -> None:
    links = sl.run(mechanisms.RAPID_SCENARIO).links
    peak_bytes = links.filter(pl.col("from") == "west", pl.col("to") == "east")["peak_backlog_bytes"].item()
    assert f"a queue of {peak_bytes / 1e6:.1f} MB" in page("rapid")


def test_each_system_has_a_figure(tmp_path: Path) -> None:
    mechanisms.generate(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"rc3.png", "rapid.png", "rtcp.png"}


def test_the_page_of_rtcp_names_the_rates_of_the_two_flows() -> None:
    long = {**mechanisms.RTCP_SCENARIO, "duration": "200ms"}
    long["workload"] = [{**flow, "start": "0ms"} for flow in long["workload"]]
    rates = {}
    for counter in mechanisms.COUNTERS:
        flows = sl.run(long, set={"scheme.rtcp.counter": counter}).flows
        delivered = dict(flows.select("traffic_class", "delivered_bytes").iter_rows())
        rates[counter] = [f"{8 * delivered[name] / 0.2 / 1e6:.0f}" for name in ("urgent", "high-volume")]
    (urgent, other), (printed_urgent, printed_other) = rates["coupled"], rates["printed"]
    words = f"{urgent} and {other} Mb/s with the coupled counter, and {printed_urgent} and {printed_other} Mb/s"
    assert words in page("rtcp")
