"""Finds the load that a network can carry with RC3 at the completion times that it has with TCP.

The paper says that RC3 "allows [providers] to run their networks at higher utilization, while still providing good
performance" (NSDI 2014, section 6), without numbers. Both schemes run at several loads, and the times in between are
interpolated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import polars as pl

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.internet2 import BYTES, FCT, FLOWS, NAMED, RC3, SCHEMES, WARM_UP_SHARE, Scheme, Setting

UNFINISHED = Metric("flows that do not finish", "%")
EQUAL = Metric("load with RC3 at TCP's times", "%")
METRICS = named(FCT, UNFINISHED, EQUAL)

# Flows that start after this share of a run do not count: with the rest of the run, nearly all others finish.
LAST_START = 0.6
# The averages, each with the largest flow in bytes and the power of a flow's size that is its weight.
SHORT = "mean over flows up to 4 KB"
AVERAGES: Mapping[str, tuple[int, int]] = {FLOWS: (2**62, 0), BYTES: (2**62, 1), SHORT: (4_380, 0)}


@dataclass(frozen=True, slots=True)
class Times:
    """The flows of one run that count.

    Attributes:
        mean_s: the mean completion time of those that finish, by average.
        unfinished: the share of those that do not, percent.
    """

    mean_s: Mapping[str, float]
    unfinished: float


def times(outcome: Outcome, stop_s: float) -> Times:
    """Returns the completion times of the flows that start in the middle of a run."""
    started = outcome.flows.filter(pl.col("start_s").is_between(WARM_UP_SHARE * stop_s, LAST_START * stop_s))
    finished = started.filter(pl.col("finish_s").is_not_null())
    means = {}
    for average, (most_bytes, power) in AVERAGES.items():
        weight = pl.col("size_bytes").cast(pl.Float64).pow(power)
        mean = (pl.col("completion_s") * weight).sum() / weight.sum()
        means[average] = float(finished.filter(pl.col("size_bytes") <= most_bytes).select(mean).item())
    return Times(means, 100.0 * (1.0 - finished.height / max(started.height, 1)))


def equal_load(loads: Sequence[float], times_s: Sequence[float], time_s: float) -> float:
    """Returns the largest load at which the interpolated time is at most `time_s`.

    It is the last load if the time is shorter at all of them, and the first if it is longer.
    """
    found = loads[0]
    for (load, before_s), (later, after_s) in pairwise(zip(loads, times_s, strict=True)):
        if after_s <= time_s:
            found = later
        elif before_s <= time_s:
            found = load + (later - load) * (time_s - before_s) / (after_s - before_s)
    return found


def name(load: float) -> str:
    """Returns the setting in keys of rows: the load in percent."""
    return f"{100 * load:g}%"


@dataclass(frozen=True, slots=True)
class Study:
    """The loads of the experiment.

    Attributes:
        loads: the loads of both schemes, 0 to 1, in rising order.
        quick_loads: those of quick efforts.
        compared: the loads of TCP whose times are looked up; a part of both lists.
    """

    loads: Sequence[float]
    quick_loads: Sequence[float]
    compared: Sequence[float]

    def of(self, effort: Effort) -> Sequence[float]:
        """Returns the loads of an effort."""
        return self.quick_loads if effort.name == "quick" else self.loads

    def cell(self, load: float, scheme: Scheme, effort: Effort) -> Cell:
        """Returns the flows of one load under one scheme."""
        setting: Setting = replace(NAMED["even paths"], name=name(load), load=load)
        return setting.cell(scheme, effort)

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields both schemes at every load."""
        return (self.cell(load, scheme, effort) for load in self.of(effort) for scheme in SCHEMES)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns the times by load, and the loads with RC3 at which they equal TCP's."""
        loads, effort = self.of(runs.effort), runs.effort
        # By scheme and load, the times of each seed.
        found = {
            (label, load): [times(one, effort.stop_s) for one in runs.of(self.cell(load, scheme, effort))]
            for scheme, label in SCHEMES.items()
            for load in loads
        }
        rows: list[Row] = []
        for (label, load), by_seed in found.items():
            for average in AVERAGES:
                key = Key(name(load), FCT, label, average)
                rows.append(measured(key, None, [one.mean_s[average] for one in by_seed]))
            rows.append(measured(Key(name(load), UNFINISHED, label), None, [one.unfinished for one in by_seed]))
        for load in self.compared:
            for average in AVERAGES:
                equal = [
                    100.0
                    * equal_load(loads, [found[RC3, at][seed].mean_s[average] for at in loads], one.mean_s[average])
                    for seed, one in enumerate(found[internet2.TCP, load])
                ]
                rows.append(measured(Key(f"TCP at {name(load)}", EQUAL, RC3, average), None, equal))
        return Evaluation(tuple(rows))


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    study = Study(rest.numbers("loads"), rest.numbers("quick_loads"), rest.numbers("compared"))
    return panels.study(declared, study.cells, study.evaluate)
