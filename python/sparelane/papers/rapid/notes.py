"""Notes on the rows of RAPID's tables: orders of schemes, and directions of differences, compared with the paper's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rapid.testbed import LINK_USE, MEDIAN, THROUGHPUT, WEB_FLOW

Note: TypeAlias = Callable[[Evaluation], Iterator[str]]

RAPID = "RAPID"
FULL = "full RAPID"
# The factor between a number and the paper's from which on the note names the row.
FAR = 1.5


def by_scheme(evaluation: Evaluation, setting: str, metric: Metric, average: str = "") -> dict[str, Row]:
    """Returns the rows of a setting without variants, by scheme, in order."""
    return {
        row.key.scheme: row
        for row in evaluation.rows
        if row.key == Key(setting, metric, row.key.scheme, average) and row.key.scheme
    }


def _number(row: Row) -> float:
    return row.value or 0.0


def order_under_loss(evaluation: Evaluation) -> Iterator[str]:
    """Yields the orders of schemes by throughput at a loss rate of 1e-5."""
    rows = by_scheme(evaluation, "loss 1e-05", THROUGHPUT)
    ours = sorted(rows, key=lambda scheme: -_number(rows[scheme]))
    paper = sorted(rows, key=lambda scheme: -(rows[scheme].paper or 0))
    yield f"By throughput at a loss of 1e-05, ours: {', '.join(ours)}. The paper's: {', '.join(paper)}."


def factors_under_loss(evaluation: Evaluation) -> Iterator[str]:
    """Yields RAPID's differences from the paper, and the rows up to a loss of 1e-3 that differ by a large factor."""

    def factor(row: Row) -> float:
        return max(row.value / row.paper, row.paper / row.value) if row.value and row.paper else float("inf")

    rows = [row for row in evaluation.rows if not row.key.variant and row.key.setting != "loss 0.01"]
    far = [f"{row.key.scheme}, {row.key.setting} ({factor(row):.2f})" for row in rows if factor(row) > FAR]
    rapid = [f"{100 * (row.difference or 0) / (row.paper or 1):+.1f} %" for row in rows if row.key.scheme == RAPID]
    yield f"RAPID is off by {', '.join(rapid)}, from no loss to 1e-3."
    yield (
        f"{len(rows) - len(far)} of {len(rows)} rows up to 1e-3 are within a factor of {FAR:g}; "
        f"the others: {', '.join(far) or 'none'}."
    )


def first_by_use(evaluation: Evaluation) -> Iterator[str]:
    """Yields the two schemes that use most of the remaining capacity with each kind of cross traffic."""
    for level in ("UDP", "SCT", "BCT"):
        rows = by_scheme(evaluation, f"beside {level}", LINK_USE)
        first, second, *_ = sorted(rows, key=lambda scheme: -_number(rows[scheme]))
        yield (f"{level}: first {first} ({_number(rows[first]):.1f} %), then {second} ({_number(rows[second]):.1f} %).")


def directions(evaluation: Evaluation) -> Iterator[str]:
    """Yields whether RAPID without each mechanism has more or less throughput than full RAPID, ours and the paper's."""
    places = {
        "idle": by_scheme(evaluation, "idle path", THROUGHPUT),
        "beside web users": by_scheme(evaluation, "beside web users", THROUGHPUT),
    }
    for name, row in places["idle"].items():
        if name == FULL or row.paper is None:
            continue
        words = []
        for place, rows in places.items():
            ours = _number(rows[name]) - _number(rows[FULL])
            paper = (rows[name].paper or 0) - (rows[FULL].paper or 0)
            same = "as in the paper" if ours * paper > 0 else "other than in the paper"
            words.append(f"{place} {ours:+.2f} Gb/s, {same} ({paper:+.2f})")
        yield f"{name}: {'; '.join(words)}."


def order_by_gain(evaluation: Evaluation) -> Iterator[str]:
    """Yields the rank correlations of throughput with tau / eta, which the settings name as `tau 50 ms, eta 4`."""
    from scipy.stats import spearmanr

    rows = [row for row in evaluation.rows if row.key.metric == THROUGHPUT]
    pairs = [re.findall(r"\d+", row.key.setting) for row in rows]
    quotients = [int(tau_ms) / int(eta) for tau_ms, eta in pairs]
    ours = spearmanr(quotients, [row.value for row in rows]).statistic
    paper = spearmanr(quotients, [row.paper for row in rows]).statistic
    yield f"Rank correlation of throughput with tau / eta: {ours:.2f}; the paper's: {paper:.2f}."


def fastest_with_web_users(evaluation: Evaluation) -> Iterator[str]:
    """Yields RAPID's throughput relative to the fastest scheme, and to the fastest that is as gentle to web users."""
    [setting, *_] = [row.key.setting for row in evaluation.rows if row.key.metric == THROUGHPUT]
    rates = {name: _number(row) for name, row in by_scheme(evaluation, setting, THROUGHPUT).items()}
    medians = {name: _number(row) for name, row in by_scheme(evaluation, setting, WEB_FLOW, MEDIAN).items()}
    others = [name for name in rates if name != RAPID]
    fastest = max(others, key=lambda name: rates[name])
    gentle = [name for name in others if medians[name] <= medians[RAPID]]
    best = max(gentle, key=lambda name: rates[name], default=None)
    text = (
        f"RAPID has {rates[RAPID] / rates[fastest]:.2f} times the throughput of the fastest other ({fastest}), with "
        f"a median web flow of {medians[RAPID]:.2f} ms against {medians[fastest]:.2f} ms"
    )
    if best is None:
        text += "; beside every other scheme web flows take longer"
    elif best != fastest:
        text += f"; and {rates[RAPID] / rates[best]:.2f} times that of {best}, the fastest whose median is no longer"
    yield f"{text}."


NOTES: Mapping[str, Note] = {
    "order under loss": order_under_loss,
    "factors under loss": factors_under_loss,
    "first by use": first_by_use,
    "directions": directions,
    "order by gain": order_by_gain,
    "fastest with web users": fastest_with_web_users,
}
