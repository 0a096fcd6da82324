"""NSDI 2014, Fig. 9: the gain at delay-bandwidth products from 500 KB to 50 MB."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_least, at_most, largest_difference, largest_factor, ratio
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.completion_figure import draw_completion
from sparelane.experiments.rc3.internet2 import Printed, Rule, Setting

LOAD = 0.3
SLOW = ("topology.access_rate=100Mbps",)
FAR = ("topology.core_delay=100ms",)


def _buffer(size: str) -> tuple[str, ...]:
    return (f"queue.limit={size}",)


SLOW_NEAR = Setting("100 Mb/s 40 ms", (*SLOW, *_buffer("500KB")), LOAD, gbps=0.1, tcp_longer=True)
SLOW_FAR = Setting("100 Mb/s 400 ms", (*SLOW, *FAR, *_buffer("5MB")), LOAD, gbps=0.1, tcp_longer=True)
FAST_NEAR = Setting("1 Gb/s 40 ms", (), LOAD, tcp_longer=True)
FAST_FAR = Setting("1 Gb/s 400 ms", (*FAR, *_buffer("50MB")), LOAD, tcp_longer=True)
SETTINGS = (SLOW_NEAR, SLOW_FAR, FAST_NEAR, FAST_FAR)

PRINTED = {
    "100 Mb/s 40 ms": {"over flows": Printed(0.167, 0.110, 33.98), "over bytes": Printed(0.691, 0.442, 36.05)},
    "100 Mb/s 400 ms": {"over flows": Printed(0.948, 0.567, 40.29), "over bytes": Printed(3.501, 0.783, 77.62)},
    "1 Gb/s 40 ms": {"over flows": Printed(0.135, 0.076, 43.54), "over bytes": Printed(0.443, 0.114, 74.35)},
    "1 Gb/s 400 ms": {"over flows": Printed(0.971, 0.558, 42.45), "over bytes": Printed(3.590, 0.569, 84.17)},
}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    *internet2.TWO_RULES,
    "400 ms: the core delays are ten times as long, the access links stay at 1 ms.",
    'The 400 ms rows are of the rule "TCP to 10 s" first.',
    "The buffer is the delay-bandwidth product that the paper names: 500 KB, 5 MB, 5 MB and 50 MB.",
)


TOO_LATE = (
    "the printed times are under the other rule: a flow that starts at 2 s and counts under this one has taken less "
    "than 3 s, which is less than the paper's mean for TCP over bytes; see the rows named TCP to 10 s"
)

REASONS = {
    (f"{setting.name} {average}", metric): TOO_LATE
    for setting in (SLOW_FAR, FAST_FAR)
    for average, metric in (
        ("over flows", "TCP FCT"),
        ("over flows", "reduction"),
        ("over bytes", "TCP FCT"),
        ("over bytes", "RC3 FCT"),
    )
} | {
    (f"{SLOW_FAR.name} over bytes", "reduction"): TOO_LATE,
    (f"{FAST_NEAR.name} over flows{internet2.RULE_MARK}", "TCP FCT"): internet2.THE_SLOWEST,
    **{
        (f"{SLOW_NEAR.name} {average}{internet2.RULE_MARK}", metric): internet2.THE_SLOWEST
        for average in internet2.AVERAGES
        for metric in ("TCP FCT", "reduction")
    },
    (f"{SLOW_NEAR.name} over flows{internet2.RULE_MARK}", "RC3 FCT"): internet2.THE_SLOWEST,
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes in the four settings."""
    return internet2.plan(SETTINGS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions under both rules of averaging."""
    order = internet2.rules(effort)
    firsts = {setting: _first_rule(setting, effort) for setting in SETTINGS}
    rows = [
        row
        for setting, first in firsts.items()
        for row in internet2.completion_rows(setting, PRINTED[setting.name], effort, outcomes, first)
    ]
    rows += (
        row
        for setting, first in firsts.items()
        for rule in order
        if rule != first
        for row in internet2.completion_rows(setting, PRINTED[setting.name], effort, outcomes, rule)
    )
    return Evaluation(tuple(rows), internet2.notes(effort))


def _first_rule(setting: Setting, effort: Effort) -> Rule:
    """The first of the rules that the effort has, as `internet2.TWO_RULES` says."""
    first = internet2.first_rule(PRINTED[setting.name])
    return first if first in internet2.rules(effort) else internet2.BOTH_BY_THE_END


def draw(evaluation: Evaluation) -> Figure:
    """Completion times by setting, over flows and over bytes, each by its first rule."""
    names = [setting.name for setting in SETTINGS]
    known = {row.row for row in evaluation.rows}
    average = next(iter(internet2.AVERAGES))
    rules = {
        name: internet2.RULE_MARK
        for name in names
        if internet2.first_rule(PRINTED[name]) == internet2.TCP_LONGER
        and f"{name} {average}{internet2.RULE_MARK}" in known
    }
    return draw_completion(evaluation, names, "bottleneck and mean round-trip time", rules=rules)


FIRST_ROWS = [
    f"{setting.name} {average}{internet2.first_rule(PRINTED[setting.name]).suffix}"
    for setting in SETTINGS
    for average in internet2.AVERAGES
]

CLAIMS = (
    Claim(
        "Every reduction, by its first rule of averaging, is within 3 points of the printed one (Fig. 9)",
        largest_difference([(row, "reduction") for row in FIRST_ROWS]),
        full=at_most(3.0),
    ),
    Claim(
        "Every mean completion time, by its first rule of averaging, is within 10 % of the printed one (Fig. 9)",
        largest_factor([(row, metric) for row in FIRST_ROWS for metric in ("TCP FCT", "RC3 FCT")]),
        full=at_most(1.10),
    ),
    Claim(
        "The improvement increases with the delay-bandwidth product: over bytes from 500 KB to 50 MB by 2.3 times "
        "(Fig. 9)",
        ratio((f"{FAST_FAR.name} over bytes", "reduction"), (f"{SLOW_NEAR.name} over bytes", "reduction")),
        full=at_least(1.7),
        quick=at_least(1.3),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig9-bdp",
    title="Reduction of the completion time by delay-bandwidth product",
    source="Mittal et al., NSDI 2014, Fig. 9",
    method="Internet2 topology at 100 Mb/s and 1 Gb/s, 40 and 400 ms; 30 % load; each flow under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
