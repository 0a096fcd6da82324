"""Follows a single flow round by round, as the papers do on a blackboard.

Each flow is followed twice. *In rounds*, everything that a round sends arrives, and all acknowledgments are back before
the next round begins; this is the papers' way of counting. *Packet by packet*, the simulator sends the same flow. Its
sender's packets in one round trip are the difference between two runs, which end at the start and at the end of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import polars as pl

from sparelane import _native
from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row
from sparelane.papers.rc3.analytic import WIRE_BYTES
from sparelane.papers.rc3.internet2 import SCHEMES, Scheme

HEADER_BYTES = 40
CONTROLLERS: Mapping[Scheme, str] = {"tcp": "newreno", "rc3": "rc3"}
# The time in seconds after which a run is over.
LONG_ENOUGH_S = 1.0
# Every link of the scenarios: its rate, and its delay one way.
RATE_BPS, DELAY_S = 12e6, 11.98e-3
PACKET_S, HEADER_S = WIRE_BYTES * 8 / RATE_BPS, HEADER_BYTES * 8 / RATE_BPS
# The path has two links. The sender sends its first data when it has the answer to its SYN; a round trip is the time
# from the first bit of a full segment to its acknowledgment.
DATA_START_S = 4 * (DELAY_S + HEADER_S)
ROUND_TRIP_S = 4 * DELAY_S + 2 * PACKET_S + 2 * HEADER_S

NORMAL = Metric("class-0 segments")
# The segments of low priority in the first round.
LOW: Mapping[Metric, Callable[[int], bool]] = {
    Metric("priority-1 segments"): lambda priority: priority == 1,
    Metric("priority-2 segments"): lambda priority: priority == 2,
    Metric("low-priority segments"): lambda priority: priority > 0,
}
# The flow completes in the round after the last one in which it sends.
COMPLETES, ROUND_TRIPS = Metric("completes in round"), Metric("round trips")
METRICS = named(NORMAL, *LOW, COMPLETES, ROUND_TRIPS)


@dataclass(frozen=True, slots=True)
class Walk:
    """A flow to follow.

    Attributes:
        scenario: the name of the scenario: two hosts, one router, equal links.
        segments: the length of the flow.
        initial_window: the initial window of TCP, and of the TCP inside RC3, in segments.
        capacity: the number of packets that a link carries in a round trip.
        drops: the segments, from 0, that RC3 loses when it first sends them. TCP sends the flow without losses.
    """

    scenario: str
    segments: int
    initial_window: int
    capacity: int
    drops: tuple[int, ...]

    def rounds(self, scheme: Scheme) -> list[_native.Round]:
        """Returns the segments that each round sends, up to the last round that sends any."""
        drops = list(self.drops) if scheme == "rc3" else []
        return _native.walk(CONTROLLERS[scheme], self.initial_window, self.segments, self.capacity, drops)

    def cell(self, scheme: Scheme, stop_s: float = LONG_ENOUGH_S) -> Cell:
        """Returns the flow packet by packet, until `stop_s`."""
        lossless = ("drop=[]",) if self.drops and scheme == "tcp" else ()
        return Cell(
            self.scenario,
            (f"workload.scheme={scheme}", f"duration={round(stop_s * 1e9)}ns", *lossless),
            f"{SCHEMES[scheme]} until {1e3 * stop_s:g} ms",
            cost=0.001,
            keep_flows=stop_s == LONG_ENOUGH_S,
            most_seeds=1,
        )

    def cuts(self, scheme: Scheme) -> list[Cell]:
        """Returns a cell for each round trip from 0, which has no data yet. Each ends just before the next one."""
        first_s = DATA_START_S - PACKET_S / 2
        return [self.cell(scheme, first_s + index * ROUND_TRIP_S) for index in range(len(self.rounds(scheme)) + 1)]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields all runs; efforts do not differ."""
        del effort
        return (cell for scheme in SCHEMES for cell in (*self.cuts(scheme), self.cell(scheme)))

    def sent(self, scheme: Scheme, runs: Runs) -> list[int]:
        """Returns the number of segments of normal priority that the simulated sender sends in each round trip."""
        totals = [int(runs.of(cut)[0].flows["sent_packets_0"].sum()) for cut in self.cuts(scheme)]
        return [later - earlier for earlier, later in pairwise(totals)]

    def round_trips(self, scheme: Scheme, runs: Runs) -> float | None:
        """Returns the round trips from the first simulated data to the last acknowledgment; `None` without it."""
        finish_s: float | None = runs.of(self.cell(scheme))[0].flows["finish_s"].item()
        if finish_s is None:
            return None
        # The last acknowledgment takes two links to the sender.
        return (finish_s + 2 * (DELAY_S + HEADER_S) - DATA_START_S) / ROUND_TRIP_S

    def table(self) -> pl.DataFrame:
        """Returns the number of segments by scheme, round and priority."""
        return pl.DataFrame(
            [
                {"scheme": name, "round": index, "priority": priority, "segments": count}
                for scheme, name in SCHEMES.items()
                for index, found in enumerate(self.rounds(scheme), start=1)
                for priority, count in _by_priority(found).items()
            ]
        )

    def counts(self, scheme: Scheme, metric: Metric, variant: str, runs: Runs) -> Mapping[str, float | None]:
        """Returns the values of a metric by setting: a round, or the whole flow."""
        rounds = self.rounds(scheme)
        if metric == NORMAL:
            sent = self.sent(scheme, runs) if variant else [len(found["normal"]) for found in rounds]
            return {f"round {index}": count for index, count in enumerate(sent, start=1)}
        if metric in LOW:
            return {"round 1": sum(LOW[metric](priority) for _, priority in rounds[0]["low"])}
        if not variant:
            return {"the flow": len(rounds) + (metric == COMPLETES)}
        taken = self.round_trips(scheme, runs)
        # Serialization takes a small part of a round trip.
        return {"the flow": taken and (math.floor(taken) + 1 if metric == COMPLETES else round(taken))}


def _by_priority(found: _native.Round) -> dict[int, int]:
    """Returns the number of segments of a round by priority, in the order of sending."""
    counts = {0: len(found["normal"])}
    for _, priority in found["low"]:
        counts[priority] = counts.get(priority, 0) + 1
    return counts


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    walk = Walk(
        rest.text("scenario"),
        rest.whole("segments"),
        rest.whole("initial_window"),
        rest.whole("capacity"),
        tuple(map(int, rest.numbers("drops"))),
    )
    # The keys of rows in order, without their settings: rounds, or the whole flow.
    counted = [key for part in rest.sections("counted") for key in declared.rows.keys(part)]
    schemes = {name: scheme for scheme, name in SCHEMES.items()}

    def evaluate(runs: Runs) -> Evaluation:
        rows: list[Row] = []
        for one in counted:
            for setting, value in walk.counts(schemes[one.scheme], one.metric, one.variant, runs).items():
                key = replace(one, setting=setting)
                rows.append(Row(key, declared.paper(key), value))
        return Evaluation(tuple(rows), curves={"rounds": walk.table()})

    return panels.study(declared, walk.cells, evaluate)
