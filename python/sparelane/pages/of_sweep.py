"""The report of a sweep: the question, the answer, the figures, and how to repeat it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sparelane.charts import of_sweep as charts
from sparelane.charts.panel import with_looks
from sparelane.pages.document import (
    command,
    document,
    facts,
    figures,
    items,
    kept_file,
    listing,
    paragraph,
    section,
    table,
)
from sparelane.results.rows import ALL
from sparelane.sweeps import against, differences, verdict
from sparelane.sweeps.differences import Comparison
from sparelane.sweeps.folder import SWEEP, SavedSweep
from sparelane.units import quantity

# Values of a key that are listed one by one.
LISTED = 8
# Failed runs that are listed one by one.
FAILURES = 20


def page(saved: SavedSweep) -> str:
    """The report as one HTML file."""
    title = saved.manifest.title or saved.manifest.name
    compared = _comparisons(saved)
    panels = with_looks(charts.panels(saved))
    return document(
        title,
        [
            section("Question", *_question(saved)),
            section("Answer", *_answer(saved, compared)),
            section("Figures", _how_to_read(), figures(panels)) if panels else "",
            section("How to repeat it", *_repeat(saved)),
        ],
    )


def _how_to_read() -> str:
    return paragraph(
        "Point at a figure, or go to it with Tab and walk along with the arrow keys, to read its numbers; the buttons "
        "of a legend hide and show lines.",
        "note",
    )


def _question(saved: SavedSweep) -> list[str]:
    schemes = [name for name in differences.schemes_of(saved.runs) if name]
    varied = []
    for axis in saved.manifest.details.get("axes", []):
        if not axis["chooses"]:
            values = axis["values"]
            listed = values if len(values) <= LISTED else [*values[: LISTED - 2], "…", values[-1]]
            varied.append((axis["key"], f"{', '.join(listed)}"))
    seeds = saved.manifest.seeds
    count = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    who = " and ".join([", ".join(schemes[:-1]), schemes[-1]] if len(schemes) > 1 else schemes)
    what = (
        f"How do {who} differ" if len(schemes) > 1 else f"How does {who} do" if any(schemes) else "How do the flows do"
    )
    where = " in every combination of what varies below" if varied else ""
    sentence = f"{what}{where}? Each setting was simulated with {count}."
    return [paragraph(_comment(_text(saved))), paragraph(sentence), facts(varied)]


def _text(saved: SavedSweep) -> str:
    """The file of the sweep, as it was run."""
    path = saved.place / SWEEP
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _comment(text: str) -> str:
    """What the file says of itself in the comment at its beginning."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("# ").rstrip() for line in lines).strip()


def _comparisons(saved: SavedSweep) -> list[list[Comparison]]:
    known = differences.schemes_of(saved.runs)
    found = [differences.all_questions(saved.runs, known[0], name) for name in known[1:]]
    return [one for one in found if one]


def _answer(saved: SavedSweep, compared: Sequence[Sequence[Comparison]]) -> list[str]:
    parts = _doubts(saved)
    if not compared:
        return [*_numbers(saved), *parts]
    found: list[str] = []
    for comparisons in compared:
        first, *rest = verdict.sentences(comparisons)
        found += [paragraph(first, "answer"), *map(paragraph, rest)]
    for comparisons in compared:
        first_one = comparisons[0]
        headings = ("setting", first_one.baseline, first_one.other, "change", "verdict")
        title = f"{first_one.other} beside {first_one.baseline}: {verdict.name(first_one)}"
        found.append(table(headings, against.table(first_one), left=("setting", "verdict"), caption=title))
        overall = [(verdict.name(one), verdict.change(one.overall, one), _word(one)) for one in comparisons]
        found.append(table(("over all settings", "change", "verdict"), overall, left=("over all settings", "verdict")))
    return [*found, *parts]


def _word(one: Comparison) -> str:
    whole = differences.Difference("", {}, 0.0, 0.0, one.overall, ())
    return verdict.outcome(whole, one)


def _numbers(saved: SavedSweep) -> list[str]:
    """Where there is nothing to compare: the headline's number in each setting."""
    exact = differences.undrawn(saved.runs)
    for question in differences.QUESTIONS:
        rows = saved.rows.filter(
            (pl.col("metric") == question.metric) & (pl.col("average") == question.average) & (pl.col("traffic") == ALL)
        )
        if not rows.is_empty():
            cells = [
                (
                    one["setting"] or "all",
                    one["scheme"],
                    quantity(one["value"], one["unit"]),
                    ""
                    if one["low"] is None
                    else verdict.EXACT
                    if (one["setting"], one["scheme"]) in exact
                    else f"{quantity(one['low'], one['unit'])} to {quantity(one['high'], one['unit'])}",
                )
                for one in rows.to_dicts()
            ]
            name = f"{question.metric} ({question.average})"
            return [table(("setting", "scheme", name, "95 % interval"), cells, left=("setting", "scheme"))]
    return [paragraph("No run gave a number.")]


def _doubts(saved: SavedSweep) -> list[str]:
    details, found = saved.manifest.details, against.notes(saved)
    if len(saved.manifest.seeds) == 1:
        found.append("There is one seed, so that nothing says how far chance reaches; --seeds N asks for more.")
    elif differences.undrawn(saved.runs) != frozenset(saved.runs.select("setting", "scheme").rows()):
        found.append("Intervals hold 95 %: a bootstrap over the seeds.")
    parts = [items(found)]
    failed = details.get("failed", [])
    missing = saved.manifest.missing
    if missing:
        words = f"{missing} of {missing + saved.manifest.runs} runs are missing"
        parts.append(paragraph(f"{words}: {len(failed)} failed, {missing - len(failed)} were not reached.", "warning"))
        parts.append(
            items(
                [f"{one['setting']}, {one['scheme']}, seed {one['seed']}: {one['error']}" for one in failed[:FAILURES]]
            )
        )
    return parts


def _repeat(saved: SavedSweep) -> list[str]:
    found = saved.manifest
    seeds = found.seeds
    in_a_row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    told = f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))
    commit = f" ({found.commit})" if found.commit else ""
    pairs = [
        ("seeds", told),
        ("runs", f"{found.runs} in {found.cpu_s:.1f} s of processor time"),
        ("version", f"sparelane {found.version}{commit}, build {found.engine}"),
        ("digest", found.digest),
        ("day", found.day),
    ]
    text = _text(saved)
    return [
        command(found.details.get("repeat", found.command)),
        paragraph("The same version gives the same digest, on any machine."),
        facts(pairs),
        listing(Path(found.details.get("file", SWEEP)).name, text) if text else "",
        *(kept_file(saved.place, one) for one in found.details.get("plugins", [])),
    ]
