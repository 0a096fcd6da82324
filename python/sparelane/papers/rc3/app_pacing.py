"""Measures the transfer of videos that are written in pieces: NSDI 2014, section 5.1.2, "Application Pacing"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, joined, measured
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import RC3, REDUCTION, SCHEMES, TCP, WARM_UP_SHARE
from sparelane.reports import plots

VIDEO_BYTES = 2_140_000
TIME = Metric("time to transfer", "s")
METRICS = named(REDUCTION)

# The baseline and its variants: further overrides, and the length of the runs as a multiple of the effort's.
INTERNET2 = "Internet-2"
VARIANTS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "": ((), 1.0),
    "50 % load": (("workload.0.load=0.5",), 1.0),
    "runs of 10 s": ((), 2.0),
    "even paths": (('routing="single-path"',), 1.0),
}
# The authors' two servers, by the rate of their links: one video on an idle path of 20 ms.
TESTBED = {"testbed at 10 Gb/s": "10Gbps", "testbed at 1 Gb/s": "1Gbps"}
# The two times, with their columns in the table of flows.
TIMED = {"buffering, the first 1.5 MB": "first_write_s", "the whole video": "completion_s"}


def on_internet2(variant: str, effort: Effort) -> list[Cell]:
    """Returns the videos and all other flows, under TCP and under RC3."""
    overrides, lengths = VARIANTS[variant]
    stop_s = lengths * effort.stop_s
    return [
        Cell(
            "rc3-video",
            (*overrides, f"workload.0.scheme={scheme}", f"workload.1.scheme={scheme}", f"duration={stop_s:g}s"),
            joined("videos", variant, scheme),
            cost=0.3 * stop_s,
            keep_flows=True,
            setting=INTERNET2,
            variant=variant,
            stop_s=stop_s,
        )
        for scheme in SCHEMES
    ]


def on_testbed(setting: str) -> list[Cell]:
    """Returns one video between the two servers, under TCP and under RC3."""
    return [
        Cell(
            "rc3-linux",
            (
                f"topology.access_rate={TESTBED[setting]}",
                f"workload.scheme={scheme}",
                f"workload.size={VIDEO_BYTES}B",
                'workload.writes={first="1.5MB",then="64KB",every="100ms"}',
            ),
            f"video on the {setting}, {scheme}",
            cost=0.01,
            most_seeds=1,
            setting=setting,
        )
        for scheme in SCHEMES
    ]


def pairs(effort: Effort) -> list[list[Cell]]:
    """Returns the cells of TCP and RC3 on Internet-2 and on the testbed; a quick effort has no variants."""
    variants = list(VARIANTS)[: 1 if effort.name == "quick" else None]
    return [*(on_internet2(variant, effort) for variant in variants), *map(on_testbed, TESTBED)]


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields all cells."""
    return (cell for pair in pairs(effort) for cell in pair)


def evaluate(runs: Runs) -> Evaluation:
    """Returns the times of buffering and of the whole video."""
    rows: list[Row] = []
    for pair in pairs(runs.effort):
        for traffic, column in TIMED.items():
            means = [_means(tcp, rc3, column, WARM_UP_SHARE * pair[0].stop_s) for tcp, rc3 in runs.together(*pair)]
            times = [found for found in means if found is not None]
            key = pair[0].key(TIME, "mean", traffic)
            rows += [
                measured(replace(key, scheme=TCP), None, [tcp_s for tcp_s, _ in times]),
                measured(replace(key, scheme=RC3), None, [rc3_s for _, rc3_s in times]),
                measured(replace(key, scheme=RC3, metric=REDUCTION), None, [reduction(*both) for both in times]),
            ]
    return Evaluation(tuple(rows))


def _means(tcp: Outcome, rc3: Outcome, column: str, counts_from_s: float) -> tuple[float, float] | None:
    """Returns TCP's and RC3's mean of a time over the videos that have it in both runs; `None` without such videos."""
    counts = (pl.col("size_bytes") == VIDEO_BYTES) & (pl.col("start_s") >= counts_from_s)
    first, second = (outcome.flows.filter(counts).drop_nulls(column).select("id", column) for outcome in (tcp, rc3))
    both = first.join(second, on="id", suffix="_rc3").select(pl.col(column, f"{column}_rc3").mean())
    tcp_s, rc3_s = both.row(0)
    return None if tcp_s is None else (tcp_s, rc3_s)


def draw(evaluation: Evaluation) -> Figure:
    """Draws both times under both schemes; the cross is the time that the paper's reduction leaves of our TCP's."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    shown = [Key(setting, TIME, "", "mean", traffic) for setting in (INTERNET2, *TESTBED) for traffic in TIMED]
    tcp, rc3 = ([evaluation.find(replace(key, scheme=scheme)) for key in shown] for scheme in (TCP, RC3))
    cuts = [evaluation.find(replace(key, scheme=RC3, metric=REDUCTION)) for key in shown]
    printed = [
        None if row.paper is None or slow.value is None else (1 - row.paper / 100) * slow.value
        for slow, row in zip(tcp, cuts, strict=True)
    ]
    bars = [
        plots.Bars.of_rows(TCP, plots.TCP, tcp),
        replace(plots.Bars.of_rows(RC3, plots.RC3, rc3), paper=printed),
    ]
    places = [f"{key.setting}:\n{key.traffic}".replace(" at ", "\nat ").replace(", ", ",\n") for key in shown]
    plots.grouped_bars(axes, places, bars)
    plots.reductions_above(axes, [row.value for row in cuts], bars)
    axes.set_xlabel("setting, and part of the video")
    axes.set_ylabel("mean time to transfer (s)")
    plots.legend_above(axes, 3)
    return drawing
