"""The authors' slides: seven packets from a window of one, three round trips under TCP and one under RC3."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import largest_difference
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.example_66 import PACKETS, segments
from sparelane.papers.rc3.walkthrough import NAMES, Walk, draw_rounds

# No more than fits a round trip is ever sent.
WALK = Walk(segments=7, initial_window=1, capacity=50, drops={}, scenario="rc3-example-7")

ROUND_TRIPS = {"TCP": 3, "RC3": 1}
CLASS_0 = {"TCP": (1, 2, 4), "RC3": (1,)}
LOW_PRIORITY = 6
LOW = segments("RC3", 1, "low-priority")


def taken(scheme: str, variant: str = "") -> Key:
    """How long the flow takes."""
    return Key("the flow", Metric("round trips"), scheme, variant=variant)


ASSUMPTIONS = (
    "The slides count in rounds: all acknowledgments of a round are back before the next begins. They count rounds of "
    "sending, from the first data, after the handshake.",
    'In the rows "packet by packet" a flow takes the round trips from the sender\'s first data until it hears that '
    "the last segment arrived, rounded, since serialization takes a small part of one.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The flow under both schemes, cut at each round trip."""
    del effort
    return WALK.plan()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """How long the flow takes, and what it sends in each round."""
    del effort
    rows = []
    for scheme, name in NAMES.items():
        rounds = WALK.rounds(scheme)
        rows.append(Row(taken(name), ROUND_TRIPS[name], len(rounds)))
        rows += [
            Row(segments(name, index), paper, len(found["normal"]))
            for index, (paper, found) in enumerate(zip(CLASS_0[name], rounds, strict=True), start=1)
        ]
    rows.append(Row(LOW, LOW_PRIORITY, len(WALK.rounds("rc3")[0]["low"])))
    for scheme, name in NAMES.items():
        heard = WALK.completion(scheme, outcomes)
        rows.append(Row(taken(name, PACKETS), ROUND_TRIPS[name], None if heard is None else round(heard)))
    return Evaluation(tuple(rows), curves={"rounds": WALK.table()})


def draw(evaluation: Evaluation) -> Figure:
    """Segments by round."""
    return draw_rounds(evaluation, CLASS_0)


CLAIMS = (
    Claim(
        "Seven packets take three round trips with TCP, and one with RC3 (slides)",
        largest_difference([taken(name, variant) for name in ROUND_TRIPS for variant in ("", PACKETS)] + [LOW]),
        full=(0.0, 0.0),
        quick=(0.0, 0.0),
    ),
)


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
    claims=CLAIMS,
)
