"""RTCP, section V-B3, Figs. 9 and 10: an urgent flow next to a high-volume one from every server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Metric, Row
from sparelane.papers.rtcp import datacentre
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, MIXES, TAIL, THROUGHPUT, Run, ratio_row, ratio_to

CLASSES = ("high-volume", "urgent")
SCHEMES = ("NewReno", "DCTCP", "RTCP")
RUNS: Mapping[str, Run] = {
    scheme: Run(scheme, setting="urgent beside high-volume", mix=MIXES["preemption"]) for scheme in SCHEMES
}
RTCP = RUNS["RTCP"]
# NewReno's and DCTCP's two flows converge to equal shares, so RTCP's advantage depends on the length of the run.
LONGER = [
    {scheme: run.varied(f"runs {lengths} times as long", lengths=lengths) for scheme, run in RUNS.items()}
    for lengths in (2, 5)
]
# The counter's target by eq. (10) as printed, with the setting that has most of the paper's statements then.
AS_PRINTED = ("counter=printed", "x_max=4", "alpha_unit=1.5", "delta_unit=0.3")
PRINTED = RTCP.varied("eq. (10) as printed", *(f"scheme.rtcp.{text}" for text in AS_PRINTED))
# The same with another scheme for high-volume flows, which has half of x_max.
HALF_X_MAX = (
    'scheme.half={ controller="rtcp", transport={ rtt_granularity="exact" }, min_window=1 }',
    *(f"scheme.half.{text}" for text in (*AS_PRINTED, "x_max=2")),
)
BY_CLASS = replace(
    PRINTED.varied("eq. (10) as printed, half of x_max for high-volume", *HALF_X_MAX),
    mix=MIXES["preemption"].replace("SCHEME", "half", 1),
)
VARIANTS = (
    RUNS["DCTCP"].varied("marks at servers' interfaces, too", "nic.mark_at=65packets"),
    RTCP.varied("equal weights", "scheme.rtcp.weights={ urgent = 24000, high-volume = 24000 }"),
    PRINTED,
    BY_CLASS,
)
WITH_ROWS = (*RUNS.values(), *datacentre.null_runs(RTCP), *VARIANTS)
BETWEEN_CLASSES = Metric("throughput of the urgent flow, of the high-volume one's", "%")
# RTCP's numbers that the text puts in relation to another scheme's.
RATIOS = (
    (DELAY, MEAN, "DCTCP"),
    (DELAY, TAIL, "DCTCP"),
    (DELAY, TAIL, "NewReno"),
    (THROUGHPUT, "", "NewReno"),
    (THROUGHPUT, "", "DCTCP"),
)


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields the three schemes, null runs, variants and longer runs."""
    longer = [run for runs in LONGER for run in runs.values()]
    return (run.cell(effort) for run in (*WITH_ROWS, *longer))


def evaluate(runs: Runs) -> Evaluation:
    """Returns throughput and delay by class, the text's ratios, and the distributions of delay."""
    rows: list[Row] = []
    for run in WITH_ROWS:
        for name in CLASSES:
            rows += datacentre.scheme_rows(runs, run, name)
        rates = {name: datacentre.values(runs, run, THROUGHPUT, traffic=name) for name in CLASSES}
        rows.append(ratio_row(run.key(BETWEEN_CLASSES), rates["urgent"], rates["high-volume"]))
    for name in CLASSES:
        rows += [ratio_to(runs, RTCP, RUNS[other], metric, average, name) for metric, average, other in RATIOS]
    for longer in LONGER:
        rows += [
            ratio_to(runs, longer["RTCP"], longer[other], THROUGHPUT, traffic="urgent")
            for other in ("NewReno", "DCTCP")
        ]
    curves = {
        f"{scheme}, {name}": datacentre.distribution(runs.of(run.cell(runs.effort)), name)
        for scheme, run in RUNS.items()
        for name in CLASSES
    }
    return Evaluation(tuple(rows), curves=curves)


def _largest_ratio(name: str, other: str) -> Value:
    """The largest ratio of RTCP's delay to another scheme's at the same percentile, from 1 to 99."""

    def ratio_of_curves(evaluation: Evaluation) -> float:
        rtcp, others = (evaluation.curves[f"{scheme}, {name}"] for scheme in ("RTCP", other))
        shares = [percent / 100 for percent in range(1, 100)]
        return max(_delay_at(rtcp, share) / _delay_at(others, share) for share in shares)

    return ratio_of_curves


def _delay_at(curve: pl.DataFrame, share: float) -> float:
    return float(curve.filter(pl.col("share") >= share)["delay_us"][0])


METRICS = {**datacentre.METRICS, **named(BETWEEN_CLASSES)}
VALUES = {"largest ratio of delays": _largest_ratio}
