"""RTCP, section II and Fig. 1: three connections share two links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import about, ours
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rtcp.rule import Case, average_rates
from sparelane.reports import plots

CASES = (
    Case("weights 1, 1, 1", (1.0, 1.0, 1.0)),
    Case("weights 2, 1, 1", (2.0, 1.0, 1.0)),
    Case("weights 4, 2, 1", (4.0, 2.0, 1.0)),
)
UNEQUAL = Case("weights 2, 1, 1, second link half", (2.0, 1.0, 1.0), (1.0, 0.5))

# Weight of the backlogs in the rule without packets.
RULE_ALPHA = 0.1
# The largest weight of the packets' runs, bytes: the paper's of urgent flows.
HEAVIEST_BYTES = 24_000.0
LINK_BPS = 1e9
RATE = Metric("rate", "of a link")
UTILITY = Metric("utility, of the optimum's", "%")
CLASSES = ("both", "first", "second")

ASSUMPTIONS = (
    "The utility is w log(1 + x), as in section III, with rates as shares of a link; the paper's section II leaves it "
    "open and prints no numbers. Its optimum comes from a convex solver.",
    "The rule is eqs. (1), (3) and (4) in small steps of time, with alpha = 0.1 and a largest rate of twice a link's: "
    "what it achieves on average is the optimum, to within the step.",
    "RTCP is the protocol on packets: the same connections on two links of 1 Gb/s, least round-trip times of 120 and "
    "80 us, the testbed's alpha of 500 and delta of 125, the heaviest connection with the weight of urgent flows.",
)

SAWTOOTH = (
    "RTCP's window doubles or halves with every acknowledgment, a round trip after the fact, so that links idle at "
    "times; and a connection that should stop keeps a window of one segment"
)


def simulation(case: Case, stop_s: float) -> Simulation:
    """RTCP with the case's weights."""
    heaviest = max(case.weights)
    weights = ", ".join(
        f"{name} = {HEAVIEST_BYTES * weight / heaviest:g}" for name, weight in zip(CLASSES, case.weights, strict=True)
    )
    return Simulation(
        scenario="rtcp-two-links",
        settings=(f"scheme.rtcp.weights={{ {weights} }}", f"duration={stop_s:g}s"),
        seed=1,
        label=case.name,
        cost=0.1 * stop_s,
        keep_flows=True,
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """The protocol with each set of weights."""
    return [simulation(case, effort.stop_s) for case in CASES]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Rates by the solver, by the rule and by the protocol, and what share of the largest utility they have."""
    rows = [row for case in (*CASES, UNEQUAL) for row in _rule_rows(case)]
    for case in CASES:
        delivered = outcomes[simulation(case, effort.stop_s)].flows["delivered_bytes"]
        rows.extend(_rows(case, "RTCP", [bytes * 8 / effort.stop_s / LINK_BPS for bytes in delivered]))
    return Evaluation(tuple(rows), (f"Why RTCP stays below the optimum: {SAWTOOTH}.",))


def _rule_rows(case: Case) -> Iterable[Row]:
    yield from _rows(case, "optimum", case.optimum())
    yield from _rows(case, "rule", average_rates(case, RULE_ALPHA))


def _rows(case: Case, by: str, rates: Sequence[float]) -> Iterable[Row]:
    for number, rate in enumerate(rates):
        yield Row(connection(case, number, by), None, rate)
    if by != "optimum":
        share = 100 * case.utility(rates) / case.utility(case.optimum())
        yield Row(Key(case.name, UTILITY, by), None, share)


def connection(case: Case, number: int, by: str) -> Key:
    """The rate of a connection, by the optimum, the rule or RTCP."""
    return Key(case.name, RATE, by, traffic=f"connection {number}")


CLAIMS = tuple(
    Claim(
        f"The rule reaches the largest utility (section II): {case.name}, percent of the optimum's",
        ours(Key(case.name, UTILITY, "rule")),
        full=about(100.0, 0.5),
        quick=about(100.0, 0.5),
    )
    for case in (*CASES, UNEQUAL)
)


def draw(evaluation: Evaluation) -> Figure:
    """The three rates of each case: optimum, rule, protocol."""
    drawing, panels = plots.figure(len(CASES), width_inches=plots.PAGE_INCHES)
    looks = (("optimum", plots.TCP), ("rule", plots.MODEL), ("RTCP", plots.RC3))
    groups = [f"$x_{number}$" for number in range(3)]
    for axes, case in zip(panels, CASES, strict=True):
        bars = [
            plots.Bars.of_rows(by, look, [evaluation.find(connection(case, number, by)) for number in range(3)])
            for by, look in looks
        ]
        plots.grouped_bars(axes, groups, bars)
        axes.set_yticks(np.linspace(0, 1, 6))
        axes.set_xlabel(case.name)
        axes.set_ylabel("rate, of a link")
        plots.legend_above(axes, 3)
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/example",
    title="Three connections on two links: the optimum, the rule, and the protocol",
    source="RTCP, section II and Fig. 1",
    method="One connection crosses both links and meets another on each. The paper derives the rule and proves that it "
    "reaches the largest utility.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=1, stop_s=2.0),
    quick=Effort("quick", seeds=1, stop_s=0.3),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
