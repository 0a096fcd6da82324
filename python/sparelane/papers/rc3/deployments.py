"""Measures the gain of RC3 over TCP if some queues lack priorities; each experiment's file lists the deployments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, joined, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import AVERAGES, FLOWS, RC3, REDUCTION, Setting

METRICS = named(REDUCTION)

# The smallest and the largest size in bytes of the groups that the paper calls small, medium and large without bounds.
# In Fig. 7, flows of up to four packets gain nothing, flows of 5 and 7 about 40 %, and all larger ones more than 65 %.
GROUPS: Mapping[str, tuple[int, int]] = {
    name: (least * MSS_BYTES, most * MSS_BYTES)
    for name, least, most in (
        ("small flows (1 to 4 packets)", 1, 4),
        ("medium flows (5 and 7 packets)", 5, 7),
        ("large flows (40 to 2107 packets)", 40, 2107),
    )
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """The queues that have priorities, and what the others do with packets of low priority.

    Attributes:
        key: the setting, and the variant if the paper does not have it.
        overrides: the difference from priorities everywhere.
        full_only: quick efforts leave it out.
    """

    key: Key
    overrides: tuple[str, ...]
    full_only: bool

    def cell(self, base: Setting, effort: Effort) -> Cell:
        """Returns all flows under RC3; without overrides, a run that other experiments share."""
        if not self.overrides:
            return base.cell("rc3", effort)
        label = joined(RC3, self.key.setting, self.key.variant)
        return base.changed(label, ("workload.scheme=rc3", *self.overrides), effort)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    base = rest.one_of("like", internet2.NAMED, "baseline")
    deployments = [_deployment(part) for part in rest.sections("deployment")]

    def chosen(effort: Effort) -> list[Deployment]:
        return [one for one in deployments if effort.name == "full" or not one.full_only]

    def cells(effort: Effort) -> Iterable[Cell]:
        return (base.cell("tcp", effort), *(one.cell(base, effort) for one in chosen(effort)))

    def evaluate(runs: Runs) -> Evaluation:
        rows = []
        for one in chosen(runs.effort):
            frames = internet2.against_tcp(runs, base, one.cell(base, runs.effort))
            for average in AVERAGES:
                key = replace(one.key, average=average)
                rows.append(measured(key, None, internet2.reductions(frames, average)))
            for name, sizes in GROUPS.items():
                key = replace(one.key, average=FLOWS, traffic=name)
                rows.append(measured(key, None, internet2.reductions(internet2.of_sizes(frames, sizes))))
        return Evaluation(tuple(rows), internet2.notes(runs.effort))

    return panels.study(declared, cells, evaluate)


def _deployment(part: Section) -> Deployment:
    key = Key(part.text("name"), REDUCTION, RC3, variant=part.text("variant", ""))
    found = Deployment(key, part.texts("overrides"), part.flag("full_only"))
    part.finish()
    return found
