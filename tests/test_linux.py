"""Tests of scenarios on Linux TCP: refused settings and plans, and, with a compiled kernel, results."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sparelane._native import LinuxError, ScenarioError
from sparelane.simulation import simulate
from sparelane.simulation.result import Result
from sparelane.uml import kernel, mapping, parameters, plan, running, tables
from sparelane.uml.network import Network

SCENARIO = """
title = "One flow"
duration = "30s"
seed = 3

[topology]
kind = "dumbbell"
bottleneck_rate = "100Mbps"
bottleneck_delay = "8ms"

[queue]
limit = "1000packets"

[scheme.flow]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "flow"
size = "5MB"
"""

# The minimum and the maximum allowed value.
Band = tuple[float, float]

# Not run on hosts on which a kernel is slow (`linux_suite.py`).
long_on_linux = pytest.mark.long_on_linux
with_kernel = pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")


def network(*settings: str) -> Network:
    return mapping.network(simulate.prepare(SCENARIO, set=list(settings)))


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('topology={kind = "star"}', "topology.kind"),
        ("topology.pairs=201", "topology.pairs"),
        ('topology={kind = "chain", routers = 31}', "topology.routers"),
        ("scheme.flow.class=4", "scheme.flow.class"),
        ("scheme.flow.hystart=false", "scheme.flow.hystart"),
        ('scheme.flow.like="rfc"', "scheme.flow.like"),
        ('scheme.flow={controller = "vegas", alpha = 2.5}', "scheme.flow.alpha"),
        ('scheme.flow={controller = "dctcp", g = 0.1, transport = { ecn = "dctcp" }}', "scheme.flow.g"),
        ('scheme.other={controller = "cubic", beta = 0.8}', "scheme.other and scheme.flow"),
        ('queue.kind="priority"', "queue.push_out"),
        ('queue={kind = "cells", cell = "256B"}', "queue.kind"),
        ('transport.mss="1448B"', "transport.mss"),
        ('queue={kind = "red", min = "5packets", max = "15packets"}', "queue.gentle"),
        ('workload={kind = "poisson", load = 0.1, sizes = { kind = "fixed", size = "1MB" }}', "workload.0.kind"),
        ('workload.writes={first = "1MB", then = "1MB", every = "1s"}', "workload.0.writes"),
        ('topology={kind = "chain", hosts_per_router = 2}', "a flow from h3 to h6"),
        ("link={select = 'access', loss = 0.01}", "link.0.select"),
        ("link={select = 'core', delay = '1ms'}", "link.0.delay"),
        ("drop=[{ from = 'east', to = 'west', segments = [3] }]", "drop.0: east to west"),
        ("drop=[{ from = 'west', to = 'east', flow = 1, segments = [3] }]", "drop.0.flow = 1"),
        ('scheme.flow.transport={ min_rto = "1s" }', "scheme.flow.transport.min_rto"),
        ("transport.sack=false", "transport.sack"),
        ("transport.delayed_ack={ every = 3 }", "transport.delayed_ack"),
        ("change=[{ at = '1s', select = 'access', rate = '5Mbps' }]", "change.0.select"),
        ("change=[{ at = '1s', between = ['left0', 'west'], rate = '5Mbps' }]", "a change from left0 to west"),
        ("change=[{ at = '1s', select = 'core', loss = 0.1, loss_of = 'data' }]", "change.0.loss_of"),
        ("change=[{ at = '1s', select = 'core', delay = '1ms', reorder = true }]", "change.0.reorder"),
        ('sample.queues=[["left0", "west"]]', "sample.queues"),
        ('sample.links=[["west", "left0"]]', "sample.links"),
        ("measure.delays=true", "measure"),
        ("transport.send_batch=45", "transport.send_batch"),
        ("transport.receive_batch=3", "transport.receive_batch"),
        ("transport.mode=rdma", "transport.mode"),
    ],
)
def test_settings_that_linux_does_not_support_are_refused_by_name(setting: str, named: str) -> None:
    with pytest.raises(ScenarioError, match=r"<text>: .*--on linux cannot do it; allowed: ") as caught:
        network(setting)
    assert named in str(caught.value)


def test_rates_delays_and_limits_follow_from_the_scenario() -> None:
    lines = list(plan.lines(network('workload.start="2s"', "link={select = 'core', loss = 0.01}")))
    assert "run tc -n west qdisc add dev east root netem limit 1001 rate 100000000bit -14" in lines
    delayed = "run tc -n left0 qdisc add dev eth root netem delay 10000.000us limit 1000000 rate 1000000000bit -14"
    assert delayed in lines
    assert any("dev right0 root netem" in line and "loss 1.000000000%" in line for line in lines)
    assert "flow cubic left0 right0 10.2.0.1 2000000000 5000000 0 0 0 0" in lines


def test_hosts_delay_acknowledgments_unless_the_scenario_forbids_it() -> None:
    for settings, words in (
        ([], ""),
        (["transport.delayed_ack=true"], ""),
        (["transport.delayed_ack=false"], " quickack 1"),
    ):
        assert f"run ip -n right0 route add default via 10.2.0.2{words}" in list(plan.lines(network(*settings)))


def test_batches_are_split_by_the_host_before_the_delay() -> None:
    lines = list(plan.lines(network("transport={send_batch = 44, receive_batch = 44, receive_batch_timeout = '20us'}")))
    assert "run ip -n left0 link set eth gso_max_segs 44" in lines
    assert any("dev eth root handle 1: tbf rate" in line for line in lines)
    assert not any("dev eth root netem" in line for line in lines)
    assert (
        "run tc -n west qdisc add dev left0 root netem delay 10000.000us limit 1000000 rate 1000000000bit -14" in lines
    )
    assert {"feature east right0 tso 0", "feature right0 eth gro 1"} <= set(lines)
    assert "set right0 /sys/class/net/eth/gro_flush_timeout 20000" in lines
    plain = list(plan.lines(network()))
    assert not any(word in line for line in plain for word in ("feature", "gro_flush", "gso_max_segs 44"))


def test_a_chain_does_not_split_batches() -> None:
    with pytest.raises(ScenarioError, match=r"topology.kind = 'chain' with transport.send_batch"):
        network("topology={kind = 'chain'}", "workload.pairs=[['h3', 'h5']]", "transport.send_batch=2")


def test_a_header_of_60_bytes_selects_ipv6() -> None:
    six = network("transport={mss = '1440B', header = '60B'}", "workload.size=10packets")
    assert six.needs_rc3_kernel
    lines = list(plan.lines(six))
    assert "flow cubic left0 right0 fd00:2:0::1 0 14400 0 0 0 0" in lines
    assert "run ip -n west route add fd00:2::/32 via fd00:0:0::2" in lines
    assert not any("10." in line.split("via")[-1] for line in lines if "route add" in line)
    with pytest.raises(ScenarioError, match=r"scheme.class over IPv6"):
        network("transport={mss = '1440B', header = '60B'}", "scheme.flow.class=1", "queue.push_out=false")


def test_counters_of_hosts_are_read_by_group_and_name() -> None:
    text = "host a\nTcp: InSegs OutSegs\nTcp: 3 4\nhost b\nTcpExt: TCPRc3Sent\nTcpExt: 5\n"
    assert tables.counters(text) == {"a": {"Tcp.InSegs": 3, "Tcp.OutSegs": 4}, "b": {"TcpExt.TCPRc3Sent": 5}}


def test_parameters_become_those_of_the_kernels_modules() -> None:
    set_here = network("scheme.flow.beta=0.8", "scheme.flow.c=0.8", "scheme.flow.fast_convergence=false").parameters
    assert set(set_here) == {"tcp_cubic.beta=819", "tcp_cubic.bic_scale=82", "tcp_cubic.fast_convergence=0"}
    hybla = network('scheme.flow={controller = "hybla", reference_rtt = "50ms"}')
    assert hybla.parameters == ("tcp_hybla.rtt0=50",)


@pytest.mark.parametrize(
    "workload",
    [
        '{ kind = "requests", load = 0.05, clients = ["right0"], servers = ["left0"], '
        'traffic_classes = [{ name = "urgent" }], sizes = { kind = "fixed", size = "1MB" } }',
        '{ kind = "bulk", flows = 5, size = "30kB", start = "1s", spread = "3s" }',
    ],
    ids=["requests", "bulk"],
)
def test_random_flows_are_those_of_the_simulator(workload: str) -> None:
    settings = [f"workload={workload}", "duration='4s'"]
    simulated = simulate.run(SCENARIO, set=settings).flows.sort("start_s", maintain_order=True)
    flows = network(*settings).flows
    assert len(flows) == simulated.height > 3
    assert {(flow.controller, flow.source, flow.target) for flow in flows} == {("cubic", "left0", "right0")}
    assert [flow.start_ns / 1e9 for flow in flows] == pytest.approx(list(simulated["start_s"]), abs=1e-9)
    assert [flow.size_bytes for flow in flows] == list(simulated["size_bytes"])
    assert [flow.request for flow in flows] == list(simulated["request"])
    assert [flow.traffic_class for flow in flows] == list(simulated["traffic_class"].cast(pl.String))


def test_a_class_is_a_type_of_service_and_a_band_of_strict_priority() -> None:
    lines = list(plan.lines(network("scheme.flow.class=2", "queue.push_out=false")))
    assert "flow cubic left0 right0 10.2.0.1 0 5000000 16 0 0 0" in lines
    assert sum("pfifo limit 1000" in line for line in lines) == 2 * len(plan.TYPES_OF_SERVICE)


def test_the_delay_of_each_cable_of_a_chain_follows_after_its_queue() -> None:
    settings = [
        'topology={kind = "chain", routers = 3, link_delay = "4ms"}',
        "link={between = ['r1', 'r2'], loss = 0.01}",
    ]
    lines = list(plan.lines(network(*settings)))
    assert "run tc -n wire0 qdisc add dev r1 root netem delay 4000.000us limit 1000000" in lines
    assert "run tc -n wire1 qdisc add dev r2 root netem delay 4000.000us limit 1000000 loss 1.000000000%" in lines
    assert "run ip -n wire0 route add 10.3.0.0/16 via 10.0.1.2" in lines
    assert "run ip -n r2 route add 10.1.0.0/16 via 10.0.3.1" in lines


def test_settings_replace_values_of_one_entry_of_a_list() -> None:
    text = SCENARIO + '[[workload]]\nkind = "bulk"\nscheme = "flow"\nsize = "2B"\n'
    flows = mapping.network(simulate.prepare(text, set=["workload.1.size=5B"])).flows
    assert [flow.size_bytes for flow in flows] == [5_000_000, 5]


def test_flows_between_halves_are_those_of_the_simulator_if_one_host_is_left_over() -> None:
    chain = ["topology={kind = 'chain', routers = 3}", "duration='1s'"]
    simulated = simulate.run(SCENARIO, set=chain).flows
    [flow] = network(*chain).flows
    assert (flow.source, flow.target) == (simulated["src"][0], simulated["dst"][0])


def test_a_missing_source_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel, "ARCHIVE", tmp_path / "linux-source.tar.xz")
    with pytest.raises(LinuxError, match=r"linux-source.*apt-get install"):
        kernel.build(lambda _: None, 1)
    assert not list(tmp_path.iterdir())


def test_a_failed_build_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "linux-source.tar.xz"
    archive.write_bytes(b"no archive")
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(kernel, "ARCHIVE", archive)
    monkeypatch.setattr(kernel, "TOOLS", ())
    monkeypatch.setattr(kernel, "_compile_guest", lambda target: target.write_text(""))
    with pytest.raises(LinuxError, match="failed at tar"):
        kernel.build(lambda _: None, 1)
    assert not list((cache / "sparelane" / "linux").iterdir())


def test_a_disk_without_space_is_named_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "linux-source.tar.xz"
    archive.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel, "ARCHIVE", archive)
    monkeypatch.setattr(kernel, "TOOLS", ())
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with pytest.raises(LinuxError, match=r"0\.0 GB are free"):
        kernel.build(lambda _: None, 1)


def test_a_folder_without_space_for_the_kernels_memory_is_named_before_it_boots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=20_000_000))
    with pytest.raises(LinuxError, match=r"20 MB are free.* 60 MB at least; TMPDIR="):
        running.run(SCENARIO, on=kernel.Kernel(tmp_path / "linux", tmp_path / "guest", "key"))


@with_kernel
def test_a_short_lossless_transfer_takes_the_computed_time() -> None:
    # The first window has ten full segments. The time is a round trip of 20 ms for the handshake, half of that for the
    # data, and the transmission times of ten packets at 100 Mb/s and of one at each access link of 1 Gb/s.
    outcome = running.run(SCENARIO, set=["workload.size=14600B"])
    expected = 0.030 + 10 * 1500 * 8 / 100e6 + 2 * 1500 * 8 / 1e9
    assert outcome.result.flows["completion_s"][0] == pytest.approx(expected, abs=5e-5)


# A window law, a controller with pacing, one with its own marks, and one that is not part of Linux.
REPRESENTATIVES = {"cubic", "bbr", "dctcp", "rtcp"}


@with_kernel
@pytest.mark.parametrize(
    "controller",
    [
        pytest.param(name, marks=[] if name in REPRESENTATIVES else [long_on_linux])
        for name in sorted(parameters.CONTROLLERS)
    ],
)
def test_a_run_with_one_seed_sends_identical_packets_twice(controller: str) -> None:
    settings = [f'scheme.flow.controller="{controller}"', "workload.size=2MB", 'queue.limit="40packets"']
    settings += ['transport.ecn="dctcp"'] if controller == "dctcp" else []
    first, second = (running.run(SCENARIO, set=settings) for _ in range(2))
    assert first.packet_digest == second.packet_digest
    assert first.result.digest == second.result.digest
    assert first.packets > 2_000_000 // 1460
    assert first.result.flows["delivered_bytes"][0] == 2_000_000


@with_kernel
def test_captures_of_equal_runs_are_equal_files_with_every_packet() -> None:
    settings = ["workload.size=2MB", 'queue.limit="40packets"']
    first, second = (running.run(SCENARIO, set=settings, captures=[("west", "east")]) for _ in range(2))
    assert first.captures == second.captures
    # A pcap file has a header of 24 bytes, and 16 bytes before up to 128 bytes of each packet.
    capture, at, count = first.captures[0], 24, 0
    while at < len(capture):
        at, count = at + 16 + int.from_bytes(capture[at + 8 : at + 12], "little"), count + 1
    assert count == first.packets


@with_kernel
def test_without_delayed_acknowledgments_each_segment_is_acknowledged() -> None:
    fast = ["topology.bottleneck_rate=1Gbps", "workload.size=10MB"]
    each, some = (
        running.run(SCENARIO, set=[*fast, f"transport.delayed_ack={delayed}"]).counters["right0"]
        for delayed in ("false", "true")
    )
    # All received packets are data, except the last of the handshake.
    assert each["Tcp.OutSegs"] >= each["Tcp.InSegs"] - 2
    assert some["Tcp.OutSegs"] < 0.95 * some["Tcp.InSegs"]


@with_kernel
def test_offload_changes_the_number_of_packets_and_hardly_the_time() -> None:
    # A packet takes 120 us at the bottleneck; the receiver waits longer than that for the next one.
    batches = ["transport={send_batch = 44, receive_batch = 44, receive_batch_timeout = '1ms'}"]
    single, joined = (running.run(SCENARIO, set=["workload.size=2MB", *settings]) for settings in ([], batches))
    sent, counted = (run.counters["left0"] for run in (single, joined))
    assert sent["Tcp.OutSegs"] == sent["Ip.OutRequests"]
    assert counted["Tcp.OutSegs"] > 4 * counted["Ip.OutRequests"]
    assert joined.counters["right0"]["Ip.InReceives"] < 0.5 * single.counters["right0"]["Ip.InReceives"]
    assert joined.result.flows["completion_s"][0] == pytest.approx(single.result.flows["completion_s"][0], rel=0.05)


@with_kernel
@long_on_linux
def test_another_seed_loses_other_packets() -> None:
    settings = ["workload.size=2MB", "link={select = 'core', loss = 0.01}"]
    first, second = (running.run(SCENARIO, set=settings, seed=seed) for seed in (1, 2))
    assert first.packet_digest != second.packet_digest


def switches(duration: str) -> tuple[int, int]:
    """Returns the host's context switches during a run and the number of packets."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    text = SCENARIO.replace('size = "5MB"\n', "")
    packets = running.run(text, set=[f"duration='{duration}'", "queue.limit=60packets"]).packets
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before, packets


@with_kernel
def test_the_kernel_serves_flows_without_context_switches_of_the_host() -> None:
    (few, begun), (more, packets) = switches("100ms"), switches("1s")
    assert packets - begun > 10_000
    # A guest program that reads and writes the sockets itself needs 13 per packet.
    assert (more - few) / (packets - begun) < 0.2


RED = '{kind = "red", limit = "300packets", min = "20packets", max = "60packets", gentle = false}'


# One flow of 5 MB over 20 Mb/s, and two of 50 kB. The first short flow starts when the queue is longest, the second
# when it is stable.
LONG_AND_SHORT = (
    SCENARIO
    + """
[scheme.short]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "short"
size = "50kB"
start = "250ms"

[[workload]]
kind = "bulk"
scheme = "short"
size = "50kB"
start = "1500ms"
"""
)


# Without a queue, a short flow takes three and a half round trips, 70 ms. No two rows have the same bounds.
@with_kernel
@pytest.mark.parametrize(
    ("queue", "drops", "standing_kb", "first_ms", "second_ms"),
    [
        # The long flow's window is in the queue, and short flows wait after it.
        ('{kind = "fifo", limit = "1000packets"}', False, (150, 250), (130, 160), (300, 500)),
        # The standing queue is 5 ms of the link, 12.5 kB, after an interval until the first drop.
        ('{kind = "codel", limit = "1000packets"}', True, (0, 15), (100, 125), (80, 130)),
        # A new flow does not wait for others.
        ('{kind = "fq-codel", limit = "1000packets"}', True, (0, 15), (70, 90), (70, 90)),
        # PIE allows a burst of 150 ms; then the delay falls slowly.
        ('{kind = "pie", limit = "1000packets"}', True, (60, 150), (130, 160), (150, 300)),
        # RED uses the average, which follows the first burst late and is then near `min`, 30 kB.
        (RED, True, (5, 30), (130, 160), (130, 250)),
        # The long flow has the lower class.
        ('{kind = "priority", push_out = false, limit = "1000packets"}', False, (150, 250), (70, 80), (70, 80)),
    ],
)
def test_each_queue_drops_and_delays_by_its_own_rules(
    queue: str, drops: bool, standing_kb: Band, first_ms: Band, second_ms: Band
) -> None:
    settings = [f"queue={queue}", "topology.bottleneck_rate='20Mbps'", "duration='4s'"]
    settings += ["sample.interval='20ms'", "sample.queues=[['west', 'east']]"]
    settings += ["scheme.flow.class=1"] if "priority" in queue else []
    result = running.run(LONG_AND_SHORT, set=settings).result
    assert list(result.flows["delivered_bytes"]) == [5_000_000, 50_000, 50_000]
    assert (result.links.filter(pl.col("from") == "west")["dropped_packets"][0] > 0) == drops
    is_settled = (pl.col("quantity") == "backlog_bytes") & pl.col("time_s").is_between(1.0, 2.0)
    standing = np.median(result.series.filter(is_settled)["value"].to_numpy()) / 1e3
    _, first_s, second_s = result.flows["completion_s"]
    measured = (standing, first_s * 1e3, second_s * 1e3)
    allowed = (standing_kb, first_ms, second_ms)
    assert all(least <= value <= most for value, (least, most) in zip(measured, allowed, strict=True)), measured


SAMPLED = [
    "sample.interval='50ms'",
    "sample.queues=[['west', 'east']]",
    "sample.links=[['west', 'east']]",
    "duration='3s'",
]


@with_kernel
def test_series_of_a_queue_and_its_link_match_the_simulator() -> None:
    settings = [*SAMPLED, "queue.limit=60packets"]
    ours = ["transport.preset='linux'", "transport.mss='1460B'", "transport.header='40B'"]
    linux, simulated = running.run(SCENARIO, set=settings).result, simulate.run(SCENARIO, set=[*settings, *ours])
    end_s = linux.flows["completion_s"][0]
    assert end_s == pytest.approx(simulated.flows["completion_s"][0], rel=0.01)

    def column(result: Result, quantity: str) -> list[float]:
        chosen = (pl.col("quantity") == quantity) & (pl.col("probe") == "west->east") & (pl.col("time_s") < end_s)
        return list(result.series.filter(chosen)["value"])

    # A full interval has 625,000 bytes, and the queue at most 60 packets.
    assert sum(column(linux, "sent_bytes")) == pytest.approx(sum(column(simulated, "sent_bytes")), rel=0.03)
    assert max(column(linux, "backlog_bytes")) == pytest.approx(max(column(simulated, "backlog_bytes")), abs=30_000)
    one = linux.links.filter(pl.col("from") == "west").row(0, named=True)
    assert one["sent_bytes"] >= 5_000_000 * 1500 // 1460
    assert one["arrived_packets"] == one["sent_packets"] + one["dropped_packets"]
    assert one["dropped_packets"] == pytest.approx(linux.flows["retransmissions"][0], abs=2)


@with_kernel
def test_losses_of_a_cable_are_counted_at_the_cable() -> None:
    result = running.run(SCENARIO, set=["workload.size=2MB", "link={select = 'core', loss = 0.01}"]).result
    lost = result.links.filter(pl.col("from") == "west")["lost_packets"][0]
    assert 3 < lost < 40
    assert result.links["dropped_packets"].sum() == 0


@with_kernel
@pytest.mark.parametrize("copies", [pytest.param(1, marks=long_on_linux), 2])
def test_scripted_losses_hit_the_same_segments_as_in_the_simulator(copies: int) -> None:
    plan = f"drop=[{{ from = 'west', to = 'east', segments = [40, 300, 301], copies = {copies} }}]"
    settings = ["workload.size=2MB", plan]
    ours = ["transport={preset = 'linux', mss = '1460B', header = '40B', delayed_ack = false}"]
    linux, simulated = running.run(SCENARIO, set=settings).result, simulate.run(SCENARIO, set=[*settings, *ours])
    assert list(linux.flows["delivered_bytes"]) == [2_000_000]
    assert linux.warnings == []
    for result in (linux, simulated):
        assert result.flows["retransmissions"][0] >= 3 * copies
    assert linux.flows["completion_s"][0] == pytest.approx(simulated.flows["completion_s"][0], rel=0.1)


CHANGE = "at = '1s', between = ['west', 'east']"


def changed(*changes: str, also: Sequence[str] = ()) -> list[str]:
    """Returns the commands of a plan that change the bottleneck, each with its time."""
    lines = plan.lines(network("change=[" + ", ".join(f"{{ {one} }}" for one in changes) + "]", *also))
    return [line for line in lines if line.startswith("at ")]


def test_a_change_of_the_rate_changes_the_token_bucket_of_each_direction() -> None:
    there = "tc -n west qdisc change dev east root handle 1: tbf rate 5046666bit burst 1600 limit 1515514"
    found = changed(f"{CHANGE}, rate = '5Mbps'")
    assert [line.split(" qdisc ")[0] for line in found] == ["at 1000000000 tc -n west", "at 1000000000 tc -n east"]
    assert found[0] == f"at 1000000000 {there}"
    assert changed(f"{CHANGE}, from = 'west', rate = '5Mbps'") == found[:1]
    # The queue is a token bucket from the start, and only in a direction whose rate changes.
    lines = list(plan.lines(network(f"change=[{{ {CHANGE}, from = 'west', rate = '5Mbps' }}]")))
    shaped = [line for line in lines if line.startswith("run tc -n west qdisc add dev east root")]
    assert shaped == [f"run {there}".replace("change", "add").replace("5046666", "100933333")]
    assert any(line.startswith("run tc -n east qdisc add dev west root netem") for line in lines)


def test_a_change_of_the_delay_or_the_loss_changes_the_node_in_the_cable() -> None:
    one_way = f"{CHANGE}, from = 'west'"
    found = changed(f"{one_way}, delay = '3ms'", f"{one_way.replace('1s', '2s')}, loss = '1%'")
    wire = "tc -n wire0 qdisc change dev east root netem delay 3000.000us limit 1000000"
    # A rate keeps packets in order.
    assert found == [
        f"at 1000000000 {wire} rate 1000gbit",
        f"at 2000000000 {wire} loss 1.000000000% rate 1000gbit",
    ]
    assert changed(f"{one_way}, loss = '1%'") == [f"at 1000000000 {wire.replace('3000', '8000')} loss 1.000000000%"]


def test_a_link_that_is_down_has_no_route_for_the_hosts_behind_it() -> None:
    [down, up] = changed(
        *(
            f"at = '{at}', between = ['west', 'east'], from = 'west', down = {is_down}"
            for at, is_down in (("1s", "true"), ("2s", "false"))
        )
    )
    [route] = [line for line in plan.lines(network()) if line.startswith("run ip -n west route add")]
    prefix = route.split()[6]
    assert down == f"at 1000000000 ip -n west route replace blackhole {prefix}"
    # Changes that lose no packets on the wire need no node in the cable, but packets must be there in time.
    network_lines = plan.lines(network(f"change=[{{ {CHANGE}, from = 'west', down = true }}]"))
    [first] = [line for line in network_lines if line.startswith("run ip -n west route add")]
    assert up == f"at 2000000000 ip -n west route replace {' '.join(first.split()[6:])}"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("queue.mark_at=20packets", f"change=[{{ {CHANGE}, rate = '5Mbps' }}]"), "queue.mark_at"),
        (("transport.send_batch=44", f"change=[{{ {CHANGE}, delay = '5ms' }}]"), "changes of the delay or loss"),
        (("topology.bottleneck_delay=0s", f"change=[{{ {CHANGE}, delay = '5ms' }}]"), "a change of delay from west"),
        ((f"change=[{', '.join([f'{{ {CHANGE}, down = true }}'] * 251)}]",), "502 changes of single directions"),
    ],
)
def test_changes_that_linux_cannot_apply_are_refused(settings: tuple[str, ...], named: str) -> None:
    with pytest.raises(ScenarioError, match=r"--on linux cannot do it; allowed: ") as caught:
        network(*settings)
    assert named in str(caught.value)


@with_kernel
@pytest.mark.parametrize(
    "change",
    [
        ["rate = '20Mbps'"],
        pytest.param(["delay = '28ms'"], marks=long_on_linux),
        ["down = true", "down = false"],
    ],
)
@pytest.mark.parametrize("kind", ["dumbbell", pytest.param("chain", marks=long_on_linux)])
def test_flows_take_as_long_as_in_the_simulator_when_a_link_changes(change: list[str], kind: str) -> None:
    nodes = "['west', 'east']" if kind == "dumbbell" else "['r1', 'r2']"
    tables = [f"{{ at = '{200 + 300 * place}ms', between = {nodes}, {one} }}" for place, one in enumerate(change)]
    settings = [f"change=[{', '.join(tables)}]", "workload.0.size=10MB", "transport.preset=linux"]
    if kind == "chain":
        topology = "kind = 'chain', routers = 3, hosts_per_router = 1, link_rate = '100Mbps', link_delay = '4ms'"
        settings += [f"topology={{ {topology} }}", "workload.0.pairs=[['h3', 'h5']]"]
    linux = running.run(SCENARIO, set=settings).result
    ours = simulate.run(SCENARIO, set=[*settings, "transport.delayed_ack=false"])
    assert linux.flows["completion_s"][0] == pytest.approx(ours.flows["completion_s"][0], rel=0.03)


@with_kernel
def test_a_link_whose_rate_changes_has_its_mean_rate_and_offers_what_the_simulators_offers() -> None:
    settings = [f"change=[{{ {CHANGE.replace('1s', '100ms')}, rate = '20Mbps' }}]"]
    settings += ["sample={ interval = '10ms', links = [['west', 'east']] }"]
    linux, ours = running.run(SCENARIO, set=settings).result, simulate.run(SCENARIO, set=settings)
    offered = [
        one.series.filter(pl.col("quantity").cast(pl.String) == "offered_bytes")["value"].to_list()
        for one in (linux, ours)
    ]
    assert offered[0][:50] == offered[1][:50]
    end_s = linux.totals["end_s"]
    mean = (0.1 * 100e6 + (end_s - 0.1) * 20e6) / end_s
    assert linux.links.filter(pl.col("from").cast(pl.String) == "west")["rate_bps"][0] == pytest.approx(mean)


@with_kernel
def test_the_higher_class_takes_the_bottleneck_from_the_lower() -> None:
    text = SCENARIO.replace("[[workload]]", '[scheme.low]\ncontroller = "cubic"\nclass = 1\n[[workload]]', 1)
    text += '[[workload]]\nkind = "bulk"\nscheme = "low"\n'
    result = running.run(
        text, set=["queue={kind='priority', push_out=false, limit='100packets'}", "duration='2s'"]
    ).result
    high, low = (result.flows.filter(pl.col("scheme") == name) for name in ("flow", "low"))
    # 5 MB take 0.4 s at the line's rate, so the low class does not delay them.
    assert high["completion_s"][0] < 0.6
    assert low["delivered_bytes"][0] > 10_000_000
    assert set(result.drops.filter(pl.col("from") == "west")["class"]) == {0, 1}


@with_kernel
def test_each_bottleneck_of_a_chain_has_its_own_queue() -> None:
    chain = 'topology={kind = "chain", routers = 3, hosts_per_router = 2, link_delay = "4ms"}'
    pairs = 'workload.pairs=[["h3", "h5"], ["h6", "h4"]]'
    settings = [
        chain,
        pairs,
        "workload.size=2MB",
        "queue.limit=50packets",
        *SAMPLED[:1],
        "sample.queues=[['r0', 'r1'], ['r1', 'r2']]",
    ]
    result = running.run(SCENARIO, set=settings).result
    assert list(result.flows["delivered_bytes"]) == [2_000_000, 2_000_000]
    # Two access links of 1 ms in each direction, and cables of 4 ms.
    assert result.flows["min_rtt_s"][0] == pytest.approx(0.020, abs=2e-3)
    assert result.flows["min_rtt_s"][1] == pytest.approx(0.012, abs=2e-3)

    def peak_bytes(probe: str) -> float:
        return max(float(value) for value in result.series.filter(pl.col("probe") == probe)["value"])

    assert peak_bytes("r0->r1") > 10 * 1500 > peak_bytes("r1->r2")


@with_kernel
def test_a_parameter_reaches_the_kernel() -> None:
    settings = ["workload.size=5MB", "queue.limit=60packets"]
    plain, gentle = (running.run(SCENARIO, set=[*settings, *more]) for more in ([], ["scheme.flow.beta=0.5"]))
    assert plain.packet_digest != gentle.packet_digest


# Four bursts of 60 segments to one host, two seconds apart. The first leaves a window above 20 segments.
BURSTS = ['workload={ kind = "bulk", flows = 4, gap = "2s", size = "87600B", connections = "reused" }']


def test_flows_on_reused_connections_name_their_pool() -> None:
    lines = list(plan.lines(network(*BURSTS)))
    assert lines.count("flow cubic left0 right0 10.2.0.1 2000000000 87600 0 0 1 0") == 1
    assert not any("tcp_slow_start_after_idle" in line for line in lines), "the kernel's default restarts windows"
    kept = list(plan.lines(network(*BURSTS, "transport.restart_after_idle=no")))
    assert sum(line.endswith("net/ipv4/tcp_slow_start_after_idle 0") for line in kept) == 2


def test_each_scheme_of_each_workload_has_a_pool_of_its_own() -> None:
    one = "kind = 'bulk', size = '10packets', connections = 'reused'"
    flows = network(
        "scheme.other={ controller = 'cubic', class = 1 }",
        "queue={ kind = 'priority', push_out = false, limit = '100packets' }",
        f"workload=[{{ {one}, scheme = 'flow' }}, {{ {one}, scheme = 'other' }}, {{ {one}, scheme = 'flow' }}]",
    ).flows
    assert [(flow.scheme, flow.pool) for flow in flows] == [("flow", 1), ("other", 2), ("flow", 3)]


def test_scripted_losses_on_reused_connections_are_refused() -> None:
    drop = "drop=[{ from = 'west', to = 'east', flow = 1, segments = [3] }]"
    with pytest.raises(ScenarioError, match="drop with reused connections"):
        network(*BURSTS, drop)


@with_kernel
@pytest.mark.parametrize("restart", ["linux", "no"])
def test_a_reused_connection_needs_no_handshake_and_restarts_as_in_the_simulator(restart: str) -> None:
    settings = [*BURSTS, f"transport.restart_after_idle={restart}"]
    ours = ["transport.preset='linux'", "transport.mss='1460B'", "transport.header='40B'"]
    ours += [f"transport.restart_after_idle={restart}", "transport.delayed_ack=false"]
    linux = running.run(SCENARIO, set=settings).result.flows
    simulated = simulate.run(SCENARIO, set=[*BURSTS, *ours]).flows
    assert linux["connection"].to_list() == simulated["connection"].to_list() == [0] * 4
    assert linux["delivered_bytes"].to_list() == [87_600] * 4
    # A kept window holds the first write of 64 KiB, so its last segment leaves before the next write could fill it.
    later = 61 if restart == "no" else 60
    assert linux["sent_packets_0"].to_list() == [60, later, later, later]
    is_kept = linux["completion_s"][3] < linux["completion_s"][0] - 0.05
    assert is_kept == (restart == "no"), "a handshake and two rounds of a growing window"
    # Linux's slow start also grows a window of which a bit more than half is used, ours only a full one. The window at
    # the end of a burst, and so a kept window, is therefore larger.
    compared = range(4) if restart == "linux" else range(1)
    for row in compared:
        assert linux["completion_s"][row] == pytest.approx(simulated["completion_s"][row], rel=0.01), row
    for row in range(4):
        assert linux["completion_s"][row] < 1.01 * simulated["completion_s"][row], row


@with_kernel
def test_a_busy_connection_is_not_shared() -> None:
    # A burst takes longer than the gap at first.
    settings = ['workload={ kind = "bulk", flows = 6, gap = "50ms", size = "87600B", connections = "reused" }']
    flows = running.run(SCENARIO, set=settings).result.flows
    end, start, connection = flows["finish_s"], flows["start_s"], flows["connection"]
    assert flows["completion_s"][0] > 0.05
    assert connection[1] == 1
    for row in range(6):
        users = [other for other in range(row) if connection[other] == connection[row]]
        assert all(end[other] <= start[row] for other in users), row
    assert connection.n_unique() < 6


@with_kernel
@long_on_linux
def test_a_flow_with_a_late_start_starts_on_time() -> None:
    outcome = running.run(SCENARIO, set=["workload.size=14600B", "workload.start='20s'"])
    expected = 0.030 + 10 * 1500 * 8 / 100e6 + 2 * 1500 * 8 / 1e9
    assert outcome.result.flows["completion_s"][0] == pytest.approx(expected, abs=5e-5)
