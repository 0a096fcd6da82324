"""RTCP, section V-B2, Table I (RS) and Fig. 8: every server sends to a random other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation, measured
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import LOOKS, Printed, Run
from sparelane.experiments.rtcp.statements import RANDOM_SENDING

# Whose windows over time the paper's figure has, but for TIMELY, which has a rate and no window.
WINDOWS = ("NewReno", "RTCP")

BASE = {scheme: Run(scheme) for scheme in RANDOM_SENDING}
CONTROLS = datacentre.controls(BASE["RTCP"])

# Settings that the paper leaves open, each varied alone.
VARIED: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    scheme: tuple(changes)
    for scheme, changes in {
        "NewReno": (
            ("segments of 536 B", ("transport.mss=536B",)),
            ("a path per flow (ECMP)", ("routing=ecmp",)),
            ("receive window without bound", ("transport.receive_window=unlimited",)),
            ("queues of 50 packets", ("queue.limit=50packets", "queue.mark_at=40packets", "nic.limit=50packets")),
            ("queues of 200 packets", ("queue.limit=200packets", "nic.limit=200packets")),
        ),
        "DCTCP": (
            ("segments of 536 B", ("transport.mss=536B",)),
            ("a path per flow (ECMP)", ("routing=ecmp",)),
            ("marks at 5 packets", ("queue.mark_at=5packets",)),
            ("marks at 20 packets", ("queue.mark_at=20packets",)),
            ("marks at 40 packets", ("queue.mark_at=40packets",)),
        ),
        "BBR": (
            ("a path per flow (ECMP)", ("routing=ecmp",)),
            ("exact round-trip times", ("transport.rtt_granularity=exact",)),
        ),
        "TIMELY": (
            ("a path per flow (ECMP)", ("routing=ecmp",)),
            ("exact round-trip times", ("transport.rtt_granularity=exact",)),
        ),
        "RTCP": (
            ("a path per flow (ECMP)", ("routing=ecmp",)),
            ("segments of 536 B", ("transport.mss=536B",)),
            ("exact round-trip times", ("transport.rtt_granularity=exact",)),
            ("windows up to 5 segments", ("scheme.rtcp.max_window=5",)),
            ("windows up to 20 segments", ("scheme.rtcp.max_window=20",)),
            ("windows up to 44 segments", ("scheme.rtcp.max_window=44",)),
            ("windows without bound", ("scheme.rtcp.max_window=1000",)),
            ("weight 12,000", ("scheme.rtcp.weight=12000",)),
        ),
    }.items()
}
VARIANTS = {
    f"{scheme}, {name}": Run(scheme, settings, name) for scheme, all in VARIED.items() for name, settings in all
}

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "Each server draws one other with the seed, and sends to it without end from the beginning; several may draw the "
    "same. RTCP has alpha = 500 and delta = 10,000.",
    "The rows with a setting behind the scheme's name vary what the paper leaves open, one setting at a time, as a "
    "measure of how much depends on it. None was chosen for its result.",
)


TIMELY = (
    "the paper's TIMELY is not TIMELY as published: it says that its window grows faster than NewReno's, and its "
    "queues are the longest of all. By timestamps of 1 ms every round trip is below T_low, when TIMELY adds, but for "
    "those at a tick, when it cuts. Ours starts at half the line rate, loses a burst, does not answer losses, as "
    "published, and where a whole tail is lost waits a second: with a start at 1 % of the line rate it reaches 1,086 "
    "Mb/s, and 2,301 Mb/s at 18.6 us if ticks do not cut (one seed, runs of 100 ms)"
)
BBR = (
    "the paper says that its BBR lacks features. Ours sees a least round trip of 1 us, so that its window is at its "
    "floor of 4 segments; with exact round-trip times its queues are short too, as BBR's are meant to be"
)
QUEUES = (
    "NewReno fills whatever queue there is, and the paper does not give its length: see the rows with 50 and 200 "
    "packets; where a tail is lost, timeouts of 1 s leave the queue empty. The paper's numbers are of one draw of "
    "receivers, ours of ten"
)
BOUND = (
    "depends most on what the paper does not give, the largest window (see the rows of rtcp/random-sending with 5 to "
    "44 segments) and whether flows share one path between leaves (see ECMP), and on the draw of receivers, of which "
    "the paper has one and we ten"
)

REASONS = {
    **{("TIMELY", metric): TIMELY for metric in ("throughput", "mean delay")},
    ("BBR", "mean delay"): BBR,
    **{("NewReno", metric): QUEUES for metric in ("throughput", "mean delay")},
    **{("RTCP", metric): BOUND for metric in ("throughput", "mean delay")},
    ("RTCP", "99th delay, of NewReno's"): f"NewReno's delays are shorter here: {QUEUES}",
    ("RTCP", "mean delay, of DCTCP's"): BOUND,
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """All schemes, what RTCP must be told from, and what is varied."""
    return datacentre.plan([*BASE.values(), *CONTROLS.values(), *VARIANTS.values()], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Table I's columns RS, what the text says of them, and how they depend on what is open."""
    rows: list[Row] = []
    for scheme, run in BASE.items():
        rows.extend(datacentre.scheme_rows(scheme, run, RANDOM_SENDING[scheme], effort, outcomes))
    found = {scheme: run.outcomes(effort, outcomes) for scheme, run in BASE.items()}
    rates = {scheme: [datacentre.throughput_mbps(o, effort.stop_s) for o in all] for scheme, all in found.items()}
    means = {scheme: [datacentre.mean_us(o) for o in all] for scheme, all in found.items()}
    tails = {scheme: [datacentre.quantile_us(o, 0.99) for o in all] for scheme, all in found.items()}
    ratio = datacentre.ratio_row
    rows.append(ratio("RTCP", "throughput, of BBR's", 109.78, rates["RTCP"], rates["BBR"]))
    rows.append(ratio("RTCP", "mean delay, of DCTCP's", 35.78, means["RTCP"], means["DCTCP"]))
    rows.append(ratio("RTCP", "99th delay, of NewReno's", 16.0, tails["RTCP"], tails["NewReno"]))
    for scheme, paper in (("NewReno", "more than 50"), ("DCTCP", "less than 50")):
        beyond = datacentre.known(datacentre.share_beyond(o, 100.0) for o in found[scheme])
        rows.append(measured(scheme, f"packets beyond 0.1 ms (paper: {paper})", "%", None, beyond))
    for name, run in CONTROLS.items():
        rows.extend(datacentre.scheme_rows(name, run, Printed(), effort, outcomes))
    for name, run in VARIANTS.items():
        rows.extend(datacentre.scheme_rows(name, run, RANDOM_SENDING[run.scheme], effort, outcomes))
    curves = {scheme: datacentre.distribution(all) for scheme, all in found.items()}
    windows = {f"{scheme}, window": datacentre.window(found[scheme][0]) for scheme in WINDOWS}
    return Evaluation(tuple(rows), curves=curves | windows)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and delay of the five schemes, the distributions of delay, and the windows of one flow over time."""
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES)
    scheme_figure.draw_schemes(panels[:2], evaluation, scheme_figure.looks_of(list(BASE)))
    axes = panels[2]
    for scheme in WINDOWS:
        curve = evaluation.curves[f"{scheme}, window"]
        plots.line(axes, scheme, LOOKS[scheme], curve["time_ms"].to_list(), curve["cwnd_segments"].to_list())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("window of one flow (segments)")
    plots.legend_above(axes, 2)
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/random-sending",
    title="Random sending: throughput and delay of five schemes",
    source="RTCP, section V-B2, Table I (RS) and Fig. 8",
    method="Each of 96 servers on a spine-leaf network sends to a random other one, in ns-3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=0.05),
    quick=Effort("quick", seeds=1, stop_s=0.01),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)
