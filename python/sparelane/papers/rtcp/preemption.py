"""RTCP, section V-B3, Figs. 9 and 10: an urgent flow beside a high-volume one from every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, TAIL, THROUGHPUT, Printed, Run, of, ratio_row
from sparelane.papers.rtcp.statements import BOTH_FLOWS
from sparelane.reports import plots

CLASSES = ("high-volume", "urgent")
SCHEMES = ("NewReno", "DCTCP", "RTCP")
RUNS: Mapping[str, Run] = {scheme: Run(scheme, (), "urgent beside high-volume", mix=BOTH_FLOWS) for scheme in SCHEMES}
RTCP = RUNS["RTCP"]

CONTROLS = datacentre.controls(RUNS["RTCP"])
# NewReno's and DCTCP's two flows come to share alike in time: what RTCP's urgent one has of theirs hangs on the length.
LONGER = {
    lengths: {scheme: run.varied(f"runs {lengths} times as long", lengths=lengths) for scheme, run in RUNS.items()}
    for lengths in (2, 5)
}

MARKING = RUNS["DCTCP"].varied("marks at servers' interfaces, too", "nic.mark_at=65packets")
VARIANTS = (
    MARKING,
    RTCP.varied("equal weights", "scheme.rtcp.weights={ urgent = 24000, high-volume = 24000 }"),
)

# The text's numbers: RTCP's mean delay in percent of DCTCP's, and RTCP's 99th in percent of NewReno's.
MEAN_OF_DCTCP = {"urgent": 31.5, "high-volume": 35.6}
P99_OF_NEWRENO = {"urgent": 25.0, "high-volume": 25.0}
P99_OF_DCTCP: Mapping[str, float | None] = {"urgent": None, "high-volume": 50.0}
HIGH_VOLUME_OF_NEWRENO = 93.0
BETWEEN_CLASSES = Metric("throughput of the urgent flow, of the high-volume one's", "%")
# What RTCP's urgent flow has of NewReno's and DCTCP's.
SAID = (400.0, 700.0)


NO_MARKS = (
    "DCTCP's queue is that of the servers' interfaces, which do not mark here, so that it is as long as NewReno's: "
    "where they mark it is as in the paper (rows with marks at servers' interfaces)"
)
TOO_SHORT = (
    "not explained: DCTCP's queue is that of the servers' interfaces, which do not mark here; where they mark, it is "
    "so short that RTCP's delay is a larger share of it than printed (rows with marks at servers' interfaces)"
)
THROTTLED = (
    "not explained: RTCP's high-volume flow sends only where the queue is short; beside an urgent flow of the same "
    "weight its tail is longer, and still shorter than the paper's (rows with equal weights)"
)
FULL_CABLE = (
    "not explained: 93 % of NewReno's high-volume flow and 4 to 7 times its urgent one are more than a cable of "
    "10 Gb/s carries, by NewReno's rows; but ours has far less than what its urgent flow would leave"
)
SHARED_ALIKE = (
    "NewReno's two flows, and DCTCP's, come to share alike the longer a run is, so that no flow can have several times "
    "what theirs has: the paper does not say how long it ran"
)


def _largest_ratio(name: str, other: str) -> Value:
    """The largest ratio of RTCP's delay to another scheme's at the same share of packets, from 1 to 99 %."""

    def ratio_of_curves(evaluation: Evaluation) -> float:
        rtcp, others = (evaluation.curves[f"{scheme}, {name}"] for scheme in ("RTCP", other))
        shares = [percent / 100 for percent in range(1, 100)]
        return max(_delay_at(rtcp, share) / _delay_at(others, share) for share in shares)

    return ratio_of_curves


def _delay_at(curve: pl.DataFrame, share: float) -> float:
    return float(curve.filter(pl.col("share") >= share)["delay_us"][0])


def plan(effort: Effort) -> Sequence[Simulation]:
    """The three schemes, what RTCP must be told from, and longer runs."""
    longer = [run for runs in LONGER.values() for run in runs.values()]
    return datacentre.plan([*RUNS.values(), *CONTROLS, *VARIANTS, *longer], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay by class, the text's ratios, and the same for flows that hear nothing."""
    rows: list[Row] = []
    for run in (*RUNS.values(), *CONTROLS, *VARIANTS):
        for name in CLASSES:
            rows.extend(datacentre.scheme_rows(run, Printed(), effort, outcomes, name))
        rates = {name: _mbps(run, name, effort, outcomes) for name in CLASSES}
        rows.append(ratio_row(run.key(BETWEEN_CLASSES), rates["urgent"], rates["high-volume"]))
    for name in CLASSES:
        rows.extend(_ratios(name, effort, outcomes))
    for runs in LONGER.values():
        urgent = {scheme: _mbps(run, "urgent", effort, outcomes) for scheme, run in runs.items()}
        for other in ("NewReno", "DCTCP"):
            key = runs["RTCP"].key(of(THROUGHPUT, other), "", "urgent")
            rows.append(ratio_row(key, urgent["RTCP"], urgent[other], said=SAID))
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
    found = {scheme: datacentre.numbers(run, effort, outcomes, name) for scheme, run in RUNS.items()}
    rtcp, dctcp, newreno = (found[scheme] for scheme in ("RTCP", "DCTCP", "NewReno"))
    of_dctcp, of_newreno = of(DELAY, "DCTCP"), of(DELAY, "NewReno")
    yield ratio_row(RTCP.key(of_dctcp, MEAN, name), rtcp.mean_us, dctcp.mean_us, MEAN_OF_DCTCP[name])
    yield ratio_row(RTCP.key(of_dctcp, TAIL, name), rtcp.tail_us, dctcp.tail_us, P99_OF_DCTCP[name])
    yield ratio_row(RTCP.key(of_newreno, TAIL, name), rtcp.tail_us, newreno.tail_us, P99_OF_NEWRENO[name])
    said = SAID if name == "urgent" else None
    for other in ("NewReno", "DCTCP"):
        printed = HIGH_VOLUME_OF_NEWRENO if (name, other) == ("high-volume", "NewReno") else None
        yield ratio_row(RTCP.key(of(THROUGHPUT, other), "", name), rtcp.mbps, found[other].mbps, printed, said)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and mean delay by class, and the distributions of delay of each class."""
    drawing, panels = plots.figure(4, width_inches=plots.PAGE_INCHES)
    for axes, metric, average, label in (
        (panels[0], THROUGHPUT, "", "throughput (Mb/s)"),
        (panels[1], DELAY, MEAN, "mean one-way delay (us)"),
    ):
        bars = [
            plots.Bars.of_rows(
                scheme, LOOKS[scheme], [evaluation.find(run.key(metric, average, name)) for name in CLASSES]
            )
            for scheme, run in RUNS.items()
        ]
        plots.grouped_bars(axes, [name.replace("-", "-\n") for name in CLASSES], bars)
        axes.set_xlabel("flow")
        axes.set_ylabel(label)
        plots.legend_above(axes, 1)
    for axes, name in zip(panels[2:], CLASSES, strict=True):
        scheme_figure.draw_delays(axes, evaluation, {f"{scheme}, {name}": LOOKS[scheme] for scheme in SCHEMES})
        axes.set_xlabel(f"one-way delay (us),\n{name}")
        plots.legend_above(axes, 1)
    return drawing


METRICS = named(DELAY, BETWEEN_CLASSES)
VALUES = {"largest ratio of delays": _largest_ratio}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
