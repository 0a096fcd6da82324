"""Schemes that share one bottleneck: the ratio of their rates, their fairness, the use of the link and delays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from sparelane.common import percentiles
from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Metric, Row, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.engine.statistics import jain

# Overrides replace its network, schemes and flows.
SCENARIO = "dumbbell-cubic"
# The share of a run after which it is measured.
WARM_UP_SHARE = 1 / 3
# Payload and header of a full packet, and the rate of the hosts' cables.
PAYLOAD_BYTES, PACKET_BYTES, ACCESS_BPS = 1460, 1500, 1e9
# The rows of the percentile of delays.
P99 = "99th percentile"

RATIO = Metric("rate ratio")
FAIRNESS = Metric("Jain's index")
USE = Metric("use of the link", "%")
DELAY = Metric("queueing delay", "ms")
RESENT = Metric("retransmitted packets", "%", is_loss_rate=True)
WINDOW = Metric("least window", "packets")
METRICS = named(RATIO, FAIRNESS, USE, DELAY, RESENT, WINDOW)


def p99_ms(outcome: Outcome, scheme: str, rate_mbps: float, empty_ms: float) -> float:
    """Returns the 99th percentile of the delay of a scheme's packets in queues, in milliseconds; NaN without packets.

    Args:
        outcome: a run.
        scheme: the name of the scheme.
        rate_mbps: the rate of the bottleneck.
        empty_ms: the one-way delay without any queue, except for the time of packets on cables.
    """
    delays = outcome.delays.filter(pl.col("scheme").cast(pl.String) == scheme)
    found = percentiles.weighted(delays["delay_s"].to_numpy(), delays["packets"].to_numpy(), 0.99)
    on_cables_ms = PACKET_BYTES * 8e3 * (1 / (rate_mbps * 1e6) + 2 / ACCESS_BPS)
    return math.nan if found is None else found * 1e3 - empty_ms - on_cables_ms


@dataclass(frozen=True, slots=True)
class Case:
    """Flows over one bottleneck.

    Attributes:
        name: the setting in rows.
        scheme: the scheme in rows.
        variant: what differs, in the keys of rows.
        overrides: overrides of the scenario.
        rate_mbps: the rate of the bottleneck.
        empty_ms: the one-way delay of the measured scheme without any queue, except for the time of packets on cables.
        groups: the schemes in the scenario: the first one is compared with the second one.
        metrics: the names of the metrics of its rows.
        cost: the expected work of one run, relative to other cases.
    """

    name: str
    scheme: str
    variant: str
    overrides: tuple[str, ...]
    rate_mbps: float
    empty_ms: float
    groups: tuple[str, ...]
    metrics: tuple[str, ...]
    cost: float

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        from_s = WARM_UP_SHARE * effort.stop_s
        measure = f'measure={{ from="{from_s * 1e3:g}ms", delays={str(DELAY.name in self.metrics).lower()} }}'
        return Cell(
            SCENARIO,
            (measure, f"duration={effort.stop_s * 1e3:g}ms", *self.overrides),
            cost=self.cost,
            setting=self.name,
            scheme=self.scheme,
            variant=self.variant,
            from_s=from_s,
            stop_s=effort.stop_s,
        )

    def bytes_of(self, outcome: Outcome, group: str) -> list[float]:
        """Returns the payload that each flow of a group delivered after the warm-up."""
        flows = outcome.flows.filter(pl.col("scheme").cast(pl.String) == group)
        return [float(found) for found in flows.sort("id")["measured_bytes"]]

    def ratio(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns the mean rate of the first group's flows over that of the second group's."""
        first, second = (self.bytes_of(outcome, group) for group in self.groups[:2])
        return sum(first) / len(first) / (sum(second) / len(second)) if sum(second) else math.nan

    def fairness(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns Jain's index of the rates of all flows."""
        rates = [one for group in self.groups for one in self.bytes_of(outcome, group)]
        return jain(rates) if sum(rates) else math.nan

    def use(self, outcome: Outcome, cell: Cell) -> float:
        """Returns the share of the bottleneck that all flows used, with headers, in percent."""
        payload = sum(sum(self.bytes_of(outcome, group)) for group in self.groups)
        bps = payload * 8 / (cell.stop_s - cell.from_s)
        return 100 * bps / (self.rate_mbps * 1e6) * PACKET_BYTES / PAYLOAD_BYTES

    def delay_ms(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns the 99th percentile of the delay of the first group's packets in queues, in milliseconds."""
        return p99_ms(outcome, self.groups[0], self.rate_mbps, self.empty_ms)

    def resent(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns the share of sent packets that were retransmissions, in percent."""
        flows = outcome.flows
        sent = float(flows["sent_packets_0"].sum())
        return 100 * float(flows["retransmissions"].sum()) / sent if sent else math.nan

    def least_window(self, outcome: Outcome, cell: Cell) -> float:
        """Returns the least window of the sampled flows after the warm-up, in packets."""
        counted = (pl.col("quantity") == "cwnd_bytes") & (pl.col("time_s") > cell.from_s)
        least = outcome.series.filter(counted)["value"].to_list()
        return min(least) / PAYLOAD_BYTES if least else math.nan

    def rows(self, runs: Runs) -> list[Row]:
        """Returns the rows of the case."""
        cell = self.cell(runs.effort)
        found = []
        for name in self.metrics:
            metric = METRICS[name]
            average = P99 if metric == DELAY else ""
            values = [STATISTICS[name](self, outcome, cell) for outcome in runs.of(cell)]
            # Very short runs deliver nothing that could be measured.
            known = [value for value in values if not math.isnan(value)]
            found.append(measured(cell.key(metric, average), None, known))
        return found


STATISTICS: Mapping[str, Callable[[Case, Outcome, Cell], float]] = {
    RATIO.name: Case.ratio,
    FAIRNESS.name: Case.fairness,
    USE.name: Case.use,
    DELAY.name: Case.delay_ms,
    RESENT.name: Case.resent,
    WINDOW.name: Case.least_window,
}


def read_case(part: Section) -> Case:
    """Returns the case that a table of the file declares."""
    case = Case(
        name=part.text("name"),
        scheme=part.text("scheme"),
        variant=part.text("variant", ""),
        overrides=part.texts("overrides"),
        rate_mbps=part.number("rate_mbps"),
        empty_ms=part.number("empty_ms", 0.0),
        groups=part.texts("groups"),
        metrics=tuple(metric.name for metric in part.some_of("measured", METRICS)),
        cost=part.number("cost", 1.0),
    )
    part.finish()
    return case


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    return panels.study_of_cases(declared, read_case)
