"""Converts the files of the guest to the tables of the simulator."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparelane._native import __version__
from sparelane.simulation.result import Result
from sparelane.simulation.stored import Stored
from sparelane.uml.network import ETHERNET, PACKET, Network
from sparelane.uml.plan import wire

if TYPE_CHECKING:
    from sparelane._native import Column


def result(columns: Stored) -> Result:
    """The result of a run, of the same class as a simulation's."""
    return Result(columns)


@dataclass(frozen=True, slots=True)
class Written:
    """The files of the guest: flows at the end, samples of flows, counters of queues at the end, samples of queues."""

    flows: str
    samples: str
    counts: str
    queues: str


def stored(network: Network, written: Written, *, digest: str, seed: int, scenario: str) -> Stored:
    """The columns of a run. Values that Linux does not report are null."""
    rows = list(csv.DictReader(io.StringIO(written.flows)))
    counts = list(csv.DictReader(io.StringIO(written.counts)))
    finished = sum(bool(row["finish_ns"]) for row in rows)
    ends = [int(row["finish_ns"] or network.duration_ns) for row in rows]
    return Stored(
        {
            "flows": _flows(network, rows),
            "links": _links(network, counts, max(ends, default=0)),
            "drops": _drops(network, counts),
            "cross_traffic": {},
            "delays": {},
            "packets": {},
            "series": _series(network, written),
            "digest": digest,
            "seed": seed,
            "version": __version__,
            "scenario": scenario,
            "warnings": [],
            "traces": [],
            "is_interrupted": False,
            "totals": {
                "events": 0,
                "packet_hops": 0,
                "flows": len(rows),
                "finished_flows": finished,
                "end_s": max(ends, default=0) / 1e9,
                "peak_open_flows": len(rows),
            },
        }
    )


def counters(text: str) -> dict[str, dict[str, int]]:
    """The kernel's counters of each host, from alternating lines of names and numbers as in /proc."""
    found: dict[str, dict[str, int]] = {}
    lines = iter(text.splitlines())
    for line in lines:
        group, *names = line.split()
        if group == "host":
            here = found.setdefault(names[0], {})
            continue
        numbers = next(lines).split()[1:]
        here |= {f"{group}{name}".replace(":", "."): int(number) for name, number in zip(names, numbers, strict=True)}
    return found


Count = dict[str, str]


def _at(counts: list[Count], node: str, port: str) -> list[Count]:
    """The counters of the queueing disciplines of a port, the root discipline first."""
    found = [count for count in counts if (count["namespace"], count["device"]) == (node, port)]
    return sorted(found, key=lambda count: count["parent"] != ROOT)


ROOT = "ffffffff"


def _sum(counts: Sequence[Count], key: str) -> int:
    return sum(int(count[key]) for count in counts)


def _dropping(network: Network, disciplines: list[Count]) -> list[Count]:
    """The disciplines of a port that drop packets themselves. Their parents count the same drops again."""
    if network.queue.kind == "fifo":
        return disciplines[:1]
    return [count for count in disciplines if count["kind"] not in ("tbf", "prio")]


def _links(network: Network, counts: list[Count], end_ns: int) -> dict[str, Column]:
    """The table of links: one row for each direction of a cable between routers. A changing rate is the mean."""
    columns: dict[str, list[int]] = {name: [] for name in LINKS}
    for number, (near, far, cable) in enumerate(network.ports()):
        disciplines = _at(counts, near, far)
        dropping = _dropping(network, disciplines)
        sent, dropped = int(disciplines[0]["sent_packets"]), _sum(dropping, "drops")
        changes = end_ns > 0 and network.has_changes(near, far, "rate_bps")
        values = (
            int(network.offered_bits(near, far, cable.rate_bps, end_ns) / end_ns * 1e9) if changes else cable.rate_bps,
            sent,
            int(disciplines[0]["sent_bytes"]) - ETHERNET * sent,
            sent + dropped + int(disciplines[0]["queued_packets"]),
            dropped,
            _lost(network, counts, number),
            _sum(dropping, "marks"),
        )
        for name, value in zip(LINKS, values, strict=True):
            columns[name].append(value)
    nothing: list[float | None] = [None] * len(network.ports())
    return (
        {
            "from": _texts([near for near, _, _ in network.ports()]),
            "to": _texts([far for _, far, _ in network.ports()]),
        }
        | {name: np.array(values, dtype=np.uint64) for name, values in columns.items()}
        | {
            "peak_backlog_bytes": _some(nothing, np.uint64),
            "pause_frames": np.zeros(len(nothing), dtype=np.uint64),
            "paused_s": np.zeros(len(nothing)),
            "duplicated_packets": np.zeros(len(nothing), dtype=np.uint64),
            "reordered_packets": np.zeros(len(nothing), dtype=np.uint64),
        }
    )


LINKS = (
    "rate_bps",
    "sent_packets",
    "sent_bytes",
    "arrived_packets",
    "dropped_packets",
    "lost_packets",
    "marked_packets",
)


def _lost(network: Network, counts: list[Count], port: int) -> int:
    """Random losses of a direction, which happen at the node in the cable or, in a dumbbell, in front of the hosts."""
    _, far, cable = network.ports()[port]
    if cable.delay_ns:
        return _sum(_at(counts, wire(port // 2), far), "drops")
    hosts = [host.name for host in network.hosts if network.routers[host.router] == far]
    return sum(_sum(_at(counts, far, host), "drops") for host in hosts)


def _drops(network: Network, counts: list[Count]) -> dict[str, Column]:
    """The table of drops: one row for each direction of a cable and priority class with any packets."""
    rows = []
    for near, far, _ in network.ports():
        disciplines = _at(counts, near, far)
        dropping = sorted(_dropping(network, disciplines), key=lambda count: count["parent"])
        # Only the root discipline counts packets that are being transmitted.
        whole = dropping if network.queue.kind == "priority" else disciplines[:1]
        for level, (outer, inner) in enumerate(zip(whole, dropping, strict=True)):
            dropped = int(inner["drops"])
            arrived = int(outer["sent_packets"]) + int(outer["queued_packets"]) + dropped
            if arrived:
                rows.append((near, far, level, arrived, dropped))
    return {
        "from": _texts([row[0] for row in rows]),
        "to": _texts([row[1] for row in rows]),
        "class": np.array([row[2] for row in rows], dtype=np.uint32),
        "arrived_packets": np.array([row[3] for row in rows], dtype=np.uint64),
        "dropped_packets": np.array([row[4] for row in rows], dtype=np.uint64),
    }


def _texts(values: Sequence[str]) -> Column:
    names = sorted(set(values))
    return np.array([names.index(value) for value in values], dtype=np.uint32), names


def _some_texts(values: Sequence[str | None]) -> Column:
    names = sorted({value or "" for value in values})
    places = np.array([names.index(value or "") for value in values], dtype=np.uint32)
    return places, names, np.array([value is not None for value in values], dtype=np.bool_)


def _some(values: Sequence[float | None], kind: type[np.generic] = np.float64) -> Column:
    there = np.array([value is not None for value in values], dtype=np.bool_)
    return np.array([0 if value is None else value for value in values], dtype=kind), there


def _flows(network: Network, rows: list[dict[str, str]]) -> dict[str, Column]:
    nothing: list[float | None] = [None] * len(rows)
    start = [int(row["start_ns"]) / 1e9 for row in rows]
    finish = [int(row["finish_ns"]) / 1e9 if row["finish_ns"] else None for row in rows]
    lasted = [(int(row["finish_ns"]) - int(row["start_ns"])) / 1e9 if row["finish_ns"] else None for row in rows]
    repeated = np.array([int(row["retransmissions"]) for row in rows], dtype=np.uint64)
    return {
        "id": np.arange(len(rows), dtype=np.uint32),
        "scheme": _texts([flow.scheme for flow in network.flows]),
        "traffic_class": _some_texts([flow.traffic_class for flow in network.flows]),
        "connection": np.array([int(row["connection"]) for row in rows], dtype=np.uint32),
        "request": _some([flow.request for flow in network.flows], np.uint64),
        "src": _texts([flow.source for flow in network.flows]),
        "dst": _texts([flow.target for flow in network.flows]),
        "size_bytes": _some([flow.size_bytes for flow in network.flows], np.uint64),
        "start_s": np.array(start, dtype=np.float64),
        "finish_s": _some(finish),
        "completion_s": _some(lasted),
        "ideal_s": _some(nothing),
        "first_write_s": _some(nothing),
        "delivered_bytes": np.array([int(row["delivered_bytes"]) for row in rows], dtype=np.uint64),
        "sent_packets_0": np.array([int(row["segments"]) for row in rows], dtype=np.uint64),
        "lost_packets": _some(nothing, np.uint64),
        "retransmissions": repeated,
        "timeouts": _some(nothing, np.uint64),
        "srtt_s": np.array([int(row["srtt_us"]) / 1e6 for row in rows], dtype=np.float64),
        "min_rtt_s": np.array([int(row["min_rtt_us"]) / 1e6 for row in rows], dtype=np.float64),
        "measured_bytes": _some(nothing, np.uint64),
        "mean_delay_s": _some(nothing),
        "max_delay_s": _some(nothing),
    }


Sample = tuple[int, str, str, float]


def _series(network: Network, written: Written) -> dict[str, Column]:
    taken = [*_flow_samples(network, written.samples), *_port_samples(network, written.queues)]
    taken.sort(key=lambda sample: sample[0])
    return {
        "time_s": np.array([sample[0] / 1e9 for sample in taken], dtype=np.float64),
        "probe": _texts([sample[1] for sample in taken]),
        "quantity": _texts([sample[2] for sample in taken]),
        "value": _some([sample[3] for sample in taken]),
    }


def _flow_samples(network: Network, samples: str) -> list[Sample]:
    quantities = (
        ("cwnd_bytes", "cwnd_bytes", 1.0),
        ("in_flight_bytes", "in_flight_bytes", 1.0),
        ("delivered_bytes", "delivered_bytes", 1.0),
        ("srtt_s", "srtt_us", 1e-6),
    )
    return [
        (int(row["time_ns"]), f"flow {row['flow']}", quantity, float(row[key]) * scale)
        for row in csv.DictReader(io.StringIO(samples))
        if int(row["flow"]) in network.sampled
        for quantity, key, scale in quantities
    ]


def _port_samples(network: Network, queues: str) -> list[Sample]:
    """Samples of queues and links. The kernel counts the packet in transmission as queued; the simulator does not."""
    taken: list[Sample] = []
    sent_before = dict.fromkeys(network.followed(), 0)
    offered_before = dict(sent_before)
    rates = {(near, far): cable.rate_bps for near, far, cable in network.ports()}
    for time, number, *counts in (line.split(",") for line in queues.splitlines()):
        port = network.followed()[int(number)]
        queued_bytes, queued, sent_bytes, sent = (int(count) for count in counts)
        if port in network.queues:
            waiting = max(0, queued_bytes - ETHERNET * queued - min(PACKET, queued_bytes))
            taken.append((int(time), f"{port[0]}->{port[1]}", "backlog_bytes", waiting))
        if port in network.links:
            payload = sent_bytes - ETHERNET * sent
            taken.append((int(time), f"{port[0]}->{port[1]}", "sent_bytes", payload - sent_before[port]))
            sent_before[port] = payload
            if network.has_changes(*port, "rate_bps"):
                offered = int(network.offered_bits(*port, rates[port], int(time)) / 8)
                taken.append((int(time), f"{port[0]}->{port[1]}", "offered_bytes", offered - offered_before[port]))
                offered_before[port] = offered
    return taken
