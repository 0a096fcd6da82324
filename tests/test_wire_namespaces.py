"""Tests of delay and loss between namespaces, and of the tables of `make bench-wire`."""

import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import wire_harm
import wire_transfers
from wire_transfers import Times

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.emulation import delay_line
from sparelane.emulation.namespaces import RECEIVER, hosts, missing

WHY_NOT = missing() or delay_line.missing()

needs_namespaces = pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")


def transmit(line: delay_line.DelayLine, end: socket.socket, packets: list[bytes]) -> list[bytes]:
    """Sends packets into a delay line and returns those that come out at the same time of its clock."""
    for packet in packets:
        end.send(packet)
    received = []
    # More turns than it needs to read all packets.
    for _ in range(200):
        line.turn(0.0)
        try:
            while True:
                received.append(end.recv(100))
        except BlockingIOError:
            pass
    return received


def test_a_delay_line_holds_each_packet_for_its_time_and_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(delay_line, "time", SimpleNamespace(monotonic=lambda: now_s))
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        line = delay_line.DelayLine(far.fileno(), 0.15, 0.0, 1)
        packets = [bytes([number]) for number in range(100)]
        assert transmit(line, near, packets) == []
        now_s = 0.149
        assert transmit(line, near, []) == []
        now_s = 0.151
        assert transmit(line, near, []) == packets
        counts = line.counts()
        assert (counts.packets, counts.lost, counts.refused) == (100, 0, 0)
        assert counts.late_median_s == counts.late_p99_s == pytest.approx(1.05e-3)


def test_a_delay_line_loses_the_same_packets_with_the_same_seed() -> None:
    received = {}
    for turn, seed in (("first", 7), ("again", 7), ("other", 8)):
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with near, far:
            near.setblocking(False)
            far.setblocking(False)
            line = delay_line.DelayLine(far.fileno(), 0.0, 0.5, seed)
            packets = [bytes([number]) for number in range(200)]
            received[turn] = [packet for at in range(0, 200, 50) for packet in transmit(line, near, packets[at:][:50])]
            assert line.counts().lost == 200 - len(received[turn])
    assert received["first"] == received["again"] != received["other"]
    assert 60 < len(received["first"]) < 140


def test_percentiles_of_lateness_are_upper_bounds_of_bins() -> None:
    late = delay_line.Lateness()
    assert late.percentile(0.99) == 0
    for _ in range(98):
        late.note(20e-6)
    late.note(1.02e-3)
    late.note(70.0)
    assert late.percentile(0.5) == pytest.approx(50e-6)
    assert late.percentile(0.99) == pytest.approx(1.05e-3)
    assert late.percentile(1) == pytest.approx(1)


# Listens at a free port of the receiver and prints it.
LISTEN = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    while True:
        listening.accept()[0].close()
"""
# Prints the minimum time of five connections to the listener, milliseconds: a round trip.
CONNECT = """
import socket, sys, time
def took():
    began = time.monotonic()
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60).close()
    return time.monotonic() - began
print(1000 * min(took() for _ in range(5)))
"""


@needs_namespaces
def test_a_path_has_its_round_trip_time_and_is_removed_completely() -> None:
    with hosts(20, priorities=True, round_trip_s=0.05) as ends:
        line = ends.command(ends.receiver, sys.executable, "-c", LISTEN, RECEIVER)
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as listening:
            try:
                assert listening.stdout is not None
                port = listening.stdout.readline().strip()
                line = ends.command(ends.sender, sys.executable, "-c", CONNECT, RECEIVER, port)
                done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
            finally:
                listening.kill()
        assert done.returncode == 0, done.stderr
    # A busy machine holds packets for longer; the delay lines report by how much.
    late_ms = 2000 * sum(line.late_median_s for line in ends.counts)
    assert 50 <= float(done.stdout) < 60 + late_ms, done.stdout
    assert ends.counts[0].packets >= 10
    assert ends.sender[:-1] not in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


@needs_namespaces
def test_harm_on_a_path_with_delay_counts_it_in_round_trips() -> None:
    line = ["harm", "--local", "--rate", "20", "--round-trip", "30", "--seconds", "1.5", "--rounds", "1", "--json"]
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    for turn in ("alone", "beside_tcp", "beside"):
        assert report[turn]["rtt_median_s"] >= 0.03, report
        assert report[turn]["bps"] > 1e5, report
    assert report["alone"]["bps"] < 21e6, report


def test_congestion_controls_that_the_kernel_does_not_have_are_omitted() -> None:
    assert wire_transfers.measurable_names(["reno", "cubic"])[-2:] == ["stream-bbr", "tcp-cubic"]
    assert set(wire_transfers.NAMES) - set(wire_transfers.measurable_names([])) == {"tcp-cubic", "tcp-bbr"}


def test_a_row_of_times_has_median_and_range_and_ratios_use_medians() -> None:
    rows = [Times("rc3", [0.2, 0.1, 0.9]), Times("stream-cubic", [0.4]), Times("tcp-bbr"), Times("tcp-cubic", [0.8])]
    assert rows[0].cell() == "200 (100 to 900)"
    assert rows[2].cell() == "-"
    assert wire_transfers.ratios(rows) == "time of rc3 relative to stream-cubic 0.50, tcp-cubic 0.25"
    assert wire_transfers.ratios(rows[1:]) == "no transfer with rc3"


def row_of_harm(
    queue: str, transfer: str, with_transfer: tuple[float, float], head: tuple[float, float]
) -> dict[str, Any]:
    """Returns a row with Mb/s and p99 round-trip times in ms, next to a transfer and next to its head alone."""

    def turn(mbps: float, ms: float) -> dict[str, float]:
        return {"bps": mbps * 1e6, "rtt_p99_s": ms * 1e-3}

    more: dict[str, Any] = {
        "alone": turn(40, 60),
        "beside_tcp": turn(*with_transfer),
        "transfer_bps": 9e6,
        "lost_share": 0.5,
    }
    tail = {
        "tail_lost_share": (head[0] - with_transfer[0]) / 40,
        "tail_added_p99_s": (with_transfer[1] - head[1]) * 1e-3,
    }
    turns = {"beside": turn(*with_transfer), "beside_head": turn(*head)}
    return {"queue": queue, "flow": "bbr", "transfer": transfer, **more, **tail, **turns}


def test_the_harm_of_a_tail_is_the_difference_from_its_head_alone() -> None:
    judged, head = wire_harm.TARGETED, (20.0, 70.0)
    row = row_of_harm("priorities", judged, (19.8, 70.5), head)
    line = wire_harm.describe_tail(row)
    assert line.startswith("priorities, bbr, rc3, 4 segments: the tail costs 0.5 % of the throughput, 0.5 ms")
    assert line.endswith("met")
    assert wire_harm.describe_tail(row_of_harm("priorities", judged, (19.8, 71.5), head)).endswith("MISSED")
    assert wire_harm.describe_tail(row_of_harm("priorities", judged, (19.0, 70.0), head)).endswith("MISSED")
    # The shares of two ordinary flows are printed but not judged.
    by_chance = wire_harm.describe_tail(row_of_harm("priorities", "rc3", (10.0, 80.0), head))
    assert by_chance == "priorities, bbr, rc3: the tail costs 25.0 % of the throughput, 10.0 ms"
    assert len(wire_harm.cells(row)) == len(wire_harm.HEADINGS)


def test_with_one_queue_a_transfer_is_compared_with_one_more_flow() -> None:
    row = row_of_harm("one queue", "rc3", (10.0, 80.0), (20.0, 70.0))
    for one_more_bps, verdict in ((10e6, "met"), (12e6, "MISSED")):
        with_transfer = row["beside_tcp"] | {"bps": one_more_bps}
        line = wire_harm.describe_tail(row | {"beside_tcp": with_transfer})
        assert line.startswith(
            "one queue, bbr, rc3: the tail costs 25.0 % of the throughput, 10.0 ms; it leaves 10.0 Mb/s"
        )
        assert line.endswith(f"{one_more_bps / 1e6:.1f}: {verdict}")


def test_without_root_nothing_is_measured_and_the_reason_is_printed() -> None:
    program = "import os, sys; os.geteuid = lambda: 1000; sys.argv = ['wire.py']; import wire; sys.exit(wire.main())"
    where = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": where},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing was measured between namespaces: this needs root\n"
