"""RTCP, section V-B2, Table I (RS) and Fig. 8: every server sends to a random other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, at_most
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row, measured
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, TAIL, THROUGHPUT, Printed, Run, of, ratio_row
from sparelane.papers.rtcp.statements import RANDOM_SENDING
from sparelane.reports import plots

# So much of the windows is shown: RTCP's goes up and down many times in a millisecond.
SHOWN_MS = 1.5
# Whose windows over time the paper's figure has, but for TIMELY, which has a rate and no window.
WINDOWS = ("NewReno", "RTCP")

BASE = {scheme: Run(scheme) for scheme in RANDOM_SENDING}
CONTROLS = datacentre.controls(BASE["RTCP"])

ONE_PATH = ("routing=single-path",)
SHORT_QUEUES = ("queue.limit=100packets", "nic.limit=100packets")
# Settings that the paper leaves open, each varied alone.
VARIED: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    "NewReno": (
        ("one path between two leaves", ONE_PATH),
        ("queues of 100 packets", SHORT_QUEUES),
        ("one path and queues of 100 packets", (*ONE_PATH, *SHORT_QUEUES)),
        ("timeouts of 1 s", ("transport.min_rto=1s",)),
    ),
    "DCTCP": (
        ("one path between two leaves", ONE_PATH),
        ("marks at 20 packets", ("queue.mark_at=20packets",)),
        ("marks at servers' interfaces, too", ("nic.mark_at=65packets",)),
    ),
    "BBR": (
        ("one path between two leaves", ONE_PATH),
        ("exact round-trip times", ("transport.rtt_granularity=exact",)),
    ),
    "TIMELY": (
        ("one path between two leaves", ONE_PATH),
        ("exact round-trip times", ("transport.rtt_granularity=exact",)),
    ),
    "RTCP": (
        ("one path between two leaves", ONE_PATH),
        ("x_max of 1 line rate", ("scheme.rtcp.x_max=1",)),
        ("x_max of 2 line rates", ("scheme.rtcp.x_max=2",)),
        ("x_max of 4 line rates", ("scheme.rtcp.x_max=4",)),
        ("the own interface in Q and in D", ('scheme.rtcp.interface="twice"',)),
        ("rates in Gb/s", ("scheme.rtcp.unit_rate=1Gbps",)),
        ("weight 12,000", ("scheme.rtcp.weight=12000",)),
        ("alpha in bytes per KB", ("scheme.rtcp.alpha_unit=1",)),
        ("round-trip times by 1 ms", ('scheme.rtcp.transport={ rtt_granularity = "1ms" }',)),
    ),
}
RTCP = BASE["RTCP"]
VARIANTS = [
    *(BASE[scheme].varied(name, *settings) for scheme, all in VARIED.items() for name, settings in all),
    RTCP.varied("runs twice as long", lengths=2),
]
BEYOND = Metric("packets beyond 0.1 ms", "%")


PATHS = (
    "the printed numbers are those of one path between two leaves, which all flows share, as ns-3 routes by default: "
    "see the rows with one path between two leaves. Under one path RTCP has two thirds of Table II's throughputs at "
    "most, and a path per flow gives it those (rtcp/setting): no routing that was tried has both"
)
BBR = (
    "not explained: neither one path nor exact round-trip times make its queues long (rows of rtcp/random-sending); "
    "the paper says that its BBR lacks features"
)
TIMELY = (
    "not explained: with exact round-trip times it has more throughput than printed, at a quarter of the printed delay "
    "(row of rtcp/random-sending); the paper's TIMELY grows faster than NewReno and has the longest queues of all, "
    "which TIMELY as published is made to avoid"
)
X_MAX = (
    "x_max: with 2 line rates it agrees (rows), but then RTCP's windows are too short for the delays of Table II "
    "(rtcp/setting)"
)
NEARER = (
    "not explained: with an x_max of 2 line rates RTCP's throughput agrees, and its delay is some 20 % above the "
    "printed one (rows); and DCTCP's, of which it is a share, is longer here than printed"
)
NS3_QUEUES = (
    "queues of 250 packets: with 100 it is so (row), but then the incast's 99th percentiles are not those of the paper "
    "(benches/rtcp_setting.md)"
)
NULL = (
    "not explained: it is behind in both; where few flows meet, a window of one bandwidth-delay product fills the "
    "paths and makes no queue"
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """All schemes, what RTCP must be told from, and what is varied."""
    return datacentre.plan([*BASE.values(), *CONTROLS, *VARIANTS], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Table I's columns RS, what the text says of them, and how they depend on what is open."""
    rows: list[Row] = []
    for scheme, run in BASE.items():
        rows.extend(datacentre.scheme_rows(run, RANDOM_SENDING[scheme], effort, outcomes))
    found = {scheme: run.outcomes(effort, outcomes) for scheme, run in BASE.items()}
    numbers = {scheme: datacentre.numbers(run, effort, outcomes) for scheme, run in BASE.items()}
    rtcp = numbers["RTCP"]
    rows.append(ratio_row(RTCP.key(of(THROUGHPUT, "BBR")), rtcp.mbps, numbers["BBR"].mbps, 109.78))
    rows.append(ratio_row(RTCP.key(of(DELAY, "DCTCP"), MEAN), rtcp.mean_us, numbers["DCTCP"].mean_us, 35.78))
    rows.append(ratio_row(RTCP.key(of(DELAY, "NewReno"), TAIL), rtcp.tail_us, numbers["NewReno"].tail_us, 16.0))
    for scheme, said in (("NewReno", at_least(50.0)), ("DCTCP", at_most(50.0))):
        beyond = datacentre.known(datacentre.share_beyond(o, 100.0) for o in found[scheme])
        rows.append(measured(BASE[scheme].key(BEYOND), None, beyond, said))
    for run in (*CONTROLS, *VARIANTS):
        rows.extend(datacentre.scheme_rows(run, Printed(), effort, outcomes))
    curves = {scheme: datacentre.distribution(all) for scheme, all in found.items()}
    windows = {f"{scheme}, window": datacentre.window(found[scheme][0]) for scheme in WINDOWS}
    return Evaluation(tuple(rows), curves=curves | windows)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and delay of the five schemes, the distributions of delay, and the windows of one flow over time."""
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES)
    looks = {scheme: (run, LOOKS[scheme]) for scheme, run in BASE.items()}
    scheme_figure.draw_schemes(panels[:2], evaluation, looks)
    axes = panels[2]
    for scheme in WINDOWS:
        curve = evaluation.curves[f"{scheme}, window"]
        last_ms = float(curve["time_ms"].max() or 0.0)  # type: ignore[arg-type]
        curve = curve.filter(pl.col("time_ms") > last_ms - SHOWN_MS)
        plots.line(axes, scheme, LOOKS[scheme], curve["time_ms"].to_list(), curve["cwnd_segments"].to_list())
    axes.set_yscale("log")
    axes.set_xlabel(f"time (ms), the last {SHOWN_MS:g}")
    axes.set_ylabel("window of one\nflow (segments)")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named(DELAY, BEYOND, THROUGHPUT)
VALUES = {"ahead of a constant window": lambda: datacentre.ahead(RTCP, CONTROLS[0])}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
