"""RTCP against windows that never change: one setting of each across four workloads.

A fixed window that is tuned for one workload can be better than any control. An operator cannot tune it for each
workload, so one window is compared with one setting of RTCP across all of them. The measure is the power of a flow, its
throughput over its mean delay, relative to the best candidate of the same workload.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, MIXES, THROUGHPUT, Run
from sparelane.reports import plots

# The workloads: their names in rows, their overrides, their mixes, and the traffic class that is measured.
WORKLOADS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "random sending": ((), MIXES[""], ""),
    "over-subscription": (("topology.over_subscription=2",), MIXES[""], ""),
    "95 to 1": ((), MIXES["incast"], ""),
    "urgent beside high-volume": ((), MIXES["preemption"], "urgent"),
}
ALL = "all four workloads"
POWER = Metric("power, of the best", "%")
# The two kinds of candidates, in the schemes of rows.
RTCP, WINDOW = "RTCP", "constant"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting of RTCP or a fixed window.

    Attributes:
        scheme: the scheme, `RTCP` or `WINDOW`.
        name: the name in rows.
        setting: its override of the scenario.
    """

    scheme: str
    name: str
    setting: str

    def run(self, workload: str) -> Run:
        """Returns the candidate's run in a workload."""
        settings, mix, _ = WORKLOADS[workload]
        return Run(self.scheme, (*settings, self.setting), workload, self.name, mix)

    def key(self, workload: str) -> Key:
        """Returns the key of the candidate's power in a workload, or in all of them."""
        return Key(workload, POWER, self.scheme, variant=self.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The experiment.

    Attributes:
        candidates: settings of RTCP and fixed windows.
    """

    candidates: Sequence[Candidate]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields every candidate in every workload."""
        return (one.run(workload).cell(effort) for workload in WORKLOADS for one in self.candidates)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns throughput, mean delay and relative power by workload, and the geometric mean over workloads."""
        rows: list[Row] = []
        # The relative powers of each candidate: one list per workload, with one value per seed.
        found: dict[Candidate, list[list[float]]] = {one: [] for one in self.candidates}
        for workload, (_, _, traffic) in WORKLOADS.items():
            powers = {}
            for one in self.candidates:
                run = one.run(workload)
                rates = datacentre.known(datacentre.values(runs, run, THROUGHPUT, traffic=traffic))
                delays = datacentre.known(datacentre.values(runs, run, DELAY, MEAN, traffic))
                rows += [
                    measured(run.key(THROUGHPUT, traffic=traffic), None, rates),
                    measured(run.key(DELAY, MEAN, traffic), None, delays),
                ]
                powers[one] = [rate / delay for rate, delay in zip(rates, delays, strict=True)]
            # The best candidate is the same for all seeds, so that noise does not choose it.
            best = max(statistics.fmean(values) for values in powers.values())
            for one, values in powers.items():
                relative = [100 * value / best for value in values]
                rows.append(measured(one.key(workload), None, relative))
                found[one].append(relative)
        for one, by_workload in found.items():
            rows.append(measured(one.key(ALL), None, list(map(_geometric_mean, zip(*by_workload, strict=True)))))
        return Evaluation(tuple(rows))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the relative power of every candidate in each workload."""
        drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
        for axes, scheme, label in ((panels[0], WINDOW, "fixed window"), (panels[1], RTCP, "RTCP")):
            candidates = [one for one in self.candidates if one.scheme == scheme]
            looks = (plots.RC3, plots.TCP, plots.THIRD, plots.MODEL, plots.FIFTH)
            for workload, look in zip((*WORKLOADS, ALL), looks, strict=True):
                values = [evaluation.ours(one.key(workload)) for one in candidates]
                plots.line(axes, workload, look, list(range(len(candidates))), values)
            axes.set_xticks(range(len(candidates)), [one.name.rpartition(" ")[2] for one in candidates])
            axes.set_ylim(0, 105)
            axes.set_xlabel("window (segments)" if scheme == WINDOW else "alpha")
            axes.set_ylabel(f"power, {label}\n(% of the best)")
        plots.legend_above(panels[0], 2)
        return drawing


def _geometric_mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


def _best(evaluation: Evaluation, scheme: str) -> float:
    powers = [row.value for row in evaluation.rows if row.key.setting == ALL and row.key.scheme == scheme]
    return max((value for value in powers if value is not None), default=math.nan)


def _ahead() -> Value:
    """The power of the best setting of RTCP over that of the best fixed window, each across all workloads."""
    return lambda evaluation: _best(evaluation, RTCP) / _best(evaluation, WINDOW)


METRICS = named(POWER)
VALUES = {"best RTCP over best window": _ahead}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    study = Comparison(
        [
            *(
                Candidate(WINDOW, f"window of {it:g}", f"scheme.constant.window={it:g}")
                for it in rest.numbers("windows")
            ),
            *(Candidate(RTCP, f"alpha = {it:g}", f"scheme.rtcp.alpha={it:g}") for it in rest.numbers("alphas")),
        ]
    )
    rest.finish()
    return declared.study(study.cells, study.evaluate, study.draw)
