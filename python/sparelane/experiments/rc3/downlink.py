"""NSDI 2014, section 5.1.2, summary: the links towards the hosts are the bottleneck, rather than those from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import AVERAGES, Printed, Setting

UPLINK = replace(SLOW_NEAR, name="uplink 100 Mb/s")
DOWNLINK = Setting(
    "downlink 100 Mb/s",
    ("topology.access_rate=1Gbps", "topology.access_downlink=100Mbps", "queue.limit=500KB"),
    load=0.3,
    gbps=0.1,
)
SETTINGS = (UPLINK, DOWNLINK)

PRINTED: Mapping[str, Mapping[str, Printed]] = {
    UPLINK.name: {},
    DOWNLINK.name: {"over flows": Printed(reduction=10.0)},
}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    'The paper says only: "Even in the worst case context we evaluated, when downlink rather than uplink capacities '
    'bottlenecked transmission, RC3 still outperformed baseline TCP by 10%". It gives no rates, load or average.',
    "Downlink: hosts send at 1 Gb/s into the baseline's core and receive at 100 Mb/s; the load of the downlinks is 30 "
    "%, that of all other links 3 %; buffers of 500 KB, the delay-bandwidth product of 100 Mb/s and 40 ms. Beside it, "
    "as in rc3/fig9-bdp: hosts that send and receive at 100 Mb/s, and a core in proportion.",
)

REASONS = {
    (f"{DOWNLINK.name} over flows", "reduction"): "the paper gives neither rates nor buffers, and the gain depends on "
    "them: with buffers of 100 KB it was 11 % over flows and 8 % over bytes, with 5 MB 42 % and 44 % (one seed)"
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes in both settings."""
    return internet2.plan(SETTINGS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions."""
    rows = (
        row
        for setting in SETTINGS
        for row in internet2.completion_rows(setting, PRINTED[setting.name], effort, outcomes)
    )
    return Evaluation(tuple(rows), internet2.notes(effort))


def draw(evaluation: Evaluation) -> Figure:
    """Reductions with either bottleneck."""
    drawing, [axes] = plots.figure()
    bars = [
        plots.Bars.of_rows(
            average, look, [evaluation.find(f"{setting.name} {average}", "reduction") for setting in SETTINGS]
        )
        for average, look in zip(AVERAGES, (plots.TCP, plots.RC3), strict=True)
    ]
    plots.grouped_bars(axes, [setting.name for setting in SETTINGS], bars)
    axes.set_xlabel("bottleneck")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 3)
    return drawing


EXPERIMENT = Experiment(
    id="rc3/downlink",
    title="The receiver's link is the bottleneck",
    source="Mittal et al., NSDI 2014, section 5.1.2, summary",
    method="Downlink rather than uplink capacities are the bottleneck; each flow under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)
