"""NSDI 2014, Fig. 12: one, three and four levels of low priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import about, at_least, difference
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.completion_figure import draw_completion
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import Printed

# All but the last are limits; what is beyond them goes at the last level. No flow has more than 2107 packets.
SETTINGS = {
    replace(SLOW_NEAR, name="1 level", rc3_overrides=("scheme.rc3.levels=[]",)): {
        "over flows": Printed(0.167, 0.126, 24.55),
        "over bytes": Printed(0.691, 0.496, 28.22),
    },
    replace(SLOW_NEAR, name="3 levels"): {
        "over flows": Printed(0.167, 0.110, 33.98),
        "over bytes": Printed(0.691, 0.442, 36.05),
    },
    replace(SLOW_NEAR, name="4 levels", rc3_overrides=("scheme.rc3.levels=[10,110,1110]",)): {
        "over flows": Printed(0.167, 0.112, 32.94),
        "over bytes": Printed(0.691, 0.434, 37.19),
    },
}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "The buffer is the delay-bandwidth product that the paper names, 500 KB.",
    "One level: all low-priority packets at priority 1. Three: up to 40 packets from the end at priority 1, up to 440 "
    "at 2, the rest at 3. Four: up to 10, 110 and 1110, and the rest at 4. Limits add up as in the authors' code.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """TCP once, RC3 with each number of levels."""
    return internet2.plan(list(SETTINGS), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions."""
    rows = (
        row
        for setting, printed in SETTINGS.items()
        for row in internet2.completion_rows(setting, printed, effort, outcomes)
    )
    return Evaluation(tuple(rows), internet2.notes(effort))


def draw(evaluation: Evaluation) -> Figure:
    """Completion times by number of levels, over flows and over bytes."""
    return draw_completion(evaluation, [setting.name for setting in SETTINGS], "levels of low priority")


CLAIMS = (
    Claim(
        "Three levels give a stronger gain than one: 9.4 points over flows (Fig. 12)",
        difference(("3 levels over flows", "reduction"), ("1 level over flows", "reduction")),
        full=about(9.43, 4.0),
        quick=at_least(2.0),
    ),
    Claim(
        "Four levels differ from three very slightly: 1 point over flows (section 5.1.2)",
        difference(("3 levels over flows", "reduction"), ("4 levels over flows", "reduction")),
        full=about(1.04, 3.0),
        quick=about(1.04, 6.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig12-levels",
    title="One, three and four levels of low priority",
    source="Mittal et al., NSDI 2014, section 5.1.2 and Fig. 12",
    method="Internet2 topology, 100 Mb/s, 40 ms, 30 % load; each flow under TCP and under RC3 with 1, 3 (40, 400, 4000 "
    "packets) and 4 levels (10, 100, 1000, 10000).",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
