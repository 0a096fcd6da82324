"""The authors' slides: which share of the packets is dropped, by priority, at 30, 50 and 70 % load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl
import polars.selectors as cs
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import (
    Claim,
    Effort,
    Evaluation,
    Experiment,
    Outcome,
    Outcomes,
    Row,
    Simulation,
    loss_rate,
)
from sparelane.experiments.claims import at_least, at_most, largest_factor, ratio
from sparelane.experiments.rc3 import fig8_load, internet2
from sparelane.experiments.rc3.analytic import MSS_BYTES
from sparelane.experiments.rc3.internet2 import Setting

LOADS = {30: fig8_load.LOADS[30], 50: fig8_load.LOADS[50], 70: fig8_load.HEAVY}

# TCP's runs of the other experiments go on to where an averaging script looks; here both schemes' end together.
SETTINGS = {percent: replace(setting, tcp_longer=False) for percent, setting in LOADS.items()}

# What the name of a row says of rates that are of the flows' packets.
OF_THE_WORKLOAD = ", of the workload"

# The slides' table, percent: regular TCP, then RC3 at high priority, at low priority, and in total.
METRICS = ("TCP", "RC3 high priority", "RC3 low priority", "RC3 total")
PRINTED = {30: (0.5, 0.3, 13.15, 13.45), 50: (0.84, 0.58, 28.46, 29.04), 70: (1.42, 1.09, 36.84, 37.94)}
NONE_PRINTED = (None,) * len(METRICS)

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "A drop rate is packets dropped by queues over data packets sent, of all priorities together: the slides' high and "
    "low rates add up to their total.",
    "The whole run counts, from the first flow to the end at 5 s. The slides do not say how long theirs ran: rows "
    '"runs of 10 s" are of twice the length, at 30 and 50 % load, where they cost least.',
    'Rows "of the workload" divide by the packets that the flows hold instead, each once: the slides do not say what '
    "their percentages are of.",
)

GROWS = (
    "grows with the run, since the links that carry more than their share are still filling up at 5 s: the rows of "
    "runs of 10 s are nearer to the slides, whose runs may have been longer still"
)

REASONS = {("30%", "RC3 high priority"): GROWS}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes at the three loads, and for twice as long and on even paths."""
    runs = internet2.plan(list(SETTINGS.values()), effort)
    if effort.name == "full":
        runs += internet2.plan(list(fig8_load.EVEN.values()), effort)
        runs += internet2.plan(list(fig8_load.LONGER.values()), fig8_load.longer(effort))
    return runs


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Drop rates in percent."""
    rows = [
        row for percent, setting in SETTINGS.items() for row in _rows(setting, effort, outcomes, paper=PRINTED[percent])
    ]
    if effort.name == "full":
        longer = fig8_load.longer(effort)
        for percent, setting in fig8_load.LONGER.items():
            rows += _rows(setting, longer, outcomes, paper=PRINTED[percent])
        for setting in SETTINGS.values():
            rows += _rows(setting, effort, outcomes, of=OF_THE_WORKLOAD)
        for setting in fig8_load.EVEN.values():
            rows += _rows(setting, effort, outcomes)
    return Evaluation(tuple(rows), internet2.notes(effort))


def _rows(
    setting: Setting, effort: Effort, outcomes: Outcomes, *, paper: Sequence[float | None] = NONE_PRINTED, of: str = ""
) -> Iterable[Row]:
    """TCP's rate and RC3's three; `of` is what a row's name says of the packets that the rates are of."""

    def rates(run: Callable[[Setting, int, Effort], Simulation]) -> list[Mapping[str, float]]:
        runs = (outcomes[run(setting, seed, effort)] for seed in effort.seed_numbers())
        return [drop_rates(outcome, packets_of(outcome) if of else packets_sent(outcome)) for outcome in runs]

    tcp, rc3 = rates(internet2.tcp_run), rates(internet2.rc3_run)
    values = (
        [run["total"] for run in tcp],
        [run["high"] for run in rc3],
        [run["low"] for run in rc3],
        [run["total"] for run in rc3],
    )
    for metric, printed, found in zip(METRICS, paper, values, strict=True):
        yield loss_rate(f"{setting.name}{of}", metric, printed, found)


def packets_sent(outcome: Outcome) -> int:
    """Data packets that were sent, of all priorities, repeated ones included."""
    return int(outcome.flows.select(pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()).item())


def packets_of(outcome: Outcome) -> int:
    """Data packets that hold the bytes of the flows, each once."""
    return int(outcome.flows.select((pl.col("size_bytes") / MSS_BYTES).ceil().sum()).item())


def drop_rates(outcome: Outcome, packets: int) -> dict[str, float]:
    """Packets dropped at high and low priority and in total, each in percent of `packets`."""
    dropped, is_high = pl.col("dropped_packets"), pl.col("class") == 0
    high, low = outcome.drops.select(high=dropped.filter(is_high).sum(), low=dropped.filter(~is_high).sum()).row(0)
    return {
        name: 100.0 * count / max(packets, 1) for name, count in (("high", high), ("low", low), ("total", high + low))
    }


def draw(evaluation: Evaluation) -> Figure:
    """Drop rates by load."""
    drawing, [axes] = plots.figure()
    looks = (plots.TCP, plots.MODEL, plots.RC3, plots.THIRD)
    groups = [setting.name for setting in SETTINGS.values()]
    bars = [
        plots.Bars.of_rows(metric, look, [evaluation.find(group, metric) for group in groups])
        for metric, look in zip(METRICS, looks, strict=True)
    ]
    plots.grouped_bars(axes, groups, bars)
    axes.set_xlabel("average load of the links")
    axes.set_ylabel("packets dropped (%)")
    plots.legend_above(axes, 2)
    return drawing


CLAIMS = (
    Claim(
        "Runs of 10 s drop what the slides print, at each priority and in total, within a factor of 1.5 at 30 and 50 "
        "% load",
        largest_factor([(setting.name, metric) for setting in fig8_load.LONGER.values() for metric in METRICS]),
        full=at_most(1.5),
    ),
    Claim(
        "Low priority loses 44 times as much as normal priority at 30 % load (slides)",
        ratio(("30%", "RC3 low priority"), ("30%", "RC3 high priority")),
        full=at_least(10.0),
        quick=at_least(10.0),
    ),
    Claim(
        "RC3 loses less at normal priority than TCP does at 50 % load (slides: 0.58 for 0.84 %)",
        ratio(("50%", "RC3 high priority"), ("50%", "TCP")),
        full=at_most(0.9),
        quick=at_most(1.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/drops",
    title="Drop rates by priority and load",
    source='RC3 slides, back-up slide "Drop Rates in Baseline Simulations"',
    method="Internet2 topology, 1 Gb/s, 40 ms, at 30, 50 and 70 % load; packets dropped under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=2.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
