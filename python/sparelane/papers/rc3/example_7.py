"""The authors' slides: seven packets from a window of one, three round trips under TCP and one under RC3."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.example_66 import PACKETS, segments
from sparelane.papers.rc3.walkthrough import NAMES, Walk, draw_rounds

# No more than fits a round trip is ever sent.
WALK = Walk(segments=7, initial_window=1, capacity=50, drops={}, scenario="rc3-example-7")

ROUND_TRIPS = {"TCP": 3, "RC3": 1}
CLASS_0 = {"TCP": (1, 2, 4), "RC3": (1,)}
LOW_PRIORITY = 6
LOW = segments("RC3", 1, "low-priority")
ROUND_TRIPS_TAKEN = Metric("round trips")


def taken(scheme: str, variant: str = "") -> Key:
    """How long the flow takes."""
    return Key("the flow", ROUND_TRIPS_TAKEN, scheme, variant=variant)


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


METRICS = named(ROUND_TRIPS_TAKEN, segments("TCP", 1).metric, LOW.metric)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
