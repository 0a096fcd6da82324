"""Comparing the schemes of a sweep, of several sweeps, or of scenario files.

`compare` is the entry point for Python; the command line and reports are built on it:

    answer = compare("out/question", metric="p99-completion")
    print(answer)
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from sparelane.common import percentiles
from sparelane.common.folders import SavedResultsError
from sparelane.common.names import UnknownNameError
from sparelane.common.units import quantity
from sparelane.results.manifest import Manifest
from sparelane.results.rows import ALL, axis_names
from sparelane.scenario import library
from sparelane.simulation import simulate as api
from sparelane.simulation import warnings as run_warnings
from sparelane.sweeps import coexistence, differences, metrics, ranking, verdict
from sparelane.sweeps import folder as folders
from sparelane.sweeps.coexistence import Group, Portion
from sparelane.sweeps.differences import (
    DIRECTED,
    DOUBTFUL_POINTS,
    SIZE,
    SMALL,
    Change,
    Comparison,
    Difference,
    Outcome,
    Thresholds,
    judge,
    schemes_of,
    undrawn,
    without_key,
)
from sparelane.sweeps.folder import SavedSweep
from sparelane.sweeps.journal import Journal
from sparelane.sweeps.metrics import Metric
from sparelane.sweeps.plan import Plan
from sparelane.sweeps.ranking import Ranking

# The most schemes that are described one by one; more share one table.
DETAILED = 3
PAIRED = "All schemes had the same flows: differences are paired by seed."


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The result of a comparison.

    Attributes:
        metric: the main metric: the one that was asked for, or the first usual one of which there are numbers.
        baseline: the scheme that the others are compared with; empty if schemes share their runs.
        ranking: all schemes by the main metric, setting by setting.
        comparisons: for each other scheme, the comparison by the main metric and then by the other ones.
        portions: for schemes that share runs, what each of them gets.
        thresholds: changes below these are called negligible.
        notes: what a reader should know: pairing, unfinished flows, missing runs.
        methods: how intervals, outcomes and places are determined, in sentences.
    """

    metric: Metric | None
    baseline: str
    ranking: Ranking | None
    comparisons: tuple[tuple[Comparison, ...], ...]
    portions: tuple[tuple[Group, tuple[Portion, ...]], ...]
    thresholds: Thresholds
    notes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    @property
    def headlines(self) -> list[str]:
        """One sentence for each other scheme, and those about schemes that share runs."""
        shared = [said for group, found in self.portions for said in coexistence.sentences(group, found)]
        return [*shared, *(verdict.headline(one[0], self.thresholds) for one in self.comparisons)]

    def frame(self) -> pl.DataFrame:
        """Every difference as a table.

        Columns: `metric` (the short name), `scheme`, `baseline`, `setting` ("all settings" for the change over all of
        them), `baseline_value` and `scheme_value` in `unit`, `change`, `low` and `high` (shares of the baseline's
        value, or differences in `change_unit`), `p` (not adjusted), `outcome` and `seeds`.
        """
        rows = [row for comparisons in self.comparisons for one in comparisons for row in _frame_rows(one)]
        return pl.DataFrame(rows, schema=FRAME, orient="row")

    def to_json(self) -> list[dict[str, Any]]:
        """Every comparison as machines read it."""
        return [to_json(one) for comparisons in self.comparisons for one in comparisons]

    def __str__(self) -> str:
        """The headlines and notes, one a line."""
        return "\n".join([*self.headlines, *self.notes])

    # Shells show an object by this, and its fields would be pages of numbers.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The headlines, the ranking and the notes, for notebooks."""
        words = "".join(f"<p>{html.escape(line)}</p>" for line in self.headlines)
        notes = "".join(f"<p>note: {html.escape(note)}</p>" for note in (*self.methods, *self.notes))
        return f"{words}{self._ranking_html()}{notes}"

    def _ranking_html(self) -> str:
        if self.ranking is None or self.metric is None:
            return ""
        names, rows = self.ranking.table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        title = f"<caption>Ranking by {html.escape(self.metric.label)}</caption>"
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


FRAME: dict[str, pl.DataType] = {
    "metric": pl.String(),
    "scheme": pl.String(),
    "baseline": pl.String(),
    "setting": pl.String(),
    "baseline_value": pl.Float64(),
    "scheme_value": pl.Float64(),
    "unit": pl.String(),
    "change": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "change_unit": pl.String(),
    "p": pl.Float64(),
    "outcome": pl.String(),
    "seeds": pl.List(pl.UInt64()),
}


def _frame_rows(one: Comparison) -> list[tuple[object, ...]]:
    unit = "" if one.metric.change_unit == "%" else one.metric.change_unit
    rows: list[tuple[object, ...]] = []
    for found in one.differences:
        change = found.change
        rows.append(
            (
                *(one.metric.name, one.other, one.baseline, found.setting, found.baseline, found.other),
                *(one.metric.unit, change.value, change.low, change.high, unit, change.p),
                *(verdict.outcome_text(found), list(found.seeds)),
            )
        )
    if len(one.differences) > 1 and not one.is_split:
        change, seeds = one.overall, sorted({seed for pair in one.pairs for seed in pair.samples})
        rows.append(
            (
                *(one.metric.name, one.other, one.baseline, "all settings", None, None, one.metric.unit),
                *(change.value, change.low, change.high, unit, change.p, verdict.outcome_text(one), seeds),
            )
        )
    return rows


def compare(
    what: str | Path | SavedSweep | Sequence[str | Path],
    *,
    baseline: str | None = None,
    schemes: Sequence[str] = (),
    metric: str | None = None,
    by: Sequence[str] = (),
    thresholds: Thresholds | None = None,
) -> Answer:
    """Compares the schemes of a saved sweep, or of several sweeps under the names of their folders.

    Differences are paired by seed and have Student's 95 % intervals over the seeds, from three seeds on.

    Args:
        what: the folder of a sweep, the sweep itself, or several folders.
        baseline: the scheme that the others are compared with; the first one without it.
        schemes: compare these alone; all without any.
        metric: the main metric, such as "p99-completion"; the mean completion time without it, if flows finish.
        by: keys whose values stay separate, such as "queue" or "queue.kind", and "size" for ranges of flow sizes.
            Settings that differ in other keys are taken together. Without any, each setting is by itself.
        thresholds: changes below these are called negligible.

    Raises:
        UnknownNameError: no scheme, metric or key has this name.
        SavedResultsError: a folder does not hold the results of a sweep, or nothing can be compared.
    """
    if isinstance(what, SavedSweep):
        subject = of_sweep(what)
    else:
        subject = of_folders([Path(what)] if isinstance(what, str | Path) else [Path(one) for one in what])
    return subject.compare(baseline, schemes, metric=metric, by=by, thresholds=thresholds)


@dataclass(frozen=True, slots=True)
class Subject:
    """Rows of runs in which schemes can be compared.

    Attributes:
        runs: the rows.
        notes: what a reader of the comparison should know.
        groups: schemes that share runs.
    """

    runs: pl.DataFrame
    notes: tuple[str, ...]
    groups: tuple[Group, ...] = field(default=())

    @property
    def schemes(self) -> list[str]:
        """The schemes, in order."""
        return schemes_of(self.runs)

    def compare(
        self,
        baseline: str | None = None,
        others: Sequence[str] = (),
        *,
        metric: str | None = None,
        by: Sequence[str] = (),
        thresholds: Thresholds | None = None,
    ) -> Answer:
        """Compares each of the others with the baseline, by every usual metric of which there are numbers.

        Raises:
            UnknownNameError: no scheme, metric or key has this name.
            SavedResultsError: there is nothing to compare.
        """
        known = self.schemes
        for name in (*others, *([baseline] if baseline is not None else [])):
            if name not in known:
                raise UnknownNameError("scheme", name, known)
        if baseline is None and len(set(others)) == 1:
            # A single scheme is compared with the usual baseline, or with the next one if it is that itself.
            baseline = next((name for name in known if name not in others), None)
        limits = thresholds or Thresholds()
        chosen = [name for name in known if name in others or name == baseline] if others else known
        first = baseline if baseline is not None else chosen[0] if chosen else ""
        keys = keys_of(by, axis_names(self.runs))
        every = metrics.known(self.runs)
        main = None if metric is None else metrics.find(metric, every)
        portions = tuple((group, tuple(coexistence.portions(self.runs, group))) for group in self.groups)
        compared = [name for name in chosen if name != first and not self._share_runs(first, name)]
        listed = [main] if main is not None else []
        listed += [one for one in metrics.HEADLINES if one in every and one != main]
        found = self._by_metric(first, compared, listed, keys, limits)
        if main is not None and compared and main not in found:
            raise SavedResultsError(f"nothing to compare: no setting has the {main.label} of two schemes")
        # By size, only metrics of flows have numbers.
        mine = [tuple(found[one][name] for one in found if name in found[one]) for name in compared]
        comparisons = tuple(one for one in mine if one)
        if not comparisons and not portions:
            raise SavedResultsError(_nothing(known))
        chief = comparisons[0][0].metric if comparisons else main
        ranked = [name for name in chosen if name == first or name in compared]
        exact = undrawn(self.runs)
        order = ranking.rank(self.runs, ranked, chief, limits, exact, keys) if chief and comparisons else None
        return Answer(
            chief,
            first if comparisons else "",
            order,
            comparisons,
            portions,
            limits,
            (*self.notes, *self._missing(chief)),
            tuple(methods(comparisons, order, limits)),
        )

    def _share_runs(self, one: str, other: str) -> bool:
        """Tests if two schemes are in the same runs: then they are competitors, and not alternatives."""
        return any(one in group.members and other in group.members and not group.name for group in self.groups)

    def _by_metric(
        self, first: str, others: Sequence[str], listed: Sequence[Metric], by: Sequence[str], limits: Thresholds
    ) -> dict[Metric, dict[str, Comparison]]:
        exact = undrawn(self.runs)
        found = {}
        for one in listed:
            made = (differences.compare(self.runs, first, name, one, exact, by) for name in others)
            some = [each for each in made if each is not None and not math.isnan(each.overall.value)]
            if some:
                found[one] = {each.other: each for each in judge(some, limits)}
        return found

    def _missing(self, metric: Metric | None) -> list[str]:
        """A sentence about runs that have too few values for a percentile."""
        share = next((share for name, share in _tails() if metric is not None and metric.average == name), None)
        if metric is None or share is None:
            return []
        of_it = pl.col("traffic") == ALL
        with_mean = self.runs.filter(of_it & (pl.col("metric") == metric.metric))
        runs = with_mean.select("setting", "scheme", "seeds").n_unique()
        there = with_mean.filter(pl.col("average") == metric.average).select("setting", "scheme", "seeds").n_unique()
        if there == runs:
            return []
        least = f"{percentiles.fewest(share):,}"
        return [f"{runs - there} of {runs} runs have no {metric.label}: it needs at least {least} values in a run."]


def _tails() -> tuple[tuple[str, float], ...]:
    return tuple((percentiles.long(share), share) for share in percentiles.TAILS)


def _nothing(known: Sequence[str]) -> str:
    return (
        f"nothing to compare: the results are of {', '.join(known) or 'no scheme'} alone, and a comparison needs two "
        "schemes with the same settings and seeds"
    )


def keys_of(by: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The keys that are meant by names such as `queue.kind`, `kind` or `queue`; a table's name means all of its keys.

    Raises:
        UnknownNameError: no key that varies has this name.
    """
    found: list[str] = []
    for name in by:
        if name == SIZE and SIZE not in keys:
            matches = [SIZE]
        else:
            matches = [key for key in keys if key == name]
            matches = matches or [key for key in keys if key.startswith(f"{name}.")]
            matches = matches or [key for key in keys if key.endswith(f".{name}") or f".{name}." in key]
        if not matches:
            raise UnknownNameError("key that varies", name, [*keys, SIZE])
        found += [key for key in matches if key not in found]
    return found


def methods(comparisons: Sequence[Sequence[Comparison]], order: Ranking | None, thresholds: Thresholds) -> list[str]:
    """Sentences about how intervals, outcomes and places are determined."""
    every = [one for listed in comparisons for one in listed]
    said = []
    if any(found.change.low is not None for one in every for found in one.differences):
        said.append("Intervals cover 95 %: Student's t over the seeds, for about normally distributed numbers.")
    compared = max((one.compared for one in every), default=0)
    if compared > 1:
        said.append(
            f"Outcomes allow for the {compared} differences of a metric (Benjamini and Hochberg, 5 %); each interval "
            "is by itself."
        )
    if (
        order is not None
        and order.has_ties
        and any(cell is not None and cell.is_tied for cells in order.cells.values() for cell in cells)
    ):
        said.append('Places with "=" are shared: no clear difference from the first of the group, or a negligible one.')
    if order is not None and not order.has_ties:
        said.append("Places follow the means alone: ties take three seeds or more.")
    if order is not None and order.leaves_out:
        said.append(
            f"{ranking.UNFINISHED}: clearly fewer flows finished than under other schemes, and only these count."
        )
    if every:
        units = {one.metric.change_unit for one in every}
        listed = [
            text
            for unit, text in (
                ("%", f"{100 * thresholds.relative:g} %"),
                ("points", f"{thresholds.points:g} points"),
                ("per flow", f"{thresholds.per_flow:g} per flow"),
            )
            if unit in units
        ]
        said.append(f"Negligible: below {', '.join(listed)} (--threshold sets it).")
    return said


def of_sweep(saved: SavedSweep) -> Subject:
    """The schemes of a sweep."""
    return Subject(saved.runs, tuple(notes(saved)), tuple(coexistence.groups(saved.runs)))


def of_folders(places: Sequence[Path]) -> Subject:
    """The schemes of a sweep, or of several sweeps under the names of their folders.

    Raises:
        SavedResultsError: a folder does not hold the results of a sweep.
    """
    saved = [_read(place) for place in places]
    if len(saved) == 1:
        return of_sweep(saved[0])
    names = [_distinct(one.place, places) for one in saved]
    runs = _together([(name, one.runs) for name, one in zip(names, saved, strict=True)])
    named = [*zip(names, saved, strict=True)]
    said = [f"{name}: {warning}" for name, one in named for warning in warnings_of(one.manifest)]
    said += [note for name, one in named for note in missing(one.manifest, f"{name}: ")]
    return Subject(runs, ("Runs are paired by setting and seed.", *doubts(runs), *said), _groups(names, saved))


def notes(saved: SavedSweep) -> list[str]:
    """Sentences that a reader of a sweep should know."""
    share_runs = any(not group.name for group in coexistence.groups(saved.runs))
    is_pair = len(schemes_of(saved.runs)) > 1 and not share_runs
    pairing = [_pairing(saved.manifest.details.get("paired"))] if is_pair else []
    return [*pairing, *doubts(saved.runs), *missing(saved.manifest), *warnings_of(saved.manifest)]


def missing(found: Manifest, whose: str = "") -> list[str]:
    """A sentence about runs that failed or were not reached; no number includes them."""
    if not found.missing:
        return []
    failed = len(found.details.get("failed", []))
    return [
        f"{whose}{found.missing} of {found.missing + found.runs} runs are missing: {failed} failed, "
        f"{found.missing - failed} were not reached. Only seeds that both schemes have are compared."
    ]


def warnings_of(found: Manifest) -> list[str]:
    """The warnings about the runs of a sweep, but for unfinished flows, which `doubts` reports."""
    counts = found.details.get("warnings", found.details.get("notices", []))
    kept = [one for one in counts if one["text"] != run_warnings.UNFINISHED]
    return run_warnings.sentences(kept, found.runs)


def _read(place: Path) -> SavedSweep:
    if (place / "run.json").exists():
        raise SavedResultsError(f'"{place}" holds a single run; compare takes sweeps, or scenario files')
    if not (place / "manifest.json").exists():
        raise SavedResultsError(f'"{place}" holds no sweep: `sparelane sweep FILE -o "{place}"` makes one')
    return folders.read(place)


def of_files(files: Sequence[str], seeds: int, place: Path | None, run: Callable[[Plan, Path], None]) -> Subject:
    """Scenarios under the names of their files, each run with the same seeds; `run` does a plan into a folder.

    Raises:
        ScenarioError: one of them cannot be run.
        FileNotFoundError: there is no such file.
    """
    paths = [library.resolve(file) for file in files]
    if len(paths) < 2:
        raise SavedResultsError(
            "one file alone is compared with nothing; allowed: two or more, or the folder of a sweep"
        )
    names = [_distinct(path.with_suffix(""), [one.with_suffix("") for one in paths]) for path in paths]
    into = place or Path("out") / "compare" / "-".join(re.sub(r"[^\w.]+", "-", name) for name in names)[:100]
    parts, traffic, said, sweeps = [], [], [], []
    for name, path in zip(names, paths, strict=True):
        plan = Plan(api.read_text(path), str(path), path.parent, seeds=seeds, needs_variation=False)
        target = into / re.sub(r"[^\w.]+", "-", name)
        run(plan, target)
        saved = folders.read(target)
        parts.append((name, saved.runs))
        said += [f"{name}: {warning}" for warning in warnings_of(saved.manifest)]
        with Journal(target) as journal:
            kept = journal.read({one.name for one in plan.runs})
        traffic.append([str(kept[one.name]["traffic"]) for one in plan.runs])
        sweeps.append(saved)
    runs = _together(parts)
    pairing = _pairing(all(one == traffic[0] for one in traffic))
    return Subject(runs, (pairing, *doubts(runs), *said, f"runs in {into}"), _groups(names, sweeps))


def _distinct(path: Path, others: Sequence[Path]) -> str:
    """The last part of a path, or as many more as tell it from the others."""
    for count in range(1, len(path.parts)):
        ending = path.parts[-count:]
        if sum(other.parts[-count:] == ending for other in others) == 1:
            return "/".join(ending)
    return str(path)


def _together(parts: Sequence[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Rows of several sweeps; a scheme is called after its sweep, and by its name where the sweep has several."""
    frames = []
    for name, runs in parts:
        label = pl.lit(name) if len(schemes_of(runs)) < 2 else pl.format("{}: {}", pl.lit(name), "scheme")
        axes = [pl.col(key).cast(pl.String) for key in axis_names(runs)]
        frames.append(runs.with_columns(label.alias("scheme"), *axes))
    return pl.concat(frames, how="diagonal")


def _groups(names: Sequence[str], sweeps: Sequence[SavedSweep]) -> tuple[Group, ...]:
    """Schemes that share runs, under the names that they have among several sweeps."""
    found = []
    for name, saved in zip(names, sweeps, strict=True):
        is_one = len(schemes_of(saved.runs)) < 2
        for group in coexistence.groups(saved.runs):
            members = {
                f"{name}: {member}": (name if is_one else f"{name}: {scheme}", traffic)
                for member, (scheme, traffic) in group.members.items()
            }
            found.append(Group(group.name, members))
    return tuple(found)


def _pairing(is_paired: object) -> str:
    if is_paired:
        return PAIRED
    return "The flows are not the same for all schemes: differences are paired by seed alone."


def doubts(runs: pl.DataFrame) -> list[str]:
    """Limits of the means: flows that they do not cover, too few seeds, and seeds that change nothing."""
    return [*_uncovered(runs), *_few_seeds(runs), *_undrawn(runs)]


def _few_seeds(runs: pl.DataFrame) -> list[str]:
    """A sentence if there are too few seeds for an interval, unless nothing is random."""
    seeds = runs["seeds"].list.first().n_unique()
    if seeds == 1:
        return [
            "One seed cannot support an interval, and does not show whether anything is random: --seeds N runs more."
        ]
    if seeds == 2 and undrawn(runs) != frozenset(runs.select("setting", "scheme").rows()):
        return ["Two seeds cannot support an interval: --seeds N with 3 or more gives one."]
    return []


def _uncovered(runs: pl.DataFrame) -> list[str]:
    """A sentence about means of finished flows, if some flows did not finish."""
    finished = runs.filter((pl.col("metric") == "finished flows") & (pl.col("traffic") == ALL))
    shares = finished.group_by("scheme", maintain_order=True).agg(pl.col("value").mean())
    if shares.is_empty() or float(shares["value"].min()) > 100 - 1e-9:  # type: ignore[arg-type]
        return []
    listed = ", ".join(f"{share:.1f} % under {scheme}" for scheme, share in shares.iter_rows())
    spread = float(shares["value"].max()) - float(shares["value"].min())  # type: ignore[arg-type]
    doubt = " The shares differ: a scheme that leaves slow flows unfinished looks better than it is."
    covered = f"Completion times and slowdowns cover finished flows alone: {listed}."
    return [f"{covered}{doubt if spread > DOUBTFUL_POINTS else ''}"]


def _undrawn(runs: pl.DataFrame) -> list[str]:
    """A sentence about settings in which nothing is random."""
    exact = undrawn(runs)
    every = frozenset(runs.select("setting", "scheme").rows())
    if not exact:
        return []
    if exact == every:
        return [
            "Every seed gives the same numbers: nothing here is random, one seed suffices, and all numbers are exact."
        ]
    return [f"In {len(exact)} of {len(every)} settings of schemes every seed gives the same numbers: they are exact."]


def table(one: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of texts: each setting, both numbers, the change and the outcome."""
    unit = one.metric.unit
    heading, names = without_key([found.setting or "all" for found in one.differences])
    return (heading, one.baseline, one.other, "change", "verdict"), [
        (
            name,
            quantity(found.baseline, unit),
            quantity(found.other, unit),
            verdict.change_text(found.change, one.metric),
            verdict.outcome_text(found),
        )
        for name, found in zip(names, one.differences, strict=True)
    ]


def overall_cells(one: Comparison, thresholds: Thresholds) -> tuple[str, str, str]:
    """A metric, its change over all settings, and the outcome; contradicting settings have no common change."""
    if not one.is_split:
        return one.metric.label, verdict.change_text(one.overall, one.metric), verdict.outcome_text(one)
    values = verdict.by_values(one, one.depends_on, thresholds) if one.depends_on else one.differences
    least, most = (choose(values, key=lambda each: each.change.value) for choose in (min, max))
    ends = [f"{verdict.signed(each.change.value, one.metric)} {one.metric.change_unit}" for each in (least, most)]
    return one.metric.label, " to ".join(ends), verdict.outcome_text(one)


def overview(answer: Answer) -> str:
    """One sentence about many schemes and the main metric: it groups those with the same outcome."""
    mains = [comparisons[0] for comparisons in answer.comparisons]
    if answer.metric is None or not mains:
        return ""
    words = {-answer.metric.better: "worse", answer.metric.better: "better"} if answer.metric.better else SIGNS
    found: dict[str, list[str]] = {}
    for one in mains:
        found.setdefault(_kind(one, words), []).append(one.other)
    good = words[answer.metric.better or 1]
    kinds = sorted(found, key=lambda kind: (kind in (NOT_CLEAR, NEGLIGIBLE), not kind.startswith(good)))
    told = [f"{kind}: {', '.join(found[kind])}" for kind in kinds]
    label = answer.metric.label
    return f"{label[:1].upper() + label[1:]}, compared with {answer.baseline}: {'; '.join(told)}."


SIGNS = {-1: "lower", 1: "higher"}
NOT_CLEAR, NEGLIGIBLE = "no clear difference", "negligible difference"


def _kind(one: Comparison, words: Mapping[int, str]) -> str:
    """The settings in which a scheme differs from the baseline, in words that are the same for similar schemes."""
    if one.is_split:
        on = " and ".join(one.depends_on) or "the setting"
        return f"depends on {on}" if one.is_certain else "the sign is not certain"
    signs = [found.change.sign for found in one.differences if found.outcome in DIRECTED]
    every = "" if len(one.differences) == 1 else " in every setting"
    if signs:
        # Contradicting signs are a split; these are equal.
        return f"{words[signs[0]]}{every if len(signs) == len(one.differences) else ' in some settings'}"
    if all(found.outcome in SMALL for found in one.differences):
        return NEGLIGIBLE
    if any(found.outcome is Outcome.DOUBTFUL for found in one.differences):
        return "doubtful, because fewer flows finish"
    return NOT_CLEAR if one.is_certain else "no interval"


def interval_text(row: Mapping[str, Any], exact: frozenset[tuple[str, str]]) -> str:
    """The 95 % interval of a row of `rows.parquet`, or why it has none."""
    if (row["setting"], row["scheme"]) in exact:
        return verdict.EXACT
    if row["low"] is None:
        return {1: "", 2: "two seeds: none"}.get(len(row["seeds"]), "")
    return f"{quantity(row['low'], row['unit'])} to {quantity(row['high'], row['unit'])}"


def matrix(answer: Answer, columns: int = ranking.COLUMNS) -> tuple[list[str], list[list[str]]]:
    """The changes of all schemes by the main metric, in the order of the ranking: headings and rows of texts.

    Few settings have a column each; of many, a row says in how many the scheme is better and worse.
    """
    mains = {comparisons[0].other: comparisons[0] for comparisons in answer.comparisons}
    order = [name for name in (answer.ranking.cells if answer.ranking else ()) if name in mains]
    order += [name for name in mains if name not in order]
    settings = list(dict.fromkeys(found.setting for one in mains.values() for found in one.differences))
    if len(settings) <= columns:
        rows = []
        for name in order:
            cells = {found.setting: found for found in mains[name].differences}
            rows.append([name, *(_short(cells.get(setting), mains[name]) for setting in settings)])
        return ["scheme", *without_key([setting or "change" for setting in settings])[1]], rows
    words = [(Outcome.BETTER, Outcome.WORSE), (Outcome.LOWER, Outcome.HIGHER)][
        not answer.metric or not answer.metric.better
    ]
    rows = []
    for name in order:
        one = mains[name]
        counts = [sum(found.outcome is word for found in one.differences) for word in words]
        rows.append([name, *map(str, counts), str(len(one.differences)), *overall_cells(one, answer.thresholds)[1:]])
    return ["scheme", *map(str, words), "of settings", "change over all", "verdict"], rows


def _short(found: Difference | None, one: Comparison) -> str:
    """A change and its outcome, without the interval."""
    if found is None:
        return "–"
    value = verdict.change_text(replace(found.change, low=None, high=None), one.metric)
    return f"{value}, {SHORT.get(found.outcome, found.outcome)}"


SHORT = {
    Outcome.UNCLEAR: "not clear",
    Outcome.CROWDED: "not clear",
    Outcome.DOUBTFUL: "doubtful",
}


def to_json(one: Comparison) -> dict[str, Any]:
    """A comparison as machines read it: changes are shares of one, or differences.

    If the settings contradict each other, `depends_on` names the keys, and there is no overall change.
    """

    def number(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else value

    def change(found: Change, outcome: str) -> dict[str, Any]:
        return {
            "change": number(found.value),
            "low": number(found.low),
            "high": number(found.high),
            "p": number(found.p),
            "exact": found.is_exact,
            "verdict": outcome,
        }

    none = Change(math.nan, is_exact=one.overall.is_exact)
    return {
        "name": one.metric.name,
        "metric": one.metric.metric,
        "average": one.metric.average,
        "unit": one.metric.unit,
        "changes_in": one.metric.change_unit if one.metric.is_difference else "shares",
        "baseline": one.baseline,
        "scheme": one.other,
        **change(none if one.is_split else one.overall, verdict.outcome_text(one)),
        "depends_on": list(one.depends_on) if one.is_split else None,
        "settings": [
            {
                "setting": found.setting,
                "baseline": number(found.baseline),
                "scheme": number(found.other),
                **change(found.change, verdict.outcome_text(found)),
                "seeds": list(found.seeds),
            }
            for found in one.differences
        ],
    }
