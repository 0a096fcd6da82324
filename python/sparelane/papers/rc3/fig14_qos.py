"""NSDI 2014, Fig. 14(b): a tenth of the flows is critical, and gets a higher class, or RC3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, each
from sparelane.papers.rc3 import internet2, variants
from sparelane.papers.rc3.internet2 import AVERAGES, BASELINE, BYTES, FCT, FLOWS, REDUCTION, TCP
from sparelane.papers.rc3.variants import Variant, mix
from sparelane.reports import plots

CRITICAL = "critical flows"
OTHERS = "other flows"


@dataclass(frozen=True, slots=True)
class Service:
    """What the critical flows get.

    Attributes:
        variant: the run.
        critical: their scheme; the others have the scheme `tcp`.
        look: of the bars.
    """

    variant: Variant
    critical: str
    look: plots.Look


SERVICES = (
    Service(
        Variant(
            "higher class",
            (
                'scheme.critical={controller="newreno", initial_window=4}',
                "scheme.tcp.class=1",
                mix("tcp=0.9, critical=0.1", "flow"),
            ),
        ),
        "critical",
        plots.THIRD,
    ),
    Service(
        Variant("RC3", (mix("tcp=0.9, rc3=0.1", "flow"),)),
        "rc3",
        plots.RC3,
    ),
)

# What the gain hangs on: the same where all links are loaded alike.
EVEN = BASELINE.varied("even paths", internet2.EVEN_PATHS)
ON_EVEN_PATHS = tuple(replace(service, variant=replace(service.variant, base=EVEN)) for service in SERVICES)

PRINTED: Mapping[Key, float] = {
    Key(CRITICAL, metric, scheme, average): paper
    for metric, scheme, *papers in (
        (FCT, TCP, 0.126, 0.435),
        (FCT, "higher class", 0.119, 0.411),
        (FCT, "RC3", 0.078, 0.120),
        (REDUCTION, "higher class", 5.33, 5.64),
        (REDUCTION, "RC3", 38.31, 72.43),
    )
    for average, paper in zip((FLOWS, BYTES), papers, strict=True)
}


THE_PATHS = (
    "the gain is the wait that the critical flows are spared, and it hangs on the paths: on even paths (rows below) "
    "TCP's times, the higher class's and its gain are those printed, but RC3's gain over flows is then 5 points too "
    "high; which paths and which flows the authors had here is not known"
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """All TCP, a higher class for a tenth of the flows, and RC3 for a tenth; a full effort also on even paths."""
    services = SERVICES if effort.name == "quick" else (*SERVICES, *ON_EVEN_PATHS)
    return variants.plan([service.variant for service in services], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times of the critical flows and of the others."""
    rows = [*_critical(SERVICES, "", effort, outcomes), *_others(effort, outcomes)]
    if effort.name == "full":
        rows += _critical(ON_EVEN_PATHS, EVEN.variant, effort, outcomes)
    return Evaluation(tuple(rows), internet2.notes(effort))


def _critical(services: Sequence[Service], variant: str, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    frames = {
        service.variant.name: variants.matched(service.variant, effort, outcomes, service.critical)
        for service in services
    }
    for average in AVERAGES:
        yield variants.tcp_row(CRITICAL, next(iter(frames.values())), average, PRINTED, variant=variant)
        yield from variants.rows(CRITICAL, frames, average, PRINTED, variant=variant)


def _others(effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    frames = {service.variant.name: variants.matched(service.variant, effort, outcomes, "tcp") for service in SERVICES}
    for average in AVERAGES:
        yield from variants.rows(OTHERS, frames, average)


def draw(evaluation: Evaluation) -> Figure:
    """Completion times of the critical flows, and what the others gain or lose."""
    drawing, [times, change] = plots.figure(2, width_inches=plots.PAGE_INCHES)

    def bars(label: str, look: plots.Look, flows: str, metric: Metric, scheme: str) -> plots.Bars:
        keys = each([flows], metric, scheme, AVERAGES)
        return plots.Bars.of_rows(label, look, [evaluation.find(key) for key in keys])

    names = [(service.variant.name, service.look) for service in SERVICES]
    regular = bars("all TCP", plots.TCP, CRITICAL, FCT, TCP)
    plots.grouped_bars(
        times, list(AVERAGES), [regular, *(bars(name, look, CRITICAL, FCT, name) for name, look in names)]
    )
    times.set_xlabel(CRITICAL)
    times.set_ylabel("mean completion time (s)")
    plots.legend_above(times, 2)
    changes = [bars(f"{name} for the critical", look, OTHERS, REDUCTION, name) for name, look in names]
    plots.grouped_bars(change, list(AVERAGES), changes)
    plots.both_signs(change)
    change.set_xlabel(OTHERS)
    change.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(change, 1)
    return drawing


METRICS = named(FCT, REDUCTION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
