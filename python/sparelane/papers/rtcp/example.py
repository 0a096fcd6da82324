"""RTCP, section II and Fig. 1: three connections share two links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rtcp.rule import Example, average_rates
from sparelane.reports import plots

EXAMPLES = (
    Example("weights 1, 1, 1", (1.0, 1.0, 1.0)),
    Example("weights 2, 1, 1", (2.0, 1.0, 1.0)),
    Example("weights 4, 2, 1", (4.0, 2.0, 1.0)),
)
UNEQUAL = Example("weights 2, 1, 1, second link half", (2.0, 1.0, 1.0), (1.0, 0.5))

# The weight of the backlogs in the rule without packets, if the heaviest connection has a weight of 4.
RULE_ALPHA = 0.1
# The protocol's round trips without queues, 120 and 80 us, in the rule's unit of time. With a weight of 24,000 bytes,
# alpha = 500 and delta = 125, the backlog at which a window halves is up to 48,000 bytes. In the rule it is w / alpha =
# 40 units, so a unit is 1200 bytes, which a link carries in 9.6 us.
ROUND_TRIPS = (12.5, 8.33, 8.33)
# The largest weight in runs with packets, in bytes: the paper's weight of urgent flows.
HEAVIEST_BYTES = 24_000.0
LINK_BPS = 1e9
# Overrides of the scenario for a window that doubles or halves once in a round trip. The window must then have room to
# grow: x_max is four times the rate of the links.
PER_ROUND_TRIP = ('scheme.rtcp.adjust_per="round-trip"', "scheme.rtcp.x_max=0.4")
RATE = Metric("rate", "of a link")
UTILITY = Metric("utility, of the optimum's", "%")
CLASSES = ("both", "first", "second")
LATE = "rule, a round trip late"


# The schemes with packets: the names in rows, and their overrides of the scenario.
PROTOCOLS = {"RTCP": (), "RTCP per round trip": PER_ROUND_TRIP}


def _cell(example: Example, scheme: str, stop_s: float) -> Cell:
    heaviest = max(example.weights)
    weights = ", ".join(
        f"{name} = {HEAVIEST_BYTES * weight / heaviest:g}"
        for name, weight in zip(CLASSES, example.weights, strict=True)
    )
    return Cell(
        "rtcp-two-links",
        (f"scheme.rtcp.weights={{ {weights} }}", f"duration={stop_s:g}s", *PROTOCOLS[scheme]),
        label=f"{example.name} {scheme}",
        cost=0.1 * stop_s,
        keep_flows=True,
        most_seeds=1,
    )


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields both forms of the protocol with each set of weights."""
    return (_cell(example, scheme, effort.stop_s) for example in EXAMPLES for scheme in PROTOCOLS)


def _evaluate(runs: Runs, note: str) -> Evaluation:
    """Rates by the solver, the rules and the protocols, and their share of the largest utility."""
    rows: list[Row] = []
    for example in (*EXAMPLES, UNEQUAL):
        rows += _rows(example, "optimum", example.optimum())
        rows += _rows(example, "rule", average_rates(example, RULE_ALPHA))
    for example in EXAMPLES:
        # The heaviest connection of the protocol has the same weight in every example.
        alpha = RULE_ALPHA * max(example.weights) / 4
        rows += _rows(example, LATE, average_rates(example, alpha, round_trips=ROUND_TRIPS))
        for scheme in PROTOCOLS:
            [outcome] = runs.of(_cell(example, scheme, runs.effort.stop_s))
            rates = [bytes * 8 / runs.effort.stop_s / LINK_BPS for bytes in outcome.flows["delivered_bytes"]]
            rows += _rows(example, scheme, rates)
    return Evaluation(tuple(rows), (note,))


def _rows(example: Example, by: str, rates: Sequence[float]) -> Iterable[Row]:
    for number, rate in enumerate(rates):
        yield Row(connection(example, number, by), None, rate)
    if by != "optimum":
        share = 100 * example.utility(rates) / example.utility(example.optimum())
        yield Row(Key(example.name, UTILITY, by), None, share)


def connection(example: Example, number: int, by: str) -> Key:
    """Returns the key of the rate of a connection, by the optimum, the rule or RTCP."""
    return Key(example.name, RATE, by, traffic=f"connection {number}")


def draw(evaluation: Evaluation) -> Figure:
    """Returns the three rates of each example: optimum, rules and protocols."""
    drawing, panels = plots.figure(len(EXAMPLES), width_inches=plots.PAGE_INCHES)
    looks = (
        ("optimum", plots.TCP),
        ("rule", plots.MODEL),
        (LATE, plots.FIFTH),
        ("RTCP", plots.RC3),
        ("RTCP per round trip", plots.THIRD),
    )
    groups = [f"$x_{number}$" for number in range(3)]
    for axes, example in zip(panels, EXAMPLES, strict=True):
        bars = [
            plots.Bars.of_rows(by, look, [evaluation.find(connection(example, number, by)) for number in range(3)])
            for by, look in looks
        ]
        plots.grouped_bars(axes, groups, bars)
        axes.set_yticks(np.linspace(0, 1, 6))
        axes.set_xlabel(example.name)
        axes.set_ylabel("rate, of a link")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return drawing


METRICS = named(UTILITY)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    note = declared.rest.text("note")
    declared.rest.finish()
    return declared.study(cells, lambda runs: _evaluate(runs, note), draw)
