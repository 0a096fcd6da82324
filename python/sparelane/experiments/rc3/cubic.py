"""NSDI 2014, section 6: CUBIC in the place of NewReno, alone and inside RC3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Row, Simulation, measured
from sparelane.experiments.claims import about, difference, ours
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.completion_figure import draw_completion
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import AVERAGES

NEWRENO = replace(SLOW_NEAR, name="NewReno")
CUBIC = SLOW_NEAR.varied("CUBIC", "scheme.tcp.controller=cubic", "scheme.rc3.inner.controller=cubic")
SETTINGS = (NEWRENO, CUBIC)

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "The paper gives neither numbers nor a setting: 100 Mb/s, 40 ms, 30 % load, buffers of 500 KB, where flows lose "
    "packets and so leave slow start more often than at 1 Gb/s.",
    "CUBIC as in RFC 9438, with standard slow start: no HyStart. Both start with a window of 4.",
    "CUBIC over NewReno compares the means of the flows that count under either.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes around each controller."""
    return internet2.plan(SETTINGS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions, and how near the two controllers are to each other."""
    rows = [row for setting in SETTINGS for row in internet2.completion_rows(setting, {}, effort, outcomes)]
    return Evaluation((*rows, *_difference_rows(effort, outcomes)), internet2.notes(effort))


def _difference_rows(effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    for average in AVERAGES:
        changes: dict[str, list[float]] = {"TCP": [], "RC3": []}
        for seed in effort.seed_numbers():
            newreno, cubic = (
                internet2.mean_times(internet2.pairs(setting, seed, effort, outcomes), average) for setting in SETTINGS
            )
            if newreno is None or cubic is None:
                continue
            for values, before_s, after_s in zip(changes.values(), newreno, cubic, strict=True):
                values.append(100.0 * (after_s / before_s - 1.0))
        for scheme, values in changes.items():
            yield measured(f"CUBIC over NewReno {average}", f"{scheme} FCT longer by", "%", None, values)


def draw(evaluation: Evaluation) -> Figure:
    """Completion times with each controller, over flows and over bytes."""
    names = [setting.name for setting in SETTINGS]
    return draw_completion(evaluation, names, "TCP, and the TCP in RC3")


CLAIMS = (
    *(
        Claim(
            f"Times with CUBIC match those with NewReno very closely: {scheme} over flows (section 5.2)",
            ours("CUBIC over NewReno over flows", f"{scheme} FCT longer by"),
            full=about(0.0, 5.0),
            quick=about(0.0, 8.0),
        )
        for scheme in ("TCP", "RC3")
    ),
    Claim(
        "RC3 around CUBIC gains as around NewReno (section 6)",
        difference(("CUBIC over flows", "reduction"), ("NewReno over flows", "reduction")),
        full=about(0.0, 4.0),
        quick=about(0.0, 8.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/cubic",
    title="CUBIC alone and inside RC3",
    source="Mittal et al., NSDI 2014, sections 5.2 and 6",
    method='Experiments on Linux, repeated with CUBIC: "the FCTs matched very closely to New Reno, since both have the '
    'same slow start behavior"; no numbers.',
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
