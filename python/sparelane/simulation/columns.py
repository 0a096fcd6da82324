"""Describes the columns of all result tables: types, units and meanings.

The docstrings of `Result`, `Summary` and `Sweep` and the reference page of the documentation are generated from these
descriptions, and a test compares them with the tables of real runs.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

# Width of the lines of a docstring, characters, and one level of indentation.
WIDTH = 110
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: The name; a final `N` stands for a number, starting from 0.
        dtype: The Polars type, as `str` prints it.
        meaning: One sentence or noun phrase.
        unit: The unit of a number; empty for names, flags and numbers without a unit.
        is_optional: True if values may be null.
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    is_optional: bool = False

    def matches(self, name: str) -> bool:
        """True if this is the description of the column `name`."""
        pattern = re.escape(self.name[:-1]) + r"\d+" if self.name.endswith("_N") else re.escape(self.name)
        return re.fullmatch(pattern, name) is not None

    @property
    def kind(self) -> str:
        """The type, the unit and, for optional columns, "or null"."""
        return ", ".join(filter(None, (self.dtype, self.unit, "or null" if self.is_optional else "")))


Columns = tuple[Column, ...]

_SCHEME = Column("scheme", "Categorical", "The name of the scheme.")
_CLASS = Column("traffic_class", "Categorical", "The class of traffic, if the workload names one.", is_optional=True)
_FROM = Column("from", "Categorical", "The node that sends.")
_TO = Column("to", "Categorical", "The node that receives.")
_SCHEME_TEXT = Column("scheme", "String", "The name of the scheme.")

FLOWS: Columns = (
    Column("id", "UInt32", "The number of the flow, in order of start, from 0."),
    _SCHEME,
    _CLASS,
    Column("connection", "UInt32", "The flow that opened the connection: the flow itself, unless it reused one."),
    Column("request", "UInt64", "The number of the request that the flow belongs to.", is_optional=True),
    Column("src", "Categorical", "The host that sends."),
    Column("dst", "Categorical", "The host that receives the first flow."),
    Column("size_bytes", "UInt64", "Payload; null for a flow without end.", "bytes", is_optional=True),
    Column(
        "start_s", "Float64", "When the flow started: with its SYN, or with the first write on an open connection.", "s"
    ),
    Column(
        "finish_s",
        "Float64",
        "When the receiver held the last byte; null if the flow did not finish.",
        "s",
        is_optional=True,
    ),
    Column("completion_s", "Float64", "`finish_s` less `start_s`.", "s", is_optional=True),
    Column(
        "ideal_s",
        "Float64",
        "The lower bound of the completion time: handshake of a new connection, propagation, and all bytes at the "
        "slowest link's rate.",
        "s",
        is_optional=True,
    ),
    Column(
        "first_write_s",
        "Float64",
        "From the start until the receiver held the whole first write; null for flows written at once.",
        "s",
        is_optional=True,
    ),
    Column("delivered_bytes", "UInt64", "Payload that the receiver holds in sequence.", "bytes"),
    Column(
        "sent_packets_N",
        "UInt64",
        "Data packets sent at priority N, from 0 (the highest) to the lowest that any flow used.",
        "packets",
    ),
    Column("lost_packets", "UInt64", "Data packets dropped by a queue or lost on a wire.", "packets"),
    Column("retransmissions", "UInt64", "Retransmitted segments; those of RC3's tail are not counted.", "segments"),
    Column("timeouts", "UInt64", "Retransmission timeouts, including those of the SYN."),
    Column(
        "srtt_s",
        "Float64",
        "The smoothed round-trip time at the end of the flow or of the run.",
        "s",
        is_optional=True,
    ),
    Column("min_rtt_s", "Float64", "The smallest sample of the round-trip time.", "s", is_optional=True),
    Column(
        "measured_bytes",
        "UInt64",
        "Payload that arrived since the start of `[measure]`, each byte counted once; null without `[measure]`.",
        "bytes",
        is_optional=True,
    ),
    Column(
        "mean_delay_s",
        "Float64",
        "The mean one-way delay of its data packets; null without `[measure] delays`.",
        "s",
        is_optional=True,
    ),
    Column("max_delay_s", "Float64", "The largest of these delays.", "s", is_optional=True),
)

REQUESTS: Columns = (
    Column("request", "UInt64", "The number of the request."),
    _SCHEME,
    Column("client", "Categorical", "The host that receives."),
    Column("flows", "UInt32", "The number of its flows."),
    Column("size_bytes", "UInt64", "Payload of all its flows together.", "bytes"),
    Column("largest_bytes", "UInt64", "Payload of the largest flow.", "bytes", is_optional=True),
    Column("start_s", "Float64", "When the first flow started.", "s"),
    Column("finish_s", "Float64", "When the last flow ended; null if one did not.", "s", is_optional=True),
    Column("completion_s", "Float64", "`finish_s` less `start_s`.", "s", is_optional=True),
)

LINKS: Columns = (
    _FROM,
    _TO,
    Column("rate_bps", "UInt64", "The line rate; the mean over the run if the link changes.", "bit/s"),
    Column(
        "sent_packets",
        "UInt64",
        "Packets transmitted by the end of the run, including those lost on the wire.",
        "packets",
    ),
    Column("sent_bytes", "UInt64", "Bytes of these packets, including headers.", "bytes"),
    Column("arrived_packets", "UInt64", "Packets that arrived at the queue.", "packets"),
    Column("dropped_packets", "UInt64", "Packets that the queue dropped.", "packets"),
    Column("lost_packets", "UInt64", "Packets lost on the wire.", "packets"),
    Column("marked_packets", "UInt64", "Packets marked with congestion experienced (ECN).", "packets"),
    Column("peak_backlog_bytes", "UInt64", "The most bytes ever queued or in transmission.", "bytes"),
    Column(
        "pause_frames",
        "UInt64",
        "PAUSE or PFC frames that the sending node received for this direction, including those that end a pause.",
        "frames",
    ),
    Column(
        "paused_s",
        "Float64",
        "Time for which PAUSE kept the transmitter silent, or for which PFC paused some class.",
        "s",
    ),
    Column("duplicated_packets", "UInt64", "Packets that the link delivered twice.", "packets"),
    Column(
        "reordered_packets",
        "UInt64",
        "Packets that the link delivered after one that was sent later (RFC 4737).",
        "packets",
    ),
)

DROPS: Columns = (
    _FROM,
    _TO,
    Column("class", "UInt32", "The priority of the packets; 0 is the highest."),
    Column("arrived_packets", "UInt64", "Packets that arrived at the queue.", "packets"),
    Column("dropped_packets", "UInt64", "Packets that the queue dropped.", "packets"),
)

CROSS_TRAFFIC: Columns = (
    _FROM,
    _TO,
    Column("kind", "Categorical", "The pattern of the source, as in `[[cross_traffic]]`."),
    Column("offered_packets", "UInt64", "Packets handed to the sending host's interface.", "packets"),
    Column("offered_bytes", "UInt64", "Their bytes on the wire.", "bytes"),
    Column("delivered_packets", "UInt64", "Packets that reached the receiving host.", "packets"),
    Column("delivered_bytes", "UInt64", "Their bytes on the wire.", "bytes"),
    Column("dropped_packets", "UInt64", "Packets dropped by a queue or lost on a wire.", "packets"),
    Column("dropped_bytes", "UInt64", "Their bytes on the wire.", "bytes"),
)

DELAYS: Columns = (
    _SCHEME,
    _CLASS,
    Column("delay_s", "Float64", "The middle of the bin, less than 1 % from its ends.", "s"),
    Column("packets", "UInt64", "The packets in the bin.", "packets"),
)

PACKETS: Columns = (
    Column("segment", "UInt32", "The number of the segment, from 0."),
    Column("is_retransmission", "Boolean", "True if the segment had been sent before."),
    Column("due_s", "Float64", "When the pace or the controller's clock allowed it.", "s", is_optional=True),
    Column("sent_s", "Float64", "When it was handed to the sending host's interface.", "s"),
    Column(
        "departed_s",
        "Float64",
        "When its last bit left that interface; null unless the queue there is a FIFO.",
        "s",
        is_optional=True,
    ),
    Column(
        "arrived_s",
        "Float64",
        "When its last bit reached the receiving host; null if it was lost, or in transit for 4.29 s or more.",
        "s",
        is_optional=True,
    ),
    Column(
        "stamped_s",
        "Float64",
        "The arrival time that its acknowledgment reports; null if none does, as with delayed acknowledgments.",
        "s",
        is_optional=True,
    ),
)

SERIES: Columns = (
    Column("time_s", "Float64", "When the sample was taken.", "s"),
    Column(
        "probe",
        "Categorical",
        "What was sampled: `flow 0`, or the queue or link from one node to another, `west->east`.",
    ),
    Column(
        "quantity",
        "Categorical",
        "The name of the quantity, which ends with its unit: `cwnd_bytes`, `srtt_s`, `backlog_bytes`, ...",
    ),
    Column(
        "value",
        "Float64",
        "The value in that unit; null for no bound, such as a slow-start threshold before the first loss.",
        is_optional=True,
    ),
)

SUMMARY_SCHEMES: Columns = (
    _SCHEME_TEXT,
    Column("flows", "UInt32", "Flows that started."),
    Column("finished", "UInt32", "Flows that finished."),
    Column("mean_s", "Float64", "The mean completion time of the finished flows.", "s", is_optional=True),
    Column("median_s", "Float64", "The median.", "s", is_optional=True),
    Column("p95_s", "Float64", "The 95th percentile; null for fewer than 20 finished flows.", "s", is_optional=True),
    Column("p99_s", "Float64", "The 99th percentile; null for fewer than 100.", "s", is_optional=True),
    Column("p999_s", "Float64", "The 99.9th percentile; null for fewer than 1,000.", "s", is_optional=True),
    Column(
        "slowdown",
        "Float64",
        "The mean of the completion time divided by its lower bound on the path (`ideal_s`).",
        is_optional=True,
    ),
    Column("p99_slowdown", "Float64", "The 99th percentile of that ratio; null for fewer than 100.", is_optional=True),
)

SUMMARY_SERVICE: Columns = (
    _SCHEME_TEXT,
    Column(
        "goodput_bps",
        "Float64",
        "Payload held in sequence by all receivers, divided by the time from the first start to the last end.",
        "bit/s",
        is_optional=True,
    ),
    Column(
        "retransmitted",
        "Float64",
        "Retransmitted segments, as a share of the data packets of priority 0.",
        "0 to 1",
        is_optional=True,
    ),
    Column("timeouts", "Int64", "Retransmission timeouts of all flows."),
    Column(
        "rtt_s",
        "Float64",
        "The mean over flows of the smoothed round-trip time at their end.",
        "s",
        is_optional=True,
    ),
    Column(
        "queueing_s",
        "Float64",
        "The mean of that round-trip time less its smallest sample.",
        "s",
        is_optional=True,
    ),
    Column(
        "jain",
        "Float64",
        "Jain's index of the throughputs of flows open at the end; null for fewer than two.",
        "0 to 1",
        is_optional=True,
    ),
)

SUMMARY_LINKS: Columns = (
    Column("from", "String", "The node that sends."),
    Column("to", "String", "The node that receives."),
    Column("utilisation", "Float64", "Sent bits divided by the capacity of the link.", "0 to 1"),
    Column("peak_backlog_bytes", "UInt64", "The most bytes ever queued or in transmission.", "bytes"),
)

SUMMARY_DROPS: Columns = (
    Column("class", "UInt32", "The priority of the packets; 0 is the highest."),
    Column("arrived", "UInt64", "Packets that arrived at a queue, counted at each.", "packets"),
    Column("dropped", "UInt64", "Packets that a queue dropped.", "packets"),
    Column("share", "Float64", "`dropped` divided by `arrived`.", "0 to 1"),
)

SWEEP_ROWS: Columns = (
    Column("experiment", "String", "The name of the sweep."),
    Column("setting", "String", "The keys that vary, with their values; empty if only the scheme varies."),
    Column("scheme", "String", "The scheme; empty for a number of the network."),
    Column("traffic", "String", "The flows that the number covers: `all flows`, a range of sizes, or `network`."),
    Column("metric", "String", "The quantity, such as `completion time`."),
    Column("average", "String", "The kind of mean or percentile over flows, such as `mean over flows`."),
    Column("value", "Float64", "The mean over the seeds, in `unit`.", is_optional=True),
    Column("low", "Float64", "The lower end of its 95 % interval; null with too few seeds.", is_optional=True),
    Column("high", "Float64", "The upper end.", is_optional=True),
    Column("paper", "Float64", "A number of a paper, in experiments; null in a sweep.", is_optional=True),
    Column("unit", "String", "The unit of these numbers, such as `s`, `bit/s` or `%`."),
    Column("reason", "String", "Why the number differs from the paper's, in experiments; empty in a sweep."),
    Column("check", "String", "The outcome of a claim, in experiments; empty in a sweep."),
    Column("seeds", "List(UInt64)", "The seeds of the runs."),
)

SWEEP_CURVES: Columns = (
    Column("setting", "String", "The keys that vary, with their values; empty if only the scheme varies."),
    Column("scheme", "String", "The scheme."),
    Column("traffic", "String", "The flows that the curve covers."),
    Column("seed", "UInt64", "The seed of the run."),
    Column("curve", "String", "`completion time`, in seconds, or `slowdown`."),
    Column("share", "Float64", "The share of the flows that have at most this value.", "0 to 1"),
    Column("value", "Float64", "The quantile."),
)

SWEEP_FAILED: Columns = (
    Column("setting", "String", "The keys that vary, with their values."),
    Column("scheme", "String", "The scheme."),
    Column("seed", "UInt64", "The seed of the run."),
    Column("error", "String", "The message."),
)

# The tables of `Result`, by attribute.
RESULT: Mapping[str, Columns] = {
    "flows": FLOWS,
    "requests": REQUESTS,
    "links": LINKS,
    "drops": DROPS,
    "cross_traffic": CROSS_TRAFFIC,
    "delays": DELAYS,
    "packets": PACKETS,
    "series": SERIES,
}

# The tables of `Sweep`, by attribute. The first three also have a column for each key that varies.
SWEEP: Mapping[str, Columns] = {
    "rows": SWEEP_ROWS,
    "runs": SWEEP_ROWS,
    "curves": SWEEP_CURVES,
    "failed": SWEEP_FAILED,
}

# The tables of `Summary`, by attribute.
SUMMARY: Mapping[str, Columns] = {
    "schemes": SUMMARY_SCHEMES,
    "service": SUMMARY_SERVICE,
    "links": SUMMARY_LINKS,
    "drops": SUMMARY_DROPS,
}


def documented(columns: Columns) -> Callable[[Method], Method]:
    """Appends the descriptions of columns to the docstring of the property that returns the table."""

    def document(method: Method) -> Method:
        if method.__doc__ is not None:  # `python -OO` removes docstrings.
            method.__doc__ = f"{inspect.cleandoc(method.__doc__)}\n\n{docstring_section(columns)}"
        return method

    return document


def docstring_section(columns: Columns) -> str:
    """The section of a docstring with one entry per column: `name (type, unit): meaning`."""
    entries = (f"{column.name} ({column.kind}): {column.meaning}" for column in columns)
    lines = [textwrap.fill(entry, WIDTH, initial_indent=INDENT, subsequent_indent=2 * INDENT) for entry in entries]
    return "\n".join(["Columns:", *lines])


def documented_tables(tables: Mapping[str, Columns]) -> Callable[[Class], Class]:
    """Appends the descriptions of the columns of several tables to the docstring of a class."""

    def document(class_: Class) -> Class:
        if class_.__doc__ is not None:
            sections = (f"Columns of {name}{docstring_section(columns)[7:]}" for name, columns in tables.items())
            class_.__doc__ = "\n\n".join((inspect.cleandoc(class_.__doc__), *sections))
        return class_

    return document
