"""Single flows that the papers follow segment by segment, round trip by round trip.

Each is followed twice. *In rounds*, as on a blackboard: everything that a round sends arrives, and all acknowledgments
are back before the next round begins; this is what the papers show. *Packet by packet*, in the simulator, where packets
take their time: what a round trip sent is found by cutting the run at its end and again one round trip later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl
from matplotlib.figure import Figure

from sparelane import _native
from sparelane.papers.engine.base import Outcomes, Simulation
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rc3.analytic import WIRE_BYTES
from sparelane.papers.rc3.internet2 import Scheme
from sparelane.reports import plots

HEADER_BYTES = 40
NAMES: dict[Scheme, str] = {"tcp": "TCP", "rc3": "RC3"}
CONTROLLERS: dict[Scheme, str] = {"tcp": "newreno", "rc3": "rc3"}
LONG_ENOUGH_S = 1.0


@dataclass(frozen=True, slots=True)
class Walk:
    """A flow to follow.

    Attributes:
        segments: its length.
        initial_window: of TCP, and of the TCP inside RC3.
        capacity: packets that the link carries in a round trip.
        drops: per scheme the segments, from 0, that are lost when they are first sent.
        scenario: the ready-made scenario of the same: two hosts, one router, equal links.
        settings: per scheme, what to change in the scenario.
        rate_bps: of each link.
        delay_s: of each link, one way.
    """

    segments: int
    initial_window: int
    capacity: int
    drops: Mapping[Scheme, tuple[int, ...]]
    scenario: str
    settings: Mapping[Scheme, tuple[str, ...]] = field(default_factory=dict)
    rate_bps: float = 12e6
    delay_s: float = 11.98e-3

    def rounds(self, scheme: Scheme) -> list[_native.Round]:
        """What each round sends, up to the last one that sends anything."""
        drops = list(self.drops.get(scheme, ()))
        return _native.walk(CONTROLLERS[scheme], self.initial_window, self.segments, self.capacity, drops)

    @property
    def packet_s(self) -> float:
        """Serialization of a full packet on one link."""
        return WIRE_BYTES * 8 / self.rate_bps

    @property
    def data_start_s(self) -> float:
        """When the sender has the answer to its SYN and sends its first data."""
        return 4 * (self.delay_s + HEADER_BYTES * 8 / self.rate_bps)

    @property
    def rtt_s(self) -> float:
        """From the first bit of a full segment until the sender has its acknowledgment."""
        return 4 * self.delay_s + 2 * self.packet_s + 2 * HEADER_BYTES * 8 / self.rate_bps

    def run(self, scheme: Scheme, stop_s: float) -> Simulation:
        """The flow packet by packet, until `stop_s`."""
        return Simulation(
            scenario=self.scenario,
            settings=(f"workload.scheme={scheme}", f"duration={round(stop_s * 1e9)}ns", *self.settings.get(scheme, ())),
            seed=1,
            label=f"{NAMES[scheme]} until {1e3 * stop_s:g} ms",
            cost=0.001,
            keep_flows=stop_s == LONG_ENOUGH_S,
        )

    def cuts(self, scheme: Scheme) -> list[Simulation]:
        """One run for each round trip from 0, ending just before the next; in round trip 0 there is no data yet."""
        first_s = self.data_start_s - self.packet_s / 2
        return [self.run(scheme, first_s + index * self.rtt_s) for index in range(len(self.rounds(scheme)) + 1)]

    def plan(self) -> list[Simulation]:
        """All runs."""
        return [run for scheme in NAMES for run in (*self.cuts(scheme), self.run(scheme, LONG_ENOUGH_S))]

    def sent_by_round_trip(self, scheme: Scheme, outcomes: Outcomes) -> list[int]:
        """Segments of normal priority that the simulated sender put on its way in each round trip."""
        totals = [int(outcomes[cut].flows["sent_packets_0"].sum()) for cut in self.cuts(scheme)]
        return [later - earlier for earlier, later in pairwise(totals)]

    def completion(self, scheme: Scheme, outcomes: Outcomes) -> float | None:
        """Round trips from the first simulated data until the sender hears that all of it arrived; `None` if never.

        The acknowledgment of the last byte needs two links to come back.
        """
        finish_s: float | None = outcomes[self.run(scheme, LONG_ENOUGH_S)].flows["finish_s"].item()
        if finish_s is None:
            return None
        heard_s = finish_s + 2 * (self.delay_s + HEADER_BYTES * 8 / self.rate_bps)
        return (heard_s - self.data_start_s) / self.rtt_s

    def table(self) -> pl.DataFrame:
        """Segments sent in each round: one row for each scheme, round and priority."""
        rows = [
            {"scheme": name, "round": index, "priority": priority, "segments": len(sent)}
            for scheme, name in NAMES.items()
            for index, found in enumerate(self.rounds(scheme), start=1)
            for priority, sent in by_priority(found).items()
        ]
        return pl.DataFrame(rows)


def by_priority(found: _native.Round) -> dict[int, list[int]]:
    """The segments of a round by priority, in the order of sending."""
    sent: dict[int, list[int]] = {0: found["normal"]}
    for segment, priority in found["low"]:
        sent.setdefault(priority, []).append(segment)
    return sent


def draw_rounds(evaluation: Evaluation, printed: Mapping[str, Sequence[int]]) -> Figure:
    """Segments of normal priority in each round, TCP beside RC3."""
    table = evaluation.curves["rounds"].filter(pl.col("priority") == 0)
    rounds = list(range(1, int(table["round"].n_unique()) + 1))
    drawing, [axes] = plots.figure()
    nothing = [None] * len(rounds)
    bars = []
    for name, look in zip(NAMES.values(), (plots.TCP, plots.RC3), strict=True):
        sent = table.filter(pl.col("scheme") == name)["segments"].to_list()
        padded = [*sent, *nothing][: len(rounds)]
        bars.append(plots.Bars(name, look, padded, nothing, [*printed.get(name, ()), *nothing][: len(rounds)]))
    plots.grouped_bars(axes, [str(index) for index in rounds], bars)
    axes.set_xlabel("round")
    axes.set_ylabel("segments sent at\nnormal priority")
    plots.legend_above(axes, 3)
    return drawing
