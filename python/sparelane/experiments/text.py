"""Rows as people read them: the same words in the terminal and in the report."""

from __future__ import annotations

from sparelane.experiments.base import Row

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
    """A number with as many digits as its unit deserves, with a proper minus sign."""
    match unit:
        case "%":
            text = f"{value:.2f}"
        case "s":
            text = f"{value:.4f}"
        case _:
            text = f"{value:.4g}"
    return text.replace("-", "−")


def difference(row: Row) -> str:
    """Ours less the paper's: in points for percentages, else with the share of the paper's number."""
    if row.difference is None or row.paper is None:
        return NOTHING
    if row.difference == 0.0:
        return "0"
    if row.unit == "%":
        return f"{_signed(row.difference, '%')} points"
    share = f" ({_signed(100.0 * row.difference / row.paper, '%', digits=1)} %)" if row.paper else ""
    return f"{_signed(row.difference, row.unit)}{_spaced(row.unit)}{share}"


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
