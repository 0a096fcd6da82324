"""Builds the panels of a run over time: sampled windows, round-trip times, throughputs, queues, and use of links.

All panels of a figure share one time axis, from the start to the end of the run. If there are too many flows to
distinguish, each scheme is drawn as a median with a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sparelane.common.units import quantity as with_unit
from sparelane.common.units import scale
from sparelane.reports.charts.panel import Line, Numbers, Panel, kept_points, thinned

if TYPE_CHECKING:
    from sparelane.reports.charts.of_run import Tables

# Quantities that are drawn directly: panel, quantity, title, axis, unit.
SAMPLED = (
    ("window", "cwnd_bytes", "Congestion window", "window", "B"),
    ("rtt", "srtt_s", "Smoothed round-trip time", "round trip", "s"),
    ("queue", "backlog_bytes", "Queue", "backlog", "B"),
)
# The received bytes of a flow. On Linux, they are the acknowledged bytes, which the sender reports.
RECEIVED = ("held_bytes", "delivered_bytes")
FLOW = "flow "
# Up to this many sampled flows are drawn separately; for more, each scheme has a median and a band.
SEPARATE_FLOWS = 12
# The largest number of queues or links that are drawn; those with the highest means are chosen.
SEPARATE_PORTS = 8
# The largest number of stretches of time for averages of rates, and the smallest number of packets in a stretch.
MOST_STRETCHES = 60
LEAST_PACKETS = 20
# The largest number of stretches of time for the rates of a link.
RATE_STRETCHES = 120
# The assumed size of packets if it is unknown, bytes.
PACKET_BYTES = 1500.0
BAND = (0.1, 0.9)
# The bytes that a link could have sent since the sample before, for links whose rate varies.
OFFERED = "offered_bytes"
# The top of an axis, relative to the highest value.
AXIS_ROOM = 1.05
DELAY_NOTE = "The queueing delay is the time in which the link sends all bytes that wait."


@dataclass(frozen=True, slots=True)
class Curve:
    """The samples of a probe in a run.

    Attributes:
        run: the run.
        probe: the name of the probe in the tables: `flow 3`, or `west->east`.
        time_s: the times of the samples, seconds; each value holds until the next time.
        values: one value for each time.
    """

    run: Tables
    probe: str
    time_s: Numbers
    values: Numbers

    @property
    def scheme(self) -> str:
        """The scheme of a flow; empty for queues and links."""
        if not self.probe.startswith(FLOW):
            return ""
        found = self.run.flows.filter(pl.col("id") == int(self.probe.removeprefix(FLOW)))["scheme"]
        return str(found[0]) if len(found) else ""

    @property
    def label(self) -> str:
        """The name in the legend: the probe, with the scheme of a flow."""
        name = self.probe.replace("->", "→")
        return self.run.label(f"{name} ({self.scheme})" if self.scheme else name)


def panels(runs: Sequence[Tables]) -> Iterator[Panel]:
    """All panels over time with samples of the runs."""
    end_s = max((run.end_s for run in runs), default=0.0)
    for panel in (*_sampled(runs), _throughput(runs), _link_use(runs), *_varying_links(runs)):
        if panel.lines:
            yield replace(panel, x_range=(0.0, end_s) if end_s > 0 else None, is_over_time=True)


def _sampled(runs: Sequence[Tables]) -> Iterator[Panel]:
    for name, quantity, title, axis, unit in SAMPLED:
        curves = list(_curves(runs, quantity))
        size, scaled_unit = scale(max((float(np.nanmax(one.values)) for one in curves), default=0.0), unit)
        lines, note = _lines([replace(one, values=one.values / size) for one in curves])
        yield Panel(name, title, "time (s)", f"{axis} ({scaled_unit})", lines, note=note)


def _curves(runs: Sequence[Tables], quantity: str) -> Iterator[Curve]:
    """The samples of a quantity, one curve for each probe."""
    for run in runs:
        some = run.series.filter((pl.col("quantity") == quantity) & pl.col("value").is_not_null())
        for (probe, *_), samples in some.group_by("probe", maintain_order=True):
            yield Curve(run, str(probe), samples["time_s"].to_numpy(), samples["value"].to_numpy().astype(float))


def _throughput(runs: Sequence[Tables]) -> Panel:
    """The rate at which payload arrived at the receiver of each sampled flow, each byte counted once."""
    received = [one for run in runs for one in _received(run)]
    stretches = {id(run): _stretches(run, [one for one in received if one.run is run]) for run in runs}
    curves = []
    for one in received:
        edges = stretches[id(one.run)]
        if len(edges) > 1:
            rates = 8.0 * np.diff(np.interp(edges, one.time_s, one.values)) / np.diff(edges)
            # A stretch counts if the flow was open for some of it.
            is_open = (edges[1:] > one.time_s[0]) & (edges[:-1] < one.time_s[-1])
            rates = np.where(is_open, rates, math.nan)
            curves.append(replace(one, time_s=edges, values=np.append(rates, rates[-1])))
    largest = max((float(np.nanmax(one.values)) for one in curves if not np.isnan(one.values).all()), default=0.0)
    size, unit = scale(largest, "bit/s")
    lines, note = _lines([replace(one, values=one.values / size) for one in curves])
    note = " ".join(part for part in (_averaged("Throughputs are averages", stretches.values()), note) if part)
    return Panel("throughput-time", "Throughput of each flow", "time (s)", f"throughput ({unit})", lines, note=note)


def _received(run: Tables) -> Iterator[Curve]:
    """The received payload of each sampled flow, from its start to its end."""
    known = set(run.series["quantity"].cast(pl.String).unique())
    quantity = next((name for name in RECEIVED if name in known), "")
    flows = {int(one["id"]): one for one in run.flows.iter_rows(named=True)} if quantity else {}
    for one in _curves([run], quantity):
        flow = flows.get(int(one.probe.removeprefix(FLOW))) if one.probe.startswith(FLOW) else None
        if flow is None:
            continue
        time, values = one.time_s, one.values
        if flow["start_s"] < time[0]:
            time, values = np.append(flow["start_s"], time), np.append(0.0, values)
        # The last sample lies before the end of the flow, so the end is added.
        if flow["finish_s"] is not None and flow["finish_s"] > time[-1]:
            time, values = np.append(time, flow["finish_s"]), np.append(values, float(flow["delivered_bytes"]))
        yield replace(one, time_s=time, values=values)


def _stretches(run: Tables, received: Sequence[Curve]) -> Numbers:
    """The ends of the stretches of time for averages of throughputs, each with enough samples and packets."""
    times = run.series["time_s"].unique().sort().to_numpy()
    rates = [one.values[-1] / (one.time_s[-1] - one.time_s[0]) for one in received if one.time_s[-1] > one.time_s[0]]
    if len(times) < 2 or not rates:
        return times[:0]
    interval_s = float(times[1] - times[0])
    fast = float(np.median(rates))
    enough = LEAST_PACKETS * PACKET_BYTES / fast / interval_s if fast > 0 else 1.0
    return _edges(times, max(enough, (len(times) - 1) / MOST_STRETCHES))


def _edges(times: Numbers, samples: float) -> Numbers:
    """Sampling times at least `samples` apart, with the first and the last. A short rest joins the last stretch."""
    every = max(1, min(math.ceil(samples), (len(times) - 1) // 4))
    edges = times[::every]
    return np.append(edges[:-1], times[-1]) if edges[-1] < times[-1] and len(edges) > 1 else edges


def _averaged(what: str, stretches: Iterable[Numbers]) -> str:
    """A sentence about the length of the stretches that rates are averaged over."""
    found = {with_unit(float(edges[1] - edges[0]), "s") for edges in stretches if len(edges) > 1}
    return f"{what} over {' and '.join(sorted(found))}." if found else ""


def _link_use(runs: Sequence[Tables]) -> Panel:
    curves: list[Curve] = []
    stretches: list[Numbers] = []
    for run in runs:
        for one, carried in _carried(run):
            stretches.append(carried.edges)
            curves.append(replace(one, time_s=carried.edges, values=100.0 * np.append(carried.use, carried.use[-1])))
    lines, note = _lines(curves)
    note = " ".join(part for part in (_averaged("Use of links is averaged", stretches), note) if part)
    return Panel("links", "Use of links", "time (s)", "use (%)", lines, note=note)


@dataclass(frozen=True, slots=True)
class Carried:
    """The bytes that a link sent and could have sent, in stretches of time.

    Attributes:
        edges: the ends of the stretches, seconds.
        used_bytes: the bytes that it sent in each stretch.
        offered_bytes: the bytes that it could have sent in each.
    """

    edges: Numbers
    used_bytes: Numbers
    offered_bytes: Numbers

    @property
    def use(self) -> Numbers:
        """The share of its rate that the link used in each stretch, 0 to 1; NaN if it could not send."""
        is_known = self.offered_bytes > 0
        use: Numbers = self.used_bytes / np.where(is_known, self.offered_bytes, 1.0)
        return np.where(is_known, use, math.nan)

    def bps(self, bytes: Numbers) -> Numbers:
        """The rates of these bytes in bits per second, with the last one twice, so that each edge has a value."""
        rates = 8.0 * bytes / np.diff(self.edges)
        return np.append(rates, rates[-1])


def carried(
    time_s: Numbers, arrived_bytes: Numbers, offered_bytes: Numbers, packet_bytes: float, stretches: float = math.inf
) -> Carried:
    """The bytes that a link sent, in stretches of enough packets.

    Samples count whole packets when their last bit arrives. A stretch can therefore include a packet that was partly
    sent before the stretch, so its count can exceed the link's rate. Since a link never sends faster than its rate, the
    excess was sent earlier; it is moved to the stretch before.

    Args:
        time_s: the time of each sample.
        arrived_bytes: the bytes that arrived since the sample before.
        offered_bytes: the bytes that the link could have sent from the first sample to each sample.
        packet_bytes: the mean size of its packets.
        stretches: the largest number of stretches.
    """
    mean_rate = offered_bytes[-1] / (time_s[-1] - time_s[0])
    enough = LEAST_PACKETS * packet_bytes / mean_rate / float(time_s[1] - time_s[0]) if mean_rate > 0 else 1.0
    edges = _edges(time_s, max(enough, (len(time_s) - 1) / stretches))
    counted = np.diff(np.interp(edges, time_s, np.cumsum(arrived_bytes)))
    room = np.diff(np.interp(edges, time_s, offered_bytes))
    moved = counted.copy()
    for place in range(len(moved) - 1, 0, -1):
        excess = max(0.0, moved[place] - room[place])
        moved[place] -= excess
        moved[place - 1] += excess
    # If more than one packet remains in excess, the link was faster than its stated rate, and the figure shows that.
    is_faster = moved[0] > room[0] + packet_bytes
    return Carried(edges, counted if is_faster else np.minimum(moved, room), room)


def _carried(run: Tables, stretches: float = math.inf, *, is_varying: bool = False) -> Iterator[tuple[Curve, Carried]]:
    """The sampled links of a run with what they carried, or only the links whose rate varies."""
    links = {f"{one['from']}->{one['to']}": one for one in run.links.iter_rows(named=True)}
    varying = {one.probe: np.cumsum(one.values) for one in _curves([run], OFFERED)}
    for one in _curves([run], "sent_bytes"):
        link = links.get(one.probe)
        if link is None or len(one.time_s) < 2 or (is_varying and one.probe not in varying):
            continue
        packet_bytes = link["sent_bytes"] / link["sent_packets"] if link["sent_packets"] else PACKET_BYTES
        steady = float(link["rate_bps"]) / 8.0 * (one.time_s - one.time_s[0])
        offered = varying.get(one.probe, steady)
        yield one, carried(one.time_s, one.values, offered, packet_bytes, stretches)


def _varying_links(runs: Sequence[Tables]) -> Iterator[Panel]:
    """Panels of each link whose rate varies: the rates that it offered and used, and the delay of its queue."""
    found = [(one, sent) for run in runs for one, sent in _carried(run, RATE_STRETCHES, is_varying=True)]
    delays = {(id(one.run), one.probe): one for run in runs for one in _queue_delays(run)}
    highest = max((float(sent.bps(sent.offered_bytes).max()) for _, sent in found), default=0.0)
    longest = max((float(np.nanmax(one.values, initial=0.0)) for one in delays.values()), default=0.0)
    (rate, rate_unit), (second, time_unit) = scale(highest, "bit/s"), scale(longest, "s")
    for one, sent in found:
        row = one.label if len(found) > 1 else ""
        lines = [
            Line(name, sent.edges.tolist(), (sent.bps(bytes) / rate).tolist(), is_step=True, is_filled=is_filled)
            for name, bytes, is_filled in (("used", sent.used_bytes, False), ("offered", sent.offered_bytes, True))
        ]
        note = _averaged("Rates of links are averaged", [sent.edges])
        title, ends = f"{one.label}: rate offered and used", (0.0, AXIS_ROOM * highest / rate)
        yield Panel("rates", title, "time (s)", f"rate ({rate_unit})", lines, note=note, y_range=ends, row=row)
        if (delay := delays.get((id(one.run), one.probe))) is not None:
            lines = [Line("delay", *thinned(delay.time_s, delay.values / second), is_step=True)]
            title, ends = f"{one.label}: queueing delay", (0.0, AXIS_ROOM * longest / second or 1.0)
            axis = f"delay ({time_unit})"
            yield Panel("queue-delay", title, "time (s)", axis, lines, note=DELAY_NOTE, y_range=ends, row=row)


def _queue_delays(run: Tables) -> Iterator[Curve]:
    """The delay of each sampled queue whose link has a varying rate that is sampled, too."""
    offered = {one.probe: one for one in _curves([run], OFFERED)}
    for one in _curves([run], "backlog_bytes"):
        rates = offered.get(one.probe)
        if rates is not None and len(rates.time_s) == len(one.time_s):
            yield replace(one, values=queue_delay(one.time_s, one.values, np.cumsum(rates.values)))


def queue_delay(time_s: Numbers, backlog_bytes: Numbers, offered_bytes: Numbers) -> Numbers:
    """The time in which a link sends the bytes that wait at each sample, seconds; NaN if that is after the last sample.

    Args:
        time_s: the time of each sample.
        backlog_bytes: the bytes that wait at each sample.
        offered_bytes: the bytes that the link could have sent from the first sample to each sample.
    """
    ends = offered_bytes + backlog_bytes
    # The first sample by which the link could have sent them.
    after = np.searchsorted(offered_bytes, ends, side="left")
    is_known = (after > 0) & (after < len(time_s))
    later = np.clip(after, 1, len(time_s) - 1)
    step = offered_bytes[later] - offered_bytes[later - 1]
    share = np.divide(ends - offered_bytes[later - 1], step, out=np.zeros(len(step)), where=step > 0)
    sent_s = time_s[later - 1] + share * (time_s[later] - time_s[later - 1])
    return np.where(backlog_bytes <= 0, 0.0, np.where(is_known, sent_s - time_s, math.nan))


def _lines(curves: Sequence[Curve]) -> tuple[list[Line], str]:
    """A line for each curve, or for each scheme if there are many flows; and a note about omitted curves."""
    flows = [one for one in curves if one.scheme]
    if len(flows) > SEPARATE_FLOWS:
        return _medians(flows), (
            f"Lines are medians over {len(flows)} sampled flows; bands reach from the 10th to the 90th percentile."
        )
    note = ""
    if not flows and len(curves) > SEPARATE_PORTS:
        largest = sorted(curves, key=lambda one: -float(np.nanmean(one.values)))[:SEPARATE_PORTS]
        note = f"Shown are the {SEPARATE_PORTS} of {len(curves)} with the highest mean."
        curves = [one for one in curves if any(one is other for other in largest)]
    has_schemes = len({one.run.label(one.scheme) for one in flows}) > 1
    lines = []
    for one in curves:
        group, variant = (one.run.label(one.scheme), one.probe) if has_schemes and one.scheme else (one.label, "")
        x, y = thinned(one.time_s, one.values)
        lines.append(Line(one.label, x, y, group=group, variant=variant, is_step=True))
    return lines, note


def _medians(flows: Sequence[Curve]) -> list[Line]:
    """Returns the median over the flows of each scheme at each time, with a band."""
    lines = []
    for label in dict.fromkeys(one.run.label(one.scheme) for one in flows):
        own = [one for one in flows if one.run.label(one.scheme) == label]
        frame = pl.DataFrame(
            {"time": np.concatenate([one.time_s for one in own]), "value": np.concatenate([one.values for one in own])}
        )
        value = pl.col("value")
        of_all = (
            frame.filter(value.is_not_nan())
            .group_by("time")
            .agg(value.median(), low=value.quantile(BAND[0], "linear"), high=value.quantile(BAND[1], "linear"))
            .sort("time")
        )
        kept = kept_points(of_all["value"].to_numpy())
        x, y, low, high = (of_all[name].to_numpy()[kept].tolist() for name in ("time", "value", "low", "high"))
        lines.append(Line(f"{label}, {len(own)} flows", x, y, low, high, group=label, is_step=True))
    return lines
