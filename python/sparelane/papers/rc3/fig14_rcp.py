"""NSDI 2014, Fig. 14(c): RCP, whose routers tell flows their rates, beside TCP and RC3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Row, measured
from sparelane.papers.rc3 import internet2, variants
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES
from sparelane.papers.rc3.internet2 import AVERAGES, BYTES, FCT, FLOWS, REDUCTION, TCP
from sparelane.papers.rc3.variants import Shared, Variant
from sparelane.reports import plots

# The defaults of [queue.rcp] are the constants of the authors' code.
RCP = Variant("RCP", ("scheme.rcp.controller=rcp", "workload.scheme=rcp", "queue.rcp={}", "queue.kind=fifo"))

RC3 = Shared("RC3", "rc3")
SCHEMES: Sequence[tuple[Variant | Shared, plots.Look]] = ((RCP, plots.THIRD), (RC3, plots.RC3))

ALL = "all flows"
PRINTED: Mapping[Key, float] = {
    Key(ALL, metric, scheme, average): paper
    for metric, scheme, *papers in (
        (FCT, TCP, 0.135, 0.443),
        (FCT, "RCP", 0.088, 0.117),
        (FCT, "RC3", 0.076, 0.114),
        (REDUCTION, "RCP", 33.86, 73.58),
        (REDUCTION, "RC3", 43.54, 74.35),
    )
    for average, paper in zip((FLOWS, BYTES), papers, strict=True)
}


def of_size(size_bytes: int, scheme: str) -> Key:
    """The reduction of flows of a size."""
    return Key(f"{size_bytes} bytes", REDUCTION, scheme)


# The flows that the paper calls the very smallest have up to so many packets.
SMALLEST = 4


def plan(effort: Effort) -> Sequence[Simulation]:
    """All TCP, all RCP, all RC3."""
    return variants.plan([scheme for scheme, _ in SCHEMES], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions, and the reductions by size."""
    frames = {scheme.name: variants.matched(scheme, effort, outcomes) for scheme, _ in SCHEMES}
    averages: list[Row] = []
    for average in AVERAGES:
        averages.append(variants.tcp_row(ALL, frames[RCP.name], average, PRINTED))
        averages += variants.rows(ALL, frames, average, PRINTED)
    by_size = {name: [internet2.reductions_by_size(flows) for flows in found] for name, found in frames.items()}
    sizes = (row for segments in FLOW_SIZES for row in _by_size(segments * MSS_BYTES, by_size))
    return Evaluation((*averages, *sizes), internet2.notes(effort))


def _by_size(size: int, by_size: Mapping[str, Sequence[Mapping[int, float]]]) -> Iterable[Row]:
    for name, seeds in by_size.items():
        yield measured(of_size(size, name), None, [found[size] for found in seeds if size in found])


def draw(evaluation: Evaluation) -> Figure:
    """Completion times, and the reduction by flow size."""
    drawing, [times, sizes] = plots.figure(2, width_inches=plots.PAGE_INCHES)
    bars = [
        plots.Bars.of_rows(label, look, [evaluation.find(Key(ALL, FCT, label, average)) for average in AVERAGES])
        for label, look in ((TCP, plots.TCP), *((scheme.name, look) for scheme, look in SCHEMES))
    ]
    plots.grouped_bars(times, list(AVERAGES), bars)
    times.set_xlabel("average")
    times.set_ylabel("mean completion time (s)")
    plots.legend_above(times, 4)
    reductions = [
        plots.Bars.of_rows(
            scheme.name,
            look,
            [evaluation.find(of_size(segments * MSS_BYTES, scheme.name)) for segments in FLOW_SIZES],
        )
        for scheme, look in SCHEMES
    ]
    plots.grouped_bars(sizes, [str(segments) for segments in FLOW_SIZES], reductions)
    sizes.tick_params(axis="x", labelsize=6)
    plots.both_signs(sizes)
    sizes.set_xlabel("flow size (packets)")
    sizes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(sizes, 2)
    return drawing


METRICS = named(FCT, REDUCTION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
