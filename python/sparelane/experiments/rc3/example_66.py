"""NSDI 2014, section 2.2 and Fig. 3: 66 packets over a pipe of 50, of which the 21st and 22nd are dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation, exact
from sparelane.experiments.rc3.walkthrough import NAMES, Walk, draw_rounds, rounds_table

# Plain TCP sends without the drops.
WALK = Walk("rc3-example-66", rate_bps=12e6, delay_s=11.98e-3, rounds=6, settings={"tcp": ("drop=[]",)})

# Segments of normal priority in round trips 1, 2 and 3, under RC3.
CLASS_0 = (4, 8, 2)
LOW_PRIORITY = {1: 40, 2: 22}
COMPLETION = 4

REASONS = {
    ("RC3 round 3", "class-0 segments"): (
        "packets 13 to 20 left at low priority behind packets 5 to 12, so their acknowledgments are 8 ms behind "
        "when the window reaches them, and they go again; the paper lets the sender see all acknowledgments of a "
        "round trip before it sends"
    ),
}

ASSUMPTIONS = (
    "A round trip is counted from the sender's first data, after the handshake, and lasts until the first segment's "
    "acknowledgment is back; in the n-th one the sender sends what the acknowledgments of the (n-1)-th allow.",
    "Segments of low priority count when they are handed to the sender's interface, all at once.",
    "The flow completes in the round trip in which the sender hears that its last segment arrived, which is the one "
    "after that in which it was sent; the paper counts so.",
    "The 21st and the 22nd segment are lost when they are first sent, under RC3 at low priority; plain TCP, which the "
    "paper does not show, sends the same flow without that loss.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The flow under both schemes, cut at each round trip."""
    del effort
    return WALK.plan()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Segments by round trip, and the round trip in which the flow completes."""
    del effort
    sent = {name: WALK.sent_by_round(scheme, 0, outcomes) for scheme, name in NAMES.items()}
    rows = [
        exact(f"RC3 round {index}", "class-0 segments", "", paper, sent["RC3"][index - 1])
        for index, paper in enumerate(CLASS_0, start=1)
    ]
    rows += [
        exact(
            "RC3 round 1", f"priority-{priority} segments", "", paper, WALK.sent_by_round("rc3", priority, outcomes)[0]
        )
        for priority, paper in LOW_PRIORITY.items()
    ]
    rows += [
        exact(f"TCP round {index}", "class-0 segments", "", None, count)
        for index, count in enumerate(sent["TCP"], start=1)
        if count
    ]
    for scheme, name in NAMES.items():
        heard = WALK.completion(scheme, outcomes)
        completed = None if heard is None else math.floor(heard) + 1
        rows.append(Row(name, "completes in round trip", "", COMPLETION if name == "RC3" else None, completed, None))
    return Evaluation(tuple(rows), curves={"rounds": rounds_table(sent)})


def draw(evaluation: Evaluation) -> Figure:
    """Segments by round trip."""
    return draw_rounds(evaluation, {"RC3": CLASS_0})


EXPERIMENT = Experiment(
    id="rc3/example-66",
    title="The worked example of 66 packets",
    source="Mittal et al., NSDI 2014, section 2.2 and Fig. 3; HotNets 2013",
    method="One flow of 66 packets, initial window 4, over a link whose delay-bandwidth product is 50 packets; the "
    "21st and 22nd packets are dropped at low priority.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=1),
    quick=Effort("quick", seeds=1),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)
