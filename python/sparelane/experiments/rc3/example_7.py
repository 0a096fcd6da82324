"""The authors' slides: seven packets from a window of one, three round trips under TCP and one under RC3."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation, exact
from sparelane.experiments.rc3.walkthrough import NAMES, Walk, draw_rounds, rounds_table

WALK = Walk("rc3-example-7", rate_bps=12e6, delay_s=11.98e-3, rounds=4)

TCP_ROUNDS = (1, 2, 4)
ROUND_TRIPS = {"TCP": 3, "RC3": 1}

ASSUMPTIONS = (
    "Round trips are counted from the sender's first data, after the handshake, until it hears that the last segment "
    "arrived, and rounded: serialization takes a small part of one.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The flow under both schemes, cut at each round trip."""
    del effort
    return WALK.plan()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """How long the flow takes, and what TCP sends in each round trip."""
    del effort
    sent = {name: WALK.sent_by_round(scheme, 0, outcomes) for scheme, name in NAMES.items()}
    rows = []
    for scheme, name in NAMES.items():
        heard = WALK.completion(scheme, outcomes)
        rows.append(Row(name, "round trips", "", ROUND_TRIPS[name], None if heard is None else round(heard), None))
    low = sum(WALK.sent_by_round("rc3", priority, outcomes)[0] for priority in (1, 2, 3, 4))
    rows += [
        exact(f"TCP round {index}", "class-0 segments", "", paper, sent["TCP"][index - 1])
        for index, paper in enumerate(TCP_ROUNDS, start=1)
    ]
    rows.append(exact("RC3 round 1", "class-0 segments", "", 1, sent["RC3"][0]))
    rows.append(exact("RC3 round 1", "low-priority segments", "", 6, low))
    return Evaluation(tuple(rows), curves={"rounds": rounds_table(sent)})


def draw(evaluation: Evaluation) -> Figure:
    """Segments by round trip."""
    return draw_rounds(evaluation, {"TCP": TCP_ROUNDS, "RC3": (1,)})


EXPERIMENT = Experiment(
    id="rc3/example-7",
    title="The slides' example of seven packets",
    source='RC3 slides, "Example: FCT with Slow Start" and "Example: FCT with RC3"',
    method="One flow of seven packets with an initial window of one.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=1),
    quick=Effort("quick", seeds=1),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons={},
)
