"""The page of results: saved experiments as one Markdown file, with a table of how they stand to the papers."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from sparelane.experiments.base import Effort
from sparelane.experiments.saved import Saved, distinct_cpu_s
from sparelane.experiments.statistics import (
    FACTOR_TOLERATED,
    POINTS_TOLERATED,
    SHARE_TOLERATED,
    SMALL_SHARE_PERCENT,
)
from sparelane.experiments.text import CLAIM_HEADINGS, HEADINGS, NOTHING, claim_cells, effort_words, heading, table

SUMMARY_HEADINGS = (
    "experiment",
    "effort",
    "rows with a printed number",
    "in band",
    "with a reason",
    "not explained",
    "claims",
    "held",
    "failed",
)


@dataclass(frozen=True, slots=True)
class Tally:
    """How an experiment, or several, stand to the papers.

    Attributes:
        printed: rows for which the paper prints a number.
        in_band: those that do not deviate from it.
        explained: those that deviate and have a reason; `None` where a quick run leaves that open.
        unexplained: those that deviate and have none; `None` as above.
        claims: all that are declared.
        held: those that hold.
        failed: those that do not; the rest was not checked.
    """

    printed: int
    in_band: int
    explained: int | None
    unexplained: int | None
    claims: int
    held: int
    failed: int

    @classmethod
    def of(cls, saved: Sequence[Saved]) -> Tally:
        """Of some experiments together."""
        rows = [row for one in saved for row in one.evaluation.rows if row.paper is not None]
        holds = [verdict.holds for one in saved for verdict in one.verdicts]
        explained = sum(row.is_explained for row in rows)
        off = sum(row.deviates for row in rows)
        is_open = any(one.is_quick for one in saved)
        return cls(
            len(rows),
            len(rows) - off,
            None if is_open else explained,
            None if is_open else off - explained,
            len(holds),
            holds.count(True),
            holds.count(False),
        )

    def cells(self) -> tuple[str, ...]:
        """One text for each of `SUMMARY_HEADINGS` but the first two."""
        numbers = (self.printed, self.in_band, self.explained, self.unexplained, self.claims, self.held, self.failed)
        return tuple(NOTHING if number is None else str(number) for number in numbers)


def markdown(
    saved: Sequence[Saved], figure: Callable[[Saved], str], *, see: str | None = None, unfinished: Sequence[str] = ()
) -> str:
    """The page.

    Args:
        saved: the experiments, those of a paper together.
        figure: where an experiment's figure is, as seen from the page.
        see: another page to name at the beginning, as seen from this one.
        unfinished: ids of experiments that were asked for and have no results.
    """
    parts = [_introduction(saved, see), _summary(saved)]
    failed = [(one, verdict) for one in saved for verdict in one.verdicts if verdict.holds is False]
    if failed:
        lines = [(one.experiment.id, *claim_cells(verdict)) for one, verdict in failed]
        parts.append("Claims that fail:\n\n" + _table(("experiment", *CLAIM_HEADINGS), lines))
    for paper, group in groupby(saved, key=_paper):
        parts += _chapter(paper, list(group), figure)
    if unfinished:
        parts.append("## Not finished\n\n" + "".join(f"- {id}\n" for id in unfinished))
    return "\n".join(parts)


def _introduction(saved: Sequence[Saved], see: str | None) -> str:
    days = sorted({one.day for one in saved})
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}" if days else ""
    many = "s" if len(saved) != 1 else ""
    lines = [
        "# The papers' numbers beside ours\n",
        f"{len(saved)} experiment{many}, simulated {when} in {_duration(distinct_cpu_s(saved))} of processor time; "
        "a simulation that several share counts once. Written by `sparelane report`.\n",
        "Intervals hold 95 % (Student's t over the seeds). A difference is ours less the paper's. A row is in band "
        f"where ours is within {100 * SHARE_TOLERATED:g} % of the printed number; a share, within "
        f"{POINTS_TOLERATED:g} points; a loss rate, or shares that are both below {SMALL_SHARE_PERCENT:g} %, within a "
        f"factor of {FACTOR_TOLERATED:g}. What is not in band has its reason beside it, or the words "
        '"not explained". A claim is what a paper says of its numbers, as one number of ours and the band that it '
        "must lie in.\n",
    ]
    if see is not None:
        lines.append(f"How fast the simulator is, and how it stands beside ns-3: [{see}]({see}).\n")
    return "\n".join(lines)


def summary(saved: Sequence[Saved]) -> list[tuple[str, ...]]:
    """The cells of a table of `SUMMARY_HEADINGS`: a line for each experiment, and after them one for their paper."""
    lines: list[tuple[str, ...]] = []
    for paper, group in groupby(saved, key=_paper):
        members = list(group)
        lines += [(one.experiment.id, _effort(one), *Tally.of([one]).cells()) for one in members]
        lines.append((f"{paper}, all", "", *Tally.of(members).cells()))
    return lines


def _summary(saved: Sequence[Saved]) -> str:
    links = {one.experiment.id: f"[{one.experiment.id}](#{_anchor(_heading(one))})" for one in saved}
    return _table(SUMMARY_HEADINGS, [(links.get(name, f"**{name}**"), *cells) for name, *cells in summary(saved)])


def _chapter(paper: str, saved: Sequence[Saved], figure: Callable[[Saved], str]) -> list[str]:
    """A paper's experiments, after the assumptions that several of them share."""
    counts = Counter(assumption for one in saved for assumption in one.experiment.assumptions)
    shared = [assumption for assumption, count in counts.items() if count > 1]
    title = (importlib.import_module(f"{__package__}.{paper}").__doc__ or "").partition("\n")[0]
    parts = [f"## {paper}\n\n{title}\n"]
    if shared:
        numbered = "".join(f"{index}. {assumption}\n" for index, assumption in enumerate(shared, 1))
        parts.append(f"Assumptions that several of its experiments share:\n\n{numbered}")
    return parts + [_section(one, shared, figure) for one in saved]


def _section(one: Saved, shared: Sequence[str], figure: Callable[[Saved], str]) -> str:
    experiment = one.experiment
    texts, footnotes = table(one.evaluation.rows)
    lines = [
        f"### {_heading(one)}\n",
        f"Source: {experiment.source}. {experiment.method}\n",
        f"{_provenance(one)}\n",
        _table(HEADINGS, texts),
        *(f"{footnote}\n" for footnote in footnotes),
    ]
    if one.verdicts:
        lines.append(_table(CLAIM_HEADINGS, [claim_cells(verdict) for verdict in one.verdicts]))
    lines += [f"Fitted: {sentence}\n" for sentence in experiment.fitted]
    lines.append(f"![{experiment.title}]({figure(one)})\n")
    lines += [f"{note}\n" for note in one.evaluation.notes]
    lines.append(_assumptions(experiment.assumptions, shared))
    return "\n".join(lines)


def _provenance(one: Saved) -> str:
    """What the results rest on, and when they were made."""
    made = f"sparelane {one.version}, {one.day}"
    if not one.is_simulated:
        return f"Computed without a simulation: {made}."
    spent = _duration(sum(one.cpu_s.values()))
    count = f"{len(one.cpu_s)} simulation{'s' if len(one.cpu_s) > 1 else ''}"
    words = f"Effort: {_length(one.effort)}; {count}, {spent} of processor time; {made}."
    if not one.is_full:
        words += f" **Not the full effort**, which is {_length(one.experiment.full)}."
    if one.is_outdated:
        words += " **Outdated**: the experiment would now ask for other simulations."
    return words


def _length(effort: Effort) -> str:
    length = f", runs of {effort.stop_s:g} s" if effort.stop_s else ""
    return f"{effort.name}, {effort.seeds} seed{'s' if effort.seeds > 1 else ''}{length}"


def _assumptions(assumptions: Sequence[str], shared: Sequence[str]) -> str:
    numbers = [index for index, assumption in enumerate(shared, 1) if assumption in assumptions]
    own = [assumption for assumption in assumptions if assumption not in shared]
    above = f"Assumptions {ranges(numbers)} of the list above" if numbers else ""
    listed = "".join(f"- {assumption}\n" for assumption in own)
    if not own:
        return f"{above}.\n" if above else ""
    return f"{f'{above}, and' if above else 'Assumptions'}:\n\n{listed}"


def ranges(numbers: Sequence[int]) -> str:
    """Rising whole numbers in words: "1 to 3, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _paper(one: Saved) -> str:
    return one.experiment.id.partition("/")[0]


def _heading(one: Saved) -> str:
    return heading(one.experiment, one.effort)


def _effort(one: Saved) -> str:
    words = effort_words(one.experiment, one.effort) or "computed"
    return f"{words}, outdated" if one.is_outdated else words


def _anchor(text: str) -> str:
    """What Markdown viewers call a heading in a link."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [headings, tuple("---" for _ in headings), *lines]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |\n" for line in cells)
