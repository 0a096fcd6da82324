"""NSDI 2014, section 5.1.3: half of the hosts use RC3, the other half TCP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Row, each
from sparelane.papers.rc3 import internet2, variants
from sparelane.papers.rc3.internet2 import AVERAGES, FCT, REDUCTION, TCP
from sparelane.papers.rc3.variants import Variant, mix
from sparelane.reports import plots

MIXED = Variant("half RC3, half TCP", (mix("tcp=0.5, rc3=0.5", "host"),))

GROUPS: Mapping[str, str] = {"tcp": "hosts with TCP", "rc3": "hosts with RC3"}


def plan(effort: Effort) -> Sequence[Simulation]:
    """All TCP, and the mix."""
    return variants.plan([MIXED], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times of each half, with the others on TCP and with the others on RC3."""
    return Evaluation(
        tuple(row for scheme in GROUPS for row in _rows(scheme, effort, outcomes)), internet2.notes(effort)
    )


def _rows(scheme: str, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    frames = variants.matched(MIXED, effort, outcomes, scheme)
    for average in AVERAGES:
        yield variants.tcp_row(GROUPS[scheme], frames, average)
        yield from variants.rows(GROUPS[scheme], {MIXED.name: frames}, average)


def draw(evaluation: Evaluation) -> Figure:
    """Completion times of each half of the hosts, all on TCP and mixed."""
    drawing, panels = plots.figure(len(AVERAGES), width_inches=plots.PAGE_INCHES)
    looks = ((TCP, "all hosts TCP", plots.TCP), (MIXED.name, MIXED.name, plots.RC3))
    for axes, average in zip(panels, AVERAGES, strict=True):
        bars = [
            plots.Bars.of_rows(
                label, look, [evaluation.find(key) for key in each(GROUPS.values(), FCT, scheme, average)]
            )
            for scheme, label, look in looks
        ]
        plots.grouped_bars(axes, list(GROUPS.values()), bars)
        cuts = each(GROUPS.values(), REDUCTION, MIXED.name, average)
        plots.reductions_above(axes, [evaluation.find(key).value for key in cuts], bars)
        axes.set_xlabel("senders")
        axes.set_ylabel(f"completion time,\n{average} (s)")
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(REDUCTION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
