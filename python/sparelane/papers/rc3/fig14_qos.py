"""NSDI 2014, Fig. 14(b): a tenth of the flows is critical, and gets a higher class, or RC3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, difference, ours
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

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "Each flow is critical with probability 0.1, whatever its size and its ends.",
    "Higher class: critical flows are TCP in class 0, all others TCP in class 1, which routers serve when there is "
    "nothing of class 0. Each flow is compared with itself in the run in which all are TCP in one class.",
    'The variant "even paths" is ours, and has no number of the paper\'s.',
    'Of the other flows the paper says only that a higher class for the critical ones cost them "a very slight (<2%) '
    'penalty", and RC3 for the critical ones gave them "a slight (<1%) improvement".',
)


THE_PATHS = (
    "the gain is the wait that the critical flows are spared, and it hangs on the paths: on even paths (rows below) "
    "TCP's times, the higher class's and its gain are those printed, but RC3's gain over flows is then 5 points too "
    "high; which paths and which flows the authors had here is not known"
)

REASONS = {Key(CRITICAL, REDUCTION, "higher class", FLOWS): THE_PATHS}


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


CLAIMS = (
    Claim(
        "RC3 for the critical flows gains far more than a higher class: 33 points over flows (Fig. 14b)",
        difference(*each([CRITICAL], REDUCTION, ("RC3", "higher class"), FLOWS)),
        full=at_least(20.0),
        quick=at_least(15.0),
    ),
    Claim(
        "The other flows suffer a very slight penalty of the higher class, less than 2 % (section 5.1.4)",
        ours(Key(OTHERS, REDUCTION, "higher class", FLOWS)),
        full=(-2.0, 0.0),
        quick=(-5.0, 0.5),
    ),
    Claim(
        "The other flows improve slightly where the critical ones have RC3, by less than 1 % (section 5.1.4)",
        ours(Key(OTHERS, REDUCTION, "RC3", FLOWS)),
        full=(0.0, 1.0),
        quick=(-1.0, 4.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig14-qos",
    title="A higher class, or RC3, for a tenth of the flows",
    source="Mittal et al., NSDI 2014, section 5.1.4 and Fig. 14(b)",
    method="Internet2 topology, 1 Gb/s, 40 ms, 30 % load; 10 % of the flows are critical: TCP in a higher class, or "
    "RC3; each flow against itself with all flows on TCP.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=1.2),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
