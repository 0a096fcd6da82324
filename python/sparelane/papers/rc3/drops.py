"""The authors' slides: which share of the packets is dropped, by priority, at 30, 50 and 70 % load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl
import polars.selectors as cs
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import BASELINE, EVEN_PATHS, RC3, TCP, Setting
from sparelane.reports import plots

# TCP's runs of the other experiments go on to where an averaging script looks; here both schemes' end together.
SETTINGS = {
    percent: replace(BASELINE, name=f"{percent}%", load=percent / 100, tcp_longer=False) for percent in (30, 50, 70)
}
LOADS = [setting.name for setting in SETTINGS.values()]
LONGER = [replace(SETTINGS[percent], variant="runs of 10 s", part=2.0) for percent in (30, 50)]
EVEN = [SETTINGS[percent].varied("even paths", EVEN_PATHS) for percent in (30, 50)]

# What rows say of rates that are of the flows' packets.
OF_THE_WORKLOAD = "of the workload"

TOTAL = Metric("packets dropped", "%", is_loss_rate=True)
HIGH = Metric("packets dropped at high priority", "%", is_loss_rate=True)
LOW = Metric("packets dropped at low priority", "%", is_loss_rate=True)
# The slides' table, percent: regular TCP, then RC3 at high priority, at low priority, and in total.
COLUMNS: Mapping[tuple[str, Metric], Mapping[str, float]] = {
    (TCP, TOTAL): {"30%": 0.5, "50%": 0.84, "70%": 1.42},
    (RC3, HIGH): {"30%": 0.3, "50%": 0.58, "70%": 1.09},
    (RC3, LOW): {"30%": 13.15, "50%": 28.46, "70%": 36.84},
    (RC3, TOTAL): {"30%": 13.45, "50%": 29.04, "70%": 37.94},
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes at the three loads, and for twice as long and on even paths."""
    runs = internet2.plan(list(SETTINGS.values()), effort)
    if effort.name == "full":
        runs += internet2.plan([*EVEN, *LONGER], effort)
    return runs


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Drop rates in percent."""
    rows = [row for setting in SETTINGS.values() for row in _rows(setting, effort, outcomes)]
    if effort.name == "full":
        rows += (row for setting in LONGER for row in _rows(setting, effort, outcomes))
        for setting in SETTINGS.values():
            rows += _rows(replace(setting, variant=OF_THE_WORKLOAD), effort, outcomes)
        rows += (row for setting in EVEN for row in _rows(setting, effort, outcomes))
    return Evaluation(tuple(rows), internet2.notes(effort))


def _rows(setting: Setting, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    """TCP's rate and RC3's three; the slides' numbers are of all packets sent, and of runs of unknown length."""
    count = packets_of if setting.variant == OF_THE_WORKLOAD else packets_sent
    is_printed = setting.variant in ("", LONGER[0].variant)

    def rates(run: Callable[[Setting, int, Effort], Simulation]) -> list[Mapping[Metric, float]]:
        runs = (outcomes[run(setting, seed, effort)] for seed in effort.seed_numbers())
        return [drop_rates(outcome, count(outcome)) for outcome in runs]

    found = {TCP: rates(internet2.tcp_run), RC3: rates(internet2.rc3_run)}
    for (scheme, metric), printed in COLUMNS.items():
        key = Key(setting.name, metric, scheme, variant=setting.variant)
        yield measured(key, printed[setting.name] if is_printed else None, [run[metric] for run in found[scheme]])


def packets_sent(outcome: Outcome) -> int:
    """Data packets that were sent, of all priorities, repeated ones included."""
    return int(outcome.flows.select(pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()).item())


def packets_of(outcome: Outcome) -> int:
    """Data packets that hold the bytes of the flows, each once."""
    return int(outcome.flows.select((pl.col("size_bytes") / MSS_BYTES).ceil().sum()).item())


def drop_rates(outcome: Outcome, packets: int) -> dict[Metric, float]:
    """Packets dropped at high and low priority and in total, each in percent of `packets`."""
    dropped, is_high = pl.col("dropped_packets"), pl.col("class") == 0
    high, low = outcome.drops.select(high=dropped.filter(is_high).sum(), low=dropped.filter(~is_high).sum()).row(0)
    return {
        metric: 100.0 * count / max(packets, 1) for metric, count in ((HIGH, high), (LOW, low), (TOTAL, high + low))
    }


def draw(evaluation: Evaluation) -> Figure:
    """Drop rates by load."""
    drawing, [axes] = plots.figure()
    looks = (plots.TCP, plots.MODEL, plots.RC3, plots.THIRD)
    groups = [setting.name for setting in SETTINGS.values()]
    labels = ("TCP", "RC3 high priority", "RC3 low priority", "RC3 total")
    bars = [
        plots.Bars.of_rows(label, look, [evaluation.find(Key(group, metric, scheme)) for group in groups])
        for label, look, (scheme, metric) in zip(labels, looks, COLUMNS, strict=True)
    ]
    plots.grouped_points(axes, groups, bars)
    axes.set_xlabel("average load of the links;\nhollow: the slides")
    axes.set_ylabel("packets dropped (%)")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named(TOTAL, HIGH, LOW)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
