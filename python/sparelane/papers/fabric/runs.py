"""Flows in a datacentre: use of a link, fairness, backlogs, drops, and completion times relative to the least ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Metric, Row, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.engine.statistics import jain

USE = Metric("use of the link", "%")
FAIRNESS = Metric("Jain's index")
QUEUE = Metric("backlog", "kB")
DROPS = Metric("dropped packets", "%", is_loss_rate=True)
SLOWDOWN = Metric("slowdown")
COMPLETION = Metric("completion time", "µs")
SHARE = Metric("share of a link", "%")
FLOWS = Metric("flows")
ENDED = Metric("flows that ended", "%")
PAUSES = Metric("pause frames")
METRICS = named(USE, FAIRNESS, QUEUE, DROPS, SLOWDOWN, COMPLETION, SHARE, FLOWS, ENDED, PAUSES)

# The statistics of backlogs and of completion times.
MEAN, P95, P99, MOST = "mean", "95th percentile", "99th percentile", "largest"


def statistics(values: Sequence[float], names: Iterable[str]) -> dict[str, float]:
    """Returns the named statistics of values, NaN without any."""
    if not len(values):
        return dict.fromkeys(names, math.nan)
    found = np.asarray(values)
    by_name = {
        MEAN: lambda: float(found.mean()),
        P95: lambda: float(np.percentile(found, 95)),
        P99: lambda: float(np.percentile(found, 99)),
        MOST: lambda: float(found.max()),
    }
    return {name: by_name[name]() for name in names}


@dataclass(frozen=True, slots=True)
class Group:
    """Flows that are measured together.

    Attributes:
        name: the traffic in rows.
        scheme: the scheme of the flows; empty for all.
        least_bytes: the size of the smallest flow.
        most_bytes: the size of the largest flow.
    """

    name: str
    scheme: str
    least_bytes: float
    most_bytes: float

    def select(self, flows: pl.DataFrame) -> pl.DataFrame:
        """Returns the flows of the group. Flows without an end are in it if it has no bounds."""
        # Flows without an end have no size.
        size = pl.col("size_bytes").fill_null(self.least_bytes)
        is_in = size.is_between(self.least_bytes, self.most_bytes)
        if self.scheme:
            is_in &= pl.col("scheme").cast(pl.String) == self.scheme
        return flows.filter(is_in)

    def select_ended(self, flows: pl.DataFrame) -> pl.DataFrame:
        """Returns the flows of the group that finished."""
        return self.select(flows).filter(pl.col("finish_s").is_not_null())


@dataclass(frozen=True, slots=True)
class Case:
    """One setting.

    Attributes:
        scenario: the ready-made scenario.
        name: the setting in rows.
        scheme: the scheme in rows.
        variant: what differs, in the keys of rows.
        overrides: overrides of the scenario.
        rate_mbps: the rate of the link whose use is measured.
        payload_share: the share of payload in full packets.
        from_share: the share of a run after which it is measured.
        of_schemes: the schemes whose use of the link and fairness are measured; empty for all.
        metrics: the names of the metrics of its rows.
        averages: the statistics of backlogs and completion times.
        groups: the flows whose completion times, shares and numbers are measured.
        cost: the expected work of one run, relative to other cases.
    """

    scenario: str
    name: str
    scheme: str
    variant: str
    overrides: tuple[str, ...]
    rate_mbps: float
    payload_share: float
    from_share: float
    of_schemes: tuple[str, ...]
    metrics: tuple[str, ...]
    averages: tuple[str, ...]
    groups: tuple[Group, ...]
    cost: float

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        from_s = self.from_share * effort.stop_s
        measure = f'measure={{ from="{from_s * 1e6:g}us" }}'
        return Cell(
            self.scenario,
            (measure, f"duration={effort.stop_s * 1e6:g}us", *self.overrides),
            cost=self.cost,
            setting=self.name,
            scheme=self.scheme,
            variant=self.variant,
            from_s=from_s,
            stop_s=effort.stop_s,
        )

    def bytes_of_flows(self, outcome: Outcome) -> list[float]:
        """Returns the payload that each measured flow delivered after the warm-up."""
        flows = outcome.flows
        if self.of_schemes:
            flows = flows.filter(pl.col("scheme").cast(pl.String).is_in(self.of_schemes))
        return [float(found) for found in flows["measured_bytes"]]

    def use(self, outcome: Outcome, cell: Cell) -> float:
        """Returns the share of the link that the measured flows used, headers included, in percent."""
        bps = sum(self.bytes_of_flows(outcome)) * 8 / (cell.stop_s - cell.from_s)
        return 100 * bps / (self.rate_mbps * 1e6) / self.payload_share

    def fairness(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns Jain's index of the rates of the measured flows."""
        rates = self.bytes_of_flows(outcome)
        return jain(rates) if sum(rates) else math.nan

    def dropped(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns the share of sent data packets that were lost, in percent."""
        flows = outcome.flows
        sent = sum(float(flows[name].sum()) for name in flows.columns if name.startswith("sent_packets_"))
        return 100 * float(flows["lost_packets"].sum()) / sent if sent else math.nan

    def pause_frames(self, outcome: Outcome, _cell: Cell) -> float:
        """Returns the number of pause frames of the whole run, including those that end a pause."""
        return float(outcome.links["pause_frames"].sum())

    def of_group(self, metric: Metric, group: Group, outcome: Outcome, cell: Cell) -> float:
        """Returns the number of flows of a group, the share that ended, or the mean share of a link of each flow."""
        flows = group.select(outcome.flows)
        if metric == FLOWS:
            return float(len(flows))
        if not len(flows):
            return math.nan
        if metric == ENDED:
            return 100 * len(group.select_ended(outcome.flows)) / len(flows)
        bps = float(flows["measured_bytes"].sum()) * 8 / (cell.stop_s - cell.from_s) / len(flows)
        return 100 * bps / (self.rate_mbps * 1e6) / self.payload_share

    def backlogs(self, outcome: Outcome, cell: Cell) -> list[float]:
        """Returns the samples of backlogs after the warm-up, in kB."""
        counted = (pl.col("quantity") == "backlog_bytes") & (pl.col("time_s") > cell.from_s)
        return [value / 1e3 for value in outcome.series.filter(counted)["value"]]

    def numbers(self, metric: Metric, outcome: Outcome, cell: Cell) -> Iterator[tuple[str, str, float]]:
        """Yields the numbers of a metric, each with its average and its traffic."""
        if metric == QUEUE:
            for average, value in statistics(self.backlogs(outcome, cell), self.averages).items():
                yield average, "", value
            return
        if metric in (SHARE, FLOWS, ENDED):
            for group in self.groups:
                yield "", group.name, self.of_group(metric, group, outcome, cell)
            return
        if metric in (SLOWDOWN, COMPLETION):
            for group in self.groups:
                flows = group.select_ended(outcome.flows)
                values = flows["completion_s"] / flows["ideal_s"] if metric == SLOWDOWN else flows["completion_s"] * 1e6
                for average, value in statistics(values.to_list(), self.averages).items():
                    yield average, group.name, value
            return
        single = {
            USE.name: self.use,
            FAIRNESS.name: self.fairness,
            DROPS.name: self.dropped,
            PAUSES.name: self.pause_frames,
        }
        yield "", "", single[metric.name](outcome, cell)

    def rows(self, runs: Runs) -> list[Row]:
        """Returns the rows of the case."""
        cell = self.cell(runs.effort)
        outcomes = runs.of(cell)
        found = []
        for name in self.metrics:
            metric = METRICS[name]
            values: dict[tuple[str, str], list[float]] = {}
            for outcome in outcomes:
                for average, traffic, value in self.numbers(metric, outcome, cell):
                    values.setdefault((average, traffic), []).append(value)
            for (average, traffic), numbers in values.items():
                known = [number for number in numbers if not math.isnan(number)]
                found.append(measured(cell.key(metric, average, traffic), None, known))
        return found


def read_group(part: Section) -> Group:
    """Returns the group of flows that a table declares."""
    group = Group(
        name=part.text("name"),
        scheme=part.text("scheme", ""),
        least_bytes=part.number("from_bytes", 0.0),
        most_bytes=part.number("to_bytes", 1e18),
    )
    part.finish()
    return group


def read_case(part: Section) -> Case:
    """Returns the case that a table of the file declares."""
    case = Case(
        scenario=part.text("scenario", "dumbbell-cubic"),
        name=part.text("name"),
        scheme=part.text("scheme"),
        variant=part.text("variant", ""),
        overrides=part.texts("overrides"),
        rate_mbps=part.number("rate_mbps", 0.0),
        payload_share=part.number("payload_share", 1.0),
        from_share=part.number("from_share", 0.0),
        of_schemes=part.texts("of_schemes"),
        metrics=tuple(metric.name for metric in part.some_of("measured", METRICS)),
        averages=part.texts("averages"),
        groups=tuple(read_group(one) for one in part.sections("groups")),
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
