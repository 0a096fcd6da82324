"""Compares the predicted and the simulated gain by flow size: NSDI 2014, Fig. 7."""

from __future__ import annotations

from functools import partial

from sparelane.papers.engine.cells import Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Row
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES, Path, rc3_rounds, reduction, tcp_rounds
from sparelane.papers.rc3.internet2 import BASELINE, RC3, REDUCTION

METRICS = named(REDUCTION)
MODEL = "RC3 by the model"
PATH = Path(rtt_s=0.040, available_bps=0.7e9)

# TCP and RC3 at the baseline.
cells = partial(internet2.both, BASELINE)


def evaluate(runs: Runs) -> Evaluation:
    """Returns the model's reduction and the simulated one for each size."""
    simulated = internet2.size_rows({RC3: internet2.pairs(runs, BASELINE)})
    rows: list[Row] = []
    for segments, row in zip(FLOW_SIZES, simulated, strict=True):
        predicted = reduction(tcp_rounds(segments, PATH), rc3_rounds(segments, PATH))
        rows += [Row(internet2.of_size(segments * MSS_BYTES, MODEL), None, predicted), row]
    return Evaluation(tuple(rows), internet2.notes(runs.effort))
