"""RTCP inside the kernel that runs scenarios: its constants, what is refused, and transfers beside the simulator's."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from sparelane import _native, api
from sparelane._native import ScenarioError
from sparelane.experiments.linux import rtcp as testbed
from sparelane.experiments.linux import rtcp_page
from sparelane.linux import kernel, mapping, plan, running
from sparelane.linux.network import Network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
with_kernel = pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")

SCENARIO = """
title = "One flow of RTCP"
duration = "10s"
[topology]
kind = "dumbbell"
access_rate = "100Mbps"
bottleneck_rate = "50Mbps"
bottleneck_delay = "18ms"
[queue]
limit = "1000packets"
[scheme.flow]
controller = "rtcp"
interface = "delay"
alpha = 500
delta = 12.5
min_window = 2
[workload]
kind = "bulk"
size = "10MB"
"""


def network(*settings: str) -> Network:
    return mapping.network(mapping.with_settings(SCENARIO, settings), "scenario.toml")


def constants(*settings: str) -> list[int]:
    """The numbers on the kernel's command line."""
    [word] = network(*settings).parameters
    name, _, numbers = word.partition("=")
    assert name == "tcp_rtcp.settings"
    return [int(number) for number in numbers.split(",")]


def test_the_constants_are_those_that_the_loader_sets_for_the_programs_settings() -> None:
    settings = [("alpha", "500"), ("delta", "12.5"), ("min_window", "2")]
    loaded = _native.linux_constants("rtcp", settings, 100_000_000)
    assert constants() == loaded[: len(constants())]
    assert not any(loaded[len(constants()) :])
    # alpha in Q16, delta in KB per microsecond in Q16, and half of the past.
    assert constants()[:3] == [500 << 16, round(0.0125 * 65536), 1 << 15]


def test_the_least_window_is_the_simulators_unless_the_scheme_says_another() -> None:
    without = SCENARIO.replace("min_window = 2\n", "")
    [word] = mapping.network(mapping.with_settings(without, []), "scenario.toml").parameters
    assert word.split(",")[6] == "1"
    assert constants()[6] == 2


def test_weights_by_size_are_those_of_the_scheme() -> None:
    weights = "scheme.flow.weights={ urgent = 30000, high-volume = 5000 }"
    found = constants('scheme.flow.classify="by-size"', weights, 'scheme.flow.urgent_below="20KB"')
    assert found[8:10] == [20_000, 2]
    # A weight has five numbers; the first is that of large flows.
    assert [found[11] >> 16, found[16] >> 16] == [5_000, 30_000]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('scheme.flow.interface="apart"', "scheme.flow.interface = 'apart'"),
        ("scheme.flow.weights={ urgent = 1.0 }", "scheme.flow.weights"),
        ("scheme.flow.transport={ rtt_granularity = '1ms' }", "scheme.flow.transport"),
        ('scheme.other={controller = "rtcp", interface = "delay", alpha = 3}', "scheme.other and scheme.flow"),
    ],
)
def test_what_the_program_does_not_have_is_refused_by_name(setting: str, named: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.toml: .*--on linux cannot do it; allowed: ") as caught:
        network(setting)
    assert named in str(caught.value)


def test_a_queue_marks_what_has_waited_for_as_long_as_its_threshold_takes() -> None:
    lines = list(plan.lines(network("queue={limit = '300packets', mark_at = '20packets'}")))
    # 20 packets of 1500 bytes at 50 Mb/s.
    assert any("codel limit 300 target 1000s interval 1000s noecn ce_threshold 4800us" in line for line in lines)


def test_the_testbeds_flows_are_the_same_on_both_sides() -> None:
    for setting in testbed.SETTINGS:
        flows = testbed.drawn(setting, 1)
        assert len({flow.server for flow in flows}) == setting.servers
        for scheme in setting.schemes:
            text = "\n".join(testbed.scenario(setting, scheme, flows)) + '\n[transport]\necn = "dctcp"'
            found = mapping.network(mapping.with_settings(text, []), "testbed.toml")
            assert [flow.size_bytes for flow in found.flows] == [flow.size_bytes for flow in flows]
            assert {flow.target for flow in found.flows} == {"right0"}
            api.prepare(text)


@with_kernel
def test_a_flow_of_rtcp_has_the_bounds_of_the_simulators_and_sends_identical_packets_twice() -> None:
    settings = ["workload.size=5MB", "sample={ interval = '5ms', flows = [0] }"]
    settings += ["transport={ preset = 'linux', mss = '1448B', header = '52B' }"]
    first, second = (running.run(SCENARIO, set=settings) for _ in range(2))
    assert first.packet_digest == second.packet_digest
    ours = api.run(SCENARIO, set=[*settings, "transport.delayed_ack=false"])
    windows = [
        result.series.filter(pl.col("quantity").cast(pl.String) == "cwnd_bytes")["value"].to_numpy() // 1448
        for result in (first.result, ours)
    ]
    # Two segments; and twice the line's product of bandwidth and delay, 1 MB.
    assert [own.min() for own in windows] == [2, 2]
    assert windows[0].max() == pytest.approx(windows[1].max(), rel=0.01)
    # Windows that double and halve find other moments to do so, and so times are alike, not equal.
    assert first.result.flows["completion_s"][0] == pytest.approx(ours.flows["completion_s"][0], rel=0.4)


@with_kernel
def test_a_heavier_flow_of_rtcp_gets_more_of_the_link_in_the_kernel() -> None:
    flows = (
        'classify="by-size"',
        "weights={ urgent = 24000, high-volume = 6000 }",
    )
    settings = [f"scheme.flow.{setting}" for setting in flows]
    # As large as both: the first is urgent for its whole length, since all that is written is below the bound.
    settings += ["topology.pairs=2", "workload.size=5MB", "duration='6s'"]
    heavy = running.run(SCENARIO, set=[*settings, 'scheme.flow.urgent_below="100MB"']).result
    light = running.run(SCENARIO, set=[*settings, 'scheme.flow.urgent_below="1KB"']).result
    queueing = [
        result.flows.select((pl.col("srtt_s") - pl.col("min_rtt_s")).mean()).item() for result in (heavy, light)
    ]
    assert queueing[0] > queueing[1], "a heavier weight tolerates more congestion"


@with_kernel
def test_dctcp_is_marked_behind_the_threshold_of_a_queue() -> None:
    settings = ['scheme.flow={controller = "dctcp"}', 'transport.ecn="dctcp"', "workload.size=20MB"]
    marked = running.run(SCENARIO, set=[*settings, "queue={limit = '1000packets', mark_at = '20packets'}"]).result
    assert marked.links["marked_packets"].sum() > 0
    assert marked.links["dropped_packets"].sum() == 0


def test_the_kernel_is_built_with_the_source_of_the_bpf_program(tmp_path: Path) -> None:
    folder = tmp_path / "net" / "ipv4"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("obj-y := tcp.o\n")
    kernel._add_controllers(tmp_path)
    assert (folder / "Makefile").read_text() == "obj-y := tcp.o\nobj-y += rtcp/\n"
    programs = Path(__file__).parents[1] / "crates" / "bpf" / "programs"
    for name in ("rtcp.bpf.c", "fixed.h"):
        copy = folder / "rtcp" / name
        assert not copy.is_symlink()
        assert copy.read_bytes() == (programs / name).read_bytes()
    assert "rtcp.bpf.c" in (folder / "rtcp" / "tcp_rtcp.c").read_text()


def test_the_testbeds_page_says_what_holds_on_each_side_and_what_was_not_run(tmp_path: Path) -> None:
    names = [setting.name for setting in testbed.SETTINGS]
    rows = [
        (names[1], scheme, 1, side, quantity, value * (1.5 if (scheme, side) == ("rtcp", "linux") else 1.0), 9)
        for scheme, value in (("cubic", 5.0), ("rtcp", 4.0))
        for side in testbed.SIDES
        for quantity in ("urgent 99th", "high-volume 99th", "goodput", "unfinished")
    ]
    rtcp_page.write(tmp_path, pl.DataFrame(rows, schema=testbed.SCHEMA, orient="row"), names)
    text = (tmp_path / "README.md").read_text()
    assert f"| {names[1]} | RTCP's urgent flows are the fastest | no | yes |" in text
    assert f"| {names[1]} | RTCP's high-volume flows are slower than Cubic's | yes | no |" in text
    assert "| RTCP | urgent 99th (ms) | 9 | 1 | 6 | 4 | -33.3 % |" in text
    assert f"Not run yet: {'; '.join([names[0], *names[2:]])}." in text
    assert (tmp_path / "figure.png").stat().st_size > 0
