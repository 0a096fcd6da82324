"""What `sparelane compare` compares: schemes of a sweep, sweeps, or scenario files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import api, library, notices
from sparelane.folders import SavedResultsError
from sparelane.names import UnknownNameError
from sparelane.results.manifest import Manifest
from sparelane.results.rows import ALL, axis_names
from sparelane.sweeps import folder as folders
from sparelane.sweeps import verdict
from sparelane.sweeps.differences import Comparison, all_questions, schemes_of, undrawn
from sparelane.sweeps.folder import SavedSweep
from sparelane.sweeps.journal import Journal
from sparelane.sweeps.plan import Plan
from sparelane.units import quantity

# A difference of the shares of flows that finish, in points, that makes means of finished flows doubtful.
DOUBTFUL_POINTS = 1.0


@dataclass(frozen=True, slots=True)
class Subject:
    """Rows of runs in which schemes can be compared.

    Attributes:
        runs: the rows.
        notes: what a reader of the comparison should know.
    """

    runs: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def schemes(self) -> list[str]:
        """The schemes, in order."""
        return schemes_of(self.runs)

    def compare(self, baseline: str | None = None, others: Sequence[str] = ()) -> list[list[Comparison]]:
        """Each of the others beside the baseline, by every question of which there are numbers.

        Raises:
            UnknownNameError: there is no such scheme.
            SavedResultsError: there is nothing to compare.
        """
        known = self.schemes
        for name in (*others, *([baseline] if baseline is not None else [])):
            if name not in known:
                raise UnknownNameError("scheme", name, known)
        chosen = [name for name in known if name in others or name == baseline] if others else known
        first = baseline if baseline is not None else chosen[0] if chosen else ""
        found = [all_questions(self.runs, first, name) for name in chosen if name != first]
        found = [comparisons for comparisons in found if comparisons]
        if not found:
            raise SavedResultsError(
                f"nothing to compare: the results are of {', '.join(known) or 'no scheme'} alone, and a comparison "
                "needs two schemes with the same settings and seeds"
            )
        return found


def of_folders(places: Sequence[Path]) -> Subject:
    """The schemes of a sweep, or of several sweeps under the names of their folders.

    Raises:
        SavedResultsError: a folder does not hold the results of a sweep.
    """
    saved = [_read(place) for place in places]
    if len(saved) == 1:
        return Subject(saved[0].runs, tuple(notes(saved[0])))
    names = [_distinct(one.place, places) for one in saved]
    runs = _together([(name, one.runs) for name, one in zip(names, saved, strict=True)])
    said = [f"{name}: {notice}" for name, one in zip(names, saved, strict=True) for notice in noticed(one.manifest)]
    return Subject(runs, ("Runs are paired by setting and seed.", *doubts(runs), *said))


def notes(saved: SavedSweep) -> list[str]:
    """What a reader of a sweep should know."""
    pairing = [_pairing(saved.manifest.details.get("paired"))] if len(schemes_of(saved.runs)) > 1 else []
    return [*pairing, *doubts(saved.runs), *noticed(saved.manifest)]


def noticed(found: Manifest) -> list[str]:
    """What there was to note of runs, with how many of them; that means leave out flows is among the doubts."""
    counts = [one for one in found.details.get("notices", []) if one["text"] != notices.UNFINISHED]
    return notices.told(counts, found.runs)


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
    parts, traffic, said = [], [], []
    for name, path in zip(names, paths, strict=True):
        plan = Plan(api.read_text(path), str(path), path.parent, seeds=seeds, needs_variation=False)
        target = into / re.sub(r"[^\w.]+", "-", name)
        run(plan, target)
        saved = folders.read(target)
        parts.append((name, saved.runs))
        said += [f"{name}: {notice}" for notice in noticed(saved.manifest)]
        with Journal(target) as journal:
            kept = journal.read({one.name for one in plan.runs})
        traffic.append([str(kept[one.name]["traffic"]) for one in plan.runs])
    runs = _together(parts)
    return Subject(runs, (_pairing(all(one == traffic[0] for one in traffic)), *doubts(runs), *said, f"runs in {into}"))


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


def _pairing(is_paired: object) -> str:
    if is_paired:
        return "All schemes had the same flows: differences are paired by seed."
    return "The flows are not the same for all schemes: differences are paired by seed alone."


def doubts(runs: pl.DataFrame) -> list[str]:
    """What makes the means doubtful: flows that they do not cover, and seeds that change nothing."""
    return [*_uncovered(runs), *_undrawn(runs)]


def _uncovered(runs: pl.DataFrame) -> list[str]:
    """That means cover finished flows, where some did not finish."""
    finished = runs.filter((pl.col("metric") == "finished flows") & (pl.col("traffic") == ALL))
    shares = finished.group_by("scheme", maintain_order=True).agg(pl.col("value").mean())
    if shares.is_empty() or float(shares["value"].min()) > 100 - 1e-9:  # type: ignore[arg-type]
        return []
    listed = ", ".join(f"{share:.1f} % under {scheme}" for scheme, share in shares.iter_rows())
    spread = float(shares["value"].max()) - float(shares["value"].min())  # type: ignore[arg-type]
    doubt = (
        ", so that those of the scheme that finishes more cover more of the slow ones"
        if spread > DOUBTFUL_POINTS
        else ""
    )
    return [f"Completion times and slowdowns cover flows that finished: {listed}{doubt}."]


def _undrawn(runs: pl.DataFrame) -> list[str]:
    """That nothing is random, in all of the runs or in some."""
    exact = undrawn(runs)
    every = frozenset(runs.select("setting", "scheme").rows())
    if not exact:
        return []
    if exact == every:
        return ["Every seed gives the same numbers: nothing here is random, and all numbers are exact."]
    return [f"In {len(exact)} of {len(every)} settings of schemes every seed gives the same numbers: they are exact."]


def table(one: Comparison) -> list[tuple[str, ...]]:
    """The cells of each setting: its name, both numbers, the change and the verdict in a word."""
    unit = one.question.unit
    return [
        (
            found.setting or "all",
            quantity(found.baseline, unit),
            quantity(found.other, unit),
            verdict.change(found.change, one),
            verdict.outcome(found, one),
        )
        for found in one.differences
    ]


def to_json(one: Comparison) -> dict[str, Any]:
    """A comparison as machines read it: changes are shares of one, or differences."""

    def number(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else value

    return {
        "metric": one.question.metric,
        "average": one.question.average,
        "unit": one.question.unit,
        "changes_in": one.question.told_in if one.question.is_difference else "shares",
        "baseline": one.baseline,
        "scheme": one.other,
        "change": number(one.overall.value),
        "low": number(one.overall.low),
        "high": number(one.overall.high),
        "exact": one.overall.is_exact,
        "settings": [
            {
                "setting": found.setting,
                "baseline": number(found.baseline),
                "scheme": number(found.other),
                "change": number(found.change.value),
                "low": number(found.change.low),
                "high": number(found.change.high),
                "exact": found.change.is_exact,
                "verdict": verdict.outcome(found, one),
                "seeds": list(found.seeds),
            }
            for found in one.differences
        ],
    }
