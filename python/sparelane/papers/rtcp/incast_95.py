"""RTCP, section V-C2 and Fig. 11b: 95 servers send to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, at_most
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, TAIL, Printed, Run, of, ratio_row
from sparelane.papers.rtcp.statements import INCAST, INCAST_RTCP
from sparelane.reports import plots

RUNS: Mapping[str, Run] = {
    scheme: Run(scheme, INCAST_RTCP if scheme == "RTCP" else (), "95 to 1", mix=INCAST)
    for scheme in ("DCTCP", "LEDBAT", "Vegas", "TIMELY", "RTCP")
}
CONTROLS = datacentre.controls(RUNS["RTCP"])
RTCP = RUNS["RTCP"]
VARIANTS = (
    *(run.varied("runs 5 times as long", lengths=5) for run in RUNS.values()),
    RTCP.varied("alpha in 0.5 bytes per KB", "scheme.rtcp.alpha_unit=0.5"),
)


LONGER: Mapping[str, Run] = {run.scheme: run for run in VARIANTS if run.lengths > 1}


def _tail_of_timely(evaluation: Evaluation) -> float:
    def weight(scheme: str) -> float:
        return evaluation.ours(RUNS[scheme].key(DELAY, TAIL)) / evaluation.ours(RUNS[scheme].key(DELAY, MEAN))

    return weight("TIMELY") / max(weight(scheme) for scheme in ("LEDBAT", "Vegas", "RTCP"))


def plan(effort: Effort) -> Sequence[Simulation]:
    """The five schemes, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS, *VARIANTS], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay, and RTCP's tail in percent of the others'."""
    rows = [row for run in RUNS.values() for row in datacentre.scheme_rows(run, Printed(), effort, outcomes)]
    tails = {scheme: datacentre.numbers(run, effort, outcomes).tail_us for scheme, run in RUNS.items()}
    for other, printed, said in (
        ("LEDBAT", 56.0, None),
        ("Vegas", 56.0, None),
        ("TIMELY", None, at_most(56.0)),
        ("DCTCP", None, at_least(100.0)),
    ):
        rows.append(ratio_row(RTCP.key(of(DELAY, other), TAIL), tails["RTCP"], tails[other], printed, said))
    for run in (*CONTROLS, *VARIANTS):
        rows.extend(datacentre.scheme_rows(run, Printed(), effort, outcomes))
    curves = {scheme: datacentre.distribution(run.outcomes(effort, outcomes)) for scheme, run in RUNS.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """The distributions of delay."""
    drawing, [axes] = plots.figure()
    scheme_figure.draw_delays(axes, evaluation, {scheme: LOOKS[scheme] for scheme in RUNS})
    return drawing


METRICS = named(DELAY)
VALUES = {"tail of TIMELY": lambda: _tail_of_timely}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
