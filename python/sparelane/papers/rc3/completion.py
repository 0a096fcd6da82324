"""Compares TCP's completion times with RC3's in several settings, which each experiment's file lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import polars as pl
import polars.selectors as cs

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, joined, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import (
    AVERAGES,
    BOTH_BY_THE_END,
    FCT,
    FIRST_RULE,
    GROUPS,
    RC3,
    REDUCTION,
    RULES,
    SCHEMES,
    TCP,
    Rule,
    Setting,
)

LONGER_BY = Metric("FCT longer by", "%")
REDUNDANT = Metric("redundant packets", "%")
BY_THE_TIMES = Metric("reduction by the printed times", "%")

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (FCT, REDUCTION, LONGER_BY, REDUNDANT, BY_THE_TIMES)}
# The units of completion times, with the number of units in a second.
TIMES: Mapping[str, tuple[Metric, float]] = {"s": (FCT, 1.0), "µs": (Metric("FCT", "µs"), 1e6)}


def variant(setting: Setting, rule: Rule, effort: Effort) -> str:
    """Returns the variant of a setting's rows by a rule; it is empty if the rows count against the paper's numbers."""
    if setting.aside and not setting.variant and not rule.variant:
        return setting.aside
    if setting.rule and not setting.variant and effort.name == "full":
        # The rows by the paper's rule count, instead of those by the first rule.
        return {"": FIRST_RULE, setting.rule: ""}.get(rule.variant, rule.variant)
    return joined(setting.variant, rule.variant)


@dataclass(frozen=True, slots=True)
class Study:
    """The settings of an experiment and its rows.

    Attributes:
        declared: the experiment's file.
        settings: the settings in order.
        rules: the rules of averaging, in the order of the rows.
        time: the metric of completion times.
        per_second: the number of its units in a second.
        changes: pairs of settings whose times are compared.
        redundant: whether the share of redundant packets is a row.
        by_size: whether the reductions of short, medium and long flows are rows.
    """

    declared: Declaration
    settings: Sequence[Setting]
    rules: Sequence[Rule]
    time: Metric
    per_second: float
    changes: Sequence[tuple[Setting, Setting]]
    redundant: bool
    by_size: bool

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields both schemes in every setting."""
        return (cell for setting in internet2.chosen(self.settings, effort) for cell in internet2.both(setting, effort))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns completion times and reductions by every rule, and the file's further rows."""
        rows = [row for case in self._cases(runs.effort) for row in self._rows(*case, runs)]
        rows += [row for pair in self.changes for row in _changes(*pair, runs)]
        if any(setting.rule or setting.aside for setting in self.settings):
            # Rows that count come first, in the order of the settings.
            order = {setting.name: place for place, setting in reversed(list(enumerate(self.settings)))}
            rows.sort(key=lambda row: (1, 0) if row.key.variant else (0, order.get(row.key.setting, len(order))))
        notes = internet2.notes(runs.effort) if runs.effort.stop_s < self.declared.full.stop_s else ()
        return Evaluation(tuple(rows), notes)

    def _cases(self, effort: Effort) -> Iterator[tuple[Rule, Setting]]:
        for rule, setting in product(self.rules, internet2.chosen(self.settings, effort)):
            if rule == BOTH_BY_THE_END or (effort.name == "full" and rule.applies(setting)):
                yield rule, setting

    def _rows(self, rule: Rule, setting: Setting, runs: Runs) -> Iterator[Row]:
        of_rule = variant(setting, rule, runs.effort)
        # Both rules of the authors' are compared with the same printed numbers.
        is_printed = rule.is_printed and not setting.variant
        frames = internet2.pairs(runs, setting, rule)
        for row in internet2.completion_rows(
            setting.name, {RC3: frames}, variant=of_rule, time=self.time, per_second=self.per_second
        ):
            yield replace(row, paper=self.declared.paper(row.key) if is_printed else None)
            by_the_times = replace(row.key, metric=BY_THE_TIMES)
            if row.key.metric == REDUCTION and by_the_times in self.declared.printed:
                yield replace(row, key=by_the_times)
        if self.by_size and not setting.variant:
            for group, sizes in GROUPS.items():
                key = Key(setting.name, REDUCTION, RC3, group, variant=of_rule)
                yield measured(key, None, internet2.reductions(internet2.of_sizes(frames, sizes)))
        if self.redundant:
            for scheme, name in SCHEMES.items():
                shares = runs.values(redundant, setting.cell(scheme, runs.effort))
                yield measured(Key(setting.name, REDUNDANT, name), None, shares)


def _changes(before: Setting, after: Setting, runs: Runs) -> Iterator[Row]:
    """Yields the increase of the mean times from one setting to another."""
    frames = list(zip(internet2.pairs(runs, before), internet2.pairs(runs, after), strict=True))
    for average in AVERAGES:
        changes: dict[str, list[float]] = {TCP: [], RC3: []}
        for pair in frames:
            first, second = (internet2.mean_times(flows, average) for flows in pair)
            if first is not None and second is not None:
                for values, before_s, after_s in zip(changes.values(), first, second, strict=True):
                    values.append(100.0 * (after_s / before_s - 1.0))
        for scheme, values in changes.items():
            yield measured(Key(f"{after.name} over {before.name}", LONGER_BY, scheme, average), None, values)


def redundant(outcome: Outcome) -> float:
    """Returns the data packets of finished flows that were not needed, in percent of the needed ones."""
    packets = pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()
    needed = (pl.col("size_bytes") / MSS_BYTES).ceil().sum()
    sent, least = outcome.flows.filter(pl.col("finish_s").is_not_null()).select(packets, least=needed).row(0)
    return 100.0 * float(sent - least) / max(float(least), 1.0)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    settings = internet2.read_settings(rest)
    by_name = {setting.name: setting for setting in settings if not setting.variant}
    for key in declared.printed:
        if key.setting not in by_name:
            raise rest.fail("printed", f'has the setting "{key.setting}"; allowed: {", ".join(by_name)}')
    time, per_second = rest.one_of("times", TIMES, "s")
    study = Study(
        declared,
        settings,
        rest.some_of("rules", RULES) or (BOTH_BY_THE_END,),
        time,
        per_second,
        [_change(part, by_name) for part in rest.sections("change")],
        rest.flag("redundant"),
        rest.flag("by_size"),
    )
    return panels.study(declared, study.cells, study.evaluate)


def _change(part: Section, settings: Mapping[str, Setting]) -> tuple[Setting, Setting]:
    found = part.one_of("from", settings), part.one_of("to", settings)
    part.finish()
    return found
