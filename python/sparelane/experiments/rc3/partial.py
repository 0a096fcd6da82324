"""NSDI 2014, section 6, "Partial Support": a part of the routers has no priorities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_least, difference, less_paper, ours
from sparelane.experiments.rc3 import deployments, internet2
from sparelane.experiments.rc3.deployments import LARGE, MEDIUM, SMALL, Deployment
from sparelane.experiments.rc3.variants import Shared, Variant


def _without(percent: int, low_priority: str) -> Variant:
    place = f'queue_at=[{{share={percent / 100:g}, kind="fifo", low_priority="{low_priority}"}}]'
    return Variant(f"RC3, {percent}% of routers {low_priority}", ("workload.scheme=rc3", place))


DEPLOYMENTS = (
    Deployment("all routers", Shared("RC3", "rc3"), plots.RC3),
    Deployment("20% let pass", _without(20, "carry"), plots.THIRD),
    Deployment("50% let pass", _without(50, "carry"), plots.MODEL),
    Deployment("20% drop", _without(20, "drop"), plots.TCP),
    Deployment("50% drop", _without(50, "drop"), plots.FOURTH),
)


def _passing(name: str, routers: Sequence[str]) -> Deployment:
    listed = ",".join(f'"{router}"' for router in routers)
    place = f'queue_at=[{{routers=[{listed}], kind="fifo", low_priority="carry"}}]'
    return Deployment(name, Variant(f"RC3, {name}", ("workload.scheme=rc3", place)), plots.MODEL)


# Which routers they are decides: those that send on the links that carry most beyond their share, the others, or all.
LOADED = ("r4", "r5", "r6", "r8", "r9")
OTHERS = ("r0", "r1", "r2", "r3", "r7")
VARIED = (
    _passing("the loaded half lets pass", LOADED),
    _passing("the other half lets pass", OTHERS),
    _passing("all let pass", (*LOADED, *OTHERS)),
)

# Section 6 has these of routers that let low priority pass, half of all routers: small flows "6-7% FCT penalty",
# medium ones "around 36%", large ones "76-70%".
PRINTED: Mapping[tuple[str, str], float] = {
    ("50% let pass", SMALL.name): -6.5,
    ("50% let pass", MEDIUM.name): 36.0,
    ("50% let pass", LARGE.name): 73.0,
}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "Which of the ten routers lack priorities is drawn with the seed, so that ten seeds are ten deployments. All "
    "queues of such a router are FIFO, of the same 5 MB; the hosts' interfaces keep priorities.",
    "Let pass: the router carries packets of low priority in the one queue, in which they compete with all others. "
    "Drop: it drops them on arrival.",
    'Rows of "the loaded half" (routers 4, 5, 6, 8 and 9), "the other half" and "all" are varied, with the same '
    "routers for every seed.",
    "The paper's ranges stand as their middles: a penalty of 6 to 7 % is −6.5 %, 76 to 70 % is 73 %. It gives no "
    "bounds of small, medium and large; ours are where Fig. 7 has its steps. Averages are over the flows of a group.",
)


BY_THE_ROUTERS = (
    "depends on which routers they are, which the paper does not say: small flows lose where the routers that send on "
    "the most loaded links have no priorities, and with all ten more than twice what is printed (rows below)"
)

REASONS = {("50% let pass", SMALL.name): BY_THE_ROUTERS}


def plan(effort: Effort) -> Sequence[Simulation]:
    """All TCP, and RC3 in every deployment."""
    return deployments.plan(_all(effort), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Reductions against TCP by deployment and group of flows."""
    return deployments.evaluate(_all(effort), PRINTED, effort, outcomes)


def _all(effort: Effort) -> tuple[Deployment, ...]:
    """The deployments; a full effort also has the varied ones."""
    return DEPLOYMENTS if effort.name == "quick" else (*DEPLOYMENTS, *VARIED)


def draw(evaluation: Evaluation) -> Figure:
    """Reductions by group of flows, one bar a deployment."""
    return deployments.draw(DEPLOYMENTS, evaluation)


CLAIMS = (
    *(
        Claim(
            f"With 20 % of the routers without priorities all flows still improve: {group.name} (section 6)",
            ours("20% let pass", group.name),
            full=at_least(0.0),
            quick=at_least(-1.0),
        )
        for group in deployments.GROUPS
    ),
    *(
        Claim(
            f"With half of them {group.name} gain {PRINTED['50% let pass', group.name]:g} % (section 6)",
            less_paper("50% let pass", group.name),
            full=(-5.0, 5.0),
            quick=(-10.0, 10.0),
        )
        for group in (MEDIUM, LARGE)
    ),
    Claim(
        "Small flows gain less than where all routers have priorities (section 6: a penalty of 6 to 7 %)",
        difference(("all routers", SMALL.name), ("50% let pass", SMALL.name)),
        full=at_least(1.0),
        quick=at_least(0.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/partial",
    title="A part of the routers without priorities",
    source='Mittal et al., NSDI 2014, section 6, "Partial Support"',
    method="Internet2 topology, 1 Gb/s, 40 ms, 30 % load; 20 and 50 % of the routers do not support priorities.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=0.6),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
