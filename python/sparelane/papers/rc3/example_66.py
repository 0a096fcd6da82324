"""NSDI 2014, section 2.2 and Fig. 3: 66 packets over a pipe of 50, of which the 21st and 22nd are dropped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.walkthrough import NAMES, Walk, by_priority, draw_rounds

# Plain TCP, which the paper does not show, sends without the drops.
WALK = Walk(
    segments=66,
    initial_window=4,
    capacity=50,
    drops={"rc3": (20, 21)},
    scenario="rc3-example-66",
    settings={"tcp": ("drop=[]",)},
)

# RC3's segments of normal priority in rounds 1, 2 and 3; of low priority in round 1.
CLASS_0 = (4, 8, 2)
LOW_PRIORITY = {1: 40, 2: 6}
COMPLETION = 4

# Counted in rounds, as the paper does, or packet by packet.
PACKETS = "packet by packet"
COMPLETES = Metric("completes in round")


def segments(scheme: str, index: int, of: str = "class-0", variant: str = "") -> Key:
    """What a scheme sends in a round."""
    return Key(f"round {index}", Metric(f"{of} segments"), scheme, variant=variant)


def completes(scheme: str, variant: str = "") -> Key:
    """When its flow does."""
    return Key("the flow", COMPLETES, scheme, variant=variant)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The flow under both schemes, cut at each round trip."""
    del effort
    return WALK.plan()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Segments by round, and the round in which the flow completes."""
    del effort
    rounds = {scheme: WALK.rounds(scheme) for scheme in NAMES}
    rows = [
        Row(segments("RC3", index), paper, len(found["normal"]))
        for index, (paper, found) in enumerate(zip(CLASS_0, rounds["rc3"], strict=True), start=1)
    ]
    first = by_priority(rounds["rc3"][0])
    rows += [
        Row(segments("RC3", 1, f"priority-{priority}"), paper, len(first[priority]))
        for priority, paper in LOW_PRIORITY.items()
    ]
    rows.append(Row(completes("RC3"), COMPLETION, len(rounds["rc3"]) + 1))
    rows += [
        Row(segments("TCP", index), None, len(found["normal"])) for index, found in enumerate(rounds["tcp"], start=1)
    ]
    rows.append(Row(completes("TCP"), None, len(rounds["tcp"]) + 1))
    return Evaluation((*rows, *_packet_rows(outcomes)), curves={"rounds": WALK.table()})


def _packet_rows(outcomes: Outcomes) -> Iterable[Row]:
    sent = WALK.sent_by_round_trip("rc3", outcomes)
    for index, (paper, count) in enumerate(zip(CLASS_0, sent, strict=True), start=1):
        yield Row(segments("RC3", index, variant=PACKETS), paper, count)
    for scheme, name in NAMES.items():
        heard = WALK.completion(scheme, outcomes)
        completed = None if heard is None else math.floor(heard) + 1
        yield Row(completes(name, PACKETS), COMPLETION if scheme == "rc3" else None, completed)


def draw(evaluation: Evaluation) -> Figure:
    """Segments by round."""
    return draw_rounds(evaluation, {"RC3": CLASS_0})


METRICS = named(COMPLETES, *(Metric(f"{of} segments") for of in ("class-0", "priority-1", "priority-2")))


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
