"""Claims of the papers, judged on made-up numbers."""

import math

import pytest

from sparelane.experiments.base import Claim, Effort, Evaluation, Row, Verdict
from sparelane.experiments.claims import (
    Value,
    about,
    at_least,
    at_most,
    difference,
    falling,
    largest_difference,
    largest_factor,
    less_paper,
    ours,
    over_paper,
    ratio,
    rows_in_band,
    within_factor,
)

FULL, BRIEF = Effort("full", seeds=10), Effort("quick", seeds=1)

ROWS = Evaluation(
    (
        Row("RC3", "FCT", "s", 0.08, 0.1, None),
        Row("TCP", "FCT", "s", 0.2, 0.2, None),
        Row("RCP", "FCT", "s", None, 0.4, None),
        Row("lost", "FCT", "s", 0.1, None, None),
        Row("RC3", "reduction", "%", 43.5, 45.0, None),
        Row("none", "FCT", "s", 0.0, 0.0, None),
    )
)


def check(value: Value, full: tuple[float, float] = (-math.inf, math.inf)) -> Verdict:
    return Claim("made up", value, full).check(FULL, ROWS)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (ours("RC3", "reduction"), 45.0),
        (over_paper("RC3", "FCT"), 1.25),
        (less_paper("RC3", "reduction"), 1.5),
        (ratio(("RCP", "FCT"), ("RC3", "FCT")), 4.0),
        (difference(("RCP", "FCT"), ("RC3", "FCT")), 0.3),
        (falling(("RCP", "TCP", "RC3"), "FCT"), 2.0),
        (falling(("RC3", "TCP", "RCP"), "FCT"), 0.5),
        (largest_factor([("TCP", "FCT"), ("RC3", "FCT")]), 1.25),
        (largest_difference([("RC3", "reduction")]), 1.5),
        (rows_in_band(), 60.0),
        (rows_in_band("reduction"), 100.0),
    ],
)
def test_a_value_is_computed_from_rows(value: Value, number: float) -> None:
    assert check(value).value == pytest.approx(number)
    assert check(value).holds


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (ours("RC4", "FCT"), 'no row "RC4" with the metric "FCT"'),
        (ours("lost", "FCT"), 'no run gave a number for the row "lost", metric "FCT"'),
        (over_paper("RCP", "FCT"), 'no printed number in the row "RCP", metric "FCT"'),
        (over_paper("none", "FCT"), "divide"),
        (rows_in_band("goodput"), "divide"),
        (lambda rows: rows.find("RC4", "FCT").ours or 0.0, "RC4"),
        (lambda rows: 2.0 * rows.find("lost", "FCT").ours, "NoneType"),
        (lambda rows: math.nan, "not a number"),
    ],
)
def test_a_claim_without_its_number_fails_and_says_why(value: Value, problem: str) -> None:
    verdict = check(value)
    assert verdict.holds is False
    assert verdict.value is None
    assert problem in verdict.problem


@pytest.mark.parametrize(
    ("band", "holds"),
    [
        ((45.0, 45.0), True),
        ((45.1, 46.0), False),
        (at_least(45.0), True),
        (at_least(45.1), False),
        (at_most(45.0), True),
        (at_most(44.9), False),
        (about(43.5, 1.5), True),
        (about(43.5, 1.4), False),
    ],
)
def test_a_claim_holds_within_its_band_and_on_its_bounds(band: tuple[float, float], holds: bool) -> None:
    assert check(ours("RC3", "reduction"), band).holds is holds


def test_a_factor_counts_both_ways() -> None:
    assert within_factor(1.25) == (0.8, 1.25)


def test_a_quick_run_is_held_to_the_quick_band_only() -> None:
    claim = Claim("made up", ours("RC3", "reduction"), full=(0, 1), quick=(40, 50))
    assert claim.check(BRIEF, ROWS).holds
    assert claim.check(FULL, ROWS).holds is False


def test_a_claim_without_a_quick_band_is_not_checked_by_a_quick_run() -> None:
    assert Claim("made up", ours("RC4", "FCT"), full=(0, 1)).check(BRIEF, ROWS) == Verdict("made up", None, None)


def test_a_claim_fails_if_rc3s_gain_falls_from_45_to_5_percent() -> None:
    claim = Claim("RC3 cuts completion times by 43.5 %", less_paper("RC3", "reduction"), full=(-3, 3), quick=(-15, 15))
    fallen = Evaluation((Row("RC3", "reduction", "%", 43.5, 5.0, None),))
    for effort in (FULL, BRIEF):
        assert claim.check(effort, ROWS).holds
        assert claim.check(effort, fallen).holds is False
