"""Warnings about a run: flows missing in means, settings without effect, and possible artefacts.

The simulator warns about the scenario itself, such as keys without effect. This module adds warnings about the results,
computed with NumPy from their columns. Runs, forecasts, notebooks, reports and sweeps share these warnings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparelane import _native
from sparelane.simulation.goodput import floats, jain, open_rates_bps

if TYPE_CHECKING:
    from sparelane.simulation.stored import Stored

Table = Mapping[str, Any]

# Matches the value of a key in the simulator's warnings, so that a sweep over the key has one warning instead of many.
_WITH_VALUE = re.compile(r"^(\S+) = .*?( has no effect: | gives no priority: )")

# The utilisation from which a link may be a bottleneck.
BUSY = 0.9
# Below this backlog, an interface with the default limit of 2.048 GB has room for any packet.
UNLIMITED_NIC_BYTES = 2.048e9 - 65536
# The smallest number of packets that counts as a pattern of synchronised senders.
FEWEST_PACKETS = 1000
# Below this Jain's index, the shares of equal flows are suspicious.
UNEVEN = 0.8
FINISHED_ALONE = "completion times and slowdowns are those of finished flows only"
# The beginning of the simulator's warning about schemes without flows.
UNUSED_SCHEMES = "no workload has flows of scheme "
# The warning about several runs in which some flows did not finish.
UNFINISHED = f"{FINISHED_ALONE}: some had not finished by the end of the run"


@dataclass(frozen=True, slots=True)
class RunWarning:
    """A warning about a run.

    Attributes:
        text: the warning with the numbers of this run.
        of_many: the warning without these numbers, which is equal in all affected runs of a sweep.
        holds_early: true if the warning, found at the start of a run, also holds for the whole run.
    """

    text: str
    of_many: str
    holds_early: bool = False


def of_results(results: _native.Results | Stored) -> list[RunWarning]:
    """Returns the warnings about a run, those of the scenario first."""
    return of_tables(results, results.flows(), results.links())


def of_tables(results: _native.Results | Stored, flows: Table, links: Table) -> list[RunWarning]:
    """Returns the same as `of_results`, if the columns of flows and links are already available."""
    found = [RunWarning(text, _WITH_VALUE.sub(r"\1\2", text), holds_early=True) for text in results.warnings]
    scenario, end_s = _native.tables(results.scenario, "scenario"), results.totals["end_s"]
    if not len(flows["start_s"]):
        about = "no flow started by the end of the run"
        return [*found, RunWarning(f"{about}, {end_s:g} s", about)]
    return [
        *found,
        *_unfinished(flows, end_s),
        *_unstarted(flows, scenario),
        *_without_traffic(results, flows, links, scenario),
        *_never_full(flows, links, scenario),
        *_in_step(flows, links, end_s),
    ]


def _unfinished(flows: Table, end_s: float) -> Iterator[RunWarning]:
    is_sized = ~np.isnan(floats(flows["size_bytes"]))
    left = int((is_sized & np.isnan(floats(flows["completion_s"]))).sum())
    if left:
        count = f"{left} of {int(is_sized.sum())} flows had not finished by the end of the run"
        yield RunWarning(f"{FINISHED_ALONE}: {count}", UNFINISHED)
    is_silent = floats(flows["delivered_bytes"]) == 0
    if is_silent.any():
        # Flows that start shortly before the end are expected here, others are stuck.
        longest_s = end_s - floats(flows["start_s"])[is_silent].min()
        count = f"{int(is_silent.sum())} of {len(is_silent)} flows delivered nothing"
        since = f"the first of them started {longest_s:.2g} s before the end"
        yield RunWarning(f"{count}; {since}", "some flows delivered nothing")


def _unstarted(flows: Table, scenario: Mapping[str, Any]) -> Iterator[RunWarning]:
    """Warns about flows that a table names by number and that never started."""
    started = len(flows["start_s"])
    sample, packets = scenario.get("sample", {}), scenario.get("packets")
    asked = [("[sample]", flow) for flow in sample.get("flows", [])]
    asked += [("[packets]", packets.get("flow", 0))] if packets is not None else []
    asked += [("[[drop]]", drop.get("flow", 0)) for drop in _tables(scenario, "drop")]
    for table in dict.fromkeys(table for table, _ in asked):
        missing = [flow for name, flow in dict.fromkeys(asked) if name == table and flow >= started]
        if missing:
            named = f"{table} names flow{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
            only = f"only {started} flow{'s' if started > 1 else ''} started, numbered from 0"
            yield RunWarning(f"{named}; {only}", f"{named}; fewer flows started, numbered from 0")


def _without_traffic(
    results: _native.Results | Stored, flows: Table, links: Table, scenario: Mapping[str, Any]
) -> Iterator[RunWarning]:
    """Warns about tables for hosts and links without traffic."""
    host_at, link, drop = (_tables(scenario, name) for name in ("host_at", "link", "drop"))
    if not (host_at or link or drop):
        return
    cross = results.cross_traffic()
    used = {*np.concatenate([_texts(table[end]) for table, end in _ends(flows, cross)]).tolist()}
    for place, table in enumerate(host_at):
        if used.isdisjoint(table["hosts"]):
            yield _always(f"{_path('host_at', place, host_at)} has no effect: its hosts neither send nor receive")
    froms, tos = _texts(links["from"]), _texts(links["to"])
    arrived = floats(links["arrived_packets"])
    packets = {(*sorted((a, b)),): 0.0 for a, b in zip(froms, tos, strict=True)}
    for a, b, count in zip(froms, tos, arrived, strict=True):
        packets[(*sorted((a, b)),)] += count
    for place, table in enumerate(link):
        if "between" in table and packets[(*sorted(table["between"]),)] == 0:
            ends = " and ".join(table["between"])
            yield _always(f"{_path('link', place, link)}: no packet came to the cable between {ends}")
    counts = {(a, b): count for a, b, count in zip(froms, tos, arrived, strict=True)}
    for place, table in enumerate(drop):
        if counts[table["from"], table["to"]] == 0:
            where = f"the queue from {table['from']} to {table['to']}"
            yield _always(f"{_path('drop', place, drop)} has no effect: no packet came to {where}")


def _never_full(flows: Table, links: Table, scenario: Mapping[str, Any]) -> Iterator[RunWarning]:
    """Warns about the key `full` of `[nic]` if no interface ever reached the default limit of 2.048 GB."""
    nic = scenario.get("nic", {})
    if (
        nic.get("full", "drop") == "drop"
        or "limit" in nic
        or any("limit" in link for link in _tables(scenario, "link"))
    ):
        return
    of_hosts = np.isin(_texts(links["from"]), np.unique(_texts(flows["src"])))
    if floats(links["peak_backlog_bytes"])[of_hosts].max(initial=0.0) < UNLIMITED_NIC_BYTES:
        text = "nic.full has no effect: no interface was ever full; nic.limit is 2.048GB unless it is given"
        yield RunWarning(text, text)


def _ends(flows: Table, cross: Table) -> Iterator[tuple[Table, str]]:
    yield from ((flows, "src"), (flows, "dst"))
    # Runs on Linux have no columns of cross traffic.
    if cross and len(cross["from"][0]):
        yield from ((cross, "from"), (cross, "to"))


def _always(text: str) -> RunWarning:
    return RunWarning(text, text)


def _tables(scenario: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of this name, given as one table or as an array of tables."""
    found = scenario.get(name, [])
    return [found] if isinstance(found, dict) else found


def _path(name: str, place: int, tables: Sequence[object]) -> str:
    """The key of a table as `--set` takes it."""
    return f"{name}.{place}" if len(tables) > 1 else name


def _in_step(flows: Table, links: Table, end_s: float) -> Iterator[RunWarning]:
    """Warns about phase effects: hosts that send at the bottleneck's rate, in step, so that drops hit the same flows.

    Source: Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992. A random delay at the
    hosts of up to the transmission time of a packet at the bottleneck removes the effect. `ack_cost` adds such a delay,
    with half of that time as its mean. With this mean, a host that acknowledges all packets of the bottleneck is half
    idle, so the delay limits no flow.
    """
    uneven = ", ".join(_uneven(flows, end_s))
    if not uneven:
        return
    begins, ends = _texts(links["from"]), _texts(links["to"])
    rates, sent_bytes, sent_packets = (floats(links[name]) for name in ("rate_bps", "sent_bytes", "sent_packets"))
    of_hosts = np.isin(begins, np.unique(_texts(flows["src"])))
    is_busy = (8 * sent_bytes > BUSY * rates * end_s) & (sent_packets > FEWEST_PACKETS)
    suspects = np.flatnonzero(is_busy & ~of_hosts & np.isin(rates, rates[of_hosts]))
    if len(suspects):
        link = suspects[np.argmax(sent_bytes[suspects])]
        packet_s = 8 * sent_bytes[link] / sent_packets[link] / rates[link]
        text = (
            f"flows of scheme {uneven} have uneven shares, and hosts send at exactly the rate of the bottleneck from "
            f"{begins[link]} to {ends[link]}: packets may arrive in step, so that drops always hit the same flows "
            "(a phase effect, not a property of the controller); random delays of half a packet time remove it: "
            f"--set host.ack_cost={_span(packet_s / 2)}"
        )
        yield RunWarning(text, text, holds_early=True)


def _span(seconds: float) -> str:
    """A duration with two digits, in the form of `--set`."""
    picoseconds = seconds * 1e12
    step = 10 ** max(0, math.floor(math.log10(picoseconds)) - 1)
    rounded = round(picoseconds / step) * step
    for unit, length in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if rounded >= length:
            return f"{rounded / length:g}{unit}"
    return f"{rounded}ps"


def _uneven(flows: Table, end_s: float) -> Iterator[str]:
    """The schemes whose open flows have uneven shares of the throughput."""
    codes, names = flows["scheme"][0], flows["scheme"][1]
    start_s, finish_s, delivered = (floats(flows[name]) for name in ("start_s", "finish_s", "delivered_bytes"))
    for code in np.unique(codes):
        own = codes == code
        index = jain(open_rates_bps(start_s[own], finish_s[own], delivered[own], end_s))
        if index is not None and index < UNEVEN:
            yield names[code]


def _texts(column: Any) -> NDArray[np.str_]:
    """Decodes a column of categories."""
    texts: NDArray[np.str_] = np.asarray(column[1], dtype=np.str_)[column[0]]
    return texts


def counted(runs: Iterable[Sequence[str]], used_elsewhere: Collection[str] = ()) -> list[dict[str, Any]]:
    """Returns each warning once with its number of runs, in the form of manifests.

    Args:
        runs: The warnings of each run.
        used_elsewhere: Schemes that other runs of the same sweep use.
    """
    kept = [[*dict.fromkeys(texts)] for texts in runs]
    counts = Counter(text for texts in kept for text in texts if not text.startswith(UNUSED_SCHEMES))
    found = [{"text": text, "runs": count} for text, count in counts.items()]
    # In a sweep over schemes, each run leaves the other schemes unused, so only those unused in all runs count.
    named = [_unused(texts) for texts in kept]
    candidates = [name for name in (named[0] if named else []) if name not in used_elsewhere]
    if unused := [name for name in candidates if all(name in names for names in named)]:
        found.append({"text": UNUSED_SCHEMES + ", ".join(unused), "runs": len(kept)})
    return found


def _unused(texts: Sequence[str]) -> list[str]:
    """The schemes that the warnings of a run name as unused."""
    found = (text.removeprefix(UNUSED_SCHEMES).split(", ") for text in texts if text.startswith(UNUSED_SCHEMES))
    return next(found, [])


def sentences(counts: Iterable[Mapping[str, Any]], runs: int) -> list[str]:
    """Returns the warnings from `counted` as lines of text."""
    return [f"{_how_many(one['runs'], runs)}{one['text']}" for one in counts]


def _how_many(some: int, runs: int) -> str:
    if runs == 1:
        return ""
    return f"in all {runs} runs: " if some == runs else f"in {some} of {runs} runs: "
