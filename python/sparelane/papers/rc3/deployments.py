"""Experiments with RC3 where not every queue is as it would like: gains against TCP, a file each, of this kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration
from sparelane.papers.engine.rows import Evaluation, Key, Row, joined
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3 import internet2, variants
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import AVERAGES, FLOWS, RC3, REDUCTION, Setting
from sparelane.papers.rc3.variants import Shared, Variant
from sparelane.reports import plots


@dataclass(frozen=True, slots=True)
class Group:
    """Flows of similar size.

    Attributes:
        name: how rows call it.
        least: segments.
        most: segments.
    """

    name: str
    least: int
    most: int

    def of(self, frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
        """The flows of these sizes."""
        inside = pl.col("size_bytes").is_between(self.least * MSS_BYTES, self.most * MSS_BYTES)
        return [frame.filter(inside) for frame in frames]


# The paper speaks of small, medium and large flows without bounds. In Fig. 7, flows up to four packets gain nothing,
# flows of 5 and 7 about 40 %, all larger ones more than 65 %.
SMALL = Group("small flows (1 to 4 packets)", 1, 4)
MEDIUM = Group("medium flows (5 and 7 packets)", 5, 7)
LARGE = Group("large flows (40 to 2107 packets)", 40, 2107)
GROUPS = (SMALL, MEDIUM, LARGE)


LOOKS: Mapping[str, plots.Look] = {
    "blue": plots.RC3,
    "orange": plots.THIRD,
    "white": plots.MODEL,
    "grey": plots.TCP,
    "violet": plots.FOURTH,
}
METRICS = {REDUCTION.name: REDUCTION}


@dataclass(frozen=True, slots=True)
class Deployment:
    """Which queues know priorities, and what the others do with packets of low priority.

    Attributes:
        key: what rows call it: a setting, and a variant where it is not the paper's.
        run: all flows under RC3.
        look: of its bars; `None` where the figure leaves it out.
        full_only: a quick effort leaves it out.
    """

    key: Key
    run: Variant | Shared
    look: plots.Look | None
    full_only: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All deployments, and the paper's numbers."""

    deployments: tuple[Deployment, ...]
    printed: Mapping[Key, float]

    def chosen(self, effort: Effort) -> list[Deployment]:
        """Those of an effort."""
        return [one for one in self.deployments if effort.name == "full" or not one.full_only]

    def plan(self, effort: Effort) -> Sequence[Simulation]:
        """All TCP, and RC3 in every deployment."""
        return variants.plan([one.run for one in self.chosen(effort)], effort)

    def evaluate(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """Reductions by deployment and group of flows."""
        rows = (row for one in self.chosen(effort) for row in self._rows(one, effort, outcomes))
        return Evaluation(tuple(rows), internet2.notes(effort))

    def _rows(self, one: Deployment, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
        frames = variants.matched(one.run, effort, outcomes)
        for average in AVERAGES:
            yield variants.reduction_row(replace(one.key, average=average), frames, average)
        for group in GROUPS:
            key = replace(one.key, average=FLOWS, traffic=group.name)
            yield variants.reduction_row(key, group.of(frames), FLOWS, self.printed.get(key))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Reductions by group of flows, one bar a deployment."""
        drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
        groups = [*(("", average) for average in AVERAGES), *((group.name, FLOWS) for group in GROUPS)]
        bars = [
            plots.Bars.of_rows(
                one.key.setting,
                one.look,
                [evaluation.find(replace(one.key, traffic=name, average=average)) for name, average in groups],
            )
            for one in self.deployments
            if one.look is not None
        ]
        labels = [name.replace(" flows", " flows\n", 1).replace("\n ", "\n") or average for name, average in groups]
        plots.grouped_bars(axes, labels, bars)
        plots.both_signs(axes)
        axes.set_xlabel("flows")
        axes.set_ylabel("reduction of mean\ncompletion time (%)")
        plots.legend_above(axes, len(bars) + 1)
        return drawing


def experiment(declared: Declaration) -> Experiment:
    """The experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    base = rest.one_of("like", internet2.NAMED, "baseline")
    plan = Plan(tuple(_deployment(part, base) for part in rest.sections("deployment")), declared.printed)
    rest.finish()
    return declared.experiment(plan.plan, plan.evaluate, plan.draw)


def _deployment(part: Section, base: Setting) -> Deployment:
    key = Key(part.text("name"), REDUCTION, RC3, variant=part.text("variant", ""))
    overrides = part.texts("overrides")
    label = joined(RC3, key.setting, key.variant)
    run = Variant(label, ("workload.scheme=rc3", *overrides), base) if overrides else Shared(RC3, "rc3", base)
    found = Deployment(key, run, part.one_of("colour", LOOKS) if "colour" in part else None, part.flag("full_only"))
    part.finish()
    return found
