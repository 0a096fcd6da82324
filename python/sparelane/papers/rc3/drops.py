"""Measures the share of dropped packets by priority and load, as the authors' slides show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl
import polars.selectors as cs

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import RC3, TCP, Scheme, Setting

TOTAL = Metric("packets dropped", "%", is_loss_rate=True)
HIGH = Metric("packets dropped at high priority", "%", is_loss_rate=True)
LOW = Metric("packets dropped at low priority", "%", is_loss_rate=True)
METRICS = named(TOTAL, HIGH, LOW)
COLUMNS: tuple[tuple[Scheme, str, Metric], ...] = (
    ("tcp", TCP, TOTAL),
    ("rc3", RC3, HIGH),
    ("rc3", RC3, LOW),
    ("rc3", RC3, TOTAL),
)

# The variant whose rates are relative to the packets of the flows; all others are relative to all packets sent.
OF_THE_WORKLOAD = "of the workload"
# The slides do not give the length of their runs, so these variants are both compared with them.
PRINTED = ("", "runs of 10 s")


def packets_sent(outcome: Outcome) -> int:
    """Returns the number of data packets sent, of all priorities, including repeated ones."""
    return int(outcome.flows.select(pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()).item())


def packets_of(outcome: Outcome) -> int:
    """Returns the number of data packets that hold the bytes of the flows, each counted once."""
    return int(outcome.flows.select((pl.col("size_bytes") / MSS_BYTES).ceil().sum()).item())


def drop_rates(outcome: Outcome, packets: int) -> dict[Metric, float]:
    """Returns the packets dropped at high and low priority and in total, each in percent of `packets`."""
    dropped, is_high = pl.col("dropped_packets"), pl.col("class") == 0
    high, low = outcome.drops.select(high=dropped.filter(is_high).sum(), low=dropped.filter(~is_high).sum()).row(0)
    return {
        metric: 100.0 * count / max(packets, 1) for metric, count in ((HIGH, high), (LOW, low), (TOTAL, high + low))
    }


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    settings = internet2.read_settings(declared.rest)

    def cells(effort: Effort) -> Iterable[Cell]:
        return (cell for setting in internet2.chosen(settings, effort) for cell in internet2.both(setting, effort))

    def rows(setting: Setting, runs: Runs) -> Iterable[Row]:
        count = packets_of if setting.variant == OF_THE_WORKLOAD else packets_sent
        rates: dict[Scheme, list[dict[Metric, float]]] = {
            scheme: [drop_rates(one, count(one)) for one in runs.of(setting.cell(scheme, runs.effort))]
            for scheme in internet2.SCHEMES
        }
        for scheme, name, metric in COLUMNS:
            key = Key(setting.name, metric, name, variant=setting.variant)
            row = measured(key, None, [found[metric] for found in rates[scheme]])
            yield replace(row, paper=declared.paper(key) if setting.variant in PRINTED else None)

    def evaluate(runs: Runs) -> Evaluation:
        found = (row for setting in internet2.chosen(settings, runs.effort) for row in rows(setting, runs))
        return Evaluation(tuple(found), internet2.notes(runs.effort))

    return panels.study(declared, cells, evaluate)
