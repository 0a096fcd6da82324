"""RTCP, section V-B3, Figs. 9 and 10: an urgent flow beside a high-volume one from every server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import LOOKS, Printed, Run
from sparelane.experiments.rtcp.statements import BOTH_FLOWS

CLASSES = ("high-volume", "urgent")
SCHEMES = ("NewReno", "DCTCP", "RTCP")
RUNS: Mapping[str, Run] = {scheme: Run(scheme, (), "urgent beside high-volume", BOTH_FLOWS) for scheme in SCHEMES}

CONTROLS = datacentre.controls(RUNS["RTCP"])

# The text's numbers: RTCP's mean delay in percent of DCTCP's, and RTCP's 99th in percent of NewReno's.
MEAN_OF_DCTCP = {"urgent": 31.5, "high-volume": 35.6}
P99_OF_NEWRENO = {"urgent": 25.0, "high-volume": 25.0}
P99_OF_DCTCP: Mapping[str, float | None] = {"urgent": None, "high-volume": 50.0}
HIGH_VOLUME_OF_NEWRENO = 93.0
BETWEEN_CLASSES = "throughput of the urgent flow, of the high-volume one's"


def throughput_of(other: str, name: str) -> str:
    """What the row is called in which RTCP's flow has so much of what another scheme's has."""
    return f"throughput, of {other}'s" + (" (paper: 400 to 700)" if name == "urgent" else "")


ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "The server to the right is the next one, across leaves too; the last sends to the first. Flows have no end; the "
    "high-volume ones start at random in the first 0.1 ms, the urgent ones between 0.2 and 0.3 ms. Weights 24,000 and "
    "12,000, as on the paper's testbed; alpha = 500.",
    "The paper prints bars without numbers, and ratios in its text: those are the rows with a paper's value.",
)


SHORTER = (
    "RTCP's windows are at most 10 segments each, our reading of x_max, which bounds its queue; DCTCP's and NewReno's "
    "tails are those of queues of 100 packets"
)
REASONS = {
    (f"RTCP, {name}", metric): SHORTER
    for name in CLASSES
    for metric in ("mean delay, of DCTCP's", "99th delay, of NewReno's")
} | {("RTCP, high-volume", "99th delay, of DCTCP's"): SHORTER}


def plan(effort: Effort) -> Sequence[Simulation]:
    """The three schemes, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS.values()], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay by class, and the text's ratios."""
    rows: list[Row] = []
    for scheme, run in RUNS.items():
        for name in CLASSES:
            rows.extend(datacentre.scheme_rows(f"{scheme}, {name}", run, Printed(), effort, outcomes, name))
    found = {scheme: run.outcomes(effort, outcomes) for scheme, run in RUNS.items()}
    for name in CLASSES:
        means = {scheme: [datacentre.mean_us(o, name) for o in all] for scheme, all in found.items()}
        tails = {scheme: [datacentre.quantile_us(o, 0.99, name) for o in all] for scheme, all in found.items()}
        mbps = {
            scheme: [datacentre.throughput_mbps(o, effort.stop_s, name) for o in all] for scheme, all in found.items()
        }
        row = f"RTCP, {name}"
        ratio = datacentre.ratio_row
        rows.append(ratio(row, "mean delay, of DCTCP's", MEAN_OF_DCTCP[name], means["RTCP"], means["DCTCP"]))
        rows.append(ratio(row, "99th delay, of DCTCP's", P99_OF_DCTCP[name], tails["RTCP"], tails["DCTCP"]))
        rows.append(ratio(row, "99th delay, of NewReno's", P99_OF_NEWRENO[name], tails["RTCP"], tails["NewReno"]))
        for other in ("NewReno", "DCTCP"):
            printed = HIGH_VOLUME_OF_NEWRENO if (name, other) == ("high-volume", "NewReno") else None
            rows.append(ratio(row, throughput_of(other, name), printed, mbps["RTCP"], mbps[other]))
    for control, run in CONTROLS.items():
        for name in CLASSES:
            rows.extend(datacentre.scheme_rows(f"{control}, {name}", run, Printed(), effort, outcomes, name))
    for row, run in ({**RUNS, **CONTROLS}).items():
        all = run.outcomes(effort, outcomes)
        rates = {name: [datacentre.throughput_mbps(o, effort.stop_s, name) for o in all] for name in CLASSES}
        rows.append(datacentre.ratio_row(row, BETWEEN_CLASSES, None, rates["urgent"], rates["high-volume"]))
    curves = {
        f"{scheme}, {name}": datacentre.distribution(all, name) for scheme, all in found.items() for name in CLASSES
    }
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and mean delay by class, and the distributions of delay of each class."""
    drawing, panels = plots.figure(4, width_inches=plots.PAGE_INCHES)
    for axes, metric, label in (
        (panels[0], "throughput", "throughput (Mb/s)"),
        (panels[1], "mean delay", "mean one-way delay (us)"),
    ):
        bars = [
            plots.Bars.of_rows(
                scheme, LOOKS[scheme], [evaluation.find(f"{scheme}, {name}", metric) for name in CLASSES]
            )
            for scheme in SCHEMES
        ]
        plots.grouped_bars(axes, [name.replace("-", "-\n") for name in CLASSES], bars)
        axes.set_xlabel("flow")
        axes.set_ylabel(label)
        plots.legend_above(axes, 1)
    for axes, name in zip(panels[2:], CLASSES, strict=True):
        looks = scheme_figure.looks_of([f"{scheme}, {name}" for scheme in SCHEMES])
        scheme_figure.draw_delays(axes, evaluation, looks)
        axes.set_xlabel(f"one-way delay (us),\n{name}")
        plots.legend_above(axes, 1)
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/preemption",
    title="An urgent flow beside a high-volume one",
    source="RTCP, section V-B3, Figs. 9 and 10",
    method="Every server sends a high-volume flow to the server on its right, and then an urgent one, in ns-3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=0.05),
    quick=Effort("quick", seeds=1, stop_s=0.01),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)
