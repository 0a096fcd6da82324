"""RTCP, section II and Fig. 1: three connections share two links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
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


METRICS = named(UTILITY)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
