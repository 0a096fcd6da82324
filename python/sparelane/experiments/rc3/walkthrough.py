"""Single flows that the papers follow packet by packet, round trip by round trip.

What happened in a round trip is found by cutting the run at its end: the same run, stopped one round trip later, has
sent so many segments more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Evaluation, Outcomes, Simulation
from sparelane.experiments.rc3.analytic import WIRE_BYTES
from sparelane.experiments.rc3.internet2 import Scheme

HEADER_BYTES = 40

NAMES: dict[Scheme, str] = {"tcp": "TCP", "rc3": "RC3"}


@dataclass(frozen=True, slots=True)
class Walk:
    """A flow to follow.

    Attributes:
        scenario: the ready-made scenario that holds it: two hosts, one router, equal links.
        rate_bps: of each link.
        delay_s: of each link, one way.
        rounds: round trips to look at, enough for each scheme.
        settings: per scheme, what to change in the scenario.
        long_enough_s: when both schemes are done.
    """

    scenario: str
    rate_bps: float
    delay_s: float
    rounds: int
    settings: Mapping[Scheme, tuple[str, ...]] = field(default_factory=dict)
    long_enough_s: float = 1.0

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
        """The flow under one scheme, until `stop_s`."""
        return Simulation(
            scenario=self.scenario,
            settings=(f"workload.scheme={scheme}", f"duration={round(stop_s * 1e9)}ns", *self.settings.get(scheme, ())),
            seed=1,
            label=f"{NAMES[scheme]} until {1e3 * stop_s:g} ms",
            cost=0.001,
            keep_flows=stop_s == self.long_enough_s,
        )

    def cuts(self, scheme: Scheme) -> list[Simulation]:
        """One run for each round trip from 0, ending just before the next; in round trip 0 there is no data yet."""
        first_s = self.data_start_s - self.packet_s / 2
        return [self.run(scheme, first_s + index * self.rtt_s) for index in range(self.rounds + 1)]

    def plan(self) -> list[Simulation]:
        """All runs."""
        return [run for scheme in NAMES for run in (*self.cuts(scheme), self.run(scheme, self.long_enough_s))]

    def sent_by_round(self, scheme: Scheme, priority: int, outcomes: Outcomes) -> list[int]:
        """Segments that the sender put on its way at this priority in the first round trip, the second, ..."""
        totals = [_sent(outcomes[cut].flows, priority) for cut in self.cuts(scheme)]
        return [later - earlier for earlier, later in pairwise(totals)]

    def completion(self, scheme: Scheme, outcomes: Outcomes) -> float | None:
        """Round trips from the first data until the sender hears that all of it arrived; `None` if it never did.

        The acknowledgment of the last byte needs two links to come back.
        """
        finish_s: float | None = outcomes[self.run(scheme, self.long_enough_s)].flows["finish_s"].item()
        if finish_s is None:
            return None
        heard_s = finish_s + 2 * (self.delay_s + HEADER_BYTES * 8 / self.rate_bps)
        return (heard_s - self.data_start_s) / self.rtt_s


def _sent(flows: pl.DataFrame, priority: int) -> int:
    """Segments sent so far; there are columns only for the priorities in use."""
    column = f"sent_packets_{priority}"
    return int(flows[column].sum()) if column in flows.columns else 0


def rounds_table(sent: Mapping[str, Sequence[int]]) -> pl.DataFrame:
    """Segments by round trip, one column for each scheme."""
    longest = max(len(counts) for counts in sent.values())
    return pl.DataFrame(
        {"round": range(1, longest + 1)}
        | {name: [*counts, *[0] * (longest - len(counts))] for name, counts in sent.items()}
    )


def draw_rounds(evaluation: Evaluation, printed: Mapping[str, Sequence[int]]) -> Figure:
    """Segments of normal priority in each round trip, TCP beside RC3."""
    table = evaluation.curves["rounds"]
    drawing, [axes] = plots.figure()
    nothing = [None] * table.height
    bars = [
        plots.Bars(name, look, table[name].to_list(), nothing, [*printed.get(name, ()), *nothing][: table.height])
        for name, look in zip(NAMES.values(), (plots.TCP, plots.RC3), strict=True)
    ]
    plots.grouped_bars(axes, [str(index) for index in table["round"]], bars)
    axes.set_xlabel("round trip, from the first data")
    axes.set_ylabel("segments sent at\nnormal priority")
    plots.legend_above(axes, 3)
    return drawing
