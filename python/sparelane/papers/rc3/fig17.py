"""NSDI 2014, Fig. 17: strict priority in a queue that two hosts share, and what RC3 takes from a flow there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparelane.papers.engine.base import Effort, Outcomes, Simulation
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rc3 import harm
from sparelane.papers.rc3.priorities import HIGH, LOW, Place, experiment

SWITCH = experiment(
    17,
    "Priority queueing in the switch",
    "Mittal et al., NSDI 2014, section 5.2, Fig. 17",
    "from two hosts to one, through a switch whose port is the narrowest place; the paper's is an Arista, ours is a "
    "router of Linux",
    Place(
        pairs={HIGH: ("left0", "right0"), LOW: ("left1", "right0")},
        settings=(
            "topology.access_rate={more}Gbps",
            "topology.bottleneck_rate={rate}Gbps",
            "queue.limit=1000packets",
        ),
    ),
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The figure's runs, and those of the harm."""
    return [*SWITCH.plan(effort), *harm.plan(effort)]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The figure's rows, and those of the harm."""
    found = SWITCH.evaluate(effort, outcomes)
    return replace(found, rows=(*found.rows, *harm.rows(effort, outcomes)))


EXPERIMENT = replace(
    SWITCH,
    method=f"{SWITCH.method} What such a queue is for comes last, and is not in the paper's figure: what a flow loses "
    "to another one's tail under RC3.",
    assumptions=(*SWITCH.assumptions, *harm.ASSUMPTIONS),
    plan=plan,
    evaluate=evaluate,
    claims=(*SWITCH.claims, *harm.CLAIMS),
)
