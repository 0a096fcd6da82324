"""The HTML report of experiments.

Each experiment has an answer in one sentence, its figure, the claims, the paper's numbers with ours, and panels that
show both. The page ends with the commands that repeat the results.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape

from sparelane.papers import registry
from sparelane.papers.engine.rows import Metric, Row, joined
from sparelane.papers.engine.saved import Saved, command
from sparelane.papers.pages import answers
from sparelane.papers.pages.text import CLAIM_HEADINGS, LEFT, TITLE, claim_cells, effort_words, table
from sparelane.reports.charts.panel import Line, Panel, with_looks
from sparelane.reports.pages import document as html

# The largest number of rows in a panel. Further rows are in the next panel.
MAX_PLACES = 40


def page(saved: Sequence[Saved], unfinished: Sequence[str] = ()) -> str:
    """Returns the report as one HTML document.

    Args:
        saved: the results of the experiments.
        unfinished: the ids of requested experiments that were not finished when the work was interrupted.
    """
    title = saved[0].experiment.title if len(saved) == 1 else TITLE
    parts = []
    number = 1
    for one in saved:
        panels = with_looks(list(_panels(one.evaluation.rows)))
        parts.append(_experiment(one, panels, number, is_alone=len(saved) == 1))
        number += len(panels)
    stopped = f"The work was interrupted before these were finished: {', '.join(unfinished)}." if unfinished else ""
    links = [(one.experiment.id, one.experiment.id, " ".join(_answer(one))) for one in saved]
    overview = html.section("Answers", html.contents(links)) if len(saved) > 1 else ""
    repeat = html.section("How to repeat it", *_repeat(saved))
    return html.document(title, [html.paragraph(stopped, "warning"), overview, *parts, repeat])


def _answer(one: Saved) -> list[str]:
    """Returns the answer in one sentence, and sentences with the numbers of rows in band and of claims that hold."""
    experiment, rows = one.experiment, one.evaluation.rows
    counted = [row for row in rows if row.counts]
    sentences = [
        answers.answer(experiment, rows, one.verdicts),
        rows_in_band(len(counted), sum(row.deviates for row in counted)),
        claims_held([verdict.holds for verdict in one.verdicts]),
    ]
    return [text for text in sentences if text]


def _experiment(one: Saved, panels: Sequence[Panel], number: int, *, is_alone: bool) -> str:
    experiment = one.experiment
    rows = table(one.evaluation.rows)
    verdicts = [claim_cells(verdict) for verdict in one.verdicts]
    # Readers must see these limits before the numbers.
    doubts = []
    if one.is_simulated and not one.is_full:
        doubts.append(
            f"A short run ({effort_words(experiment, one.effort)}): reasons and most claims apply to full runs only."
        )
    if one.is_outdated:
        doubts.append("Outdated: the experiment now needs other simulations than those of these results.")
    first, *rest = _answer(one) or [""]
    terms = answers.glossary(one.evaluation.rows)
    parts = [
        html.paragraph(first, "answer"),
        html.paragraph(" ".join(rest)),
        html.paragraph(f"{experiment.source}. {experiment.method}"),
        *(html.paragraph(text, "warning") for text in doubts),
        _image(one),
        "<h3>Terms</h3>" + html.facts(terms) if terms else "",
        html.table(CLAIM_HEADINGS, verdicts, left=("claim", "verdict"), caption="The paper's claims")
        if verdicts
        else "",
        html.table(rows.headings, rows.lines, left=LEFT, caption="The paper's numbers and ours"),
        *map(html.paragraph, rows.footnotes),
        *map(html.paragraph, one.evaluation.notes),
        html.figures(panels, number),
        *(html.paragraph(f"Fitted: {sentence}") for sentence in experiment.fitted),
        "<h3>Assumptions</h3>" + html.items(experiment.assumptions) if experiment.assumptions else "",
        html.facts(
            [
                ("version", f"sparelane {one.manifest.program}"),
                ("date", one.manifest.day),
                ("effort", effort_words(experiment, one.effort) or "computed"),
                ("simulations", str(len(one.cpu_s))),
            ]
        ),
    ]
    heading = "Answer" if is_alone else f"{experiment.id}: {experiment.title}"
    return html.section(heading, *parts, anchor=experiment.id)


def rows_in_band(printed: int, off: int) -> str:
    """Returns a sentence with the number of rows in band.

    Args:
        printed: the number of rows for which the paper gives a number.
        off: the number of those that deviate.
    """
    if not printed:
        return ""
    if not off:
        return f"All {printed} numbers are in band." if printed > 1 else "The paper's number is in band."
    if printed == 1:
        return "The paper's number is not in band."
    return f"{printed - off} of {printed} numbers are in band, {off} {'is' if off == 1 else 'are'} not."


def claims_held(holds: Sequence[bool | None]) -> str:
    """Returns a sentence with the number of claims that hold."""
    if not holds:
        return ""
    held, failed, unchecked = (holds.count(value) for value in (True, False, None))
    if held == len(holds):
        return f"All {held} claims hold." if held > 1 else "The claim holds."
    parts = [f"{held} {'holds' if held == 1 else 'hold'}"]
    parts += [f"{failed} {'fails' if failed == 1 else 'fail'}"] if failed else []
    parts += [f"{unchecked} not checked"] if unchecked else []
    return f"Of {len(holds)} claim{'s' if len(holds) > 1 else ''}, {', '.join(parts)}."


def _image(one: Saved) -> str:
    """Returns the experiment's figure as an HTML element."""
    if not one.figure.exists():
        return ""
    content = base64.b64encode(one.figure.read_bytes()).decode("ascii")
    title = escape(one.experiment.title)
    return f'<p><img src="data:image/png;base64,{content}" alt="{title}" width="900"></p>'


def _panels(rows: Sequence[Row]) -> Iterator[Panel]:
    """Yields a panel for each metric with several printed numbers. The table is enough for a single number."""
    printed = [row for row in rows if row.paper is not None]
    for metric in dict.fromkeys(row.key.metric for row in printed):
        some = [row for row in printed if row.key.metric == metric]
        if len(some) < 2:
            continue
        for first in range(0, len(some), MAX_PLACES):
            yield _panel(metric, some[first : first + MAX_PLACES], first)


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
    part = f", from row {first + 1}" if first else ""
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
    """Returns the parts of the key without the metric."""
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
    """Returns the commands that repeat the results, one for all experiments with the same options."""
    ids: dict[str, list[str]] = {}
    for one in saved:
        # The options follow the id.
        options = command(one.experiment, one.effort).partition(one.experiment.id)[2]
        ids.setdefault(options, []).append(one.experiment.id)
    every = set(registry())
    return [
        "".join(("sparelane reproduce", "" if set(some) == every else f" {' '.join(some)}", options))
        for options, some in ids.items()
    ]


def _digests(saved: Sequence[Saved]) -> Iterator[tuple[str, str]]:
    """Yields the id of each experiment with the digest of its runs."""
    for one in saved:
        if one.manifest.digest:
            yield one.experiment.id, one.manifest.digest
