"""Draws how each of the three systems works, from one run of the simulator per system.

`make docs` calls `generate`. `python docs/mechanisms.py FOLDER` writes the same figures to a folder.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import sparelane as sl
from sparelane import rapid
from sparelane.reports import plots

# Colours that people with colour blindness can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#8c3b7a"
GREY = "0.45"

SMALL = 7

# The example of RC3's paper: segments of 1460 bytes, of which the path loses two.
RC3_SCENARIO = "rc3-example-66"
MSS_BYTES = 1460
RC3_SETTINGS: dict[str, Any] = {"scheme.rc3.feed": "pull", "duration": "400ms", "packets": {"flow": 0}}
# The time from the first bit of a segment to its acknowledgment.
RC3_ROUND_TRIP_MS = 49.97
# The marker and colour of each level, by DSCP.
LEVELS = {0: ("o", BLUE), 3: ("^", ORANGE), 11: ("s", GREEN)}
RC3_LABELS = (
    ("priority 0: TCP sends\nfrom the front", (7, 6.5), BLUE),
    ("priority 1: the last 40 packets, last one first", (21.5, 52), ORANGE),
    ("priority 2: the packets before them", (52.5, 25.5), GREEN),
    ("21 and 22 are lost:\na hole", (17, 20.5), "black"),
    ("the two loops meet:\nthe tail ends", (67.5, 13.5), "black"),
    ("TCP repeats what is not\nacknowledged, and fills the hole", (111.5, 26), BLUE),
    ("acknowledged without holes", (106, 7.5), GREY),
    ("one acknowledgment\njumps to the end", (161, 44), GREY),
)


# RAPID's path: 10 Gb/s with constant cross traffic, which is higher between two times.
CAPACITY_GBPS, CROSS_GBPS, MORE_GBPS, MORE_MS = 10, 2.5, 1.5, (90, 130)
RAPID_END_MS = 190


def _constant(pair: int, gbps: float, **keys: str) -> dict[str, Any]:
    """Returns cross traffic from left to right at a constant mean rate, with random intervals."""
    hosts = {"from": [f"left{pair}"], "to": [f"right{pair}"]}
    return {"kind": "constant", "rate": f"{gbps:g}Gbps", "jitter": 1.0, **hosts, **keys}


RAPID_SCENARIO: dict[str, Any] = {
    "duration": f"{RAPID_END_MS}ms",
    "topology": {
        "kind": "dumbbell",
        "pairs": 3,
        "access_rate": f"{CAPACITY_GBPS}Gbps",
        "bottleneck_rate": f"{CAPACITY_GBPS}Gbps",
        "bottleneck_delay": "500us",
    },
    "queue": {"limit": "8MB"},
    "transport": {"mss": "8948B", "delayed_ack": False, "receive_window": "39MB"},
    "scheme": {"rapid": {"controller": "rapid", "initial_rate": "4Gbps"}},
    "workload": {"kind": "bulk", "scheme": "rapid", "pairs": [["left0", "right0"]], "size": "unlimited"},
    "cross_traffic": [
        _constant(1, CROSS_GBPS),
        _constant(2, MORE_GBPS, start=f"{MORE_MS[0]}ms", stop=f"{MORE_MS[1]}ms"),
    ],
    "packets": {"flow": 0, "count": 100_000},
    "sample": {"interval": "100us", "flows": [0], "queues": [["west", "east"]]},
}
RAPID_LABELS = (
    ("available bandwidth", (2, 7.62), "black"),
    ("ABest of each p-stream", (10, 6.4), ORANGE),
    ("R_avg", (40, 4.3), BLUE),
)
# The number of packets of a p-stream, and the number at each of its rates.
STREAM, PER_RATE = 64, 16


# RTCP: two servers send to one client at a switch of 1 Gb/s. The urgent flow starts while the other one is running.
URGENT_MS, SHOWN_MS = 3.0, 8.0
ALPHA = 500
RTCP_SCENARIO: dict[str, Any] = {
    "duration": f"{SHOWN_MS:g}ms",
    "topology": {"kind": "star", "hosts": 3, "rate": "1Gbps", "delay": "50us"},
    "queue": {"limit": "4.5MB"},
    "transport": {"delayed_ack": False},
    # The paper's settings of the testbed, with sparelane's bound of the window.
    "scheme": {"rtcp": {"controller": "rtcp", "alpha": ALPHA, "delta": 125, "interface": "delay", "x_max": 2}},
    "workload": [
        {"kind": "bulk", "pairs": [["h1", "h3"]], "size": "unlimited", "traffic_class": "high-volume"},
        {
            "kind": "bulk",
            "pairs": [["h2", "h3"]],
            "size": "unlimited",
            "traffic_class": "urgent",
            "start": f"{URGENT_MS:g}ms",
        },
    ],
    "sample": {"interval": "10us", "flows": [0, 1], "queues": [["switch", "h3"]]},
}
# The weight in kilobytes and the colour of each flow, in order of start.
RTCP_FLOWS = (("high-volume", 12, BLUE), ("urgent", 24, ORANGE))
WEIGHT_DOTS: Any = (0, (1, 2))
LINES: Any = (("H", "-"), ("αS: the window halves while H is below it", "--"), ("weight ω", WEIGHT_DOTS))
COUNTERS = {"coupled": 'counter = "coupled"', "printed": 'counter = "printed", eq. (10)'}


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet of a trace.

    Attributes:
        time_s: the time of the record.
        dscp: the code point of the IP header.
        sequence: the first byte, counted from 1.
        acknowledgment: the next byte that the sender of the packet expects.
        is_data: whether the packet carries data.
    """

    time_s: float
    dscp: int
    sequence: int
    acknowledgment: int
    is_data: bool


def read_trace(path: Path) -> list[Packet]:
    """Reads the TCP packets of a pcapng file that the simulator wrote: little-endian, IPv4, times in nanoseconds."""
    data = path.read_bytes()
    packets: list[Packet] = []
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        # An Enhanced Packet Block; all others describe the file.
        if kind == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            header = data[at + 28 : at + size]
            (length,) = struct.unpack_from(">H", header, 2)
            sequence, acknowledgment = struct.unpack_from(">II", header, 24)
            headers = 20 + 4 * (header[32] >> 4)
            packets.append(Packet((high << 32 | low) / 1e9, header[1] >> 2, sequence, acknowledgment, length > headers))
        at += size
    return packets


def rc3_packets() -> tuple[list[Packet], list[Packet], list[int]]:
    """Returns the data packets that leave the sender, the acknowledgments at it, and the segments lost, from 0."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        result = sl.run(RC3_SCENARIO, set=RC3_SETTINGS, trace="flow=0,port=h1", trace_folder=folder)
        sent = [packet for packet in read_trace(folder / "port-h1.pcapng") if packet.is_data]
        received = [packet for packet in read_trace(folder / "flow-0.pcapng") if packet.acknowledgment > MSS_BYTES]
    return sent, received, result.packets.filter(pl.col("arrived_s").is_null())["segment"].to_list()


def rc3() -> Figure:
    """Draws the packets of the worked example of RC3's paper as they leave the sender's interface."""
    sent, received, lost = rc3_packets()
    start_s = sent[0].time_s
    number = [(packet.sequence - 1) // MSS_BYTES + 1 for packet in sent]
    time_ms = [1e3 * (packet.time_s - start_s) for packet in sent]
    drawing, [axes] = plots.figure(1, width_inches=plots.PAGE_INCHES)
    drawing.set_figheight(3.4)
    for index in range(5):
        axes.axvline(index * RC3_ROUND_TRIP_MS, color="0.7", linestyle=":", linewidth=0.9)
        if index < 4:
            words = f"round trip {index + 1}"
            axes.text((index + 0.5) * RC3_ROUND_TRIP_MS, 70, words, ha="center", color=GREY, fontsize=SMALL)
    for dscp, (marker, colour) in LEVELS.items():
        shown = [index for index, packet in enumerate(sent) if packet.dscp == dscp]
        x, y = [time_ms[index] for index in shown], [number[index] for index in shown]
        axes.plot(x, y, marker, color=colour, markersize=3.6, markeredgewidth=0)
    first = {one: time for time, one in zip(reversed(time_ms), reversed(number), strict=True)}
    axes.plot([first[one + 1] for one in lost], [one + 1 for one in lost], "x", color="black", markersize=7)
    at_ms = [0.0, *(1e3 * (one.time_s - start_s) for one in received)]
    in_sequence = [0, *((one.acknowledgment - 1) // MSS_BYTES for one in received)]
    axes.step(at_ms, in_sequence, where="post", color=GREY, linewidth=1.0)
    for label, (left, height), ink in RC3_LABELS:
        axes.text(left, height, label, color=ink, fontsize=SMALL, va="center")
    axes.set(xlabel="time since the first data packet (ms)", ylabel="packet of the flow, 1 to 66", ylim=(-2, 74))
    axes.set_xlim(-3, 4 * RC3_ROUND_TRIP_MS)
    axes.grid(visible=False)
    return drawing


def _curve(series: pl.DataFrame, quantity: str, probe: str | None = None) -> tuple[list[float], list[float]]:
    """Returns the times in milliseconds and the values of a sampled quantity."""
    chosen = series.filter(pl.col("quantity") == quantity)
    if probe is not None:
        chosen = chosen.filter(pl.col("probe") == probe)
    return (1e3 * chosen["time_s"]).to_list(), chosen["value"].to_list()


def rapid_p_stream(packets: pl.DataFrame | None = None) -> tuple[rapid.Numbers, rapid.Numbers, rapid.Numbers, float]:
    """Returns the first p-stream with an estimate between its lowest and its highest rate.

    These are its send gaps and receive gaps in seconds, the rates that it probes, and the estimate, in bits per second.
    """
    if packets is None:
        packets = sl.run(RAPID_SCENARIO).packets
    send_s, receive_s = (np.diff(packets[name].to_numpy()) for name in ("due_s", "stamped_s"))
    # Gaps shrink within a p-stream, so a longer gap belongs to the first packet of the next one.
    starts = np.flatnonzero(send_s[1:] > 1.02 * send_s[:-1]) + 1
    for start in starts[:-1]:
        sent, received = send_s[start : start + STREAM], receive_s[start : start + STREAM]
        rates = rapid.WIRE_BYTES * 8 / sent
        estimate = rapid.estimate(sent, received, rates)
        if estimate is not None and 1.02 * rates.min() < estimate < rates.max() / 1.02:
            return sent, received, rates, estimate
    raise ValueError("no p-stream reached the available bandwidth")


def rapid_streams() -> Figure:
    """Draws the gaps of one p-stream of RAPID, and its rate and the queue while the cross traffic changes."""
    result = sl.run(RAPID_SCENARIO)
    sent, received, rates, estimate = rapid_p_stream(result.packets)
    drawing = Figure(figsize=(plots.PAGE_INCHES, 6.2), layout="constrained")
    gaps, rate, queue = drawing.subplots(3, height_ratios=(4, 4, 2))
    # The gaps of one p-stream.
    number = np.arange(1, STREAM + 1)
    gaps.step(number, 1e6 * sent, where="mid", color=BLUE)
    gaps.plot(number, 1e6 * received, "o", color=ORANGE, markersize=3.2)
    first_above = int(np.flatnonzero(rates > 1.02 * estimate)[0]) + 1
    gaps.axvspan(first_above - 0.5, STREAM + 0.5, color=ORANGE, alpha=0.12, linewidth=0)
    top = 1.16e6 * float(received.max())
    for index in range(0, STREAM, PER_RATE):
        words = f"probes {rates[index] / 1e9:.2f} Gb/s"
        gaps.text(index + PER_RATE / 2 + 0.5, 0.94 * top, words, ha="center", color=BLUE, fontsize=SMALL)
    gaps.text(3, 0.6e6 * float(sent.min()), "send gap", color=BLUE, fontsize=SMALL)
    gaps.text(14, 0.6e6 * float(sent.min()), "receive gap", color=ORANGE, fontsize=SMALL)
    words = f"ABest is {estimate / 1e9:.2f} Gb/s.\nAbove it, receive gaps\nare longer on average:\nthe queue grows."
    gaps.text(first_above + 0.5, 0.25e6 * float(sent.min()), words, fontsize=SMALL)
    gaps.set(xlabel="packet of one p-stream", ylabel="gap to the previous\npacket (µs)", xlim=(0.5, STREAM + 0.5))
    gaps.set_ylim(0, top)
    # The rate while the cross traffic changes.
    free = CAPACITY_GBPS - CROSS_GBPS
    rate.step(
        (0, *MORE_MS, RAPID_END_MS), (free, free - MORE_GBPS, free, free), where="post", color="black", linestyle="--"
    )
    time_ms, estimates = _curve(result.series, "estimate_bps")
    known = [(time, one / 1e9) for time, one in zip(time_ms, estimates, strict=True) if one > 0]
    rate.plot(*zip(*known, strict=True), ".", color=ORANGE, markersize=2.2)
    time_ms, average = _curve(result.series, "rate_bps")
    rate.plot(time_ms, [one / 1e9 for one in average], color=BLUE)
    rate.set(ylabel="rate (Gb/s)", ylim=(3, 10.4), xlim=(0, RAPID_END_MS))
    for label, (left, height), ink in RAPID_LABELS:
        rate.text(left, height, label, color=ink, fontsize=SMALL)
    time_ms, backlog = _curve(result.series, "backlog_bytes")
    queue.plot(time_ms, [one / 1e3 for one in backlog], color=GREEN)
    queue.set(xlabel="time (ms)", ylabel="queue (kB)", xlim=(0, RAPID_END_MS))
    return drawing


def rtcp() -> Figure:
    """Draws counter, target rate, window and queue of two flows under RTCP, with either rule for the target rate."""
    drawing = Figure(figsize=(plots.PAGE_INCHES, 7.2), layout="constrained")
    panels = drawing.subplots(4, len(COUNTERS), sharex=True, sharey="row", height_ratios=(4, 3, 3, 2))
    for column, (counter, title) in enumerate(COUNTERS.items()):
        series = sl.run(RTCP_SCENARIO, set={"scheme.rtcp.counter": counter}).series
        heights, targets, windows, queues = panels[:, column]
        heights.set_title(title)
        for number, (_, weight_kb, colour) in enumerate(RTCP_FLOWS):
            probe = f"flow {number}"
            heights.axhline(weight_kb, color=colour, linewidth=0.8, linestyle=WEIGHT_DOTS)
            _draw(heights, series, "congestion_kb", probe, ALPHA / 1e3, color=colour, linestyle="--", linewidth=0.9)
            _draw(heights, series, "counter_bytes", probe, 1e-3, color=colour)
            _draw(targets, series, "target_share", probe, 1.0, color=colour)
            _draw(windows, series, "cwnd_bytes", probe, 1 / MSS_BYTES, color=colour)
        _draw(queues, series, "backlog_bytes", None, 1e-3, color=GREEN)
        queues.set(xlabel="time (ms)", xlim=(0, SHOWN_MS))
        for axes in panels[:, column]:
            axes.axvline(URGENT_MS, color="0.7", linestyle=":", linewidth=0.9)
    labels = ("counter H (kB)", "target rate γ\n(line rates)", "window\n(segments)", "queue (kB)")
    for axes, words in zip(panels[:, 0], labels, strict=True):
        axes.set_ylabel(words)
    panels[3, 0].text(URGENT_MS - 0.1, 45, "the urgent\nflow starts", ha="right", color=GREY, fontsize=SMALL)
    lines = [Line2D([], [], color=colour, label=f"{name} flow") for name, _, colour in RTCP_FLOWS]
    lines += [Line2D([], [], color="black", linestyle=style, linewidth=0.9, label=words) for words, style in LINES]
    drawing.legend(handles=lines, loc="outside upper center", ncols=len(lines), columnspacing=1.4, handlelength=2.0)
    return drawing


def _draw(axes: Axes, series: pl.DataFrame, quantity: str, probe: str | None, scale: float, **look: Any) -> None:
    """Draws a sampled quantity over time, multiplied by `scale`."""
    time_ms, values = _curve(series, quantity, probe)
    axes.plot(time_ms, [scale * value for value in values], drawstyle="steps-post", **{"linewidth": 1.1, **look})


FIGURES = {"rc3": rc3, "rapid": rapid_streams, "rtcp": rtcp}


def generate(folder: Path) -> None:
    """Writes a PNG file for each system into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with plots.style():
        for name, draw in FIGURES.items():
            draw().savefig(folder / f"{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
