"""The authors' slides, "Some Queues DropTail": a part of the queues has no priorities, or does not push out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_least, difference, ours
from sparelane.experiments.rc3 import deployments, internet2
from sparelane.experiments.rc3.deployments import Deployment
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.variants import Shared, Variant


def _droptail(percent: int) -> Variant:
    place = f'queue_at=[{{share={percent / 100:g}, of="queues", kind="fifo"}}]'
    return Variant(f"RC3, {percent}% of queues drop-tail", ("workload.scheme=rc3", place), SLOW_NEAR)


NO_PUSH_OUT = Variant("RC3, no push-out", ("workload.scheme=rc3", "queue.push_out=false"), SLOW_NEAR)

DEPLOYMENTS = (
    Deployment("none", Shared("RC3", "rc3", SLOW_NEAR), plots.RC3),
    Deployment("20% drop-tail", _droptail(20), plots.THIRD),
    Deployment("50% drop-tail", _droptail(50), plots.MODEL),
    Deployment("all drop-tail", _droptail(100), plots.TCP),
    Deployment("no push-out", NO_PUSH_OUT, plots.FOURTH),
)

PRINTED: Mapping[tuple[str, str], float] = {}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "The slide shows a figure without numbers in its text, and names no setting: ours is the 100 Mb/s and 40 ms of "
    "Fig. 9, where queues of 500 KB fill soonest.",
    "Drop-tail: one FIFO queue for all priorities, that drops what comes when it is full. The share of the routers' "
    "output queues is drawn with the seed, so that ten seeds are ten draws; hosts' interfaces keep priorities.",
    "No push-out: all routers' queues serve by priority, but drop what comes when the buffer is full, even where it "
    "holds packets of lower priority.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """All TCP, and RC3 in every deployment."""
    return deployments.plan(DEPLOYMENTS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Reductions against TCP by deployment and group of flows."""
    return deployments.evaluate(DEPLOYMENTS, PRINTED, effort, outcomes)


def draw(evaluation: Evaluation) -> Figure:
    """Reductions by group of flows, one bar a deployment."""
    return deployments.draw(DEPLOYMENTS, evaluation)


ALL_BYTES = f"{deployments.ALL_FLOWS} over bytes"

CLAIMS = (
    Claim(
        "Where a part of the queues is drop-tail RC3 still gains, less than where none is (slides)",
        difference(("none", ALL_BYTES), ("50% drop-tail", ALL_BYTES)),
        full=at_least(0.0),
        quick=at_least(-5.0),
    ),
    Claim(
        "With 20 % of the queues drop-tail RC3 shortens the mean over bytes (slides)",
        ours("20% drop-tail", ALL_BYTES),
        full=at_least(20.0),
        quick=at_least(10.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/droptail",
    title="A part of the queues drop-tail",
    source='RC3 slides, back-up slide "Some Queues DropTail"',
    method="Internet2 topology, 100 Mb/s, 40 ms, 30 % load; 20, 50 and 100 % of the routers' queues drop-tail without "
    "priorities; all queues with priorities but without push-out.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
