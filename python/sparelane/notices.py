"""What the reader of a run should be told: what its means leave out, what did not happen, what may be an artefact.

They are made here alone, by NumPy from the simulator's columns: for `run`, notebooks, saved runs, and each run of a
sweep, of which they are gathered.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparelane import units
from sparelane.service import floats, jain, open_rates_bps

if TYPE_CHECKING:
    from sparelane import _native
    from sparelane.stored import Stored

Table = Mapping[str, Any]

# A link this busy may be a bottleneck.
BUSY = 0.9
# Fewer packets than this in step with each other are no pattern.
FEWEST_PACKETS = 1000
# Below this, Jain's index of equal flows is suspicious.
UNEVEN = 0.8
FINISHED_ALONE = "completion times and slowdowns are of finished flows alone"
# What is said of several runs in which flows were left.
UNFINISHED = f"{FINISHED_ALONE}: some had not finished by the end of the run"


@dataclass(frozen=True, slots=True)
class Notice:
    """What is said of a run.

    Attributes:
        text: of this one, with its numbers.
        of_many: without the numbers of one run: equal in all runs of which the same is said.
        holds_early: whether the beginning of a run is enough to know it.
    """

    text: str
    of_many: str
    holds_early: bool = False


def notices(results: _native.Results | Stored) -> list[Notice]:
    """What is to be said of a run, the most important first; nothing of most."""
    return of_tables(results, results.flows(), results.links())


def of_tables(results: _native.Results | Stored, flows: Table, links: Table) -> list[Notice]:
    """The same, for whoever has the columns already."""
    built = [Notice(text, text, holds_early=True) for text in results.notices]
    scenario, end_s = tomllib.loads(results.scenario), results.totals["end_s"]
    if not len(flows["start_s"]):
        about = "no flow started by the end of the run"
        why = "the workload is empty, or starts later"
        return [*built, Notice(f"{about}, {end_s:g} s: {why}", f"{about}: {why}")]
    return [
        *built,
        *_unfinished(flows),
        *_late_workloads(scenario),
        *_not_sampled(flows, scenario),
        *_in_step(flows, links, end_s),
    ]


def _unfinished(flows: Table) -> Iterator[Notice]:
    is_sized = ~np.isnan(floats(flows["size_bytes"]))
    left = int((is_sized & np.isnan(floats(flows["completion_s"]))).sum())
    if left:
        count = f"{left} of {int(is_sized.sum())} flows had not finished by the end of the run"
        yield Notice(f"{FINISHED_ALONE}: {count}", UNFINISHED)
    delivered = floats(flows["delivered_bytes"])
    silent = int((delivered == 0).sum())
    if silent:
        yield Notice(f"{silent} of {len(delivered)} flows delivered nothing", "some flows delivered nothing")


def _late_workloads(scenario: Mapping[str, Any]) -> Iterator[Notice]:
    workloads = scenario.get("workload")
    duration = _seconds(scenario.get("duration"))
    for number, workload in enumerate(workloads if isinstance(workloads, list) else [workloads], 1):
        start = workload.get("start") if isinstance(workload, Mapping) else None
        start_s = _seconds(start)
        if duration is not None and start_s is not None and start_s >= duration:
            text = f"workload {number} starts at {start}, which is not before the end of the run: none of its flows run"
            yield Notice(text, text)


def _seconds(value: object) -> float | None:
    found = units.read(value) if isinstance(value, str) else None
    return found[0] if found is not None and found[1] == "s" else None


def _not_sampled(flows: Table, scenario: Mapping[str, Any]) -> Iterator[Notice]:
    sample = scenario.get("sample")
    asked = sample.get("flows", []) if isinstance(sample, dict) else []
    started = len(flows["start_s"])
    missing = [str(flow) for flow in asked if isinstance(flow, int) and flow >= started]
    if missing:
        asks = f"[sample] asks for flow{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        yield Notice(f"{asks}; only {started} started, numbered from 0", f"{asks}; fewer started, numbered from 0")


def _in_step(flows: Table, links: Table, end_s: float) -> Iterator[Notice]:
    """Phase effects: packets of equal hosts that come in step may always find the same place in a full queue."""
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
        text = (
            f"flows of scheme {uneven} have uneven shares, and hosts send at exactly the rate of the bottleneck from "
            f"{begins[link]} to {ends[link]}: their packets may come in step, so that drops always hit the same flows "
            '(a phase effect, no property of the controller); jitter breaks the step: --set host.ack_cost="20us"'
        )
        yield Notice(text, text, holds_early=True)


def _uneven(flows: Table, end_s: float) -> Iterator[str]:
    """The schemes whose open flows have uneven shares."""
    codes, names = flows["scheme"][0], flows["scheme"][1]
    start_s, finish_s, delivered = (floats(flows[name]) for name in ("start_s", "finish_s", "delivered_bytes"))
    for code in np.unique(codes):
        own = codes == code
        index = jain(open_rates_bps(start_s[own], finish_s[own], delivered[own], end_s))
        if index is not None and index < UNEVEN:
            yield names[code]


def _texts(column: Any) -> NDArray[np.str_]:
    """A column of texts, out of codes."""
    texts: NDArray[np.str_] = np.asarray(column[1], dtype=np.str_)[column[0]]
    return texts


def counted(runs: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """Each thing that was said of runs, once, with the number of runs, as manifests keep it."""
    counts = Counter(text for said in runs for text in dict.fromkeys(said))
    return [{"text": text, "runs": count} for text, count in counts.items()]


def told(counts: Iterable[Mapping[str, Any]], runs: int) -> list[str]:
    """What `counted` gave of so many runs, as sentences."""
    return [f"{_how_many(one['runs'], runs)}{one['text']}" for one in counts]


def _how_many(some: int, runs: int) -> str:
    if runs == 1:
        return ""
    return f"in all {runs} runs: " if some == runs else f"in {some} of {runs} runs: "
