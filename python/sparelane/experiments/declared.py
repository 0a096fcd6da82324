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
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sparelane.experiments import claims
from sparelane.experiments.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import Value
from sparelane.experiments.rows import Band, Evaluation, Key, Metric, each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

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
    "inside": claims.inside,
}


class DeclarationError(ValueError):
    """A file that declares an experiment is wrong; the message says where, and what is allowed."""


class Section:
    """A table of the file, read key by key; what is left unread is unknown."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._left = dict(values)
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def fail(self, key: str, problem: str) -> DeclarationError:
        """The error that a key has this problem."""
        return DeclarationError(f'{self.where}: "{key}" {problem}')

    def _take(self, key: str, kind: type[T] | tuple[type, ...], words: str, default: T | None) -> Any:
        if key not in self._left:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"must be {words}, and is {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        return str(self._take(key, str, "a text", default))

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        return float(self._take(key, (int, float), "a number", default))

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        return int(self._take(key, int, "a whole number", default))

    def flag(self, key: str) -> bool:
        """True or false; false where it is not there."""
        return bool(self._take(key, bool, "true or false", False))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text alone; none where it is not there."""
        found = self._take(key, (list, str), "a text or a list of texts", [])
        if isinstance(found, str):
            return (found,)
        if not all(isinstance(one, str) for one in found):
            raise self.fail(key, f"must hold texts alone, and is {found!r}")
        return tuple(found)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of numbers; none where it is not there."""
        found = self._take(key, list, "a list of numbers", [])
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in found):
            raise self.fail(key, f"must hold numbers alone, and is {found!r}")
        return tuple(map(float, found))

    def lists(self, key: str) -> tuple[list[Any], ...]:
        """A list of lists."""
        found = self._take(key, list, "a list of lists", None)
        if not all(isinstance(one, list) for one in found):
            raise self.fail(key, "must hold lists alone")
        return tuple(found)

    def columns(self, key: str) -> tuple[str | dict[str, Any], ...]:
        """A list of texts and tables."""
        found = self._take(key, list, "a list of texts and tables", None)
        if not all(isinstance(one, str | dict) for one in found):
            raise self.fail(key, "must hold texts and tables alone")
        return tuple(found)

    def one_of(self, key: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """What a name of these stands for."""
        name = self.text(key, default)
        if name not in choices:
            raise self.fail(key, f'is "{name}"; allowed: {", ".join(choices)}')
        return choices[name]

    def some_of(self, key: str, choices: Mapping[str, T]) -> list[T]:
        """What names of these stand for."""
        names = self.texts(key)
        for name in names:
            if name not in choices:
                raise self.fail(key, f'has "{name}"; allowed: {", ".join(choices)}')
        return [choices[name] for name in names]

    def section(self, key: str) -> Section:
        """A table; an empty one where it is not there."""
        return Section(self._take(key, dict, "a table", {}), f"{self.where}, {key}")

    def sections(self, key: str) -> list[Section]:
        """A list of tables, or one alone; none where it is not there."""
        found = self._take(key, (list, dict), "a list of tables", [])
        tables = [found] if isinstance(found, dict) else found
        if not all(isinstance(one, dict) for one in tables):
            raise self.fail(key, "must hold tables alone")
        return [Section(one, f"{self.where}, {key} {place}") for place, one in enumerate(tables, 1)]

    def finish(self) -> None:
        """Refuses keys that nobody has read."""
        if self._left:
            raise self.fail(next(iter(self._left)), "is not a key here, or does not go with the others")


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
    printed = {key: number for part in root.sections("printed") for key, number in rows.printed(part)}
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

        A column is a part, as in `"setting"`, or has numbers, as in `{ scheme = "RC3", metric = "FCT" }`.
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

    The text may have parts of the first row's key, and the printed number as `paper`, in braces.
    """
    text, name = part.text("text"), next((name for name in (*OF_ONE, *OF_TWO, *OF_MANY) if name in part), None)
    if name is None:
        raise part.fail("claim", f"has no value; allowed: {', '.join((*OF_ONE, *OF_TWO, *OF_MANY))}")
    groups = [rows.keys(section) for section in part.sections(name)]
    keys = [key for group in groups for key in group]
    full = _band(part, "full")
    quick = _band(part, "quick") if "quick" in part else None
    part.finish()
    values: list[tuple[Key, Value]]
    if name in OF_ONE:
        values = [(key, OF_ONE[name](key)) for key in keys]
    elif name in OF_TWO:
        upper, lower = groups if len(groups) == 2 else (keys[:1], keys[1:])
        if len(upper) != len(lower):
            raise part.fail(name, f"names {len(upper)} and {len(lower)} rows, which are no pairs")
        values = [(one, OF_TWO[name](one, other)) for one, other in zip(upper, lower, strict=True)]
    else:
        values = [(keys[0], OF_MANY[name](keys))]
    for key, value in values:
        parts = {name: getattr(key, name) for name in KEY_PARTS} | {"paper": printed.get(key, math.nan)}
        try:
            yield Claim(text.format(**parts), value, full, quick)
        except (KeyError, ValueError, IndexError) as error:
            raise part.fail("text", f"has something else in braces than {', '.join(parts)}: {error}") from error


def _band(part: Section, key: str) -> Band:
    band = part.section(key)
    low, high = band.number("at_least", -math.inf), band.number("at_most", math.inf)
    if "about" in band:
        centre, tolerated = band.number("about"), band.number("within")
        low, high = claims.about(centre, tolerated)
    band.finish()
    if low > high:
        raise part.fail(key, f"has its bounds in the wrong order: {low:g} and {high:g}")
    return low, high
