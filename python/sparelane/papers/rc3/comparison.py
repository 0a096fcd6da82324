"""Compares other schemes, and other deployments of RC3, with TCP on the flows of Internet-2.

A file of this kind lists what is compared. Consecutive entries with the same setting and variant share TCP's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Key, Row, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import AVERAGES, FCT, FLOWS, REDUCTION, Setting

METRICS = named(FCT, REDUCTION)

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
class Compared:
    """One scheme on the flows of a setting.

    Attributes:
        setting: the setting in keys of rows, such as the name of a group of flows.
        scheme: the scheme in keys of rows.
        base: the network and load.
        overrides: the difference from TCP; empty for RC3's runs, which other experiments share.
        flows: selects the flows that the run assigns to this scheme; empty for all.
        has_tcp: whether TCP's time is a row.
        full_only: quick efforts leave it out.
    """

    setting: str
    scheme: str
    base: Setting
    overrides: tuple[str, ...]
    flows: str
    has_tcp: bool
    full_only: bool

    def cell(self, effort: Effort) -> Cell:
        """Returns the run that is compared with TCP's."""
        if not self.overrides:
            return self.base.cell("rc3", effort)
        return self.base.changed(self.scheme, self.overrides, effort)


def mix(shares: str, by: str) -> str:
    """Returns the override that gives each scheme its share of the flows, as in `tcp=0.9, rc3=0.1`.

    A workload has one scheme or a mix, so the override replaces the scenario's workload by one that is otherwise equal.
    """
    return (
        f'workload={{kind="poisson", mix={{{shares}}}, mix_by="{by}", load_on="access", sizes={{kind="rc3"}}, '
        'destinations="another-router"}'
    )


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    listed = [_compared(part) for part in templates(rest, "compared")]
    by_size, by_group = rest.flag("by_size"), rest.flag("by_group")

    def chosen(effort: Effort) -> list[Compared]:
        return [one for one in listed if effort.name == "full" or not one.full_only]

    def cells(effort: Effort) -> Iterable[Cell]:
        return (cell for one in chosen(effort) for cell in (one.base.cell("tcp", effort), one.cell(effort)))

    def evaluate(runs: Runs) -> Evaluation:
        rows: list[Row] = []
        for (setting, variant), group in groupby(chosen(runs.effort), lambda one: (one.setting, one.base.variant)):
            members = list(group)
            frames = {
                one.scheme: internet2.against_tcp(runs, one.base, one.cell(runs.effort), flows=one.flows)
                for one in members
            }
            if by_group:
                rows += _group_rows(setting, frames)
            else:
                rows += internet2.completion_rows(setting, frames, variant=variant, has_tcp=members[0].has_tcp)
            if by_size:
                rows += internet2.size_rows(frames)
        return Evaluation(tuple(rows), internet2.notes(runs.effort))

    return panels.study(declared, cells, evaluate)


def _group_rows(setting: str, frames: Mapping[str, Sequence[pl.DataFrame]]) -> Iterable[Row]:
    """Yields the reductions of each scheme's `matched` flows, by average and by group of sizes."""
    for scheme, found in frames.items():
        for average in AVERAGES:
            yield measured(Key(setting, REDUCTION, scheme, average), None, internet2.reductions(found, average))
        for name, sizes in GROUPS.items():
            cuts = internet2.reductions(internet2.of_sizes(found, sizes))
            yield measured(Key(setting, REDUCTION, scheme, FLOWS, name), None, cuts)


def _compared(part: Section) -> Compared:
    overrides = part.texts("overrides")
    if "mix" in part:
        overrides = (*overrides, mix(part.text("mix"), part.text("mix_by")))
    found = Compared(
        part.text("setting"),
        part.text("scheme"),
        part.one_of("like", internet2.NAMED, "baseline"),
        overrides,
        part.text("flows", ""),
        part.flag("has_tcp"),
        part.flag("full_only"),
    )
    part.finish()
    return found
