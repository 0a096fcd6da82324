"""Formats rows, claims and efforts as text, in the same way for the terminal and the pages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sparelane.papers.engine.base import Effort, Experiment, Verdict
from sparelane.papers.engine.rows import Band, Row
from sparelane.papers.engine.statistics import SMALLEST_SHARE_PERCENT, compares_as_ratio, share_ratio

HEADINGS = ("setting", "variant", "traffic", "scheme", "metric", "average", "paper", "ours", "difference", "reason")
# The columns of texts, which are aligned to the left.
LEFT = (*HEADINGS[:6], HEADINGS[-1])
CLAIM_HEADINGS = ("claim", "number", "band", "verdict")
NOTHING = "–"
# The title of pages about several experiments.
TITLE = "The papers' numbers and ours"
# Repeated reasons with more characters become footnotes.
SHORT_REASON = 20


def effort_words(experiment: Experiment, effort: Effort) -> str:
    """Returns the effort in a few words, such as "quick, 1 seed" or "10 seeds"; empty without simulations."""
    if not experiment.plan(effort):
        return ""
    seeds = f"{effort.seeds} seed{'s' if effort.seeds > 1 else ''}"
    return f"quick, {seeds}" if experiment.is_quick(effort) else seeds


def heading(experiment: Experiment, effort: Effort) -> str:
    """Returns an experiment's id and title, and the effort of a quick run."""
    words = f" ({effort_words(experiment, effort)})" if experiment.is_quick(effort) else ""
    return f"{experiment.id}: {experiment.title}{words}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as texts.

    Attributes:
        headings: the columns of `HEADINGS` that are not empty.
        lines: one text for each of the headings, row by row.
        footnotes: numbered reasons that several rows refer to.
    """

    headings: tuple[str, ...]
    lines: list[tuple[str, ...]]
    footnotes: list[str]


def table(rows: Sequence[Row], witness: str = "paper") -> Table:
    """Returns the texts of all rows. The column of the paper's numbers is named after the witness."""
    counts = Counter(row.reason for row in rows)
    repeated = [reason for reason, count in counts.items() if count > 1 and len(reason) > SHORT_REASON]
    marks = {reason: f"[{index}]" for index, reason in enumerate(repeated, 1)}
    lines = [(*cells(row)[:-1], marks.get(row.reason, row.reason)) for row in rows]
    used = [
        place for place, heading in enumerate(HEADINGS) if heading not in LEFT or any(line[place] for line in lines)
    ]
    return Table(
        tuple(witness if HEADINGS[place] == "paper" else HEADINGS[place] for place in used),
        [tuple(line[place] for place in used) for line in lines],
        [f"{mark} {reason}" for reason, mark in marks.items()],
    )


def claim_cells(verdict: Verdict) -> tuple[str, str, str, str]:
    """Returns one text for each of `CLAIM_HEADINGS`."""
    value = NOTHING if verdict.value is None else f"{_plain(verdict.value)}{_spaced(verdict.unit)}"
    return verdict.text, value, NOTHING if verdict.band is None else band(verdict.band), outcome(verdict)


def outcome(verdict: Verdict) -> str:
    """Returns the text of a verdict: whether the claim holds, and the reason if it fails."""
    if verdict.holds is None:
        return "not checked by a quick run"
    if verdict.holds:
        return "holds"
    why = verdict.problem or verdict.reason
    return f"fails: {why}" if why else "fails"


def band(limits: Band) -> str:
    """Returns a band in words."""
    low, high = limits
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(high):
        return f"at least {_plain(low)}"
    return f"at most {_plain(high)}" if math.isinf(low) else f"{_plain(low)} to {_plain(high)}"


def _plain(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def cells(row: Row) -> tuple[str, ...]:
    """Returns one text for each of `HEADINGS`."""
    key = row.key
    return (
        key.setting,
        key.variant,
        key.traffic,
        key.scheme,
        key.metric.name,
        key.average,
        _paper(row),
        _ours(row),
        difference(row),
        row.reason,
    )


def number(value: float, unit: str) -> str:
    """Returns a number with a number of digits that depends on its unit, and with a typographic minus sign.

    Percentages have two decimals. Below 0.1 % they have two significant digits, because loss rates may be small.
    """
    match unit:
        case "%" if SMALLEST_SHARE_PERCENT <= abs(value) < 0.1:
            text = f"{float(f'{value:.1e}'):f}".rstrip("0")
        case "%":
            text = f"{value:.2f}"
        case "s":
            text = f"{value:.4f}"
        case _:
            text = f"{value:.4g}"
    return text.replace("-", "−")


def difference(row: Row) -> str:
    """Returns our number minus the paper's.

    Percentages differ in points; small ones also have the ratio. Other numbers also have the difference in percent.
    """
    if row.difference is None or row.paper is None or row.value is None:
        return NOTHING
    if row.difference == 0.0:
        return "0"
    unit = row.key.metric.unit
    if unit == "%":
        points = f"{_signed(row.difference, '%')} points"
        return points + (f" (×{_ratio(row.value, row.paper)})" if _has_ratio(row.value, row.paper, row) else "")
    share = f" ({_signed(100.0 * row.difference / row.paper, '%', digits=1)} %)" if row.paper else ""
    return f"{_signed(row.difference, unit)}{_spaced(unit)}{share}"


def _has_ratio(ours: float, paper: float, row: Row) -> bool:
    is_loss_rate = row.key.metric.is_loss_rate
    return min(ours, paper) >= SMALLEST_SHARE_PERCENT and compares_as_ratio(ours, paper, is_loss_rate=is_loss_rate)


def _ratio(ours: float, paper: float) -> str:
    ratio = share_ratio(ours, paper)
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _ours(row: Row) -> str:
    if row.value is None:
        return NOTHING
    unit = row.key.metric.unit
    spread = "" if row.interval is None else f" ± {number(row.interval, unit)}"
    return f"{number(row.value, unit)}{spread}{_spaced(unit)}"


def _paper(row: Row) -> str:
    unit = row.key.metric.unit
    if row.paper is not None:
        return f"{number(row.paper, unit)}{_spaced(unit)}"
    return NOTHING if row.stated is None else f"{stated(row.stated)}{_spaced(unit)}"


def stated(bounds: Band) -> str:
    """Returns bounds that a paper states in words, such as "below 100"."""
    low, high = bounds
    if low == high:
        return f"about {_plain(low)}"
    if math.isinf(low):
        return f"below {_plain(high)}"
    return f"above {_plain(low)}" if math.isinf(high) else f"{_plain(low)} to {_plain(high)}"


def _signed(value: float, unit: str, *, digits: int | None = None) -> str:
    text = number(abs(value), unit) if digits is None else f"{abs(value):.{digits}f}"
    sign = "" if not text.strip("0.") else "−" if value < 0 else "+"
    return f"{sign}{text}"


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""
