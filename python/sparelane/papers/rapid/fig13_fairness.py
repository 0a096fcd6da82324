"""RAPID, Figs. 12 and 13: three transfers of the same protocol share the path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rapid import testbed, transfers
from sparelane.reports import plots

# The starts of the three transfers, in shares of a run, and when all three count.
STARTS = (0.0, 0.2, 0.4)
COUNTED_FROM = 0.5
SHARED = 'pairs=[["left0", "right0"], ["left1", "right1"], ["left0", "right0"]]'
INTERVALS = 120
# So many intervals together make a point of the figure.
AVERAGED = 6
FAIRNESS = Metric("Jain's index")
UTILIZATION = Metric("throughput of the three", "Gb/s")


def key(metric: Metric, scheme: str) -> Key:
    """A number of three transfers, by the scheme's name in the paper."""
    return Key("three transfers", metric, scheme)


def simulation(scheme: str, seed: int, effort: Effort) -> Simulation:
    """Three transfers that start one after another."""
    gap_s = effort.stop_s * (STARTS[1] - STARTS[0])
    return testbed.simulation(
        scheme,
        seed,
        effort.stop_s,
        label=f"three of {scheme}",
        settings=(
            f'workload={{kind="bulk", scheme="{scheme}", {SHARED}, size="unlimited", gap="{gap_s:g}s"}}',
            f"measure.from={effort.stop_s * COUNTED_FROM:g}s",
            testbed.QUICK_START,
            f"sample.interval={effort.stop_s / INTERVALS * 1e3:g}ms",
            "sample.flows=[0, 1, 2]",
        ),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every scheme with every seed."""
    return [simulation(scheme, seed, effort) for scheme in transfers.SCHEMES for seed in effort.seed_numbers()]


def shares_gbps(outcome: Outcome, effort: Effort) -> list[float]:
    """What each transfer got while all three were there."""
    counted_s = effort.stop_s * (1 - COUNTED_FROM)
    return [bytes_ * 8 / counted_s / 1e9 for bytes_ in outcome.flows.sort("id")["measured_bytes"].to_list()]


def throughputs(outcome: Outcome, effort: Effort) -> pl.DataFrame:
    """Throughput over time: `time_s`, `flow` and `gbps`, of every interval of sampling."""
    interval_s = effort.stop_s / INTERVALS
    held = outcome.series.filter(pl.col("quantity") == "held_bytes").sort("probe", "time_s")
    return held.select(
        pl.col("time_s"),
        pl.col("probe").cast(pl.String).alias("flow"),
        (pl.col("value").diff().over("probe") * 8 / interval_s / 1e9).alias("gbps"),
    ).drop_nulls()


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Fairness and throughput of each scheme; the paper prints figures only."""
    rows = []
    curves = {}
    for scheme, label in transfers.SCHEMES.items():
        found = [outcomes[simulation(scheme, seed, effort)] for seed in effort.seed_numbers()]
        shares = [shares_gbps(outcome, effort) for outcome in found]
        rows.append(measured(key(FAIRNESS, label), None, [jain(each) for each in shares]))
        rows.append(measured(key(UTILIZATION, label), None, [sum(each) for each in shares]))
        curves[scheme] = throughputs(found[0], effort)
    evaluation = Evaluation(tuple(rows), curves=curves)
    return replace(evaluation, notes=(order_note(evaluation),))


def order_note(evaluation: Evaluation) -> str:
    """The schemes by fairness, with what they use together."""
    fairness = {label: evaluation.find(key(FAIRNESS, label)).value or 0.0 for label in transfers.SCHEMES.values()}
    used = {label: evaluation.find(key(UTILIZATION, label)).value or 0.0 for label in fairness}
    ranked = sorted(fairness, key=lambda label: -fairness[label])
    return "By fairness: " + ", ".join(f"{one} {fairness[one]:.3f} ({used[one]:.1f} Gb/s)" for one in ranked) + "."


def draw(evaluation: Evaluation) -> Figure:
    """Throughput over time of the three transfers, scheme by scheme."""
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES, rows=5)
    looks = (plots.RC3, plots.THIRD, plots.FIFTH)
    for axes, (scheme, label) in zip(panels, transfers.SCHEMES.items(), strict=True):
        for index, look in enumerate(looks):
            curve = evaluation.curves[scheme].filter(pl.col("flow") == f"flow {index}")
            curve = curve.with_columns(pl.col("gbps").rolling_mean(AVERAGED, min_samples=1))
            plots.line(axes, f"transfer {index + 1}", look, curve["time_s"].to_list(), curve["gbps"].to_list())
        fairness = evaluation.find(key(FAIRNESS, label)).value or 0.0
        axes.set_title(f"{label}: Jain's index {fairness:.2f}")
        axes.set_ylim(0, 10)
    for place, axes in enumerate(panels):
        axes.set_xlabel("time (s), with seed 1").set_visible(place >= len(panels) - 3)
        axes.set_ylabel("Gb/s").set_visible(place % 3 == 0)
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return drawing


METRICS = named(FAIRNESS, UTILIZATION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
