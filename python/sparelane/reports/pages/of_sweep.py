"""Writes the report of a sweep: the question, the answer, the figures, and the command that repeats it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sparelane.common.folders import SavedResultsError
from sparelane.common.units import quantity
from sparelane.reports.charts import of_sweep as charts
from sparelane.reports.charts.panel import with_looks
from sparelane.reports.pages.document import (
    command,
    details,
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
from sparelane.results.rows import ALL, NETWORK
from sparelane.sweeps import coexistence, comparison, differences, harm, metrics, verdict
from sparelane.sweeps.comparison import Answer
from sparelane.sweeps.differences import Comparison, Thresholds
from sparelane.sweeps.folder import SWEEP, SavedSweep

# The largest number of settings or schemes that become columns of a table.
SETTINGS = 8
# The largest number of values of a key that are listed.
LISTED = 8
# The largest number of failed runs that are listed.
FAILURES = 20


def page(
    saved: SavedSweep, *, metric: str | None = None, by: Sequence[str] = (), thresholds: Thresholds | None = None
) -> str:
    """The report as one HTML file.

    Args:
        saved: the sweep.
        metric: the main metric, such as "p99-completion"; by default the first default metric with numbers.
        by: the keys that define groups of settings, as for `comparison.compare`.
        thresholds: thresholds below which changes are negligible.

    Raises:
        UnknownNameError: no metric or key has this name.
    """
    title = saved.manifest.title or saved.manifest.name
    chosen = None if metric is None else metrics.find(metric, metrics.known(saved.runs))
    panels = with_looks(charts.panels(saved, first=chosen))
    return document(
        title,
        [
            section("Question", *_question(saved)),
            section("Answer", *_answer(saved, metric, by, thresholds or Thresholds())),
            section("Figures", _how_to_read(), figures(panels)) if panels else "",
            section("How to repeat it", *_repeat(saved)),
        ],
    )


def _how_to_read() -> str:
    return paragraph(
        "To read the numbers of a figure, point at it, or select it with Tab and use the arrow keys. The buttons of a "
        "legend hide and show lines.",
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
    if any(not group.name for group in coexistence.groups(saved.runs)):
        what = f"How do {who} share each run"
    elif len(schemes) > 1:
        what = f"How do {who} differ"
    else:
        what = f"How does {who} do" if any(schemes) else "How do the flows do"
    where = " in every combination of the values below" if varied else ""
    sentence = f"{what}{where}? Each setting was simulated with {count}."
    return [paragraph(_comment(_text(saved))), paragraph(sentence), facts(varied)]


def _text(saved: SavedSweep) -> str:
    """The text of the sweep file."""
    path = saved.place / SWEEP
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _comment(text: str) -> str:
    """The comment at the start of the file."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("# ").rstrip() for line in lines).strip()


def _answer(saved: SavedSweep, metric: str | None, by: Sequence[str], thresholds: Thresholds) -> list[str]:
    subject = comparison.of_sweep(saved)
    try:
        answer = subject.compare(metric=metric, by=by, thresholds=thresholds)
    except SavedResultsError:
        # There is nothing to compare: only one scheme, or none, has numbers.
        return [*_numbers(saved, metric), *_doubts(saved)]
    parts = []
    for group, portions in answer.portions:
        parts += [paragraph(text, "answer" if not place else "") for place, text in _numbered(group, portions)]
        headings, rows = coexistence.table(portions)
        parts.append(table(headings, rows, left=headings[: headings.index("goodput")], caption="Shares"))
        parts += _harm(saved, group)
    # Schemes that share runs are not compared, so their numbers stand alone.
    parts += _compared(answer) or _numbers(saved, metric)
    return [*parts, items(answer.methods), *_doubts(saved)]


def _harm(saved: SavedSweep, group: coexistence.Group) -> list[str]:
    """The harm to schemes that share runs, if `compare --harm` has done the necessary runs."""
    if not (saved.place / harm.FOLDER).is_dir():
        return []
    try:
        found = harm.of_sweep(saved, group, lambda plan, place: None)
    except SavedResultsError:
        return []
    sentences = [paragraph(text) for text in harm.sentences(found, coexistence.others(group))]
    made = [
        table(headings, rows, left=headings[: headings.index("scheme") + 1], caption=title)
        for title, headings, rows in harm.tables(found)
    ]
    return [*sentences, *made, paragraph(harm.MEANING, "note")]


def _numbered(group: coexistence.Group, portions: Sequence[coexistence.Portion]) -> list[tuple[int, str]]:
    return [*enumerate(coexistence.sentences(group, portions))]


def _compared(answer: Answer) -> list[str]:
    """The ranking, then the comparison of each scheme. Many comparisons become collapsible blocks below one table."""
    if answer.ranking is None or answer.metric is None:
        return []
    headings, rows = answer.ranking.table(SETTINGS)
    left = headings[:2] if headings[0] == "place" else headings[:1]
    ranked = table(headings, rows, left=left, caption=answer.ranking.title)
    pairs = [(comparisons, _pair(comparisons, answer.thresholds)) for comparisons in answer.comparisons]
    headlines = [verdict.headline(comparisons[0], answer.thresholds) for comparisons, _ in pairs]
    if len(pairs) <= comparison.DETAILED:
        return [
            *(paragraph(text, "answer") for text in headlines),
            ranked,
            *(part for _, pair in pairs for part in pair),
        ]
    headings, rows = comparison.matrix(answer, SETTINGS)
    caption = f"Change of {answer.metric.label} from {answer.baseline}"
    folded = [
        details(comparisons[0].other, paragraph(text), *pair)
        for (comparisons, pair), text in zip(pairs, headlines, strict=True)
    ]
    overview = paragraph(comparison.overview(answer), "answer")
    return [overview, ranked, table(headings, rows, left=("scheme",), caption=caption), *folded]


def _pair(comparisons: Sequence[Comparison], thresholds: Thresholds) -> list[str]:
    """The comparison of a scheme: the main metric for each setting, and the other metrics over all settings."""
    first, *others = comparisons
    title = f"{first.other} compared with {first.baseline}: {first.metric.label}"
    headings, rows = comparison.table(first)
    found = [table(headings, rows, left=(headings[0], "verdict"), caption=title)]
    if others:
        where = "over all settings" if len(first.differences) > 1 else "change"
        cells = [comparison.overall_cells(one, thresholds) for one in others]
        left = ("other metrics", "verdict")
        found.append(table(("other metrics", where, "verdict"), cells, left=left))
        found += [paragraph(verdict.headline(one, thresholds)) for one in others if one.is_split]
    return found


def _numbers(saved: SavedSweep, name: str | None) -> list[str]:
    """The main metric in each setting, if there is nothing to compare."""
    known = metrics.known(saved.runs)
    if name is not None:
        chosen = metrics.find(name, known)
    elif any(one in metrics.HEADLINES for one in known):
        chosen = known[0]
    else:
        return [paragraph("No run has numbers.")]
    exact = differences.deterministic(saved.runs)
    rows = saved.rows.filter(
        (pl.col("metric") == chosen.metric)
        & (pl.col("average") == chosen.average)
        & pl.col("traffic").is_in((ALL, NETWORK))
    )
    cells = [
        (
            one["setting"] or "all",
            one["scheme"],
            quantity(one["value"], one["unit"]),
            comparison.interval_text(one, exact),
        )
        for one in rows.to_dicts()
    ]
    return [table(("setting", "scheme", chosen.label, "95 % interval"), cells, left=("setting", "scheme"))]


def _doubts(saved: SavedSweep) -> list[str]:
    failed = saved.manifest.details.get("failed", [])
    errors = [f"{one['setting']}, {one['scheme']}, seed {one['seed']}: {one['error']}" for one in failed[:FAILURES]]
    missing = [paragraph(text, "warning") for text in comparison.missing(saved.manifest)]
    others = [note for note in comparison.notes(saved) if note not in comparison.missing(saved.manifest)]
    return [items(others), *missing, items(errors)]


def _repeat(saved: SavedSweep) -> list[str]:
    found = saved.manifest
    seeds = found.seeds
    in_a_row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    listed = f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))
    commit = f" ({found.commit})" if found.commit else ""
    pairs = [
        ("seeds", listed),
        ("runs", f"{found.runs} in {found.cpu_s:.1f} s of CPU time"),
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
