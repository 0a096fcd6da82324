"""Reads the TOML files that declare experiments.

Each experiment is a file in its paper's folder. The file holds the texts, the efforts, the paper's numbers with their
place, the reasons for deviations, and the claims. Its `kind` names the Python module in the same folder that lists the
simulations and computes the rows; by default, the module has the same name as the file. Texts that several experiments
share are in the folder's `shared.toml`. A mistake raises an error that names the file and the key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sparelane.papers.engine import claims
from sparelane.papers.engine.base import Claim, Description, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.cells import Cell, Runs, plan
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.rows import NOT_EXPLAINED, Band, Evaluation, Key, Metric, Row
from sparelane.papers.engine.sections import DeclarationError, Section, filled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The file of a paper's folder with the texts that several experiments share.
SHARED = "shared.toml"

KERNELS: Mapping[str, Literal["", "linux", "rc3"]] = {"": "", "linux": "linux", "rc3": "rc3"}

KEY_PARTS = ("setting", "metric", "scheme", "average", "traffic", "variant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Description):
    """The content of an experiment's file.

    Attributes:
        printed: the paper's numbers.
        stated: bands for numbers that the paper states in words.
        rows: selects rows by parts of their keys, as the file's own tables do.
        units: the labels of the vertical axes of panels by metric; `{average}` stands for the average.
        rest: the remaining keys, which the kind reads.
    """

    printed: Mapping[Key, float]
    stated: Mapping[Key, Band]
    rows: RowSelector
    units: Mapping[str, str]
    rest: Section

    def paper(self, key: Key) -> float | None:
        """Returns the paper's number for a row. A row with a variant has the number of the row without one."""
        return self.printed.get(key, self.printed.get(replace(key, variant="")))

    def experiment(
        self,
        plan: Callable[[Effort], Sequence[Simulation]],
        evaluate: Callable[[Effort, Outcomes], Evaluation],
        draw: Callable[[Evaluation], Figure],
        *,
        restate: Callable[[Evaluation], Evaluation] = lambda found: found,
    ) -> Experiment:
        """Returns the experiment. If `evaluate` leaves the paper's number of a row out, the file's number is used."""
        description = {one.name: getattr(self, one.name) for one in fields(Description)}
        return Experiment(
            **description,
            plan=plan,
            evaluate=lambda effort, outcomes: self._compared(evaluate(effort, outcomes)),
            draw=draw,
            restate=restate,
        )

    def study(
        self,
        cells: Callable[[Effort], Iterable[Cell]],
        evaluate: Callable[[Runs], Evaluation],
        draw: Callable[[Evaluation], Figure],
        *,
        restate: Callable[[Evaluation], Evaluation] = lambda found: found,
    ) -> Experiment:
        """Returns the experiment that simulates each cell once per seed and computes rows from the runs."""
        return self.experiment(
            lambda effort: plan(cells(effort), effort),
            lambda effort, outcomes: evaluate(Runs(effort, outcomes)),
            draw,
            restate=restate,
        )

    def _compared(self, found: Evaluation) -> Evaluation:
        return replace(found, rows=tuple(self._row(row) for row in found.rows))

    def _row(self, row: Row) -> Row:
        paper = self.printed.get(row.key) if row.paper is None else row.paper
        return replace(row, paper=paper, stated=row.stated or self.stated.get(row.key))


def named(*metrics: Metric) -> Mapping[str, Metric]:
    """Returns metrics by name, in the form that `read` takes."""
    return {metric.name: metric for metric in metrics}


def kind_of(path: Path) -> str:
    """Returns the name of the module that the experiment's file belongs to.

    Raises:
        DeclarationError: the file cannot be read.
    """
    return _load(path).text("kind", path.stem.replace("-", "_"))


def read(
    path: Path,
    metrics: Mapping[str, Metric],
    values: Mapping[str, Callable[..., Value]] | None = None,
    metrics_of: Callable[[Section], Mapping[str, Metric]] | None = None,
) -> Declaration:
    """Returns the declaration in an experiment's file. Keys that belong to its kind are not checked yet.

    Args:
        path: the file, in the folder of its paper.
        metrics: the kind's metrics by name.
        values: the kind's functions that make values of claims, by name.
        metrics_of: returns the metrics that a file of the kind defines in keys of the kind.

    Raises:
        DeclarationError: a key is missing, unknown or has a wrong value.
    """
    root = _load(path)
    # `kind_of` uses this key. It is read here only to mark it as known.
    root.text("kind", "")
    defaults = root.section("rows")
    further = root.section("metrics")
    known = {**metrics, **{name: Metric(name, unit) for unit in further for name in further.texts(unit)}}
    if metrics_of is not None:
        known |= metrics_of(root.copy())
    rows = RowSelector(known, {name: defaults.texts(name) for name in KEY_PARTS})
    defaults.finish()
    # Claims may refer to printed numbers and reasons, so these come first.
    printed: dict[Key, float] = {}
    for part in templates(root, "printed"):
        for key, number in rows.printed(part):
            if key in printed:
                raise part.fail("rows", f'has a second number for "{key.words}"')
            printed[key] = number
    full = _effort(root.section("full"), "full")
    shared = _shared(path.with_name(SHARED), root, full)
    reasons = {key: text for part in (*shared.reasons, *templates(root, "reason")) for key, text in rows.reasons(part)}
    stated = {key: band for part in templates(root, "stated") for key, band in rows.stated(part)}
    listed = (*shared.claims, *templates(root, "claim"))
    stated |= {key: band for part in listed for key, band in rows.claimed(part)}
    units = root.section("units")
    return Declaration(
        id=f"{path.parent.name}/{path.stem}",
        title=root.text("title"),
        source=root.text("source"),
        method=root.text("method"),
        assumptions=(*shared.assumptions, *root.texts("assumptions")),
        fitted=(*shared.fitted, *root.texts("fitted")),
        full=full,
        quick=_effort(root.section("quick"), "quick") if "quick" in root else replace(full, name="quick"),
        printed=printed,
        stated=stated,
        reasons=reasons,
        claims=tuple(claim for part in listed for claim in _claims(part, rows, printed, reasons, values or {})),
        needs_kernel=root.one_of("needs_kernel", KERNELS, ""),
        witness=root.text("witness", "paper"),
        answer=rows.answer(root.section("answer")) if "answer" in root else None,
        rows=rows,
        units={name: units.text(name) for name in units},
        rest=root,
    )


def templates(root: Section, key: str) -> Iterator[Section]:
    """Yields the tables of a list. A table with the key `each` is a template for several tables.

    `each = { load = ["0.6", "0.8"] }` makes two tables, with `{load}` replaced by each value in all texts of the table.
    Values that belong together are a table, as in `each = { run = [{ alpha = 300, delta = 0.1 }] }`.
    """
    for part in root.sections(key):
        each = part.section("each")
        choices = [
            [one if isinstance(one, dict) else {name: one} for one in each.choices(name)]  # a value by its name
            for name in each
        ]
        for chosen in product(*choices):
            yield part.filled({f"{{{name}}}": value for values in chosen for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class _Shared:
    """The parts of `shared.toml` that an experiment names."""

    assumptions: tuple[str, ...]
    fitted: tuple[str, ...]
    reasons: tuple[Section, ...]
    claims: tuple[Section, ...]


def _shared(path: Path, root: Section, full: Effort) -> _Shared:
    """Returns the named parts of `shared.toml`; `{stop_s}` in its texts is the length of a full run."""
    tables = (_load(path) if path.exists() else Section({}, SHARED)).filled({"{stop_s}": f"{full.stop_s:g}"})
    sections = {name: tables.section(name) for name in ("assumptions", "fitted", "reason", "claim")}
    names = root.texts("shared")
    known = dict.fromkeys(name for section in (*sections.values(), tables.section("keys")) for name in section)
    for name in names:
        if name not in known:
            place = f"{path.parent.name}/{SHARED}"
            raise root.fail("shared", f'has "{name}"; {place} has: {", ".join(known) or "nothing"}')

    def texts(table: str) -> tuple[str, ...]:
        return tuple(line for name in names for line in sections[table].texts(name))

    def parts(table: str) -> tuple[Section, ...]:
        return tuple(part for name in names for part in templates(sections[table], name))

    return _Shared(texts("assumptions"), texts("fitted"), parts("reason"), parts("claim"))


def _load(path: Path) -> Section:
    """Returns the tables of a file.

    `$name` in a file stands for a value with this name in the table `values`, of the file itself or of `shared.toml`.
    Keys that the file lacks come from the tables in `keys` of `shared.toml` that it names in `shared`.
    """
    where, tables, shared = f"{path.parent.name}/{path.name}", _tables(path), path.with_name(SHARED)
    common = Section(_tables(shared) if shared.exists() else {}, f"{path.parent.name}/{SHARED}")
    own = Section({"values": tables.pop("values", {})}, where)
    named = {**common.section("values").values(), **own.section("values").values()}
    names, keys = tables.get("shared"), common.section("keys")
    for name in names if isinstance(names, list) else []:
        tables = {**keys.copy().section(str(name)).values(), **tables}
    values: dict[str, object] = {}
    try:
        for name, value in named.items():
            # A value may contain the values above it.
            values[f"${name}"] = filled(value, values)
        return Section(filled(tables, values), where)
    except KeyError as error:
        raise DeclarationError(f"{where}: {error} is not in [values]; allowed: {', '.join(values)}") from error


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f'cannot read "{path}": {error}') from error


def _effort(part: Section, name: Literal["full", "quick"]) -> Effort:
    found = Effort(name, part.whole("seeds"), part.number("stop_s", 0.0))
    part.finish()
    return found


@dataclass(frozen=True, slots=True)
class RowSelector:
    """Selects rows by parts of their keys, from tables in files.

    Attributes:
        metrics: the known metrics by name.
        defaults: parts that complete selections without them.
    """

    metrics: Mapping[str, Metric]
    defaults: Mapping[str, tuple[str, ...]]

    def within(self, section: Section) -> RowSelector:
        """Returns a selector with the parts in a table as further defaults."""
        parts = {name: section.texts(name) for name in KEY_PARTS if name in section}
        section.finish()
        return replace(self, defaults={**self.defaults, **parts})

    def keys(self, section: Section) -> list[Key]:
        """Returns the keys of the rows that a table selects. Each part in the table is a text or a list of texts."""
        found = {name: (section.texts(name) if name in section else self.defaults[name]) or ("",) for name in KEY_PARTS}
        section.finish()
        unknown = next((name for name in found["metric"] if name not in self.metrics), None)
        if unknown is not None:
            raise section.fail("metric", f'is "{unknown}"; allowed: {", ".join(self.metrics)}')
        order = ("variant", "traffic", "setting", "metric", "scheme", "average")
        return [
            Key(setting, self.metrics[metric], scheme, average, traffic, variant)
            for variant, traffic, setting, metric, scheme, average in product(*(found[name] for name in order))
        ]

    def all_keys(self, part: Section) -> list[Key]:
        """Returns the keys of the rows that the tables in `rows` select."""
        return [key for section in part.sections("rows") for key in self.keys(section)]

    def printed(self, part: Section) -> Iterator[tuple[Key, float]]:
        """Yields the keys and numbers in a table of the paper.

        A column holds a part of the keys, as in `"setting"`, or numbers, as in `{ scheme = "RC3", metric = "FCT" }`.
        """
        # The place in the paper is for readers of the file only.
        part.text("place")
        columns = part.columns("columns")
        shared = {name: list(part.texts(name)) for name in KEY_PARTS if name in part}
        for row in part.lists("rows"):
            if len(row) != len(columns):
                raise part.fail("rows", f"has {row!r}, which has not one entry for each of the {len(columns)} columns")
            cells = list(zip(columns, row, strict=True))
            parts = shared | {column: cell for column, cell in cells if isinstance(column, str)}
            for column, cell in cells:
                if isinstance(column, str) or cell == "":
                    continue
                keys = self.keys(Section(parts | column, f"{part.where}, row {row!r}"))
                numbers = cell if isinstance(cell, list) else [cell] * len(keys)
                if not all(isinstance(number, int | float) for number in numbers) or len(numbers) != len(keys):
                    raise part.fail("rows", f"has {cell!r} under {column!r}, which must be a number or empty")
                yield from zip(keys, map(float, numbers), strict=True)
        part.finish()

    def stated(self, part: Section) -> Iterator[tuple[Key, Band]]:
        """Yields the rows whose numbers the paper gives in words, each with the band that the words describe."""
        part.text("place")
        keys, band = self.all_keys(part), _band(part, "band")
        part.finish()
        return ((key, band) for key in keys)

    def claimed(self, part: Section) -> Iterator[tuple[Key, Band]]:
        """Yields the rows of a claim whose numbers the paper states in words, at the place in `stated`."""
        if part.text("stated", ""):
            if "ours" not in part:
                raise part.fail("stated", 'needs "ours"')
            band, _ = _bands(part.copy())
            yield from ((key, band) for section in part.copy().sections("ours") for key in self.keys(section))

    def answer(self, part: Section) -> tuple[Key, str]:
        """Returns the row and the text of the first sentence of reports."""
        text, keys = part.text("text"), self.keys(part.section("row"))
        if len(keys) != 1:
            raise part.fail("row", f"selects {len(keys)} rows; allowed: one row")
        part.finish()
        return keys[0], text

    def reasons(self, part: Section) -> Iterator[tuple[Key, str]]:
        """Yields the rows that a reason is for, each with the reason."""
        text, keys = part.text("text"), self.all_keys(part)
        part.finish()
        return ((key, text) for key in keys)


def _claims(
    part: Section,
    rows: RowSelector,
    printed: Mapping[Key, float],
    reasons: Mapping[Key, str],
    made: Mapping[str, Callable[..., Value]],
) -> Iterator[Claim]:
    """Yields the claims of a table.

    A value of one row or of two rows makes one claim for each row or pair in the table; any other value makes one claim
    about all rows. The text may contain parts of the first row's key, and the printed number as `paper`, in braces.
    `value` names a function of the kind, with its arguments in `of`. The reason states why the claim fails; by default
    it is the reason of the first row.
    """
    text = part.text("text")
    full, quick = _bands(part)
    reason = part.text("reason", "")
    if "value" in part:
        value = part.one_of("value", made)(*part.arguments("of"))
        part.finish()
        yield Claim(text, value, full, quick, reason or NOT_EXPLAINED)
        return
    name = next((name for name in claims.NAMES if name in part), None)
    if name is None:
        raise part.fail("claim", f"has no value; allowed: {', '.join((*claims.NAMES, 'value'))}")
    groups = [rows.keys(section) for section in templates(part, name)]
    part.finish()
    try:
        found = claims.values(name, groups)
    except ValueError as error:
        raise part.fail(name, str(error)) from error
    for key, value in found:
        parts = {name: getattr(key, name) for name in KEY_PARTS}
        parts |= {"metric": key.metric.name, "paper": printed.get(key, math.nan)}
        try:
            yield Claim(text.format(**parts), value, full, quick, reason or reasons.get(key, NOT_EXPLAINED))
        except (KeyError, ValueError, IndexError) as error:
            raise part.fail("text", f"may have only {', '.join(parts)} in braces: {error}") from error


def _bands(part: Section) -> tuple[Band, Band | None]:
    """Returns the bands of a claim at the full and at the quick effort.

    They are in `full` and `quick`, or in `band` if both are the same. `band = { at_least = 30, quick = 25 }` has
    another bound for quick efforts, and `band = { about = 30, within = 3, quick = 8 }` another tolerance.
    """
    if "band" not in part:
        return _band(part, "full"), _band(part, "quick") if "quick" in part else None
    band = part.section("band")
    numbers = {name: band.number(name) for name in band}
    quick = numbers.pop("quick", None)
    full = _band(Section({"band": numbers}, part.where), "band")
    if quick is None:
        return full, full
    bounds = [name for name in numbers if name != "about"]
    if len(bounds) > 1:
        raise part.fail("band", "has two bounds, so it needs a table of its own for quick efforts")
    return full, _band(Section({"band": numbers | {bounds[0]: quick}}, part.where), "band")


def _band(part: Section, key: str) -> Band:
    if key not in part:
        raise part.fail(key, "is missing")
    band = part.section(key)
    low, high = band.number("at_least", -math.inf), band.number("at_most", math.inf)
    if "about" in band:
        centre, tolerated = band.number("about"), band.number("within")
        low, high = centre - tolerated, centre + tolerated
    band.finish()
    if low > high:
        raise part.fail(key, f"has its bounds in the wrong order: {low:g} and {high:g}")
    if (low, high) == (-math.inf, math.inf):
        raise part.fail(key, "has no bound; allowed: at_least, at_most, about with within")
    return low, high
