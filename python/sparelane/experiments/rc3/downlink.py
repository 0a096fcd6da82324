"""NSDI 2014, section 5.1.2, summary: the links towards the hosts are the bottleneck, rather than those from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_least, difference, ours
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import AVERAGES, Printed, Setting

UPLINK = replace(SLOW_NEAR, name="uplink 100 Mb/s")


def _downlink(name: str, up: str, down: str, buffer: str) -> Setting:
    uneven = f'link=[{{select="access",rate="{down}",rate_from="routers"}}]'
    return Setting(name, (f"topology.access_rate={up}", uneven, f"queue.limit={buffer}"), load=0.3, gbps=0.1)


DOWNLINK = _downlink("downlink 100 Mb/s", "1Gbps", "100Mbps", "500KB")

# The paper gives neither rates nor buffers: how the gain depends on them.
VARIED = (
    _downlink("downlink 100 Mb/s, buffers of 100 KB", "1Gbps", "100Mbps", "100KB"),
    _downlink("downlink 100 Mb/s, buffers of 5 MB", "1Gbps", "100Mbps", "5MB"),
    _downlink("downlink 10 Mb/s, uplink 100 Mb/s", "100Mbps", "10Mbps", "50KB"),
    _downlink("downlink 500 Mb/s", "1Gbps", "500Mbps", "2.5MB"),
)
SETTINGS = (UPLINK, DOWNLINK, *VARIED)

PRINTED: Mapping[str, Mapping[str, Printed]] = {DOWNLINK.name: {"over flows": Printed(reduction=10.0)}}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    'The paper says only: "Even in the worst case context we evaluated, when downlink rather than uplink capacities '
    'bottlenecked transmission, RC3 still outperformed baseline TCP by 10%". It gives no rates, load or average.',
    "Downlink: hosts send at 1 Gb/s into the baseline's core and receive at 100 Mb/s; the load of the downlinks is 30 "
    "%, and hosts send at 3 % of their rate; buffers of 500 KB, the delay-bandwidth product of 100 Mb/s and 40 ms. "
    "Beside it, as in rc3/fig9-bdp: hosts that send and receive at 100 Mb/s, and a core in proportion.",
)

REASONS = {
    (f"{DOWNLINK.name} over flows", "reduction"): "the paper gives neither rates nor buffers, and the gain depends on "
    "both: in the rows below it is about what the paper prints where buffers are 100 KB, or where downlinks have 10 "
    "Mb/s, and more than four times that with downlinks of 500 Mb/s; which of them the authors had is not known"
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes in both settings."""
    return internet2.plan(SETTINGS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions."""
    rows = (
        row
        for setting in SETTINGS
        for row in internet2.completion_rows(setting, PRINTED.get(setting.name, {}), effort, outcomes)
    )
    return Evaluation(tuple(rows), internet2.notes(effort))


def draw(evaluation: Evaluation) -> Figure:
    """Reductions with either bottleneck."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    bars = [
        plots.Bars.of_rows(
            average, look, [evaluation.find(f"{setting.name} {average}", "reduction") for setting in SETTINGS]
        )
        for average, look in zip(AVERAGES, (plots.TCP, plots.RC3), strict=True)
    ]
    places = [setting.name.replace(", ", ",\n").replace(" 1", "\n1", 1) for setting in SETTINGS]
    plots.grouped_bars(axes, places, bars)
    axes.tick_params(axis="x", labelsize=6)
    axes.set_xlabel("bottleneck")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 3)
    return drawing


CLAIMS = (
    Claim(
        "Even where downlinks are the bottleneck RC3 outperforms TCP by 10 % (section 5.1.2)",
        ours(f"{DOWNLINK.name} over flows", "reduction"),
        full=at_least(10.0),
        quick=at_least(5.0),
    ),
    Claim(
        "It is the worst case: RC3 gains less than with uplinks of the same rate (section 5.1.2)",
        difference((f"{UPLINK.name} over bytes", "reduction"), (f"{DOWNLINK.name} over bytes", "reduction")),
        full=at_least(3.0),
        quick=at_least(0.0),
    ),
)


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
    claims=CLAIMS,
)
