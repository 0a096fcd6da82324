"""RTCP, section VI: beside schemes that fill queues."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, measured
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, THROUGHPUT, Run
from sparelane.reports import plots

OTHERS = ("RTCP", "NewReno", "BBR")
# The flow that is looked at, and the other one from the same server to the same receiver, which starts with it.
PAIR = (
    '[{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="first", spread="100us"}, '
    '{kind="bulk", pairs="next", scheme="OTHER", traffic_class="second", spread="100us"}]'
)
# Both classes of traffic weigh the same.
WEIGHTS = "scheme.rtcp.weights={ first = 24000, second = 24000 }"


def beside(scheme: str, other: str) -> Run:
    """A flow of one scheme beside one of another, from every server to its neighbour."""
    mix = PAIR.replace("OTHER", datacentre.SCHEMES[other])
    return Run(scheme, (WEIGHTS,), f"beside {other}", mix=mix)


WITH_RTCP = [beside("RTCP", other) for other in OTHERS]
RUNS = [*WITH_RTCP, *(beside(scheme, scheme) for scheme in ("NewReno", "BBR"))]
OF_THE_OTHER = Metric("throughput of the other flow", "Mb/s")
SHARE = Metric("share of what both have", "%")


GREEDY = (
    "not explained: NewReno fills the queue, and RTCP, whose path is then always late, has hardly more than its window "
    "of one segment"
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """RTCP beside each, and the others beside themselves."""
    return datacentre.plan(RUNS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """What both flows have, and RTCP's share."""
    rows = []
    for run in RUNS:
        all = run.outcomes(effort, outcomes)
        rates = {of: [datacentre.throughput_mbps(o, effort.stop_s, of) for o in all] for of in ("first", "second")}
        for metric, of in ((THROUGHPUT, "first"), (OF_THE_OTHER, "second")):
            rows.append(measured(run.key(metric), None, rates[of]))
        both = [one + other for one, other in zip(rates["first"], rates["second"], strict=True)]
        rows.append(datacentre.ratio_row(run.key(SHARE), rates["first"], both))
        delays = datacentre.known(datacentre.mean_us(o, "first") for o in all)
        rows.append(measured(run.key(DELAY, MEAN), None, delays))
    return Evaluation(tuple(rows))


def draw(evaluation: Evaluation) -> Figure:
    """What RTCP and the other flow have."""
    drawing, [axes] = plots.figure()
    bars = [
        plots.Bars.of_rows(label, look, [evaluation.find(run.key(metric)) for run in WITH_RTCP])
        for label, look, metric in (
            ("RTCP", LOOKS["RTCP"], THROUGHPUT),
            ("the other", plots.TCP, OF_THE_OTHER),
        )
    ]
    plots.grouped_bars(axes, [f"beside\n{other}" for other in OTHERS], bars)
    axes.set_xlabel("two flows from each server")
    axes.set_ylabel("throughput (Mb/s)")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named(THROUGHPUT, SHARE)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
