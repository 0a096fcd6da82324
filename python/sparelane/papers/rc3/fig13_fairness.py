"""NSDI 2014, Fig. 13: what throughput flows of each size get, and how equal flows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, ratio
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES
from sparelane.papers.rc3.internet2 import BASELINE, RC3, TCP
from sparelane.reports import plots

SIZES = [segments * MSS_BYTES for segments in FLOW_SIZES]
SCHEMES = {TCP: "regular_s", RC3: "other_s"}
ALONE = "alone"
LOOKS = {TCP: plots.TCP, RC3: plots.RC3}
THROUGHPUT = Metric("throughput", "Mb/s")
JAIN = Metric("Jain's index of throughput")
JAIN_OVER_ALONE = Metric("Jain's index of throughput over alone")


def key(size_bytes: int, scheme: str) -> Key:
    """The median throughput of flows of a size."""
    return Key(f"{size_bytes} bytes", THROUGHPUT, scheme, "median")


ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "Throughput of a flow: its size over its completion time, handshake included. The paper prints no numbers, and "
    "does not say whether its effective throughput has the handshake in it.",
    "Alone: the throughput that the flow's path would allow it without any other flow and without slow start.",
    "Jain's index of n flows with values x: (sum of x)^2 / (n sum of x^2), 1 where all are equal, over the flows of "
    "all sizes that count in one run. Of throughput, it is low under any scheme, since a handshake takes a small flow "
    "as long as a large one; of throughput over throughput alone, it shows who is kept from what the path would allow.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The baseline."""
    return internet2.plan([BASELINE], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Median throughput by size, and Jain's index."""
    runs = internet2.all_pairs(BASELINE, effort, outcomes)
    medians = [_medians(run) for run in runs]
    rows: list[Row] = [
        measured(key(size, scheme), None, [run[size][scheme] for run in medians if size in run])
        for size in SIZES
        for scheme in (*SCHEMES, ALONE)
    ]
    known = [run for run in runs if not run.is_empty()]
    for metric, relative in ((JAIN, False), (JAIN_OVER_ALONE, True)):
        rows += [
            measured(Key("all sizes", metric, scheme), None, [jain(_speeds(run, column, relative)) for run in known])
            for scheme, column in SCHEMES.items()
        ]
    return Evaluation(tuple(rows), internet2.notes(effort))


def _medians(flows: pl.DataFrame) -> Mapping[int, Mapping[str, float]]:
    """Median throughput in Mb/s by size and scheme."""
    columns = SCHEMES | {ALONE: "ideal_s"}
    mbps = [(8e-6 * pl.col("size_bytes") / pl.col(column)).median().alias(name) for name, column in columns.items()]
    table = flows.group_by("size_bytes").agg(mbps)
    return {row.pop("size_bytes"): row for row in table.iter_rows(named=True)}


def _speeds(flows: pl.DataFrame, column: str, relative: bool) -> Sequence[float]:
    best = pl.col("ideal_s") if relative else pl.col("size_bytes")
    return flows.select(best / pl.col(column)).to_series().to_list()


def draw(evaluation: Evaluation) -> Figure:
    """Median throughput against flow size."""
    drawing, [axes] = plots.figure()
    for scheme, look in LOOKS.items():
        plots.points(axes, scheme, look, SIZES, _median_rows(evaluation, scheme))
    alone = [row.value for row in _median_rows(evaluation, ALONE)]
    known = [(size, best) for size, best in zip(SIZES, alone, strict=True) if best is not None]
    plots.line(axes, ALONE, plots.MODEL, [size for size, _ in known], [best for _, best in known])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel("median throughput (Mb/s)")
    plots.legend_above(axes, 3)
    return drawing


def _median_rows(evaluation: Evaluation, scheme: str) -> Sequence[Row]:
    return [evaluation.find(key(size, scheme)) for size in SIZES]


def _of_alone_over_the_largest(evaluation: Evaluation) -> float:
    """RC3's median throughput over that of a flow that is alone: of flows of 105,120 bytes, over the largest's."""
    medium, largest = (
        evaluation.ours(key(size, RC3)) / evaluation.ours(key(size, ALONE)) for size in (SIZES[6], SIZES[-1])
    )
    return medium / largest


CLAIMS = (
    *(
        Claim(
            f"RC3 keeps a high throughput where TCP's is low: flows of {size:,} bytes (section 5.1.3, Fig. 13)",
            ratio(key(size, RC3), key(size, TCP)),
            full=at_least(2.0),
            quick=at_least(2.0),
        )
        for size in SIZES[5:]
    ),
    Claim(
        "RC3 has a slight relative bias towards flows of medium size: what these have of a flow that is alone, over "
        "what the largest have (section 5.1.3)",
        _of_alone_over_the_largest,
        full=(1.0, 1.5),
    ),
    Claim(
        "Flows of one packet have a near-optimal throughput with TCP already (section 5.1.3)",
        ratio(key(SIZES[0], TCP), key(SIZES[0], ALONE)),
        full=at_least(0.9),
        quick=at_least(0.9),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig13-fairness",
    title="Throughput by flow size, and how equal flows are",
    source="Mittal et al., NSDI 2014, section 5.1.3 and Fig. 13",
    method="Internet2 topology, 1 Gb/s, 40 ms, 30 % load; the median over the flows of each size of what throughput "
    "they got, under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=2.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
