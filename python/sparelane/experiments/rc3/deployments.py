"""RC3 where not every queue is as it would like: gains against TCP, by deployment and by group of flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Outcomes, Row, Simulation
from sparelane.experiments.rc3 import internet2, variants
from sparelane.experiments.rc3.analytic import MSS_BYTES
from sparelane.experiments.rc3.internet2 import AVERAGES
from sparelane.experiments.rc3.variants import Shared, Variant

ALL_FLOWS = "all flows"


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


@dataclass(frozen=True, slots=True)
class Deployment:
    """Which queues know priorities, and what the others do with packets of low priority.

    Attributes:
        name: how rows call it.
        variant: the run.
        look: of its bars.
    """

    name: str
    variant: Variant | Shared
    look: plots.Look


def plan(deployments: Sequence[Deployment], effort: Effort) -> Sequence[Simulation]:
    """All TCP, and RC3 in every deployment."""
    return variants.plan([deployment.variant for deployment in deployments], effort)


def evaluate(
    deployments: Sequence[Deployment],
    printed: Mapping[tuple[str, str], float],
    effort: Effort,
    outcomes: Outcomes,
) -> Evaluation:
    """Reductions by deployment and group of flows; `printed` has the paper's by both names."""
    rows = (row for deployment in deployments for row in _rows(deployment, printed, effort, outcomes))
    return Evaluation(tuple(rows), internet2.notes(effort))


def _rows(
    deployment: Deployment, printed: Mapping[tuple[str, str], float], effort: Effort, outcomes: Outcomes
) -> Iterable[Row]:
    frames = variants.matched(deployment.variant, effort, outcomes)
    for average in AVERAGES:
        yield variants.reduction_row(deployment.name, f"{ALL_FLOWS} {average}", frames, average)
    for group in GROUPS:
        paper = printed.get((deployment.name, group.name))
        yield variants.reduction_row(deployment.name, group.name, group.of(frames), "over flows", paper)


def draw(deployments: Sequence[Deployment], evaluation: Evaluation) -> Figure:
    """Reductions by group of flows, one bar a deployment."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    metrics = [*(f"{ALL_FLOWS} {average}" for average in AVERAGES), *(group.name for group in GROUPS)]
    bars = [
        plots.Bars.of_rows(
            deployment.name, deployment.look, [evaluation.find(deployment.name, metric) for metric in metrics]
        )
        for deployment in deployments
    ]
    plots.grouped_bars(axes, [metric.replace(" flows", " flows\n", 1).replace("\n ", "\n") for metric in metrics], bars)
    plots.both_signs(axes)
    axes.set_xlabel("flows")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, len(bars) + 1)
    return drawing
