"""Tests that tshark reads the simulated packets from traces."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sparelane as sl
from hangs import HANG_S

SCENARIO = """
duration = "3s"
seed = 3
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "10Mbps"
bottleneck_delay = "10ms"
[queue]
kind = "priority"
limit = "30packets"
[scheme.tcp]
controller = "newreno"
[[workload]]
kind = "bulk"
flows = 2
size = "700packets"
"""

ECN: dict[str, Any] = {
    "transport.ecn": "classic",
    "queue": {"kind": "red", "limit": "60packets", "min": "5packets", "max": "20packets", "ecn": True},
}

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def trace(folder: Path, what: str, **settings: Any) -> sl.Result:
    return sl.run(SCENARIO, trace=what, trace_folder=folder, set=settings)


def fields(path: Path, *names: str, only: str = "") -> list[list[str]]:
    line = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=|", "-o", "tcp.relative_sequence_numbers:FALSE"]
    line += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    if only:
        line += ["-Y", only]
    for name in names:
        line += ["-e", name]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=True)
    return [row.split("|") for row in done.stdout.splitlines()]


@needs_tshark
def test_tshark_reads_a_flow_with_its_sequence_numbers(tmp_path: Path) -> None:
    result = trace(tmp_path, "flow=1,snap=2000")
    path = tmp_path / "flow-1.pcapng"
    rows = fields(path, "frame.time_epoch", "ip.src", "tcp.seq", "tcp.len", "tcp.ack", "tcp.flags", "frame.len")
    assert [row[5] for row in rows[:2]] == ["0x0002", "0x0012"]
    sender = rows[0][1]
    data = [row for row in rows if row[1] == sender and int(row[3]) > 0]
    acks = [row for row in rows[2:] if row[1] != sender]
    flow = result.flows.row(1, named=True)
    assert len(data) == flow["sent_packets_p0"] if "sent_packets_p0" in flow else len(data) >= 700
    assert {int(row[2]) for row in data} == {1 + 1460 * segment for segment in range(700)}
    assert Counter(int(row[3]) for row in data).keys() == {1460}
    assert {int(row[6]) for row in data} == {1500}
    assert max(int(row[4]) for row in acks) == 1 + 700 * 1460
    # The SYN leaves when the flow starts; the last acknowledgment arrives at most a round trip after the last byte.
    assert float(rows[0][0]) == pytest.approx(flow["start_s"], abs=1e-9)
    assert 0 < float(rows[-1][0]) - flow["finish_s"] < 0.1
    retransmissions = len(data) - 700
    assert retransmissions == flow["retransmissions"] > 10
    seen = fields(path, "tcp.seq", only="tcp.analysis.retransmission || tcp.analysis.fast_retransmission")
    assert len(seen) >= 0.8 * retransmissions
    malformed = fields(
        path, "frame.number", only="_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0"
    )
    assert malformed == []
    assert fields(path, "frame.number", only="tcp.checksum.status == 1 && ip.checksum.status == 1")[-1] == [
        str(len(rows))
    ]


@needs_tshark
def test_sack_blocks_surround_the_missing_segments(tmp_path: Path) -> None:
    trace(tmp_path, "flow=0")
    path = tmp_path / "flow-0.pcapng"
    rows = fields(path, "tcp.ack", "tcp.options.sack_le", "tcp.options.sack_re", only="tcp.options.sack_le")
    assert len(rows) > 20
    for ack, left, right in rows:
        edges = list(zip(map(int, left.split(",")), map(int, right.split(",")), strict=True))
        assert all(int(ack) < start < end and (start - 1) % 1460 == 0 and (end - 1) % 1460 == 0 for start, end in edges)
    permitted = fields(path, "tcp.options.mss_val", "tcp.options.wscale.shift", only="tcp.options.sack_perm")
    assert permitted == [["1460", "14"]] * 2


@needs_tshark
def test_congestion_marks_and_their_echoes_are_traced(tmp_path: Path) -> None:
    result = trace(tmp_path, "flow=0,port=west:east", **ECN)
    flow, port = tmp_path / "flow-0.pcapng", tmp_path / "port-west-east.pcapng"
    syn = fields(flow, "tcp.flags", only="tcp.flags.syn == 1")
    assert syn == [["0x00c2"], ["0x0052"]]
    codes = Counter(row[0] for row in fields(flow, "ip.dsfield.ecn", only="tcp.len > 0"))
    # Retransmissions are not ECN-capable (RFC 3168 section 6.1.5).
    assert codes == Counter({"2": 700, "0": result.flows["retransmissions"][0]}) - Counter()
    marked = fields(port, "tcp.seq", only="ip.dsfield.ecn == 3")
    echoes = fields(flow, "tcp.ack", only="tcp.flags.ece == 1 && tcp.flags.syn == 0")
    reduced = fields(flow, "tcp.seq", only="tcp.flags.cwr == 1 && tcp.flags.syn == 0")
    assert len(marked) > 5
    assert len(echoes) >= len(reduced) > 2


SYN, ECE, CWR = 0x02, 0x40, 0x80


@dataclass(frozen=True)
class Segment:
    """Fields of a traced packet's TCP header, and the number of its data bytes."""

    from_port: int
    sequence: int
    flags: int
    data_bytes: int


def segments(path: Path) -> list[Segment]:
    """Returns the TCP segments of a trace of raw IPv4 packets, in order."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        # An enhanced packet block has 28 bytes before the packet.
        if kind == 6:
            header = at + 28 + 4 * (content[at + 28] & 15)
            [total] = struct.unpack_from(">H", content, at + 30)
            port, _, sequence, _, offset, flags = struct.unpack_from(">HHIIBB", content, header)
            found.append(Segment(port, sequence, flags, total - (header - at - 28) - 4 * (offset >> 4)))
        at += length
    return found


@pytest.mark.parametrize(("ecn", "controller"), [("classic", "newreno"), ("classic", "cubic"), ("dctcp", "dctcp")])
def test_each_reduction_after_a_mark_is_a_new_segment_with_cwr(ecn: str, controller: str, tmp_path: Path) -> None:
    trace(tmp_path, "flow=0", **{**ECN, "transport.ecn": ecn, "scheme.tcp.controller": controller})
    first, *later = (one for one in segments(tmp_path / "flow-0.pcapng") if not one.flags & SYN)
    cuts, echoes, highest = 0, 0, first.sequence
    for one in later:
        if one.from_port != first.from_port:
            echoes += bool(one.flags & ECE)
        elif one.flags & CWR:
            assert echoes > 0, "no mark was echoed since the last reduction"
            assert one.sequence > highest, "CWR is set on a retransmission"
            assert one.data_bytes > 0
            cuts, echoes = cuts + 1, 0
        if one.from_port == first.from_port:
            highest = max(highest, one.sequence)
    assert cuts > 2


def accurate_fields(path: Path) -> list[tuple[int, int, int, bytes]]:
    """Returns port, flags, the number of AE, CWR and ECE (RFC 9768), and the options of each segment of a trace."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            header = at + 28 + 4 * (content[at + 28] & 15)
            port, _, _, _, offset, flags = struct.unpack_from(">HHIIBB", content, header)
            options = content[header + 20 : header + 4 * (offset >> 4)]
            found.append((port, flags, (offset & 1) << 2 | flags >> 6, options))
        at += length
    return found


def test_accurate_ecn_has_its_flags_and_its_option(tmp_path: Path) -> None:
    trace(tmp_path, "flow=0", **{**ECN, "transport.ecn": "accurate"})
    everything = accurate_fields(tmp_path / "flow-0.pcapng")
    handshake = [number for _, flags, number, _ in everything if flags & SYN]
    # The handshake agrees to accurate ECN; the answer reports a SYN that was not ECN-capable.
    assert handshake == [0b111, 0b010]
    sender = everything[0][0]
    data = [number for port, flags, number, _ in everything if port == sender and not flags & SYN]
    # The first segment reports a SYN-ACK that was not ECN-capable. Later ones report that no data was marked.
    assert data[0] == 0b010
    assert set(data[1:]) <= {0b101, 0b010}
    assert data.count(0b101) > 600
    reports = []
    for port, flags, number, options in everything:
        place = options.find(bytes([172, 11]))
        if port != sender and not flags & SYN and place >= 0:
            counters = [int.from_bytes(options[place + 2 + 3 * n : place + 5 + 3 * n], "big") for n in range(3)]
            reports.append((number, *counters))
    # Payload that arrived with ECT(0), CE and ECT(1), and five plus the number of marked segments modulo 8.
    assert len(reports) > 500
    assert all(number == (5 + marked // 1460) % 8 and scalable == 1 for number, _, marked, scalable in reports)
    assert reports[-1][2] > 5 * 1460


def test_without_ecn_no_segment_has_its_flags(tmp_path: Path) -> None:
    result = trace(tmp_path, "flow=0")
    assert result.flows["retransmissions"][0] > 0
    assert not any(one.flags & (ECE | CWR) for one in segments(tmp_path / "flow-0.pcapng"))


@needs_tshark
def test_a_port_has_all_departing_packets_with_classes_as_code_points(tmp_path: Path) -> None:
    rc3 = {"scheme.tcp": {"controller": "rc3"}}
    result = trace(tmp_path, "port=west:east,port=east", **rc3)
    path = tmp_path / "port-west-east.pcapng"
    rows = fields(path, "frame.time_epoch", "tcp.srcport", "ip.dsfield.dscp", "frame.len")
    assert {row[1] for row in rows} == {"10000", "10001"}
    assert {"0", "3"} <= {row[2] for row in rows} <= {"0", "3", "11", "19"}
    times = [float(row[0]) for row in rows]
    assert times == sorted(times)
    # Packets do not leave faster than the rate of the port.
    gaps = [(later - earlier) for earlier, later in pairwise(times)]
    least = [int(row[3]) * 8 / 10e6 for row in rows[1:]]
    # Handshakes have options, whose bytes the simulator does not count.
    data = [gap - wanted for gap, wanted, row in zip(gaps, least, rows[1:], strict=True) if row[3] == "1500"]
    assert len(data) > 1000
    assert min(data) >= -2e-9
    link = next(row for row in result.links.iter_rows(named=True) if (row["from"], row["to"]) == ("west", "east"))
    assert len(rows) == link["delivered_packets"] if "delivered_packets" in link else len(rows) > 1000
    names = fields(tmp_path / "port-east.pcapng", "frame.interface_name")
    assert {"east:west", "east:right0", "east:right1"} == {row[0] for row in names}
    assert len([row for row in names if row[0] != "east:west"]) > 1000


def test_a_trace_does_not_change_a_run(tmp_path: Path) -> None:
    without = sl.run(SCENARIO)
    for what in ("flow=0", "port=west:east", "port=west,port=east,flow=1"):
        assert trace(tmp_path, what).flows.equals(without.flows)


# The fields and types of the written events, from the qlog drafts.
SCHEMA: dict[str, dict[str, type | tuple[type, ...]]] = {
    "transport:packet_sent": {"header": dict, "raw": dict, "frames": list},
    "transport:packet_received": {"header": dict, "raw": dict, "frames": list},
    "recovery:packet_lost": {"header": dict, "raw": dict},
    "recovery:metrics_updated": {
        "congestion_window": (int, float),
        "bytes_in_flight": (int, float),
        "smoothed_rtt": (int, float),
        "ssthresh": (int, float),
    },
}


def test_a_qlog_conforms_to_the_schema_of_its_events(tmp_path: Path) -> None:
    result = trace(tmp_path, "flow=1")
    text = (tmp_path / "flow-1.sqlog").read_text()
    records = [json.loads(record) for record in text.split("\x1e")[1:]]
    assert text.startswith("\x1e")
    assert text.endswith("\n")
    head, *events = records
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert head["trace"]["common_fields"]["time_format"] == "relative"
    assert head["trace"]["vantage_point"]["type"] == "client"
    for event in events:
        assert event.keys() == {"time", "name", "data"}
        allowed = SCHEMA[event["name"]]
        for name, value in event["data"].items():
            assert isinstance(value, allowed[name]), (event, name)
        if "header" in event["data"]:
            assert event["data"]["header"]["packet_type"] == "1RTT"
            assert isinstance(event["data"]["header"]["packet_number"], int)
    times = [event["time"] for event in events]
    assert times == sorted(times)
    counts = Counter(event["name"] for event in events)
    flow = result.flows.row(1, named=True)
    assert counts["transport:packet_sent"] == 700 + flow["retransmissions"]
    assert counts["recovery:packet_lost"] == flow["retransmissions"] > 10
    windows = [
        event["data"].get("congestion_window") for event in events if event["name"] == "recovery:metrics_updated"
    ]
    assert len([window for window in windows if window is not None]) > 100


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("flow=x", "a whole number from 0"),
        ("flwo=3", 'did you mean "flow"?'),
        ("snap=96", "nothing to trace; allowed: flow=NUMBER"),
        ("flow=1,snap=3", "a whole number from 40 to 65535"),
        ("flow", "allowed: flow=..., port=..."),
    ],
)
def test_an_invalid_trace_is_refused_with_the_reason(what: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(sl.TraceError) as refusal:
        trace(tmp_path, what)
    assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("port=wset", 'there is no node "wset"; allowed: '),
        ("port=wset", 'did you mean "west"?'),
        ("port=west:esat", '"west" has no port towards "esat"; allowed: '),
        ("port=left0:east", "allowed: west"),
    ],
)
def test_an_unknown_port_is_refused_with_the_neighbours(what: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(sl.ScenarioError) as refusal:
        trace(tmp_path, what)
    assert expected in str(refusal.value)
    with pytest.raises(sl.ScenarioError, match="cannot write"):
        trace(tmp_path / "not-there", "flow=0")


def test_a_full_disk_ends_the_trace_and_not_the_run(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    (tmp_path / "flow-0.pcapng").symlink_to("/dev/full")
    result = trace(tmp_path, "flow=0")
    (_, count, error), (_, events, none) = result.traces
    assert error is not None
    assert "space" in str(error).lower()
    assert none is None
    assert count < events
    assert result.totals["finished_flows"] == 2


def test_a_trace_ends_at_its_limit_of_packets(tmp_path: Path) -> None:
    result = trace(tmp_path, "flow=0,count=10")
    assert [count for _, count, _ in result.traces] == [10, 10]
