"""Experiments that compare TCP's completion times with RC3's in several settings: a file each, of this kind.

What differs between them is in their files: the settings, the paper's numbers, what must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import polars as pl
import polars.selectors as cs

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, joined, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3 import completion_figure, internet2
from sparelane.papers.rc3.analytic import MSS_BYTES
from sparelane.papers.rc3.internet2 import (
    AVERAGES,
    BOTH_BY_THE_END,
    BOTH_LONGER,
    FCT,
    RC3,
    REDUCTION,
    TCP,
    TCP_LONGER,
    Rule,
    Setting,
)

LONGER_BY = Metric("FCT longer by", "%")
REDUNDANT = Metric("redundant packets", "%")
BY_THE_TIMES = Metric("reduction by the printed times", "%")
MICROSECONDS = Metric("FCT", "µs")

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (FCT, REDUCTION, LONGER_BY, REDUNDANT, BY_THE_TIMES)}
# The times of a file, and how many of its unit are a second.
TIMES: Mapping[str, tuple[Metric, float]] = {"s": (FCT, 1.0), "µs": (MICROSECONDS, 1e6)}
# What rows of the first rule say where another rule is the paper's.
FIRST_RULE = "both by the end"
RULES: Mapping[str, Rule] = {
    FIRST_RULE: BOTH_BY_THE_END,
    TCP_LONGER.variant: TCP_LONGER,
    BOTH_LONGER.variant: BOTH_LONGER,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Which rows of a setting are compared with the paper's numbers, each of which counts once.

    Attributes:
        rule: the rule of averaging that the paper's numbers follow, if it is not the first.
        aside: what rows say of a setting whose numbers are those of another one: they are shown, and do not count.
    """

    rule: Rule | None = None
    aside: str = ""

    def variant(self, variant: str, measured: set[str]) -> str:
        """The variant of a row that was measured as this one, where the setting has rows of such variants."""
        if self.aside and not variant:
            return self.aside
        if self.rule is None or self.rule.variant not in measured:
            return variant
        return {"": FIRST_RULE, self.rule.variant: ""}.get(variant, variant)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated and measured.

    Attributes:
        settings: in order.
        full_only: those that a quick effort leaves out.
        rules: of averaging, in the order of the rows.
        time: the metric of completion times.
        per_second: how many of its unit are a second.
        printed: the paper's numbers.
        restated: rows that appear once more as another metric, and the paper's number of that.
        changes: pairs of settings whose times are compared.
        redundant: whether what is sent twice is a row, too.
        by_size: whether the reductions of short, medium and long flows are rows, too.
        stop_s: of the full effort.
        readings: how the rows of settings are read that are not compared as they are measured.
    """

    settings: tuple[Setting, ...]
    full_only: frozenset[Setting]
    rules: tuple[Rule, ...]
    time: Metric
    per_second: float
    printed: Mapping[Key, float]
    restated: Mapping[Key, tuple[Metric, float]]
    changes: tuple[tuple[Setting, Setting], ...]
    redundant: bool
    by_size: bool
    stop_s: float
    readings: Mapping[str, Reading]

    def chosen(self, effort: Effort) -> list[Setting]:
        """The settings of an effort."""
        return [one for one in self.settings if effort.name == "full" or one not in self.full_only]

    def plan(self, effort: Effort) -> Sequence[Simulation]:
        """Both schemes in every setting with every seed."""
        return internet2.plan(self.chosen(effort), effort)

    def evaluate(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """Completion times and reductions by every rule, and what else the file asks for."""
        rows = [row for case in self._cases(effort) for row in self._rows(*case, effort, outcomes)]
        rows += [row for pair in self.changes for row in _changes(*pair, effort, outcomes)]
        notes = internet2.notes(effort) if effort.stop_s < self.stop_s else ()
        return Evaluation(tuple(rows), notes)

    def restate(self, found: Evaluation) -> Evaluation:
        """The rows by the readings of their settings; what counts stands before what is varied."""
        if not self.readings:
            return found
        variants: dict[str, set[str]] = {}
        for row in found.rows:
            variants.setdefault(row.key.setting, set()).add(row.key.variant)
        rows = [
            replace(row, key=replace(row.key, variant=reading.variant(row.key.variant, variants[row.key.setting])))
            if (reading := self.readings.get(row.key.setting)) is not None
            else row
            for row in found.rows
        ]
        order = {setting.name: place for place, setting in reversed(list(enumerate(self.settings)))}
        rows.sort(key=lambda row: (1, 0) if row.key.variant else (0, order.get(row.key.setting, len(order))))
        return replace(found, rows=tuple(rows))

    def _cases(self, effort: Effort) -> Iterator[tuple[Rule, Setting]]:
        for rule, setting in product(self.rules, self.chosen(effort)):
            if rule == BOTH_BY_THE_END or (effort.name == "full" and rule.applies(setting)):
                yield rule, setting

    def _rows(self, rule: Rule, setting: Setting, effort: Effort, outcomes: Outcomes) -> Iterator[Row]:
        variant = joined(setting.variant, rule.variant)
        # A rule of the authors' compares the same printed numbers.
        is_printed = rule.is_printed and not setting.variant
        printed = {replace(key, variant=variant): paper for key, paper in self.printed.items() if is_printed}
        frames = internet2.all_pairs(setting, effort, outcomes, rule)
        for row in internet2.completion_rows(
            setting.name, frames, printed, variant=variant, time=self.time, per_second=self.per_second
        ):
            yield row
            if row.key in self.restated:
                metric, paper = self.restated[row.key]
                yield replace(row, key=replace(row.key, metric=metric), paper=paper)
        if self.by_size and not setting.variant:
            yield from internet2.reductions_by_group(setting.name, frames, variant)
        if self.redundant:
            for scheme, run in ((TCP, internet2.tcp_run), (RC3, internet2.rc3_run)):
                shares = [redundant(outcomes[run(setting, seed, effort)]) for seed in effort.seed_numbers()]
                yield measured(Key(setting.name, REDUNDANT, scheme), None, shares)


def _changes(before: Setting, after: Setting, effort: Effort, outcomes: Outcomes) -> Iterator[Row]:
    """By how much the mean times of one setting are longer than those of another."""
    for average in AVERAGES:
        changes: dict[str, list[float]] = {TCP: [], RC3: []}
        for seed in effort.seed_numbers():
            first, second = (
                internet2.mean_times(internet2.pairs(setting, seed, effort, outcomes), average)
                for setting in (before, after)
            )
            if first is not None and second is not None:
                for values, before_s, after_s in zip(changes.values(), first, second, strict=True):
                    values.append(100.0 * (after_s / before_s - 1.0))
        for scheme, values in changes.items():
            yield measured(Key(f"{after.name} over {before.name}", LONGER_BY, scheme, average), None, values)


def redundant(outcome: Outcome) -> float:
    """Data packets of finished flows that were not needed, in percent of those that were."""
    packets = pl.sum_horizontal(cs.matches(r"^sent_packets_\d$")).sum()
    needed = (pl.col("size_bytes") / MSS_BYTES).ceil().sum()
    sent, least = outcome.flows.filter(pl.col("finish_s").is_not_null()).select(packets, least=needed).row(0)
    return 100.0 * float(sent - least) / max(float(least), 1.0)


def experiment(declared: Declaration) -> Experiment:
    """The experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    listed = [(_setting(part), part) for part in rest.sections("setting")]
    full_only = frozenset(setting for setting, part in listed if part.flag("full_only"))
    readings = {
        setting.name: Reading(part.one_of("rule", RULES, FIRST_RULE), part.text("aside", ""))
        for setting, part in listed
        if "rule" in part or "aside" in part
    }
    for _, part in listed:
        part.finish()
    settings = tuple(setting for setting, _ in listed)
    by_name = {setting.name: setting for setting in settings if not setting.variant}
    time, per_second = rest.one_of("times", TIMES, "s")
    printed = declared.printed
    for key in printed:
        if key.setting not in by_name:
            raise rest.fail("printed", f'has the setting "{key.setting}"; allowed: {", ".join(by_name)}')
    plan = Plan(
        settings,
        full_only,
        tuple(rest.some_of("rules", RULES)) or (BOTH_BY_THE_END,),
        time,
        per_second,
        {key: paper for key, paper in printed.items() if key.metric != BY_THE_TIMES},
        {
            replace(key, metric=REDUCTION): (key.metric, paper)
            for key, paper in printed.items()
            if key.metric == BY_THE_TIMES
        },
        tuple(_change(part, by_name) for part in rest.sections("change")),
        rest.flag("redundant"),
        rest.flag("by_size"),
        declared.full.stop_s,
        readings,
    )
    shown = {setting: readings[setting.name].aside if setting.name in readings else "" for setting in settings}
    draw = completion_figure.read(rest.section("figure"), {one: shown[one] for one in settings if one not in full_only})
    rest.finish()
    return declared.experiment(plan.plan, plan.evaluate, draw, restate=plan.restate)


def _change(part: Section, settings: Mapping[str, Setting]) -> tuple[Setting, Setting]:
    found = part.one_of("from", settings), part.one_of("to", settings)
    part.finish()
    return found


def _setting(part: Section) -> Setting:
    """A setting like a named one, with what differs."""
    base = part.one_of("like", internet2.NAMED, "baseline")
    # What these change, TCP sees: such a setting has runs of its own, which nothing else asks to be longer.
    is_own = any(key in part for key in ("overrides", "load", "scenario", "part"))
    own = (False, False) if is_own else (base.tcp_longer, base.rc3_longer)
    if "longer" in part:
        named = part.some_of("longer", {TCP: TCP, RC3: RC3})
        own = (TCP in named, RC3 in named)
    return replace(
        base,
        name=part.text("name", base.name),
        variant=part.text("variant", ""),
        scenario=part.text("scenario", base.scenario),
        overrides=(*base.overrides, *part.texts("overrides")),
        rc3_overrides=(*base.rc3_overrides, *part.texts("rc3_overrides")),
        load=part.number("load", base.load),
        gbps=part.number("gbps", base.gbps),
        part=part.number("part", base.part),
        tcp_longer=own[0],
        rc3_longer=own[1],
    )
