"""NSDI 2014, section 2.1, footnote 3: RC3 without selective acknowledgments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl
import polars.selectors as cs
from matplotlib.figure import Figure

from sparelane.experiments.base import (
    Claim,
    Effort,
    Evaluation,
    Experiment,
    Outcome,
    Outcomes,
    Row,
    Simulation,
    measured,
)
from sparelane.experiments.claims import at_least, difference, ours
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.analytic import MSS_BYTES
from sparelane.experiments.rc3.completion_figure import draw_completion
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import Setting

SETTINGS = (replace(SLOW_NEAR, name="with SACK"), SLOW_NEAR.varied("without SACK", "transport.sack=false"))

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "The paper gives neither numbers nor a setting: 100 Mb/s, 40 ms, 30 % load, buffers of 500 KB, where queues drop "
    "more than at 1 Gb/s.",
    "Without SACK, TCP recovers as NewReno does (RFC 6582), and RC3's sender ignores the acknowledgments of "
    "low-priority packets: it sends them again, until a cumulative acknowledgment of normal priority reaches "
    "beyond them.",
    "Redundant packets: data packets of all priorities beyond those that hold the bytes of the flow, over the latter, "
    "of all flows that finish in the run.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes with and without SACK."""
    return internet2.plan(SETTINGS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions, and what is sent twice."""
    rows = (row for setting in SETTINGS for row in _rows(setting, effort, outcomes))
    return Evaluation(tuple(rows), internet2.notes(effort))


def _rows(setting: Setting, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    yield from internet2.completion_rows(setting, {}, effort, outcomes)
    for scheme, run in (("TCP", internet2.tcp_run), ("RC3", internet2.rc3_run)):
        shares = [redundant(outcomes[run(setting, seed, effort)]) for seed in effort.seed_numbers()]
        yield measured(setting.name, f"{scheme} redundant packets", "%", None, shares)


def redundant(outcome: Outcome) -> float:
    """Data packets of finished flows that were not needed, in percent of those that were."""
    packets = pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()
    needed = (pl.col("size_bytes") / MSS_BYTES).ceil().sum()
    sent, least = outcome.flows.filter(pl.col("finish_s").is_not_null()).select(packets, least=needed).row(0)
    return 100.0 * float(sent - least) / max(float(least), 1.0)


def draw(evaluation: Evaluation) -> Figure:
    """Completion times with and without SACK, over flows and over bytes."""
    names = [setting.name for setting in SETTINGS]
    return draw_completion(evaluation, names, "TCP, and the TCP in RC3")


CLAIMS = (
    Claim(
        "RC3 still has significant gains without SACK (section 2.1, footnote 3)",
        ours("without SACK over flows", "reduction"),
        full=at_least(15.0),
        quick=at_least(10.0),
    ),
    Claim(
        "... despite some redundant retransmissions",
        difference(("without SACK", "RC3 redundant packets"), ("with SACK", "RC3 redundant packets")),
        full=at_least(0.0),
        quick=at_least(0.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/no-sack",
    title="RC3 and TCP without selective acknowledgments",
    source="Mittal et al., NSDI 2014, section 2.1, footnote 3",
    method='"RC3 still provides significant performance gains when SACK is disabled, despite some redundant '
    'retransmissions"; no numbers.',
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
