"""Pages of results: one that says how all saved experiments stand to the papers, and one for each experiment.

The pages are Markdown files in the folder of results itself, beside the rows that they print: `README.md`, and a
`README.md` in the folder of each experiment.
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
from sparelane.papers.pages.text import CLAIM_HEADINGS, NOTHING, claim_cells, effort_words, heading, table

# The name of every page but that of the claims that fail, and of that.
PAGE = "README.md"
CLAIMS = "claims.md"
# What the page of all experiments says of another one.
SEE = "How fast the simulator is, and how it stands beside ns-3"

SUMMARY_HEADINGS = (
    "experiment",
    "effort",
    "rows that the paper speaks of",
    "in band",
    "with a reason",
    "not explained",
    "claims",
    "held",
    "failed",
)

INDEX_HEADINGS = ("experiment", "effort", "in band", "claims held", "what differs, and why")

# The longest reason that the page of all experiments repeats, characters.
LONGEST_REASON = 150


@dataclass(frozen=True, slots=True)
class Tally:
    """How an experiment, or several, stand to the papers.

    Attributes:
        printed: rows for which the paper prints a number, or says in words what they must be; without what is varied.
        in_band: those that do not deviate from that.
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
        """One text for each of `SUMMARY_HEADINGS` but the first two."""
        numbers = (self.printed, self.in_band, self.explained, self.unexplained, self.claims, self.held, self.failed)
        return tuple(NOTHING if number is None else str(number) for number in numbers)


def index(saved: Sequence[Saved], *, see: str | None = None, unfinished: Sequence[str] = ()) -> str:
    """The page of all experiments.

    Args:
        saved: the experiments, those of a paper together.
        see: another page to name at the beginning, as seen from this one.
        unfinished: ids of experiments that were asked for and have no results.
    """
    parts = [_introduction(saved, see), _table(INDEX_HEADINGS, _index_lines(saved)), *_nothing_differs(saved)]
    tally = Tally.of(saved)
    if tally.failed:
        are = f"{tally.failed} fail" if tally.failed > 1 else "1 fails"
        parts.append(f"Of {tally.claims} claims {are}, each with what was found: [the claims that fail]({CLAIMS}).\n")
    if unfinished:
        parts.append("## Not finished\n\n" + "".join(f"- {id}\n" for id in unfinished))
    return "\n".join(parts)


def failed_claims(saved: Sequence[Saved]) -> str | None:
    """The page of the claims that fail, of all experiments; `None` where all hold."""
    failed = [(one, verdict) for one in saved for verdict in one.verdicts if verdict.holds is False]
    if not failed:
        return None
    lines = [(_link(one), *claim_cells(verdict)) for one, verdict in failed]
    table = _table(("experiment", *CLAIM_HEADINGS), lines)
    return f"# Claims of the papers that fail here\n\n{table}\n[All experiments]({PAGE})\n"


def _index_lines(saved: Sequence[Saved]) -> list[tuple[str, ...]]:
    """The cells of a table of `INDEX_HEADINGS`: a line for each experiment that differs, and for its paper."""
    lines: list[tuple[str, ...]] = []
    for paper, group in groupby(saved, key=_paper):
        members = list(group)
        off = [one for one in members if _differs(one)]
        lines += [(_link(one), _effort(one), *_standing(Tally.of([one])), _difference(one)) for one in off]
        lines.append((f"**{paper}, all**", "", *_standing(Tally.of(members)), ""))
    return lines


def _differs(one: Saved) -> bool:
    """Whether there is something to say of it: a row out of band, a claim that does not hold, or a short form."""
    tally = Tally.of([one])
    return one.is_quick or tally.in_band < tally.printed or tally.failed > 0


def _nothing_differs(saved: Sequence[Saved]) -> list[str]:
    """A sentence each for experiments that meet rows of the paper, claims alone, or nothing, since there is none."""
    met: dict[str, list[str]] = {
        "Every row that the paper speaks of is in band, and every claim holds": [],
        "The paper prints no number, and every claim holds": [],
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
    """What differs from the paper and why, in a few words: the reason that stands beside most rows, and the rest."""
    off = [row for row in one.evaluation.rows if row.counts and row.deviates]
    if not off or one.is_quick:
        return ""
    reasons = Counter(row.reason for row in off if row.is_explained)
    words = [f"{_shortened(reason)} ({count})" for reason, count in reasons.most_common(1)]
    others = sum(reasons.values()) - sum(count for _, count in reasons.most_common(1))
    words += [f"other reasons ({others})"] if others else []
    unexplained = len(off) - sum(reasons.values())
    words += [f"not explained ({unexplained})"] if unexplained else []
    return "; ".join(words)


def _shortened(reason: str) -> str:
    return _at_most(reason.partition(": ")[0].partition("; ")[0])


def _at_most(text: str) -> str:
    """What of it has room on the page of all experiments."""
    return textwrap.shorten(text, LONGEST_REASON, placeholder=" ...")


def _introduction(saved: Sequence[Saved], see: str | None) -> str:
    days = sorted({one.manifest.day for one in saved})
    when = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}" if days else ""
    many = "s" if len(saved) != 1 else ""
    lines = [
        "# The papers' numbers beside ours\n",
        f"{len(saved)} experiment{many}, simulated {when} in {_duration(distinct_cpu_s(saved))} of processor time; "
        "a simulation that several share counts once. Written by `sparelane report`.\n",
        "Intervals hold 95 % (Student's t over the seeds). A difference is ours less the paper's. A row is in band "
        f"where ours is within {100 * SHARE_TOLERATED:g} % of the printed number; a share, within "
        f"{POINTS_TOLERATED:g} points; a loss rate, or shares that are both below {SMALL_SHARE_PERCENT:g} %, within a "
        f"factor of {FACTOR_TOLERATED:g}; and where the paper has words in the place of a number, as they say. What is "
        "varied is shown beside the paper's number and counts nowhere. What is not in band has its reason on the page "
        'of its experiment, or the words "not explained", and so has a claim that fails. A claim is what a paper says '
        "of its numbers, as one number of ours and the band that it must lie in.\n",
    ]
    if see is not None:
        lines.append(f"{SEE}: [{PurePosixPath(see).stem}]({see}).\n")
    return "\n".join(lines)


def seen(index: Path) -> str | None:
    """The other page that a page of all experiments names; `None` where there is no such page, or it names none."""
    try:
        text = index.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(rf"^{re.escape(SEE)}: \[[^\]]*\]\(([^)\n]*)\)\.$", text, re.MULTILINE)
    return found[1] if found else None


def summary(saved: Sequence[Saved]) -> list[tuple[str, ...]]:
    """The cells of a table of `SUMMARY_HEADINGS`: a line for each experiment, and after them one for their paper."""
    lines: list[tuple[str, ...]] = []
    for paper, group in groupby(saved, key=_paper):
        members = list(group)
        lines += [(one.experiment.id, _effort(one), *Tally.of([one]).cells()) for one in members]
        lines.append((f"{paper}, all", "", *Tally.of(members).cells()))
    return lines


def experiment_page(one: Saved) -> str:
    """The page of one experiment: its figure, the claims, every row with its reason, and how to repeat it."""
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
        lines.append(f"What the paper leaves open, and how it is settled here:\n\n{listed}")
    lines.append(f"To repeat it: `{one.manifest.command}`. {_provenance(one)}\n")
    lines.append(f"[All experiments](../../{PAGE})\n")
    return "\n".join(lines)


def _provenance(one: Saved) -> str:
    """What the results rest on, and when they were made."""
    made = f"sparelane {one.manifest.program}, {one.manifest.day}"
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


def _paper(one: Saved) -> str:
    return one.experiment.id.partition("/")[0]


def _effort(one: Saved) -> str:
    words = effort_words(one.experiment, one.effort) or "computed"
    return f"{words}, outdated" if one.is_outdated else words


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [headings, tuple("---" for _ in headings), *lines]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |\n" for line in cells)
