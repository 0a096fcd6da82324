"""Compares the schemes of a sweep, of several sweeps, or of scenario files.

The command line, reports and `sparelane.compare` use this module:

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
from sparelane.simulation import simulate
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
    deterministic,
    judge,
    schemes_of,
    without_key,
)
from sparelane.sweeps.folder import SavedSweep
from sparelane.sweeps.journal import Journal
from sparelane.sweeps.metrics import Metric
from sparelane.sweeps.plan import Plan
from sparelane.sweeps.ranking import Ranking

# Up to this many schemes are described one by one; more share one table.
DETAILED = 3
PAIRED = "All schemes had the same flows: differences are paired by seed."


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The result of a comparison.

    Attributes:
        metric: the main metric: the requested one, or the first default metric with numbers.
        baseline: the scheme that the others are compared with; empty if schemes share their runs.
        ranking: the ranking of all schemes by the main metric.
        comparisons: for each other scheme, the comparisons by the main metric and then by the other metrics.
        portions: the shares of schemes that share runs.
        thresholds: the thresholds below which changes are negligible.
        notes: sentences about pairing, unfinished flows and missing runs.
        methods: sentences about the methods for intervals, outcomes and places.
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
        """The conclusion about each other scheme, and sentences about schemes that share runs."""
        shared = [lines for group, found in self.portions for lines in coexistence.sentences(group, found)]
        return [*shared, *(verdict.headline(one[0], self.thresholds) for one in self.comparisons)]

    def frame(self) -> pl.DataFrame:
        """All differences as a table.

        Columns: `metric` (the short name), `scheme`, `baseline`, `setting` ("all settings" for the overall change),
        `baseline_value` and `scheme_value` in `unit`, `change`, `low` and `high` (fractions of the baseline's value, or
        differences in `change_unit`), `p` (not adjusted), `outcome` and `seeds`.
        """
        rows = [row for comparisons in self.comparisons for one in comparisons for row in _frame_rows(one)]
        return pl.DataFrame(rows, schema=FRAME, orient="row")

    def to_json(self) -> list[dict[str, Any]]:
        """All comparisons as JSON values."""
        return [to_json(one) for comparisons in self.comparisons for one in comparisons]

    def __str__(self) -> str:
        """The headlines and notes, one per line."""
        return "\n".join([*self.headlines, *self.notes])

    # Shells display objects with `repr`, and the fields would fill pages.
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
    """Compares the schemes of a saved sweep, or of several sweeps, which are named after their folders.

    Differences are paired by seed. From three seeds on, they have Student's 95 % intervals.

    Args:
        what: the folder of a sweep, the sweep itself, or several folders.
        baseline: the scheme that the others are compared with; by default the first one.
        schemes: the schemes to compare; by default all.
        metric: the main metric, such as "p99-completion"; by default the mean completion time, if flows finish.
        by: keys that define groups of settings, such as "queue" or "queue.kind", and "size" for ranges of flow sizes.
            Without any, each setting is a group of its own.
        thresholds: thresholds below which changes are negligible.

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
    """Runs of several schemes, ready to be compared.

    Attributes:
        runs: the rows, one for each number of each run.
        notes: sentences for readers of the comparison.
        groups: the schemes that share runs.
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
        """Compares each of the other schemes with the baseline, by all default metrics with numbers.

        Raises:
            UnknownNameError: no scheme, metric or key has this name.
            SavedResultsError: there is nothing to compare.
        """
        known = self.schemes
        for name in (*others, *([baseline] if baseline is not None else [])):
            if name not in known:
                raise UnknownNameError("scheme", name, known)
        if baseline is None and len(set(others)) == 1:
            # A single scheme is compared with the first other one.
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
        # With `by` flow size, only metrics of flows have numbers.
        mine = [tuple(found[one][name] for one in found if name in found[one]) for name in compared]
        comparisons = tuple(one for one in mine if one)
        if not comparisons and not portions:
            raise SavedResultsError(_nothing(known))
        chief = comparisons[0][0].metric if comparisons else main
        ranked = [name for name in chosen if name == first or name in compared]
        exact = deterministic(self.runs)
        order = ranking.rank(self.runs, ranked, chief, limits, exact, keys) if chief and comparisons else None
        return Answer(
            chief,
            first if comparisons else "",
            order,
            comparisons,
            portions,
            limits,
            (*self.notes, *self._missing(chief), *([] if main is None or comparisons else [_not_compared(main)])),
            tuple(methods(comparisons, order, limits)),
        )

    def _share_runs(self, one: str, other: str) -> bool:
        """True if two schemes are in the same runs, as competitors instead of alternatives."""
        return any(one in group.members and other in group.members and not group.name for group in self.groups)

    def _by_metric(
        self, first: str, others: Sequence[str], listed: Sequence[Metric], by: Sequence[str], limits: Thresholds
    ) -> dict[Metric, dict[str, Comparison]]:
        exact = deterministic(self.runs)
        found = {}
        for one in listed:
            made = (differences.compare(self.runs, first, name, one, exact, by) for name in others)
            some = [each for each in made if each is not None and not math.isnan(each.overall.value)]
            if some:
                found[one] = {each.other: each for each in judge(some, limits)}
        return found

    def _missing(self, metric: Metric | None) -> list[str]:
        """A sentence about runs with too few values for a percentile, if there are any."""
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


def _not_compared(metric: Metric) -> str:
    return (
        f"The {metric.label} is not compared, because these schemes share each run; `sparelane report` with the same "
        "--metric shows it in each setting."
    )


def _nothing(known: Sequence[str]) -> str:
    return (
        f"nothing to compare: the results have only {', '.join(known) or 'no scheme'}, and a comparison needs two "
        "schemes with the same settings and seeds; `sparelane report` shows the numbers of each setting"
    )


def keys_of(by: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The keys for names such as `queue.kind`, `kind` or `queue`. The name of a table selects all of its keys.

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
    # Only sentences about methods that these comparisons use are included.
    every = [one for listed in comparisons for one in listed]
    lines = []
    if any(found.change.low is not None for one in every for found in one.differences):
        lines.append("Intervals are Student's t intervals over the seeds, with 95 % coverage for normal distributions.")
    compared = max((one.compared for one in every), default=0)
    if compared > 1:
        lines.append(
            f"Outcomes are adjusted for the {compared} differences of a metric (Benjamini and Hochberg, 5 %); "
            "intervals are not."
        )
    if (
        order is not None
        and order.has_ties
        and any(cell is not None and cell.is_tied for cells in order.cells.values() for cell in cells)
    ):
        lines.append('Places with "=" are shared: no clear or relevant difference from the first of the group.')
    if order is not None and not order.has_ties:
        lines.append("Places follow the means; ties need three seeds or more.")
    if order is not None and order.leaves_out:
        lines.append(
            f"{ranking.UNFINISHED}: clearly fewer flows finished than under other schemes; only finished flows count."
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
        lines.append(f"Negligible: below {', '.join(listed)} (see --threshold).")
    return lines


def of_sweep(saved: SavedSweep) -> Subject:
    """The schemes of a sweep, ready to be compared."""
    return Subject(saved.runs, tuple(notes(saved)), tuple(coexistence.groups(saved.runs)))


def of_folders(places: Sequence[Path]) -> Subject:
    """The schemes of a sweep, or of several sweeps, which are named after their folders.

    Raises:
        SavedResultsError: a folder does not hold the results of a sweep.
    """
    saved = [_read(place) for place in places]
    if len(saved) == 1:
        return of_sweep(saved[0])
    names = [_distinct(one.place, places) for one in saved]
    runs = _together([(name, one.runs) for name, one in zip(names, saved, strict=True)])
    named = [*zip(names, saved, strict=True)]
    lines = [f"{name}: {warning}" for name, one in named for warning in warnings_of(one.manifest)]
    lines += [note for name, one in named for note in missing(one.manifest, f"{name}: ")]
    return Subject(runs, ("Runs are paired by setting and seed.", *doubts(runs), *lines), _groups(names, saved))


def notes(saved: SavedSweep) -> list[str]:
    """Sentences for readers of a sweep: pairing, limits of its numbers, missing runs and warnings."""
    share_runs = any(not group.name for group in coexistence.groups(saved.runs))
    is_pair = len(schemes_of(saved.runs)) > 1 and not share_runs
    pairing = [_pairing(saved.manifest.details.get("paired"))] if is_pair else []
    return [*pairing, *doubts(saved.runs), *missing(saved.manifest), *warnings_of(saved.manifest)]


def missing(found: Manifest, whose: str = "") -> list[str]:
    """A sentence about runs that failed or were not reached, if there are any."""
    if not found.missing:
        return []
    failed = len(found.details.get("failed", []))
    return [
        f"{whose}{found.missing} of {found.missing + found.runs} runs are missing: {failed} failed, "
        f"{found.missing - failed} were not reached. Only seeds that both schemes have are compared."
    ]


def warnings_of(found: Manifest) -> list[str]:
    """The warnings about the runs of a sweep, except unfinished flows, which `doubts` reports."""
    counts = found.details.get("warnings", found.details.get("notices", []))
    kept = [one for one in counts if one["text"] != run_warnings.UNFINISHED]
    return run_warnings.sentences(kept, found.runs)


def _read(place: Path) -> SavedSweep:
    if (place / "run.json").exists():
        raise SavedResultsError(f'"{place}" holds a single run; compare takes sweeps, or scenario files')
    if not (place / "manifest.json").exists():
        raise SavedResultsError(
            f'"{place}" holds no sweep; allowed: the folder of one, as `sparelane sweep FILE -o "{place}"` creates it'
        )
    return folders.read(place)


def of_files(files: Sequence[str], seeds: int, place: Path | None, run: Callable[[Plan, Path], None]) -> Subject:
    """Runs scenarios with the same seeds. Each becomes a scheme, which is named after its file.

    Args:
        files: paths of scenarios, or names of ready-made ones.
        seeds: the number of seeds.
        place: the folder for the runs; by default a folder below `out`.
        run: does the runs of a plan that a folder does not have yet.

    Raises:
        ScenarioError: a scenario cannot be run.
        FileNotFoundError: a file does not exist.
    """
    paths = [library.resolve(file) for file in files]
    if len(paths) < 2:
        raise SavedResultsError("a comparison needs more than one file; allowed: two or more, or the folder of a sweep")
    names = [_distinct(path.with_suffix(""), [one.with_suffix("") for one in paths]) for path in paths]
    into = place or Path("out") / "compare" / "-".join(re.sub(r"[^\w.]+", "-", name) for name in names)[:100]
    parts, traffic, lines, sweeps = [], [], [], []
    for name, path in zip(names, paths, strict=True):
        plan = Plan(simulate.read_text(path), str(path), path.parent, seeds=seeds, needs_variation=False)
        target = into / re.sub(r"[^\w.]+", "-", name)
        run(plan, target)
        saved = folders.read(target)
        parts.append((name, saved.runs))
        lines += [f"{name}: {warning}" for warning in warnings_of(saved.manifest)]
        with Journal(target) as journal:
            kept = journal.read({one.name for one in plan.runs})
        traffic.append([str(kept[one.name]["traffic"]) for one in plan.runs])
        sweeps.append(saved)
    runs = _together(parts)
    pairing = _pairing(all(one == traffic[0] for one in traffic))
    return Subject(runs, (pairing, *doubts(runs), *lines, f"runs in {into}"), _groups(names, sweeps))


def _distinct(path: Path, others: Sequence[Path]) -> str:
    """The shortest suffix of a path that distinguishes it from the others."""
    for count in range(1, len(path.parts)):
        ending = path.parts[-count:]
        if sum(other.parts[-count:] == ending for other in others) == 1:
            return "/".join(ending)
    return str(path)


def _together(parts: Sequence[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Joins the rows of several sweeps. Schemes are named after their sweep, with their name if there are several."""
    frames = []
    for name, runs in parts:
        label = pl.lit(name) if len(schemes_of(runs)) < 2 else pl.format("{}: {}", pl.lit(name), "scheme")
        axes = [pl.col(key).cast(pl.String) for key in axis_names(runs)]
        frames.append(runs.with_columns(label.alias("scheme"), *axes))
    return pl.concat(frames, how="diagonal")


def _groups(names: Sequence[str], sweeps: Sequence[SavedSweep]) -> tuple[Group, ...]:
    """The groups of schemes that share runs, with the scheme names of `_together`."""
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
    return "The flows differ between schemes: differences are paired only by seed."


def doubts(runs: pl.DataFrame) -> list[str]:
    """Sentences about limits of the means: uncovered flows, too few seeds, and seeds without effect."""
    return [*_uncovered(runs), *_few_seeds(runs), *_deterministic(runs)]


def _few_seeds(runs: pl.DataFrame) -> list[str]:
    """A sentence if there are too few seeds for an interval, unless nothing is random."""
    seeds = runs["seeds"].list.first().n_unique()
    if seeds == 1:
        return ["One seed cannot support an interval or show whether anything is random: --seeds N runs more."]
    if seeds == 2 and deterministic(runs) != frozenset(runs.select("setting", "scheme").rows()):
        return ["Two seeds cannot support an interval: run three or more with --seeds N."]
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
    covered = f"Completion times and slowdowns cover only finished flows: {listed}."
    return [f"{covered}{doubt if spread > DOUBTFUL_POINTS else ''}"]


def _deterministic(runs: pl.DataFrame) -> list[str]:
    """A sentence about settings in which nothing is random."""
    exact = deterministic(runs)
    every = frozenset(runs.select("setting", "scheme").rows())
    if not exact:
        return []
    if exact == every:
        return ["All seeds give the same numbers: nothing is random, one seed suffices, and all numbers are exact."]
    return [f"In {len(exact)} of {len(every)} settings of schemes all seeds give the same numbers, which are exact."]


def table(one: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headings and rows of a table with each setting, both numbers, the change and the outcome."""
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
    """A metric, its change over all settings, and the outcome. Contradicting settings have a range of changes."""
    if not one.is_split:
        return one.metric.label, verdict.change_text(one.overall, one.metric), verdict.outcome_text(one)
    values = verdict.by_values(one, one.depends_on, thresholds) if one.depends_on else one.differences
    least, most = (choose(values, key=lambda each: each.change.value) for choose in (min, max))
    ends = [f"{verdict.signed(each.change.value, one.metric)} {one.metric.change_unit}" for each in (least, most)]
    return one.metric.label, " to ".join(ends), verdict.outcome_text(one)


def overview(answer: Answer) -> str:
    """One sentence about many schemes and the main metric, which groups schemes with the same outcome."""
    mains = [comparisons[0] for comparisons in answer.comparisons]
    if answer.metric is None or not mains:
        return ""
    words = {-answer.metric.better: "worse", answer.metric.better: "better"} if answer.metric.better else SIGNS
    found: dict[str, list[str]] = {}
    for one in mains:
        found.setdefault(_kind(one, words), []).append(one.other)
    good = words[answer.metric.better or 1]
    kinds = sorted(found, key=lambda kind: (kind in (NOT_CLEAR, NEGLIGIBLE), not kind.startswith(good)))
    groups = [f"{kind}: {', '.join(found[kind])}" for kind in kinds]
    label = answer.metric.label
    return f"{label[:1].upper() + label[1:]}, compared with {answer.baseline}: {'; '.join(groups)}."


SIGNS = {-1: "lower", 1: "higher"}
NOT_CLEAR, NEGLIGIBLE = "no clear difference", "negligible difference"


def _kind(one: Comparison, words: Mapping[int, str]) -> str:
    """A phrase about the settings where a scheme differs from the baseline; equal for similar schemes."""
    if one.is_split:
        on = " and ".join(one.depends_on) or "the setting"
        return f"depends on {on}" if one.is_certain else "the sign is not certain"
    signs = [found.change.sign for found in one.differences if found.outcome in DIRECTED]
    every = "" if len(one.differences) == 1 else " in every setting"
    if signs:
        # The signs are equal, since contradicting signs make a split.
        return f"{words[signs[0]]}{every if len(signs) == len(one.differences) else ' in some settings'}"
    if all(found.outcome in SMALL for found in one.differences):
        return NEGLIGIBLE
    if any(found.outcome is Outcome.DOUBTFUL for found in one.differences):
        return "doubtful, since fewer flows finish"
    return NOT_CLEAR if one.is_certain else "no interval"


def interval_text(row: Mapping[str, Any], exact: frozenset[tuple[str, str]]) -> str:
    """The 95 % interval of a row of `rows.parquet` as text, or the reason why it has none."""
    if (row["setting"], row["scheme"]) in exact:
        return verdict.EXACT
    if row["low"] is None:
        return {1: "", 2: "two seeds: none"}.get(len(row["seeds"]), "")
    return f"{quantity(row['low'], row['unit'])} to {quantity(row['high'], row['unit'])}"


def matrix(answer: Answer, columns: int = ranking.COLUMNS) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of changes of all schemes by the main metric, in the order of the ranking.

    If there are few settings, each has a column. Otherwise, each row counts the better and worse settings.
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
    """The text of a change and its outcome, without the interval."""
    if found is None:
        return "–"
    value = verdict.change_text(replace(found.change, low=None, high=None), one.metric)
    return f"{value}, {SHORT.get(found.outcome, found.outcome)}"


SHORT = {
    Outcome.UNCLEAR: "not clear",
    Outcome.ADJUSTED: "not clear",
    Outcome.DOUBTFUL: "doubtful",
}


def to_json(one: Comparison) -> dict[str, Any]:
    """A comparison as JSON values. Changes are fractions or differences.

    If the settings contradict each other, `depends_on` lists the keys, and there is no overall change.
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

    # JSON has no NaN, which `number` writes as null.
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
