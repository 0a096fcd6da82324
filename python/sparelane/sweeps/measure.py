"""Measures a run for a sweep: numbers by scheme, and short curves.

The code uses NumPy on the simulator's columns and no data frames, since a run may take only a few milliseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparelane import _native
from sparelane.common import percentiles
from sparelane.results.rows import ALL, NETWORK
from sparelane.simulation import warnings as run_warnings
from sparelane.simulation.goodput import Numbers, floats, goodput_bps, jain, open_rates_bps

# The kinds of averages, as in the column `average` of rows.
MEAN = "mean over flows"
BYTES = "mean over bytes"
MEDIAN = "median"
P95, P99, P999 = map(percentiles.long, percentiles.TAILS)
TAILS = tuple(zip((P95, P99, P999), percentiles.TAILS, strict=True))
P95_PACKETS = "95th percentile of packets"
TOTAL = "total"
TIME = "mean over time"
REQUESTS = "mean over requests"
# The traffic of numbers that cover the flows of all schemes in a run.
TOGETHER = "flows of all schemes"

# The unit of each metric. `SERIES_UNITS` has the units of sampled quantities, by suffix.
UNITS: Mapping[str, str] = {
    "flows": "flows",
    "finished flows": "%",
    "completion time": "s",
    "slowdown": "",
    "goodput": "bit/s",
    "share of goodput": "%",
    "throughput of a flow": "bit/s",
    "fairness": "",
    "retransmissions": "%",
    "lost packets": "%",
    "timeouts": "per flow",
    "round trip": "s",
    "queueing delay": "s",
    "one-way delay": "s",
    "completion time of requests": "s",
    "finished flows of this size": "flows",
    "use of the busiest link": "%",
    "dropped packets": "%",
    "largest backlog": "B",
}
SERIES_UNITS = {"_bytes": "B", "_s": "s", "_bps": "bit/s"}

# The boundaries of the ranges of flow sizes, bytes.
SIZE_EDGES = tuple(10.0**power for power in range(3, 13))
SIZE_NAMES = ("1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB", "1 GB", "10 GB", "100 GB", "1 TB")
# The stored quantiles of a distribution.
QUANTILES = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a set of flows."""

    size: Numbers
    completion: Numbers
    ideal: Numbers
    start: Numbers
    finish: Numbers
    delivered: Numbers
    sent: Numbers
    sent_first_class: Numbers
    lost: Numbers
    retransmissions: Numbers
    timeouts: Numbers
    srtt: Numbers
    min_rtt: Numbers
    delay: Numbers
    max_delay: Numbers
    request: Numbers

    def where(self, mask: NDArray[np.bool_]) -> Columns:
        """The flows that a mask selects."""
        return Columns(*(getattr(self, name)[mask] for name in self.__slots__))


def measure(results: _native.Results) -> dict[str, Any]:
    """Measures a run. Returns JSON values.

    `numbers` has lists `[scheme, traffic, metric, average, value]`. `curves` has lists `[scheme, curve, values]` with
    the quantiles of finished flows. `traffic` is a fingerprint of the starts, sizes and hosts of all flows, which is
    equal in runs with the same traffic. `warnings` has the warnings about the run.
    """
    table, links = results.flows(), results.links()
    codes, names = table["scheme"][0], table["scheme"][1]
    columns = _columns(table)
    end_s = results.totals["end_s"]
    numbers: list[list[Any]] = []
    curves: list[list[Any]] = []
    present = np.unique(codes)
    for code in present:
        name, flows = names[code], columns.where(codes == code)
        numbers += [[name, *one] for one in _of_scheme(flows, end_s)]
        curves += [[name, curve, values] for curve, values in _curves(flows)]
    if len(present) > 1:
        numbers += [[names[code], *one] for code, one in _of_coexistence(columns, codes, end_s)]
    numbers += [list(one) for one in _of_delays(results)]
    numbers += [["", NETWORK, *one] for one in _of_network(links, end_s)]
    numbers += [["", NETWORK, *one] for one in _of_series(results)]
    found = [warning.of_many for warning in run_warnings.of_tables(results, table, links)]
    return {
        "digest": results.digest,
        "traffic": _traffic(table, columns),
        "numbers": numbers,
        "curves": curves,
        "events": results.totals["events"],
        **({"warnings": found} if found else {}),
    }


def _columns(table: Mapping[str, Any]) -> Columns:
    sent = sum(values for name, values in table.items() if name.startswith("sent_packets_"))
    return Columns(
        size=floats(table["size_bytes"]),
        completion=floats(table["completion_s"]),
        ideal=floats(table["ideal_s"]),
        start=floats(table["start_s"]),
        finish=floats(table["finish_s"]),
        delivered=floats(table["delivered_bytes"]),
        sent=floats(sent),
        sent_first_class=floats(table["sent_packets_0"]),
        lost=floats(table["lost_packets"]),
        retransmissions=floats(table["retransmissions"]),
        timeouts=floats(table["timeouts"]),
        srtt=floats(table["srtt_s"]),
        min_rtt=floats(table["min_rtt_s"]),
        delay=floats(table["mean_delay_s"]),
        max_delay=floats(table["max_delay_s"]),
        request=floats(table["request"]),
    )


def _of_scheme(flows: Columns, end_s: float) -> Iterator[tuple[str, str, str, float]]:
    """The traffic, metric, average and value of all numbers about a scheme's flows."""
    is_finished = ~np.isnan(flows.completion)
    is_bounded = ~np.isnan(flows.size)
    bounded, count = int(is_bounded.sum()), len(flows.size)
    yield (ALL, "flows", TOTAL, float(count))
    if bounded:
        yield (ALL, "finished flows", TOTAL, 100.0 * float(is_finished.sum()) / bounded)
    done = flows.where(is_finished)
    if len(done.size):
        slowdown = done.completion / done.ideal
        yield from _averages("completion time", done.completion, done.size)
        yield from _averages("slowdown", slowdown[np.isfinite(slowdown)], None)
        yield from _by_size(done, slowdown)
        if not np.isnan(done.request).all():
            yield from _of_requests(flows)
    yield from _of_sending(flows, end_s)


def _of_sending(flows: Columns, end_s: float) -> Iterator[tuple[str, str, str, float]]:
    """Numbers about the service of flows. Throughput and fairness cover only flows without end."""
    goodput = goodput_bps(flows.start, flows.finish, flows.delivered, end_s)
    if goodput is not None:
        yield (ALL, "goodput", TOTAL, goodput)
    # Sized flows that are open at the end of the run are few and late and differ between schemes; they are excluded.
    endless = flows.where(np.isnan(flows.size))
    rates = open_rates_bps(endless.start, endless.finish, endless.delivered, end_s)
    if len(rates):
        yield (ALL, "throughput of a flow", MEAN, float(rates.mean()))
    index = jain(rates)
    if index is not None:
        yield (ALL, "fairness", "Jain's index", index)
    first, sent = float(flows.sent_first_class.sum()), float(flows.sent.sum())
    if first > 0:
        yield (ALL, "retransmissions", TOTAL, 100.0 * float(flows.retransmissions.sum()) / first)
    if sent > 0:
        yield (ALL, "lost packets", TOTAL, 100.0 * float(flows.lost.sum()) / sent)
    yield (ALL, "timeouts", MEAN, float(flows.timeouts.mean()))
    known = ~np.isnan(flows.srtt)
    if known.any():
        yield (ALL, "round trip", MEAN, float(flows.srtt[known].mean()))
        yield (ALL, "queueing delay", MEAN, float((flows.srtt - flows.min_rtt)[known].mean()))
    measured = ~np.isnan(flows.delay)
    if measured.any():
        yield (ALL, "one-way delay", MEAN, float(flows.delay[measured].mean()))
        yield (ALL, "one-way delay", "largest", float(flows.max_delay[measured].max()))


def _of_coexistence(flows: Columns, codes: Any, end_s: float) -> Iterator[tuple[int, tuple[str, str, str, float]]]:
    """The goodput share of each scheme in a run, and the fairness among the flows of all schemes."""
    delivered = flows.delivered.sum()
    for code in np.unique(codes):
        if delivered > 0:
            share = 100.0 * float(flows.delivered[codes == code].sum() / delivered)
            yield int(code), (ALL, "share of goodput", TOTAL, share)
    endless = flows.where(np.isnan(flows.size))
    index = jain(open_rates_bps(endless.start, endless.finish, endless.delivered, end_s))
    if index is not None:
        for code in np.unique(codes):
            yield int(code), (TOGETHER, "fairness", "Jain's index", index)


def _of_delays(results: _native.Results) -> Iterator[tuple[str, str, str, str, float]]:
    """The 95th percentile of the one-way delay of each scheme's packets, if the scenario measures delays."""
    bins: Any = results.delays()
    packets = floats(bins["packets"])
    if not len(packets):
        return
    delays, (codes, names) = floats(bins["delay_s"]), bins["scheme"]
    for code in np.unique(codes):
        mask = codes == code
        found = percentiles.weighted(delays[mask], packets[mask], 0.95)
        if found is not None:
            yield (names[code], ALL, "one-way delay", P95_PACKETS, found)


def _averages(metric: str, values: Numbers, sizes: Numbers | None) -> Iterator[tuple[str, str, str, float]]:
    if not len(values):
        return
    yield (ALL, metric, MEAN, float(values.mean()))
    if sizes is not None and sizes.sum() > 0:
        yield (ALL, metric, BYTES, float((values * sizes).sum() / sizes.sum()))
    yield from ((ALL, metric, *one) for one in _positions(values))


def _positions(values: Numbers) -> Iterator[tuple[str, float]]:
    """The median, and the tail percentiles with enough values."""
    yield MEDIAN, float(np.median(values))
    for name, share in TAILS:
        found = percentiles.percentile(values, share)
        if found is not None:
            yield name, found


def _by_size(done: Columns, slowdown: Numbers) -> Iterator[tuple[str, str, str, float]]:
    """Numbers of the flows in each range of sizes, if there are at least two ranges."""
    ranges = np.searchsorted(SIZE_EDGES, done.size, side="right")
    found = np.unique(ranges)
    if len(found) < 2:
        return
    for place in found:
        mask = ranges == place
        ratios = slowdown[mask]
        ratios = ratios[np.isfinite(ratios)]
        name = size_range(int(place))
        yield (name, "finished flows of this size", TOTAL, float(mask.sum()))
        for metric, values in (("completion time", done.completion[mask]), ("slowdown", ratios)):
            if len(values):
                yield (name, metric, MEAN, float(values.mean()))
                yield from ((name, metric, *one) for one in _positions(values))


def size_range(place: int) -> str:
    """The name of a range of sizes, by its index."""
    if place == 0:
        return f"flows below {SIZE_NAMES[0]}"
    if place == len(SIZE_NAMES):
        return f"flows from {SIZE_NAMES[-1]}"
    return f"flows of {SIZE_NAMES[place - 1]} to {SIZE_NAMES[place]}"


SIZE_RANGES = tuple(size_range(place) for place in range(len(SIZE_NAMES) + 1))


def _of_requests(flows: Columns) -> Iterator[tuple[str, str, str, float]]:
    """Completion times of requests. A request finishes with its last flow."""
    of_some = ~np.isnan(flows.request)
    numbers, place = np.unique(flows.request[of_some], return_inverse=True)
    start, finish = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    np.minimum.at(start, place, flows.start[of_some])
    np.maximum.at(finish, place, flows.finish[of_some])
    lasted = finish - start
    lasted = lasted[np.isfinite(lasted)]
    if len(lasted):
        yield (ALL, "completion time of requests", REQUESTS, float(lasted.mean()))
        yield from ((ALL, "completion time of requests", *one) for one in _positions(lasted))


def _of_network(links: Any, end_s: float) -> Iterator[tuple[str, str, float]]:
    if end_s > 0 and len(links["sent_bytes"]):
        use = 8.0 * links["sent_bytes"] / (links["rate_bps"] * end_s)
        yield ("use of the busiest link", TIME, 100.0 * float(use.max()))
    arrived = float(links["arrived_packets"].sum())
    if arrived > 0:
        yield ("dropped packets", TOTAL, 100.0 * float(links["dropped_packets"].sum()) / arrived)
        yield ("largest backlog", "largest", float(links["peak_backlog_bytes"].max()))


def _of_series(results: _native.Results) -> Iterator[tuple[str, str, float]]:
    """The mean of each sampled quantity and, with at least 100 samples, its 99th percentile."""
    series: Any = results.series()
    values = floats(series["value"])
    if not len(values):
        return
    (probes, probe_names), (quantities, quantity_names) = series["probe"], series["quantity"]
    for probe in np.unique(probes):
        for quantity in np.unique(quantities[probes == probe]):
            some = values[(probes == probe) & (quantities == quantity)]
            some = some[~np.isnan(some)]
            if len(some):
                metric = f"{quantity_names[quantity]} of {probe_names[probe]}"
                yield (metric, TIME, float(some.mean()))
                found = percentiles.percentile(some, 0.99)
                if found is not None:
                    yield (metric, P99, found)


def unit(metric: str) -> str:
    """The unit of a metric."""
    if metric in UNITS:
        return UNITS[metric]
    quantity = metric.partition(" of ")[0]
    return next((unit for suffix, unit in SERIES_UNITS.items() if quantity.endswith(suffix)), "")


def _curves(flows: Columns) -> Iterator[tuple[str, list[float]]]:
    done = flows.completion[~np.isnan(flows.completion)]
    if len(done) < 2:
        return
    yield ("completion time", np.quantile(done, QUANTILES).tolist())
    slowdown = flows.completion / flows.ideal
    slowdown = slowdown[np.isfinite(slowdown)]
    if len(slowdown) > 1:
        yield ("slowdown", np.quantile(slowdown, QUANTILES).tolist())


def _traffic(table: Mapping[str, Any], columns: Columns) -> str:
    """A fingerprint of the flows without their schemes."""
    digest = hashlib.blake2b(digest_size=8)
    for values in (columns.start, columns.size, table["src"][0], table["dst"][0]):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
