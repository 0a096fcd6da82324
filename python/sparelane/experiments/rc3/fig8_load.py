"""NSDI 2014, Fig. 8: the gain at 10, 30 and 50 % load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import about, at_least, at_most, falling, largest_difference, largest_factor, ours
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.completion_figure import draw_completion
from sparelane.experiments.rc3.internet2 import AVERAGES, Printed, Setting

# At 50 % load TCP's longer run would cost more than all others together.
LOADS = {percent: Setting(f"{percent}%", (), percent / 100, tcp_longer=percent < 50) for percent in (10, 30, 50)}

# What the results hang on, at two loads: other paths, and longer runs.
EVEN = {percent: LOADS[percent].varied(f"{percent}%, even paths", internet2.EVEN_PATHS) for percent in (30, 50)}
LONGER = {percent: replace(LOADS[percent], name=f"{percent}%, runs of 10 s", tcp_longer=False) for percent in (30, 50)}

# "Very heavily utilized links" are among what the slides list as of little help.
HEAVY = Setting("70%", (), 0.7)

PRINTED = {
    10: {"over flows": Printed(0.125, 0.068, 45.56), "over bytes": Printed(0.423, 0.091, 78.36)},
    30: {"over flows": Printed(0.135, 0.076, 43.54), "over bytes": Printed(0.443, 0.114, 74.35)},
    50: {"over flows": Printed(0.150, 0.088, 41.44), "over bytes": Printed(0.498, 0.176, 64.88)},
}


REASONS = {(f"30% over flows{internet2.RULE_MARK}", "TCP FCT"): internet2.THE_SLOWEST}


def longer(effort: Effort) -> Effort:
    """Runs of twice the length."""
    return replace(effort, stop_s=internet2.LONG_RUN * effort.stop_s)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes at the three loads; a full effort also at 70 %, and at two on even paths and for twice as long."""
    runs = internet2.plan(list(LOADS.values()), effort)
    if effort.name == "full":
        runs += internet2.plan([*EVEN.values(), HEAVY], effort) + internet2.plan(list(LONGER.values()), longer(effort))
    return runs


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions under both rules of averaging; what is varied has no number of the paper's."""
    rows = [
        row
        for rule in internet2.rules(effort)
        for percent, setting in LOADS.items()
        if setting.tcp_longer or rule == internet2.BOTH_BY_THE_END
        for row in internet2.completion_rows(setting, PRINTED[percent], effort, outcomes, rule)
    ]
    if effort.name == "full":
        rows += (
            row
            for setting in (HEAVY, *EVEN.values())
            for row in internet2.completion_rows(setting, {}, effort, outcomes)
        )
        rows += (
            row
            for setting in LONGER.values()
            for row in internet2.completion_rows(setting, {}, longer(effort), outcomes)
        )
    return Evaluation(tuple(rows), internet2.notes(effort))


def draw(evaluation: Evaluation) -> Figure:
    """Completion times by load, over flows and over bytes."""
    return draw_completion(evaluation, [setting.name for setting in LOADS.values()], "average load of the links")


def _rows_of(*metrics: str) -> list[tuple[str, str]]:
    return [(f"{percent}% {average}", metric) for percent in LOADS for average in AVERAGES for metric in metrics]


CLAIMS = (
    Claim(
        "Every reduction of the mean completion time, at 10, 30 and 50 % load, is within 3 points of the printed one "
        "(Fig. 8)",
        largest_difference(_rows_of("reduction")),
        full=at_most(3.0),
    ),
    Claim(
        "Every mean completion time is within 5 % of the printed one (Fig. 8)",
        largest_factor(_rows_of("TCP FCT", "RC3 FCT")),
        full=at_most(1.05),
    ),
    Claim(
        "RC3 cuts the mean over flows by 43.54 % at 30 % load (Fig. 8)",
        ours("30% over flows", "reduction"),
        full=about(43.54, 3.0),
        quick=about(43.54, 8.0),
    ),
    Claim(
        "RC3 cuts the mean over bytes by 74.35 % at 30 % load (Fig. 8)",
        ours("30% over bytes", "reduction"),
        full=about(74.35, 3.0),
        quick=about(74.35, 8.0),
    ),
    Claim(
        "The improvements over bytes decrease for higher loads (section 5.1.1)",
        falling([f"{percent}% over bytes" for percent in LOADS], "reduction"),
        full=at_least(1.02),
        quick=at_least(1.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig8-load",
    title="Reduction of the completion time by link load",
    source="Mittal et al., NSDI 2014, Fig. 8",
    method="Internet2 topology, 1 Gb/s, 40 ms; Poisson flows of empirical sizes at 10, 30 and 50 % load; each flow "
    "under TCP and under RC3.",
    assumptions=(
        *internet2.ASSUMPTIONS,
        *internet2.TWO_RULES,
        'Rows of 70 % load, "even paths" and "runs of 10 s" are varied: they show what the result hangs on, and have '
        "no number of the paper's beside them.",
    ),
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=2.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
