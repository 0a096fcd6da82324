"""RTCP's simulations under several settings: which of the paper's statements can be had together, and which cannot."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, THROUGHPUT, Run
from sparelane.papers.rtcp.statements import GROUPS, STATEMENTS, TABLE_2, Numbers, holding, numbers_of, runs_of
from sparelane.reports import plots

SCHEMES = ("NewReno", "DCTCP", "BBR", "TIMELY", "LEDBAT", "Vegas", "constant", "RTCP")


@dataclass(frozen=True, slots=True)
class Setting:
    """What the paper leaves open, decided in one way.

    Attributes:
        name: how rows call it.
        overrides: of the scenario, whose own values are the first setting's.
    """

    name: str
    overrides: tuple[str, ...] = ()

    def runs(self, scheme: str) -> Mapping[str, Run]:
        """The runs of a scheme, by what they are of."""
        return {
            case: replace(run, settings=(*self.overrides, *run.settings), setting=f"{self.name}: {case}")
            for case, run in runs_of(scheme).items()
        }

    def numbers(self, effort: Effort, outcomes: Outcomes) -> list[Numbers]:
        """What was measured, seed by seed."""
        return [
            {
                name: value
                for scheme in SCHEMES
                for case, run in self.runs(scheme).items()
                for name, value in numbers_of(
                    case, scheme, outcomes[run.simulation(seed, effort)], effort.stop_s
                ).items()
            }
            for seed in effort.seed_numbers()
        ]


def _setting(name: str, routing: str, receive_window: str, x_max: int, alpha_unit: float, delta_unit: float) -> Setting:
    return Setting(
        name,
        (
            f"routing={routing}",
            f"transport.receive_window={receive_window}",
            f"scheme.rtcp.x_max={x_max}",
            f"scheme.rtcp.alpha_unit={alpha_unit:g}",
            f"scheme.rtcp.delta_unit={delta_unit:g}",
            f"scheme.constant.window={10 * x_max}",
        ),
    )


CHOSEN = _setting("the setting of all experiments", "ecmp", "unlimited", 8, 1.5, 0.175)
SETTINGS = (
    CHOSEN,
    _setting("closest to RTCP's numbers in Tables I and II", "ecmp", "unlimited", 8, 2, 0.1),
    _setting("for RTCP in random sending", "ecmp", "unlimited", 2, 1, 0.3),
    _setting("for the baselines: one path between two leaves", "single-path", "unlimited", 4, 1.5, 0.1),
    _setting("one path, windows of one bandwidth-delay product", "single-path", "131072B", 1, 0.5, 0.1),
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every scheme under every setting."""
    runs = [run for setting in SETTINGS for scheme in SCHEMES for run in setting.runs(scheme).values()]
    return datacentre.plan(runs, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """How many statements hold under each setting, by group, and the numbers that tell settings apart."""
    rows = [row for setting in SETTINGS for row in _rows(setting.name, setting.numbers(effort, outcomes))]
    return Evaluation(tuple(rows))


def _rows(name: str, found: Sequence[Numbers]) -> Iterable[Row]:
    mean = {key: statistics.fmean(one[key] for one in found) for key in found[0]}
    for group in (None, *GROUPS):
        yield measured(held_key(name, group), None, [holding(mean, group)])
    for pair in TABLE_2:
        for metric, average, key, paper in (
            (THROUGHPUT, "", "mbps", pair.printed.mbps),
            (DELAY, MEAN, "us", pair.printed.us),
        ):
            values = [100 * one[f"OS {pair.name} RTCP {key}"] / (paper or 1) for one in found]
            of_printed = Metric(f"{metric.name}, of the printed", "%")
            yield measured(Key(name, of_printed, "RTCP", average, f"Table II, {pair.name}"), None, values)
    for one in STATEMENTS:
        if one.group in ("Table I", "text", "preemption", "incast", "null"):
            yield measured(Key(name, Metric(one.text, "%")), None, [100 * one.value(numbers) for numbers in found])


def held_key(setting: str, group: str | None) -> Key:
    """How many statements of a group, or of all, hold under a setting."""
    return Key(setting, Metric(f"statements that hold, of {_size(group)}"), traffic=group or "")


def _size(group: str | None) -> int:
    return sum(group in (None, one.group) for one in STATEMENTS)


def draw(evaluation: Evaluation) -> Figure:
    """How many statements of each group hold under each setting."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    looks = (plots.RC3, plots.TCP, plots.THIRD, plots.MODEL, plots.FIFTH)
    sizes = {group: _size(group) for group in GROUPS}
    bars = [
        plots.Bars.of_rows(
            setting.name,
            look,
            [evaluation.find(held_key(setting.name, group)) for group in GROUPS],
        )
        for setting, look in zip(SETTINGS, looks, strict=False)
    ]
    plots.grouped_bars(axes, [f"{group}\n(of {size})" for group, size in sizes.items()], bars)
    axes.set_xlabel("statements of the paper")
    axes.set_ylabel("that hold")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named()


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
