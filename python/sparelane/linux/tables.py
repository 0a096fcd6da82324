"""What the guest wrote, in the columns of the simulator."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparelane._native import __version__
from sparelane.linux.mapping import Network
from sparelane.result import Result
from sparelane.stored import Stored

if TYPE_CHECKING:
    from sparelane._native import Column


def result(columns: Stored) -> Result:
    """A result as a simulation gives one."""
    return Result(columns)


def stored(network: Network, flows: str, samples: str, *, digest: str, seed: int, scenario: str) -> Stored:
    """The columns of a run; what Linux does not tell is null, and tables that it fills none of are empty."""
    rows = list(csv.DictReader(io.StringIO(flows)))
    finished = sum(bool(row["finish_ns"]) for row in rows)
    ends = [int(row["finish_ns"] or network.duration_ns) for row in rows]
    return Stored(
        {
            "flows": _flows(network, rows),
            "links": _empty(LINKS),
            "drops": _empty(DROPS),
            "cross_traffic": {},
            "delays": {},
            "packets": {},
            "series": _series(network, list(csv.DictReader(io.StringIO(samples)))),
            "digest": digest,
            "seed": seed,
            "version": __version__,
            "scenario": scenario,
            "notices": [],
            "traces": [],
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


LINKS = (
    "rate_bps",
    "sent_packets",
    "sent_bytes",
    "arrived_packets",
    "dropped_packets",
    "lost_packets",
    "marked_packets",
    "peak_backlog_bytes",
)
DROPS = ("class", "arrived_packets", "dropped_packets")


def _empty(numbers: Sequence[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {name: _texts([]) for name in ("from", "to")}
    return columns | {name: np.array([], dtype=np.uint64) for name in numbers}


def _texts(values: Sequence[str]) -> Column:
    names = sorted(set(values))
    return np.array([names.index(value) for value in values], dtype=np.uint32), names


def _some(values: Sequence[float | None], kind: type[np.generic] = np.float64) -> Column:
    there = np.array([value is not None for value in values], dtype=np.bool_)
    return np.array([0 if value is None else value for value in values], dtype=kind), there


def _flows(network: Network, rows: list[dict[str, str]]) -> dict[str, Column]:
    nothing: list[float | None] = [None] * len(rows)
    no_class = (np.zeros(len(rows), dtype=np.uint32), [""], np.zeros(len(rows), dtype=np.bool_))
    start = [int(row["start_ns"]) / 1e9 for row in rows]
    finish = [int(row["finish_ns"]) / 1e9 if row["finish_ns"] else None for row in rows]
    lasted = [(int(row["finish_ns"]) - int(row["start_ns"])) / 1e9 if row["finish_ns"] else None for row in rows]
    repeated = np.array([int(row["retransmissions"]) for row in rows], dtype=np.uint64)
    return {
        "id": np.arange(len(rows), dtype=np.uint32),
        "scheme": _texts([flow.scheme for flow in network.flows]),
        "traffic_class": no_class,
        "request": _some(nothing, np.uint64),
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


def _series(network: Network, samples: list[dict[str, str]]) -> dict[str, Column]:
    chosen = [row for row in samples if int(row["flow"]) in network.sampled]
    quantities = (
        ("cwnd_bytes", "cwnd_bytes", 1.0),
        ("in_flight_bytes", "in_flight_bytes", 1.0),
        ("srtt_s", "srtt_us", 1e-6),
    )
    taken = [
        (int(row["time_ns"]) / 1e9, f"flow {row['flow']}", quantity, float(row[key]) * scale)
        for row in chosen
        for quantity, key, scale in quantities
    ]
    return {
        "time_s": np.array([row[0] for row in taken], dtype=np.float64),
        "probe": _texts([row[1] for row in taken]),
        "quantity": _texts([row[2] for row in taken]),
        "value": _some([row[3] for row in taken]),
    }
