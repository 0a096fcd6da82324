"""The Markdown pages of results: one that compares all saved experiments with the papers, and one per experiment.

The pages are in the folder of results, next to the rows that they print: `README.md`, and a `README.md` in the folder
of each experiment. `claims.md` lists the claims that fail.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.saved import FIGURE, Saved, distinct_cpu_s
from sparelane.papers.engine.statistics import FACTOR_TOLERATED, POINTS_TOLERATED, SHARE_TOLERATED, SMALL_SHARE_PERCENT
from sparelane.papers.pages.text import CLAIM_HEADINGS, NOTHING, TITLE, claim_cells, effort_words, heading, table

PAGE = "README.md"
# The page of the claims that fail.
CLAIMS = "claims.md"
# The text of the link from the page of all experiments to another page.
SEE = "The simulator's speed, and a comparison with ns-3"

SUMMARY_HEADINGS = (
    "experiment",
    "effort",
    "rows with a number in the paper",
    "in band",
    "with a reason",
    "not explained",
    "claims",
    "held",
    "failed",
)

INDEX_HEADINGS = ("experiment", "effort", "in band", "claims held", "reasons for differences (rows)")

# The length to which the page of all experiments shortens reasons, in characters.
LONGEST_REASON = 150


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of rows and claims by result, for one or several experiments.

    Attributes:
        printed: rows for which the paper gives a number or bounds, without variants.
        in_band: rows that do not deviate.
        explained: rows that deviate and have a reason; `None` for quick runs, which have no reasons.
        unexplained: rows that deviate and have no reason; `None` for quick runs.
        claims: all declared claims.
        held: claims that hold.
        failed: claims that fail. The other claims were not checked.
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
        """Counts the rows and claims of some experiments."""
        rows = [row for one in saved for row in one.evaluation.rows if row.counts]
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
        """Returns one text for each of `SUMMARY_HEADINGS` except the first two."""
        numbers = (self.printed, self.in_band, self.explained, self.unexplained, self.claims, self.held, self.failed)
        return tuple(NOTHING if number is None else str(number) for number in numbers)


def index(saved: Sequence[Saved], *, see: str | None = None, unfinished: Sequence[str] = ()) -> str:
    """Returns the page of all experiments.

    Args:
        saved: the results, grouped by paper.
        see: the relative path of another page to link to at the beginning.
        unfinished: the ids of requested experiments without results.
    """
    parts = [_introduction(saved, see), _table(INDEX_HEADINGS, _index_lines(saved)), *_nothing_differs(saved)]
    tally = Tally.of(saved)
    if tally.failed:
        are = f"{tally.failed} fail" if tally.failed > 1 else "1 fails"
        parts.append(f"Of {tally.claims} claims, {are}: [the claims that fail, with our numbers]({CLAIMS}).\n")
    if unfinished:
        parts.append("## Not finished\n\n" + "".join(f"- {id}\n" for id in unfinished))
    return "\n".join(parts)


def failed_claims(saved: Sequence[Saved]) -> str | None:
    """Returns the page of all claims that fail; `None` if all hold."""
    failed = [(one, verdict) for one in saved for verdict in one.verdicts if verdict.holds is False]
    if not failed:
        return None
    lines = [(_link(one), *claim_cells(verdict)) for one, verdict in failed]
    table = _table(("experiment", *CLAIM_HEADINGS), lines)
    return f"# Claims of the papers that fail here\n\n{table}\n[All experiments]({PAGE})\n"


def _index_lines(saved: Sequence[Saved]) -> list[tuple[str, ...]]:
    """Returns the lines of the table with `INDEX_HEADINGS`: the experiments that differ, and a total for each paper."""
    lines: list[tuple[str, ...]] = []
    for paper, group in groupby(saved, key=_paper):
        members = list(group)
        off = [one for one in members if _differs(one)]
        lines += [(_link(one), _effort(one), *_standing(Tally.of([one])), _difference(one)) for one in off]
        lines.append((f"**{paper}, all**", "", *_standing(Tally.of(members)), ""))
    return lines


def _differs(one: Saved) -> bool:
    """Returns true if a row is out of band, a claim fails, or the results are of a quick run."""
    tally = Tally.of([one])
    return one.is_quick or tally.in_band < tally.printed or tally.failed > 0


def _nothing_differs(saved: Sequence[Saved]) -> list[str]:
    """Returns sentences that list the experiments without differences: with rows, with claims only, or with neither."""
    met: dict[str, list[str]] = {
        "All rows are in band and all claims hold": [],
        "The paper prints no number, and all claims hold": [],
        "The paper prints no number, and no claim is checked": [],
    }
    with_rows, with_claims, bare = met.values()
    for one in saved:
        if not _differs(one):
            tally = Tally.of([one])
            (with_rows if tally.printed else with_claims if tally.claims else bare).append(_link(one))
    return [f"{sentence}: {', '.join(links)}.\n" for sentence, links in met.items() if links]


def _link(one: Saved) -> str:
    return f"[{one.experiment.id}]({one.experiment.id}/{PAGE})"


def _standing(tally: Tally) -> tuple[str, str]:
    rows = f"{tally.in_band} of {tally.printed}" if tally.printed else NOTHING
    return rows, f"{tally.held} of {tally.held + tally.failed}" if tally.held + tally.failed else NOTHING


def _difference(one: Saved) -> str:
    """Returns the most frequent reason and the numbers of rows with it, with other reasons and without a reason."""
    off = [row for row in one.evaluation.rows if row.counts and row.deviates]
    if not off or one.is_quick:
        return ""
    reasons = Counter(row.reason for row in off if row.is_explained)
    parts = [f"{_shortened(reason)} ({count})" for reason, count in reasons.most_common(1)]
    others = sum(reasons.values()) - sum(count for _, count in reasons.most_common(1))
    parts += [f"other reasons ({others})"] if others else []
    unexplained = len(off) - sum(reasons.values())
    parts += [f"not explained ({unexplained})"] if unexplained else []
    return "; ".join(parts)


def _shortened(reason: str) -> str:
    """Returns the first clause of a reason, shortened for the page of all experiments."""
    clause = reason.partition(": ")[0].partition("; ")[0]
    return textwrap.shorten(clause, LONGEST_REASON, placeholder=" ...")


def _introduction(saved: Sequence[Saved], see: str | None) -> str:
    days = sorted({one.manifest.day for one in saved})
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}" if days else ""
    many = "s" if len(saved) != 1 else ""
    lines = [
        f"# {TITLE}\n",
        f"{len(saved)} experiment{many}, simulated {when} in {_duration(distinct_cpu_s(saved))} of processor time. "
        "Simulations that experiments share count once. Written by `sparelane report`.\n",
        "Intervals are 95 % confidence intervals (Student's t over the seeds). A difference is our number minus the "
        "paper's. A row is in band if our number is close to the paper's:\n",
        f"- a number: within {100 * SHARE_TOLERATED:g} % of the printed one\n"
        f"- a percentage: within {POINTS_TOLERATED:g} points\n"
        f"- a loss rate, or two percentages below {SMALL_SHARE_PERCENT:g} %: within a factor of {FACTOR_TOLERATED:g}\n"
        "- a number that the paper states in words: within the bounds that the words give\n",
        "Rows with a variant are shown next to the paper's number but not counted. The page of an experiment gives the "
        'reason for each row that is not in band and each claim that fails, or the words "not explained". A claim is a '
        "statement of the paper, expressed as one number of ours and the band that must contain it.\n",
    ]
    if see is not None:
        lines.append(f"{SEE}: [{PurePosixPath(see).stem}]({see}).\n")
    return "\n".join(lines)


def linked_page(index: Path) -> str | None:
    """Returns the page that an existing page of all experiments links to; `None` if there is no page or no link."""
    try:
        text = index.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(rf"^{re.escape(SEE)}: \[[^\]]*\]\(([^)\n]*)\)\.$", text, re.MULTILINE)
    return found[1] if found else None


def summary(saved: Sequence[Saved]) -> list[tuple[str, ...]]:
    """Returns the lines of the table with `SUMMARY_HEADINGS`: the experiments of each paper, then their total."""
    lines: list[tuple[str, ...]] = []
    for paper, group in groupby(saved, key=_paper):
        members = list(group)
        lines += [(one.experiment.id, _effort(one), *Tally.of([one]).cells()) for one in members]
        lines.append((f"{paper}, all", "", *Tally.of(members).cells()))
    return lines


def experiment_page(one: Saved) -> str:
    """Returns the page of one experiment: its figure, the claims, every row with its reason, and the command."""
    experiment = one.experiment
    rows = table(one.evaluation.rows, experiment.witness)
    lines = [
        f"# {heading(experiment, one.effort)}\n",
        f"Source: {experiment.source}. {experiment.method}\n",
        f"![{experiment.title}]({FIGURE})\n",
    ]
    if one.verdicts:
        lines.append(_table(CLAIM_HEADINGS, [claim_cells(verdict) for verdict in one.verdicts]))
    lines += [_table(rows.headings, rows.lines), *(f"{footnote}\n" for footnote in rows.footnotes)]
    lines += [f"{note}\n" for note in one.evaluation.notes]
    lines += [f"Fitted: {sentence}\n" for sentence in experiment.fitted]
    if experiment.assumptions:
        listed = "".join(f"- {assumption}\n" for assumption in experiment.assumptions)
        lines.append(f"Assumptions, where the paper leaves something open:\n\n{listed}")
    lines.append(f"To repeat it: `{one.manifest.command}`. {_provenance(one)}\n")
    lines.append(f"[All experiments](../../{PAGE})\n")
    return "\n".join(lines)


def _provenance(one: Saved) -> str:
    """Returns sentences about the origin of the results: effort, simulations, version and day."""
    made = f"sparelane {one.manifest.program}, {one.manifest.day}"
    if not one.is_simulated:
        return f"Computed without a simulation: {made}."
    spent = _duration(sum(one.cpu_s.values()))
    count = f"{len(one.cpu_s)} simulation{'s' if len(one.cpu_s) > 1 else ''}"
    text = f"Effort: {_length(one.effort)}; {count}, {spent} of processor time; {made}."
    if not one.is_full:
        text += f" **Not the full effort**, which is {_length(one.experiment.full)}."
    if one.is_outdated:
        text += " **Outdated**: the experiment now needs other simulations."
    return text


def _length(effort: Effort) -> str:
    length = f", runs of {effort.stop_s:g} s" if effort.stop_s else ""
    return f"{effort.name}, {effort.seeds} seed{'s' if effort.seeds > 1 else ''}{length}"


def _paper(one: Saved) -> str:
    return one.experiment.id.partition("/")[0]


def _effort(one: Saved) -> str:
    effort = effort_words(one.experiment, one.effort) or "computed"
    return f"{effort}, outdated" if one.is_outdated else effort


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [headings, tuple("---" for _ in headings), *lines]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |\n" for line in cells)
