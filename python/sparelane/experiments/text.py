"""Rows and claims as people read them: the same words in the terminal and in the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from sparelane.experiments.base import Band, Effort, Experiment, Row, Verdict
from sparelane.experiments.statistics import SMALLEST_SHARE_PERCENT, compares_as_ratio, share_ratio

HEADINGS = ("row", "metric", "paper", "ours", "difference", "reason")
CLAIM_HEADINGS = ("claim", "number", "band", "verdict")
NOTHING = "–"
# A reason that is repeated and longer than this stands below the table, once.
SHORT_REASON = 20


def effort_words(experiment: Experiment, effort: Effort) -> str:
    """The effort in a few words: "quick, 1 seed" or "10 seeds"; nothing where nothing is simulated."""
    if not experiment.plan(effort):
        return ""
    seeds = f"{effort.seeds} seed{'s' if effort.seeds > 1 else ''}"
    return f"quick, {seeds}" if experiment.is_quick(effort) else seeds


def heading(experiment: Experiment, effort: Effort) -> str:
    """An experiment's id and title; of a quick run it says so, with the number of seeds."""
    words = f" ({effort_words(experiment, effort)})" if experiment.is_quick(effort) else ""
    return f"{experiment.id}: {experiment.title}{words}"


def table(rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The texts of all rows, and the footnotes: reasons that stand beside several rows, which name them by number."""
    counts = Counter(row.reason for row in rows)
    repeated = [reason for reason, count in counts.items() if count > 1 and len(reason) > SHORT_REASON]
    marks = {reason: f"[{index}]" for index, reason in enumerate(repeated, 1)}
    texts: list[tuple[str, ...]] = [(*cells(row)[:-1], marks.get(row.reason, row.reason)) for row in rows]
    return texts, [f"{mark} {reason}" for reason, mark in marks.items()]


def claim_cells(verdict: Verdict) -> tuple[str, str, str, str]:
    """One text for each of `CLAIM_HEADINGS`."""
    value = NOTHING if verdict.value is None else _plain(verdict.value)
    return verdict.text, value, NOTHING if verdict.band is None else band(verdict.band), outcome(verdict)


def outcome(verdict: Verdict) -> str:
    """Whether the claim holds, or why that is not known."""
    if verdict.holds is None:
        return "not checked by a quick run"
    if verdict.holds:
        return "holds"
    return f"fails: {verdict.problem}" if verdict.problem else "fails"


def band(limits: Band) -> str:
    """A band in words."""
    low, high = limits
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(high):
        return f"at least {_plain(low)}"
    return f"at most {_plain(high)}" if math.isinf(low) else f"{_plain(low)} to {_plain(high)}"


def _plain(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def cells(row: Row) -> tuple[str, str, str, str, str, str]:
    """One text for each of `HEADINGS`."""
    return (
        row.row,
        row.metric,
        _with_unit(row.paper, row.unit),
        _ours(row),
        difference(row),
        row.reason,
    )


def number(value: float, unit: str) -> str:
    """A number with as many digits as its unit deserves, with a proper minus sign.

    Percentages have two decimals, and below 0.1 % two digits: loss rates may be small.
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
    """Ours less the paper's: in points for percentages, with the ratio of small ones; else with the share of it."""
    if row.difference is None or row.paper is None or row.ours is None:
        return NOTHING
    if row.difference == 0.0:
        return "0"
    if row.unit == "%":
        points = f"{_signed(row.difference, '%')} points"
        return points + (f" (×{_ratio(row.ours, row.paper)})" if _has_ratio(row.ours, row.paper, row) else "")
    share = f" ({_signed(100.0 * row.difference / row.paper, '%', digits=1)} %)" if row.paper else ""
    return f"{_signed(row.difference, row.unit)}{_spaced(row.unit)}{share}"


def _has_ratio(ours: float, paper: float, row: Row) -> bool:
    return min(ours, paper) >= SMALLEST_SHARE_PERCENT and compares_as_ratio(ours, paper, is_loss_rate=row.is_loss_rate)


def _ratio(ours: float, paper: float) -> str:
    ratio = share_ratio(ours, paper)
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _ours(row: Row) -> str:
    if row.ours is None:
        return NOTHING
    spread = "" if row.ci95 is None else f" ± {number(row.ci95, row.unit)}"
    return f"{number(row.ours, row.unit)}{spread}{_spaced(row.unit)}"


def _with_unit(value: float | None, unit: str) -> str:
    return NOTHING if value is None else f"{number(value, unit)}{_spaced(unit)}"


def _signed(value: float, unit: str, *, digits: int | None = None) -> str:
    text = number(abs(value), unit) if digits is None else f"{abs(value):.{digits}f}"
    sign = "" if not text.strip("0.") else "−" if value < 0 else "+"
    return f"{sign}{text}"


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""
