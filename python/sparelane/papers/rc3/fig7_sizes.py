"""NSDI 2014, Fig. 7: the gain by flow size, predicted and simulated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES, Path, rc3_rounds, reduction, tcp_rounds
from sparelane.papers.rc3.internet2 import BASELINE, RC3, REDUCTION
from sparelane.reports import plots

# Whose reductions rows have, by the label of their bars.
MODEL, SIMULATED = "RC3 by the model", RC3
LABELS = {"model": MODEL, "simulated": SIMULATED}
PATH = Path(rtt_s=0.040, available_bps=0.7e9)

# The model's bars, from the result file that the authors published with their code; the paper prints no numbers.
MODEL_BY_BYTES = {
    1460: 0.0,
    2920: 0.0,
    4380: 0.0,
    7300: 39.937,
    10220: 39.924,
    58400: 66.336,
    105120: 72.203,
    200020: 76.049,
    389820: 78.501,
    1733020: 79.018,
    3076220: 77.175,
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes at 30 % load."""
    return internet2.plan([BASELINE], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """For each size the model's reduction and the simulated one."""
    by_seed = [internet2.reductions_by_size(flows) for flows in internet2.all_pairs(BASELINE, effort, outcomes)]
    rows = (row for segments in FLOW_SIZES for row in _rows(segments, by_seed))
    return Evaluation(tuple(rows), internet2.notes(effort))


def key(size_bytes: int, by: str) -> Key:
    """The reduction at a size, by the model or simulated."""
    return Key(f"{size_bytes} bytes", REDUCTION, by)


def _rows(segments: int, by_seed: Sequence[dict[int, float]]) -> Iterable[Row]:
    size = segments * MSS_BYTES
    predicted = reduction(tcp_rounds(segments, PATH), rc3_rounds(segments, PATH))
    simulated = [found[size] for found in by_seed if size in found]
    yield Row(key(size, MODEL), MODEL_BY_BYTES[size], predicted)
    yield measured(key(size, SIMULATED), None, simulated)


def draw(evaluation: Evaluation) -> Figure:
    """Reduction by flow size: model and simulation side by side."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    sizes = [segments * MSS_BYTES for segments in FLOW_SIZES]
    bars = [
        plots.Bars.of_rows(label, look, [evaluation.find(key(size, LABELS[label])) for size in sizes])
        for label, look in zip(LABELS, (plots.MODEL, plots.RC3), strict=True)
    ]
    plots.grouped_bars(axes, [f"{size:,}" for size in sizes], bars)
    # What is printed beside the model is the authors' own model: of simulated numbers by size the paper has none.
    for cross in axes.get_lines():
        if cross.get_label() == plots.PAPER_LABEL:
            cross.set_label("the authors' model")
    axes.set_xlabel("flow size (bytes)")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 3)
    return drawing


LARGER = [segments * MSS_BYTES for segments in FLOW_SIZES if segments > 4]


def _simulated(least_bytes: int = LARGER[0]) -> list[Key]:
    """The simulated reductions of the sizes from `least_bytes` on."""
    return [key(size, SIMULATED) for size in LARGER if size >= least_bytes]


METRICS = named(REDUCTION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
