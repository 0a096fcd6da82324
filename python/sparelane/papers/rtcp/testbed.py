"""RTCP, section V-A, Figs. 4 to 7: the testbed's flows on the TCP of Linux and in the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.claims import FACTOR, Value, median_difference, unexplained
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.engine.statistics import jackknife
from sparelane.papers.rtcp import clients
from sparelane.papers.rtcp.clients import CLASSES, FCT, GOODPUT, RCT, Sample, Setting, Statistic, sample
from sparelane.reports import plots

SCENARIO = "rtcp-linux"
Side = Literal["simulator", "linux"]
SIDES: tuple[Side, ...] = ("simulator", "linux")
# The length of a run in multiples of the requests' time, so that flows can finish.
LONG_RUN = 6
# Hosts acknowledge each segment at once. Those of the simulator always do.
EACH = ("transport.delayed_ack=false",)
# The switch marks for DCTCP alone, since other schemes would request marks as well.
MARKS: Mapping[str, tuple[str, ...]] = {"DCTCP": ("queue.mark_at=20packets",)}
PERCENTILES = (50, 99)
# Flows take idle connections, as with the paper's generator. In a variant, each opens a connection of its own.
OWN = "a connection for each flow"

# Two things are varied. Linux acknowledges each segment, as the simulator does. The simulator has the servers in every
# other order: they are alike, but their order decides which of two simultaneous packets is first.
EACH_ON_BOTH = "Linux acknowledges each segment"
SERVERS = ("left0", "left1", "left2", "left3")
OTHER_ORDERS = tuple(permutations(SERVERS))[1:]
ENDS = {f"the {name} over all orders of the servers": end for name, end in (("least", min), ("largest", max))}

COLUMN_INCHES = 1.85
LABELS_INCHES = 0.5


def cell(setting: Setting, scheme: str, side: Side, effort: Effort, *varied: str) -> Cell:
    """Returns the run of a scheme on one side. Under a seed, both sides send the same flows."""
    return Cell(
        SCENARIO,
        (
            *setting.requests(scheme, effort.stop_s, LONG_RUN),
            *setting.alphas(scheme),
            *MARKS.get(scheme, ()),
            *setting.overrides,
            *(EACH if side == "simulator" else ()),
            *varied,
        ),
        on=side,
        label=", ".join(filter(None, (setting.name, setting.variant, scheme, side, *varied))),
        cost=(10.0 if side == "linux" else 0.03) * setting.load * effort.stop_s,
    )


def with_own_connections(setting: Setting) -> Setting:
    """Returns the setting in which each flow opens a connection."""
    return setting.varied(OWN, "workload.connections=new")


def other_orders(setting: Setting, scheme: str, effort: Effort) -> list[Cell]:
    """Returns the runs in the simulator with the servers in each other order."""
    names = [", ".join(f'"{server}"' for server in order) for order in OTHER_ORDERS]
    return [cell(setting, scheme, "simulator", effort, f"workload.servers=[{listed}]") for listed in names]


def statistics(setting: Setting) -> list[Statistic]:
    """Returns what is measured: percentiles of the times of flows, or of requests of several flows, and goodput."""
    metric = RCT if any("fan_out" in override for override in setting.overrides) else FCT
    return [*(Statistic(metric, name, percent) for name in CLASSES for percent in PERCENTILES), GOODPUT]


@dataclass(frozen=True, slots=True)
class Testbed:
    """The experiment.

    Attributes:
        settings: the figures' settings; a quick effort has the first one alone.
        varied: runs whose numbers differ by more than 10 %, by setting and scheme; Linux acknowledges each segment.
        ordered: the rows for which the order of the servers matters; a full effort has rows with the other orders.
    """

    settings: Sequence[Setting]
    varied: frozenset[tuple[str, str]]
    ordered: frozenset[Key]

    def _runs(self, effort: Effort) -> list[tuple[Setting, str]]:
        settings = self.settings[:1] if effort.name == "quick" else self.settings
        return [(setting, scheme) for setting in settings for scheme in setting.schemes]

    def _is_varied(self, setting: Setting, scheme: str, effort: Effort) -> bool:
        return effort.name == "full" and (setting.name, scheme) in self.varied

    def _ordered(self, setting: Setting, scheme: str) -> list[Statistic]:
        """The statistics of a run that depend on the order of the servers."""
        return [one for one in statistics(setting) if one.key(setting, scheme) in self.ordered]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields both sides of each run, and their variants."""
        for run in self._runs(effort):
            yield from (cell(*run, side, effort) for side in SIDES)
            if effort.name == "full":
                setting, scheme = run
                yield from (cell(with_own_connections(setting), scheme, side, effort) for side in SIDES)
            if self._is_varied(*run, effort):
                yield cell(*run, "linux", effort, *EACH)
                yield from other_orders(*run, effort) if self._ordered(*run) else ()

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns our numbers and Linux's, computed from the flows of all seeds together."""

        def samples(cell: Cell) -> list[Sample]:
            return [sample(outcome, runs.effort) for outcome in runs.of(cell)]

        rows: list[Row] = []
        left = dict.fromkeys(SIDES, 0)
        for setting, scheme in self._runs(runs.effort):
            ours, linux = (samples(cell(setting, scheme, side, runs.effort)) for side in SIDES)
            found = [_row(one, one.key(setting, scheme), ours, linux) for one in statistics(setting)]
            rows += found
            for side, sampled in zip(SIDES, (ours, linux), strict=True):
                left[side] += sum(one.unfinished for one in sampled)
            if runs.effort.name == "full":
                own = with_own_connections(setting)
                ours_own, linux_own = (samples(cell(own, scheme, side, runs.effort)) for side in SIDES)
                rows += [_row(one, one.key(own, scheme), ours_own, linux_own) for one in statistics(own)]
            if not self._is_varied(setting, scheme, runs.effort):
                continue
            each = samples(cell(setting, scheme, "linux", runs.effort, *EACH))
            for one in statistics(setting):
                rows.append(_row(one, replace(one.key(setting, scheme), variant=EACH_ON_BOTH), ours, each))
            if ordered := self._ordered(setting, scheme):
                orders = [ours, *map(samples, other_orders(setting, scheme, runs.effort))]
                by_key = {row.key: row for row in found}
                for one in ordered:
                    row = by_key[one.key(setting, scheme)]
                    known = [value for value in map(one.of, orders) if not math.isnan(value)]
                    for variant, end in ENDS.items():
                        ended = end(known) if known else None
                        rows.append(Row(replace(row.key, variant=variant), row.paper, ended))
        notes = (
            f"Flows that did not finish: on Linux {left['linux']}, in the simulator {left['simulator']}.",
            self._acknowledged(runs),
        )
        return Evaluation(tuple(rows), notes)

    def _acknowledged(self, runs: Runs) -> str:
        """A note on the share of segments that Linux's client acknowledges."""
        shares: dict[str, list[float]] = {}
        for setting, scheme in self._runs(runs.effort):
            found = [_acknowledged_share(one) for one in runs.of(cell(setting, scheme, "linux", runs.effort))]
            shares.setdefault(scheme, []).extend(share for share in found if share is not None)
        listed = "; ".join(f"{scheme} {100 * np.mean(found):.0f} %" for scheme, found in shares.items() if found)
        return f"Acknowledgments of Linux's client, in percent of the segments that it receives: {listed or 'none'}."

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns times of both classes and goodput, with a column for each setting."""
        shown = [one for one in self.settings if any(row.key.setting == one.name for row in evaluation.rows)]
        places = [statistic for statistic in statistics(shown[0]) if statistic.percent != 50]
        size = LABELS_INCHES + COLUMN_INCHES * len(shown), 0.85 * plots.HEIGHT_INCHES * len(places)
        drawing = Figure(figsize=size, layout="constrained")
        panels = drawing.subplots(len(places), len(shown), sharey="row", squeeze=False)
        for axes, setting in zip(panels[0], shown, strict=True):
            axes.set_title(setting.name.replace(", ", "\n", 1))
        for number, row in enumerate(panels):
            known: list[float] = []
            for axes, setting in zip(row, shown, strict=True):
                [*times, goodput] = statistics(setting)
                statistic = (times[1], times[3], goodput)[number]
                known += _panel(axes, evaluation, setting, statistic)
            name = f"{statistic.traffic} flows,\n99th percentile (ms)" if statistic.traffic else "goodput (Mb/s)"
            row[0].set_ylabel(name)
            if statistic.traffic and known:
                row[0].set_ylim(min(known) / 1.6, max(known) * 1.6)
        drawing.legend(*panels[0][-1].get_legend_handles_labels(), loc="outside upper left", ncols=3)
        return drawing


def _row(statistic: Statistic, key: Key, ours: Sequence[Sample], linux: Sequence[Sample]) -> Row:
    """Our number and Linux's, with the interval of their difference: both sides have the same flows under a seed."""

    def difference(seeds: Sequence[int]) -> float:
        one, other = (statistic.of(side[at] for at in seeds) for side in (ours, linux))
        return one - other

    number, witness = statistic.of(ours), statistic.of(linux)
    if math.isnan(number) or math.isnan(witness):
        return Row(key, None, None)
    interval = jackknife(difference, len(linux))
    # If all seeds have the same difference, the interval consists of rounding errors.
    return Row(key, witness, number, None if interval is None else round(interval, 12))


def _acknowledged_share(outcome: Outcome) -> float | None:
    counted = outcome.counters.get("right0", {})
    received = counted.get("Tcp.InSegs", 0)
    return counted["Tcp.OutSegs"] / received if received else None


def _panel(axes: Axes, evaluation: Evaluation, setting: Setting, statistic: Statistic) -> list[float]:
    """Draws a statistic of a setting; returns its numbers."""
    plain = [evaluation.find(statistic.key(setting, scheme)) for scheme in setting.schemes]
    known = {row.key: row for row in evaluation.rows}
    varied = [known.get(replace(row.key, variant=EACH_ON_BOTH)) for row in plain]
    series = [
        _bars("Linux", plots.TCP, plain, [row.paper for row in plain]),
        _bars(EACH_ON_BOTH, plots.THIRD, plain, [row.paper if row else None for row in varied]),
        _bars("simulator", plots.RC3, [replace(row, paper=None) for row in plain]),
    ]
    (plots.grouped_points if statistic.traffic else plots.grouped_bars)(axes, list(setting.schemes), series)
    return [number for bars in series for number in bars.heights if number]


def _bars(
    label: str, look: plots.Look, rows: Sequence[Row], numbers: Sequence[float | None] | None = None
) -> plots.Bars:
    """Bars of rows, or of other numbers in their place."""
    if numbers is not None:
        rows = [Row(row.key, None, number) for row, number in zip(rows, numbers, strict=True)]
    return plots.Bars.of_rows(label, look, rows)


def _on_linux(setting: str, metric: str, traffic: str, others: Sequence[str]) -> Value:
    """RTCP's 99th percentile over the least of the others', on Linux."""

    def value(evaluation: Evaluation) -> float:
        rtcp, *rest = (
            evaluation.paper(Key(setting, Metric(metric, "ms"), scheme, "99th percentile", traffic))
            for scheme in ("RTCP", *others)
        )
        return rtcp / min(rest)

    value.unit = FACTOR  # type: ignore[attr-defined]
    return value


METRICS = named(FCT, RCT, GOODPUT.metric)
VALUES: Mapping[str, Callable[..., Value]] = {
    "median difference": lambda: median_difference(lambda row: row.counts),
    "unexplained": lambda: unexplained(lambda row: row.counts),
    "on Linux": _on_linux,
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    study = Testbed(
        settings=clients.settings(rest),
        varied=frozenset((setting, scheme) for setting, *schemes in rest.lists("varied") for scheme in schemes),
        ordered=frozenset(
            Key(setting, METRICS[metric], scheme, average, traffic)
            for setting, scheme, metric, traffic, *averages in rest.lists("ordered")
            for average in averages
        ),
    )
    rest.finish()
    return declared.study(study.cells, study.evaluate, study.draw)
