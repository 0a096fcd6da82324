"""Experiments as files: what a TOML file in a paper's folder says, read once and checked whole.

A file names its `kind`, the module beside it that knows what is simulated and measured, and says the rest: words,
efforts, the paper's numbers with their place, reasons and claims. A mistake is an error that names file and key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sparelane.papers.engine import claims
from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.rows import NOT_EXPLAINED, Band, Evaluation, Key, Metric, each
from sparelane.papers.engine.sections import DeclarationError, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEY_PARTS = ("setting", "metric", "scheme", "average", "traffic", "variant")

# What a claim may be about: values of one row, of two, and of any number of rows.
OF_ONE: Mapping[str, Callable[[Key], Value]] = {
    "ours": claims.ours,
    "over_paper": claims.over_paper,
    "less_paper": claims.less_paper,
}
OF_TWO: Mapping[str, Callable[[Key, Key], Value]] = {"ratio": claims.ratio, "difference": claims.difference}
OF_MANY: Mapping[str, Callable[[Sequence[Key]], Value]] = {
    "falling": claims.falling,
    "largest_factor": claims.largest_factor,
    "largest_difference": claims.largest_difference,
    "least": claims.least,
    "largest": claims.largest,
    "spread": claims.spread,
    "lead_of_difference": claims.lead_of_difference,
    "over_largest": lambda keys: claims.over_largest(keys[0], keys[1:]),
    "over_median": lambda keys: claims.over_median(keys[0], keys[1:]),
    "inside": claims.inside,
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What every kind of experiment says in its file; `rest` has what is the kind's own.

    Attributes:
        id: `paper/name`, by the file's place.
        title: one line.
        source: where the paper has it.
        method: what the authors did.
        shared: names of what the kind assumes for several experiments.
        assumptions: what is assumed besides.
        fitted: sentences that say what was fitted, and on what.
        full: the full effort.
        quick: the quick one.
        printed: the paper's numbers.
        reasons: why rows deviate.
        claims: what must hold of the rows.
        rest: the keys that the kind reads.
    """

    id: str
    title: str
    source: str
    method: str
    shared: tuple[str, ...]
    assumptions: tuple[str, ...]
    fitted: tuple[str, ...]
    full: Effort
    quick: Effort
    printed: Mapping[Key, float]
    reasons: Mapping[Key, str]
    claims: tuple[Claim, ...]
    rest: Section

    def assume(self, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """All assumptions, the shared ones first."""
        for name in self.shared:
            if name not in known:
                raise self.rest.fail("shared", f'has "{name}"; allowed: {", ".join(known)}')
        return (*(line for name in self.shared for line in known[name]), *self.assumptions)

    def experiment(
        self,
        plan: Callable[[Effort], Sequence[Simulation]],
        evaluate: Callable[[Effort, Outcomes], Evaluation],
        draw: Callable[[Evaluation], Figure],
        *,
        assumptions: tuple[str, ...],
        restate: Callable[[Evaluation], Evaluation] = lambda found: found,
    ) -> Experiment:
        """The experiment, with what its kind adds."""
        return Experiment(
            id=self.id,
            title=self.title,
            source=self.source,
            method=self.method,
            assumptions=assumptions,
            full=self.full,
            quick=self.quick,
            plan=plan,
            evaluate=evaluate,
            draw=draw,
            restate=restate,
            reasons=self.reasons,
            claims=self.claims,
            fitted=self.fitted,
        )


def kind_of(path: Path) -> str:
    """The kind of experiment that the file declares: the name of a module.

    Raises:
        DeclarationError: the file does not say.
    """
    return _load(path).text("kind")


def read(path: Path, metrics: Mapping[str, Metric]) -> Declaration:
    """The experiment that the file declares.

    Args:
        path: of the file, in the folder of its paper.
        metrics: those of the kind, by name.

    Raises:
        DeclarationError: something in the file is not as it must be. What is the kind's own is not looked at.
    """
    root = _load(path)
    root.text("kind")
    defaults = root.section("rows")
    rows = _Rows(metrics, {name: defaults.texts(name) for name in KEY_PARTS})
    defaults.finish()
    printed: dict[Key, float] = {}
    for part in root.sections("printed"):
        for key, number in rows.printed(part):
            if key in printed:
                raise part.fail("rows", f'has a second number for "{key.words}"')
            printed[key] = number
    return Declaration(
        id=f"{path.parent.name}/{path.stem}",
        title=root.text("title"),
        source=root.text("source"),
        method=root.text("method"),
        shared=root.texts("shared"),
        assumptions=root.texts("assumptions"),
        fitted=root.texts("fitted"),
        full=_effort(root.section("full"), "full"),
        quick=_effort(root.section("quick"), "quick"),
        printed=printed,
        reasons={key: text for part in root.sections("reason") for key, text in rows.reasons(part)},
        claims=tuple(claim for part in root.sections("claim") for claim in _claims(part, rows, printed)),
        rest=root,
    )


def _load(path: Path) -> Section:
    try:
        return Section(tomllib.loads(path.read_text(encoding="utf-8")), f"{path.parent.name}/{path.name}")
    except (OSError, ValueError) as error:
        raise DeclarationError(f'cannot read "{path}": {error}') from error


def _effort(part: Section, name: Literal["full", "quick"]) -> Effort:
    found = Effort(name, part.whole("seeds"), part.number("stop_s", 0.0))
    part.finish()
    return found


@dataclass(frozen=True, slots=True)
class _Rows:
    """How a file names rows.

    Attributes:
        metrics: those that there are, by name.
        defaults: what keys leave out.
    """

    metrics: Mapping[str, Metric]
    defaults: Mapping[str, tuple[str, ...]]

    def keys(self, section: Section) -> list[Key]:
        """The rows that a table of key parts names, each a text or a list of texts."""
        found = {name: (section.texts(name) if name in section else self.defaults[name]) or ("",) for name in KEY_PARTS}
        section.finish()
        unknown = next((name for name in found["metric"] if name not in self.metrics), None)
        if unknown is not None:
            raise section.fail("metric", f'is "{unknown}"; allowed: {", ".join(self.metrics)}')
        found_metrics = [self.metrics[name] for name in found["metric"]]
        return [
            key
            for variant, traffic in product(found["variant"], found["traffic"])
            for key in each(
                found["setting"], found_metrics, found["scheme"], found["average"], traffic=traffic, variant=variant
            )
        ]

    def printed(self, part: Section) -> Iterator[tuple[Key, float]]:
        """A table of the paper: rows of key parts and numbers.

        A column is a part, as in `"setting"`, or has numbers, as in `{ scheme = "RC3", metric = "FCT" }`. The place in
        the paper is for who reads the file.
        """
        part.text("place")
        columns = part.columns("columns")
        shared = {name: part.text(name) for name in KEY_PARTS if name in part}
        for row in part.lists("rows"):
            if len(row) != len(columns):
                raise part.fail("rows", f"has {row!r}, which has not one entry for each of the {len(columns)} columns")
            cells = list(zip(columns, row, strict=True))
            parts = shared | {column: cell for column, cell in cells if isinstance(column, str)}
            for column, cell in cells:
                if isinstance(column, str) or cell == "":
                    continue
                if not isinstance(cell, int | float):
                    raise part.fail("rows", f"has {cell!r} under {column!r}, where a number must be, or nothing")
                for key in self.keys(Section(parts | column, f"{part.where}, row {row!r}")):
                    yield key, float(cell)
        part.finish()

    def reasons(self, part: Section) -> Iterator[tuple[Key, str]]:
        """A reason and the rows that it stands beside."""
        text = part.text("text")
        keys = [key for section in part.sections("rows") for key in self.keys(section)]
        part.finish()
        return ((key, text) for key in keys)


def _claims(part: Section, rows: _Rows, printed: Mapping[Key, float]) -> Iterator[Claim]:
    """What a table claims: about one row or two, once for each of them that it names; or about all at once.

    The text may have parts of the first row's key, and the printed number as `paper`, in braces. A reason says why the
    claim fails.
    """
    text, name = part.text("text"), next((name for name in (*OF_ONE, *OF_TWO, *OF_MANY) if name in part), None)
    if name is None:
        raise part.fail("claim", f"has no value; allowed: {', '.join((*OF_ONE, *OF_TWO, *OF_MANY))}")
    groups = [rows.keys(section) for section in part.sections(name)]
    full = _band(part, "full")
    quick = _band(part, "quick") if "quick" in part else None
    reason = part.text("reason", NOT_EXPLAINED)
    part.finish()
    for key, value in _values(part, name, groups):
        parts = {name: getattr(key, name) for name in KEY_PARTS}
        parts |= {"metric": key.metric.name, "paper": printed.get(key, math.nan)}
        try:
            yield Claim(text.format(**parts), value, full, quick, reason)
        except (KeyError, ValueError, IndexError) as error:
            raise part.fail("text", f"has something else in braces than {', '.join(parts)}: {error}") from error


def _values(part: Section, name: str, groups: Sequence[Sequence[Key]]) -> list[tuple[Key, Value]]:
    """What claims are about, each with the first row's key."""
    keys = [key for group in groups for key in group]
    if not keys:
        raise part.fail(name, "names no rows")
    if name in OF_ONE:
        return [(key, OF_ONE[name](key)) for key in keys]
    if name in OF_MANY:
        return [(keys[0], OF_MANY[name](keys))]
    upper, lower = groups if len(groups) == 2 else (keys[:1], keys[1:])
    if len(upper) != len(lower):
        raise part.fail(name, f"names {len(upper)} and {len(lower)} rows, which are no pairs")
    return [(one, OF_TWO[name](one, other)) for one, other in zip(upper, lower, strict=True)]


def _band(part: Section, key: str) -> Band:
    if key not in part:
        raise part.fail(key, "is missing")
    band = part.section(key)
    low, high = band.number("at_least", -math.inf), band.number("at_most", math.inf)
    if "about" in band:
        centre, tolerated = band.number("about"), band.number("within")
        low, high = claims.about(centre, tolerated)
    band.finish()
    if low > high:
        raise part.fail(key, f"has its bounds in the wrong order: {low:g} and {high:g}")
    if (low, high) == (-math.inf, math.inf):
        raise part.fail(key, "has no bound; allowed: at_least, at_most, about with within")
    return low, high
