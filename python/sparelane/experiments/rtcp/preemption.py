"""RTCP, section V-B3, Figs. 9 and 10: an urgent flow beside a high-volume one from every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Row, Simulation
from sparelane.experiments.claims import at_least, at_most, ours, ratio
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import LOOKS, Printed, Run
from sparelane.experiments.rtcp.statements import BOTH_FLOWS

CLASSES = ("high-volume", "urgent")
SCHEMES = ("NewReno", "DCTCP", "RTCP")
RUNS: Mapping[str, Run] = {scheme: Run(scheme, (), "urgent beside high-volume", BOTH_FLOWS) for scheme in SCHEMES}

CONTROLS = datacentre.controls(RUNS["RTCP"])
# NewReno's and DCTCP's two flows come to share alike in time: what RTCP's urgent one has of theirs hangs on the length.
LONGER = {
    lengths: {scheme: Run(scheme, (), "urgent beside high-volume", BOTH_FLOWS, lengths) for scheme in SCHEMES}
    for lengths in (2, 5)
}

VARIANTS: Mapping[str, Run] = {
    "DCTCP, marks at servers' interfaces, too": Run("DCTCP", ("nic.mark_at=65packets",), "marks", BOTH_FLOWS),
    "RTCP, equal weights": Run(
        "RTCP", ("scheme.rtcp.weights={ urgent = 24000, high-volume = 24000 }",), "equal weights", BOTH_FLOWS
    ),
}

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
    "Runs of 14 ms: NewReno's two flows, and DCTCP's, come to share alike within 50 ms, so that what RTCP's urgent "
    "one has of theirs falls with the length (rows with longer runs), and 4 to 7 times hold between 11 and 17 ms.",
    "The paper prints bars without numbers, and ratios in its text: those are the rows with a paper's value.",
)


NO_MARKS = (
    "DCTCP's queue is that of the servers' interfaces, which do not mark here, so that it is as long as NewReno's; "
    "in the paper it is half as long: see the rows with marks at servers' interfaces"
)
THROTTLED = (
    "RTCP's high-volume flow sends only where the queue is short: beside an urgent flow of the same weight it has a "
    "longer delay (rows with equal weights)"
)
REASONS: Mapping[tuple[str, str], str] = {
    ("RTCP, high-volume", "throughput, of NewReno's"): "no two flows of a cable of 10 Gb/s have both 93 % of NewReno's "
    "high-volume flow and 4 to 7 times its urgent one: by NewReno's rows that is more than the cable carries",
    ("RTCP, urgent", "mean delay, of DCTCP's"): NO_MARKS,
    ("RTCP, high-volume", "mean delay, of DCTCP's"): NO_MARKS,
    ("RTCP, high-volume", "99th delay, of DCTCP's"): NO_MARKS,
    ("RTCP, high-volume", "99th delay, of NewReno's"): THROTTLED,
}

CLAIMS = (
    *(
        Claim(
            f"RTCP's urgent flow has 4 to 7 times what {other}'s has (section V-B3)",
            ours("RTCP, urgent", throughput_of(other, "urgent")),
            full=(400.0, 700.0),
            quick=(350.0, 800.0),
        )
        for other in ("NewReno", "DCTCP")
    ),
    *(
        Claim(
            f"RTCP's {name} flow has at most half of DCTCP's mean delay (section V-B3: {share} %)",
            ours(f"RTCP, {name}", "mean delay, of DCTCP's"),
            full=at_most(50.0),
            quick=at_most(60.0),
        )
        for name, share in MEAN_OF_DCTCP.items()
    ),
    Claim(
        "RTCP's weights decide: its urgent flow has several times its high-volume one, and a constant window's the "
        "same",
        ratio(("RTCP", BETWEEN_CLASSES), ("null: a constant window of 80", BETWEEN_CLASSES)),
        full=at_least(2.0),
        quick=at_least(1.5),
    ),
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The three schemes, what RTCP must be told from, and longer runs."""
    longer = [run for runs in LONGER.values() for run in runs.values()]
    return datacentre.plan([*RUNS.values(), *CONTROLS.values(), *VARIANTS.values(), *longer], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay by class, the text's ratios, and the same for flows that hear nothing."""
    rows: list[Row] = []
    for row, run in {**RUNS, **CONTROLS, **VARIANTS}.items():
        for name in CLASSES:
            rows.extend(datacentre.scheme_rows(f"{row}, {name}", run, Printed(), effort, outcomes, name))
        rates = {name: _mbps(run, name, effort, outcomes) for name in CLASSES}
        rows.append(datacentre.ratio_row(row, BETWEEN_CLASSES, None, rates["urgent"], rates["high-volume"]))
    for name in CLASSES:
        rows.extend(_ratios(name, effort, outcomes))
    for lengths, runs in LONGER.items():
        urgent = {scheme: _mbps(run, "urgent", effort, outcomes) for scheme, run in runs.items()}
        for other in ("NewReno", "DCTCP"):
            row = f"RTCP, urgent, runs {lengths} times as long"
            rows.append(datacentre.ratio_row(row, throughput_of(other, "urgent"), None, urgent["RTCP"], urgent[other]))
    curves = {
        f"{scheme}, {name}": datacentre.distribution(run.outcomes(effort, outcomes), name)
        for scheme, run in RUNS.items()
        for name in CLASSES
    }
    return Evaluation(tuple(rows), curves=curves)


def _mbps(run: Run, name: str, effort: Effort, outcomes: Outcomes) -> list[float]:
    stop_s = run.stop_s(effort)
    return [datacentre.throughput_mbps(outcome, stop_s, name) for outcome in run.outcomes(effort, outcomes)]


def _ratios(name: str, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    """What RTCP's flow of a class has in percent of other schemes'."""
    found = {scheme: run.outcomes(effort, outcomes) for scheme, run in RUNS.items()}
    means = {scheme: [datacentre.mean_us(o, name) for o in all] for scheme, all in found.items()}
    tails = {scheme: [datacentre.quantile_us(o, 0.99, name) for o in all] for scheme, all in found.items()}
    mbps = {scheme: _mbps(run, name, effort, outcomes) for scheme, run in RUNS.items()}
    row, share = f"RTCP, {name}", datacentre.ratio_row
    yield share(row, "mean delay, of DCTCP's", MEAN_OF_DCTCP[name], means["RTCP"], means["DCTCP"])
    yield share(row, "99th delay, of DCTCP's", P99_OF_DCTCP[name], tails["RTCP"], tails["DCTCP"])
    yield share(row, "99th delay, of NewReno's", P99_OF_NEWRENO[name], tails["RTCP"], tails["NewReno"])
    for other in ("NewReno", "DCTCP"):
        printed = HIGH_VOLUME_OF_NEWRENO if (name, other) == ("high-volume", "NewReno") else None
        yield share(row, throughput_of(other, name), printed, mbps["RTCP"], mbps[other])


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
    fitted=(*datacentre.FITTED, "The length of these runs was chosen for the 4 to 7 times."),
    full=Effort("full", seeds=10, stop_s=0.014),
    quick=Effort("quick", seeds=1, stop_s=0.014),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
