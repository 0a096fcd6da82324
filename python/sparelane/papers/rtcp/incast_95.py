"""RTCP, section V-C2 and Fig. 11b: 95 servers send to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, at_most, ours, ratio
from sparelane.papers.engine.rows import Evaluation, Key
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

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "All 95 other servers send to the first one without end, each from a moment within the first millisecond that is "
    "drawn with the seed. RTCP has alpha = 5000 and an initial window of 2, as the paper says; the others start with "
    "10, and LEDBAT with 2 by its RFC.",
    "Runs of 20 ms, as in the search for the setting; rows with longer runs say what changes.",
    "LEDBAT measures one-way delays exactly, with its target of 100 ms, a thousand times what these queues hold.",
)


REASONS: Mapping[Key, str] = {
    RTCP.key(
        of(DELAY, "LEDBAT"), TAIL
    ): "the unit of alpha: with alpha in 0.5 bytes per KB it is as in the paper (row)",
    RTCP.key(of(DELAY, "Vegas"), TAIL): "not explained: with alpha in 0.5 bytes per KB it is nearer (row)",
}
LONGER: Mapping[str, Run] = {run.scheme: run for run in VARIANTS if run.lengths > 1}


def _tail_of_timely(evaluation: Evaluation) -> float:
    def weight(scheme: str) -> float:
        return evaluation.ours(RUNS[scheme].key(DELAY, TAIL)) / evaluation.ours(RUNS[scheme].key(DELAY, MEAN))

    return weight("TIMELY") / max(weight(scheme) for scheme in ("LEDBAT", "Vegas", "RTCP"))


CLAIMS = (
    *(
        Claim(
            f"RTCP's 99th delay is less than 56 % of {other}'s (abstract)",
            ours(RTCP.key(of(DELAY, other), TAIL)),
            full=at_most(56.0),
            quick=at_most(75.0),
        )
        for other in ("LEDBAT", "Vegas", "TIMELY")
    ),
    *(
        Claim(
            f"... and in runs 5 times as long: of {other}'s, as a share",
            ratio(LONGER["RTCP"].key(DELAY, TAIL), LONGER[other].key(DELAY, TAIL)),
            full=at_most(0.56),
            reason="not explained: TIMELY makes long queues at the beginning, and in a longer run its 99th percentile "
            "is no longer of that",
        )
        for other in ("LEDBAT", "Vegas", "TIMELY")
    ),
    Claim(
        "DCTCP is the best, with the help of ECN (section V-C2): RTCP's 99th delay, of DCTCP's, in percent",
        ours(RTCP.key(of(DELAY, "DCTCP"), TAIL)),
        full=at_least(100.0),
    ),
    Claim(
        "TIMELY has a heavy tail compared to the others that read round trips (section V-C2): its 99th percentile over "
        "its mean, over the largest of theirs",
        _tail_of_timely,
        full=at_least(1.0),
    ),
    Claim(
        "RTCP is not a constant window: that of 10 segments has a longer tail",
        ratio(CONTROLS[0].key(DELAY, TAIL), RTCP.key(DELAY, TAIL)),
        full=at_least(1.3),
        quick=at_least(1.2),
    ),
)


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


EXPERIMENT = Experiment(
    id="rtcp/incast-95",
    title="95 servers send to one",
    source="RTCP, section V-C2 and Fig. 11b",
    method="Incast from 95 servers of the spine-leaf network to one, under schemes that read round-trip times, and "
    "DCTCP, in ns-3.",
    assumptions=ASSUMPTIONS,
    fitted=datacentre.FITTED,
    full=Effort("full", seeds=10, stop_s=0.02),
    quick=Effort("quick", seeds=1, stop_s=0.02),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
