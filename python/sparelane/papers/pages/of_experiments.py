"""The report of experiments: the papers' numbers beside ours."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape

from sparelane.papers import registry
from sparelane.papers.engine import answers
from sparelane.papers.engine.rows import Metric, Row, joined
from sparelane.papers.engine.saved import Saved, command
from sparelane.papers.pages.text import CLAIM_HEADINGS, LEFT, claim_cells, effort_words, table
from sparelane.reports.charts.panel import Line, Panel, with_looks
from sparelane.reports.pages import document as html

# A panel has no more rows than this; those beyond go into the next.
MOST_PLACES = 40


def page(saved: Sequence[Saved], unfinished: Sequence[str] = ()) -> str:
    """The report as one HTML file.

    Args:
        saved: the experiments.
        unfinished: ids of those that were asked for with them and were not done when they were stopped.
    """
    title = saved[0].experiment.title if len(saved) == 1 else "The papers' numbers beside ours"
    parts = []
    number = 1
    for one in saved:
        panels = with_looks(list(_panels(one.evaluation.rows)))
        parts.append(_experiment(one, panels, number, is_alone=len(saved) == 1))
        number += len(panels)
    stopped = f"This was interrupted: not done are {', '.join(unfinished)}." if unfinished else ""
    links = [(one.experiment.id, one.experiment.id, " ".join(_answer(one))) for one in saved]
    overview = html.section("Answers", html.contents(links)) if len(saved) > 1 else ""
    repeat = html.section("How to repeat it", *_repeat(saved))
    return html.document(title, [html.paragraph(stopped, "warning"), overview, *parts, repeat])


def _answer(one: Saved) -> list[str]:
    """The answer in words and one number, and how the rest stands to the paper."""
    experiment, rows = one.experiment, one.evaluation.rows
    counted = [row for row in rows if row.counts]
    said = [
        answers.answer(experiment.id, rows, one.verdicts, experiment.witness),
        numbers_met(len(counted), sum(row.deviates for row in counted)),
        claims_held([verdict.holds for verdict in one.verdicts]),
    ]
    return [text for text in said if text]


def _experiment(one: Saved, panels: Sequence[Panel], number: int, *, is_alone: bool) -> str:
    experiment = one.experiment
    rows = table(one.evaluation.rows)
    verdicts = [claim_cells(verdict) for verdict in one.verdicts]
    doubts = []
    if one.is_simulated and not one.is_full:
        doubts.append(
            f"A short form ({effort_words(experiment, one.effort)}): reasons and most claims are of full runs."
        )
    if one.is_outdated:
        doubts.append("The experiment would now ask for other simulations than these results rest on.")
    first, *rest = _answer(one) or [""]
    words = answers.words_of(one.evaluation.rows)
    parts = [
        html.paragraph(first, "answer"),
        html.paragraph(" ".join(rest)),
        html.paragraph(f"{experiment.source}. {experiment.method}"),
        *(html.paragraph(text, "warning") for text in doubts),
        _image(one),
        "<h3>What the words mean</h3>" + html.facts(words) if words else "",
        html.table(CLAIM_HEADINGS, verdicts, left=("claim", "verdict"), caption="What the paper claims")
        if verdicts
        else "",
        html.table(rows.headings, rows.lines, left=LEFT, caption="The paper's numbers beside ours"),
        *map(html.paragraph, rows.footnotes),
        *map(html.paragraph, one.evaluation.notes),
        html.figures(panels, number),
        *(html.paragraph(f"Fitted: {sentence}") for sentence in experiment.fitted),
        "<h3>Assumptions</h3>" + html.items(experiment.assumptions) if experiment.assumptions else "",
        html.facts(
            [
                ("version", f"sparelane {one.manifest.program}"),
                ("day", one.manifest.day),
                ("effort", effort_words(experiment, one.effort) or "computed"),
                ("simulations", str(len(one.cpu_s))),
            ]
        ),
    ]
    heading = "Answer" if is_alone else f"{experiment.id}: {experiment.title}"
    return html.section(heading, *parts, anchor=experiment.id)


def numbers_met(printed: int, off: int) -> str:
    """How many of the paper's numbers are met, in words."""
    if not printed:
        return ""
    if not off:
        return f"All {printed} printed numbers are met." if printed > 1 else "The printed number is met."
    if printed == 1:
        return "The printed number is not met."
    return f"{printed - off} of {printed} printed numbers are met, {off} {'is' if off == 1 else 'are'} not."


def claims_held(holds: Sequence[bool | None]) -> str:
    """How many of the paper's claims hold, in words."""
    if not holds:
        return ""
    held, failed, unchecked = (holds.count(value) for value in (True, False, None))
    if held == len(holds):
        return f"All {held} claims hold." if held > 1 else "The one claim holds."
    parts = [f"{held} {'holds' if held == 1 else 'hold'}"]
    parts += [f"{failed} {'fails' if failed == 1 else 'fail'}"] if failed else []
    parts += [f"{unchecked} not checked"] if unchecked else []
    return f"Of {len(holds)} claim{'s' if len(holds) > 1 else ''}, {', '.join(parts)}."


def _image(one: Saved) -> str:
    """The experiment's own figure."""
    if not one.figure.exists():
        return ""
    content = base64.b64encode(one.figure.read_bytes()).decode("ascii")
    title = escape(one.experiment.title)
    return f'<p><img src="data:image/png;base64,{content}" alt="{title}" width="900"></p>'


def _panels(rows: Sequence[Row]) -> Iterator[Panel]:
    """A panel for each metric of which the paper prints several numbers: one alone is seen in the table."""
    printed = [row for row in rows if row.paper is not None]
    for metric in dict.fromkeys(row.key.metric for row in printed):
        some = [row for row in printed if row.key.metric == metric]
        if len(some) < 2:
            continue
        for first in range(0, len(some), MOST_PLACES):
            yield _panel(metric, some[first : first + MOST_PLACES], first)


def _panel(metric: Metric, rows: Sequence[Row], first: int) -> Panel:
    known = [(float(place), row) for place, row in enumerate(rows) if row.value is not None]
    values = [row.value or 0.0 for _, row in known]
    spread = [row.interval or 0.0 for _, row in known]
    has_intervals = any(row.interval is not None for _, row in known)
    ours = Line(
        "ours",
        [place for place, _ in known],
        values,
        [value - half for value, half in zip(values, spread, strict=True)] if has_intervals else [],
        [value + half for value, half in zip(values, spread, strict=True)] if has_intervals else [],
        is_marked=True,
        is_joined=False,
    )
    printed = [row.paper or 0.0 for row in rows]
    paper = Line("paper", list(map(float, range(len(rows)))), printed, is_marked=True, is_joined=False)
    part = f", from row {first + 1} on" if first else ""
    return Panel(
        metric.name,
        f"{metric.name}: the paper's numbers and ours{part}",
        "",
        f"{metric.name} ({metric.unit})" if metric.unit else metric.name,
        [ours, paper],
        places=tuple(_place(row) for row in rows),
        note="Bars are 95 % intervals over seeds." if has_intervals else "",
        is_horizontal=True,
    )


def _place(row: Row) -> str:
    """The key but for the metric."""
    key = row.key
    return joined(key.setting, key.variant, key.traffic, key.scheme, key.average)


def _repeat(saved: Sequence[Saved]) -> list[str]:
    seeds = sorted({seed for one in saved for _, _, seed in one.cpu_s})
    spent = sum(sum(one.cpu_s.values()) for one in saved)
    return [
        *map(html.command, commands(saved)),
        html.facts(
            [
                ("seeds", ", ".join(map(str, seeds[:40]))),
                ("processor time", f"{spent:.1f} s"),
                ("digests of runs", ", ".join(f"{id}: {digest}" for id, digest in _digests(saved))),
            ]
        ),
    ]


def commands(saved: Sequence[Saved]) -> list[str]:
    """What makes the results again, of the same efforts: one command for all of the same effort."""
    ids: dict[str, list[str]] = {}
    for one in saved:
        words = command(one.experiment, one.effort)
        options = words.partition(one.experiment.id)[2]
        ids.setdefault(options, []).append(one.experiment.id)
    every = set(registry())
    return [
        "".join(("sparelane reproduce", "" if set(some) == every else f" {' '.join(some)}", options))
        for options, some in ids.items()
    ]


def _digests(saved: Sequence[Saved]) -> Iterator[tuple[str, str]]:
    """A digest of all runs of each experiment."""
    for one in saved:
        if one.manifest.digest:
            yield one.experiment.id, one.manifest.digest
