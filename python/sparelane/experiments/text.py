"""Rows as people read them: the same words in the terminal and in the report."""

from __future__ import annotations

from sparelane.experiments.base import Row
from sparelane.experiments.statistics import SMALLEST_SHARE_PERCENT, compares_as_ratio, share_ratio

HEADINGS = ("row", "metric", "paper", "ours", "difference", "reason")
NOTHING = "–"


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
    return paper >= SMALLEST_SHARE_PERCENT and compares_as_ratio(ours, paper, is_loss_rate=row.is_loss_rate)


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
