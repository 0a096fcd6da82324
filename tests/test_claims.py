"""Tests of claims with made-up numbers."""

import math
from dataclasses import replace

import pytest

from sparelane.papers.engine.base import Claim, Effort, Verdict
from sparelane.papers.engine.claims import (
    Value,
    about,
    at_least,
    at_most,
    difference,
    falling,
    inside,
    largest,
    largest_difference,
    largest_factor,
    largest_spread,
    least,
    least_falling,
    least_over,
    less_least,
    less_paper,
    ours,
    over_largest,
    over_least,
    over_median,
    over_paper,
    ratio,
    rows_in_band,
    spread,
    within_factor,
)
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, Metric, Row, each

FULL, BRIEF = Effort("full", seeds=10), Effort("quick", seeds=1)
FCT, REDUCTION = Metric("FCT", "s"), Metric("reduction", "%")


def fct(scheme: str) -> Key:
    return Key("30%", FCT, scheme)


def cut(scheme: str) -> Key:
    return Key("30%", REDUCTION, scheme)


ROWS = Evaluation(
    (
        Row(fct("RC3"), 0.08, 0.1),
        Row(fct("TCP"), 0.2, 0.2),
        Row(fct("RCP"), None, 0.4),
        Row(fct("lost"), 0.1, None),
        Row(cut("RC3"), 43.5, 45.0),
        Row(fct("none"), 0.0, 0.0),
    )
)


def check(value: Value, full: tuple[float, float] = (-math.inf, math.inf)) -> Verdict:
    return Claim("made up", value, full).check(FULL, ROWS)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (ours(cut("RC3")), 45.0),
        (over_paper(fct("RC3")), 1.25),
        (less_paper(cut("RC3")), 1.5),
        (ratio(fct("RCP"), fct("RC3")), 4.0),
        (difference(fct("RCP"), fct("RC3")), 0.3),
        (falling(each(["30%"], FCT, ("RCP", "TCP", "RC3"))), 2.0),
        (falling(each(["30%"], FCT, ("RC3", "TCP", "RCP"))), 0.5),
        (largest_factor([fct("TCP"), fct("RC3")]), 1.25),
        (largest_difference([cut("RC3")]), 1.5),
        (least([fct("RC3"), fct("TCP")]), 0.1),
        (largest([fct("RC3"), fct("TCP")]), 0.2),
        (inside([fct("RC3"), fct("none")]), 0.02),
        (over_largest(fct("RC3"), [fct("TCP"), fct("RCP")]), 0.25),
        (over_least(fct("RC3"), [fct("TCP"), fct("RCP")]), 0.5),
        (least_over([fct("TCP"), fct("RCP")], fct("RC3")), 2.0),
        (over_median(fct("RCP"), [fct("RC3"), fct("TCP"), fct("RCP")]), 2.0),
        (spread([fct("RC3"), fct("TCP"), fct("RCP")]), 4.0),
        (less_least(fct("RC3"), [fct("TCP"), fct("RCP")]), -0.1),
        (least_falling([[fct("RCP"), fct("RC3")], [fct("RCP"), fct("TCP")]]), 2.0),
        (largest_spread([[fct("RCP"), fct("RC3")], [fct("RCP"), fct("TCP")]]), 4.0),
        (rows_in_band(), 60.0),
        (rows_in_band(REDUCTION), 100.0),
    ],
)
def test_a_value_is_computed_from_rows(value: Value, number: float) -> None:
    assert check(value).value == pytest.approx(number)
    assert check(value).holds


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (ours(fct("RC4")), 'no row "30%: RC4 FCT"'),
        (ours(fct("lost")), 'no run gave a number for the row "30%: lost FCT"'),
        (over_paper(fct("RCP")), 'no printed number in the row "30%: RCP FCT"'),
        (over_paper(fct("none")), "divide"),
        (rows_in_band(Metric("goodput")), "divide"),
        (lambda rows: rows.find(fct("RC4")).value or 0.0, "RC4"),
        (lambda rows: 2.0 * rows.find(fct("lost")).value, "NoneType"),
        (lambda rows: math.nan, "not a number"),
    ],
)
def test_a_claim_without_its_number_fails_with_the_reason(value: Value, problem: str) -> None:
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
    assert check(ours(cut("RC3")), band).holds is holds


def test_a_failed_claim_has_a_reason_or_is_not_explained() -> None:
    failing = Claim("made up", ours(cut("RC3")), full=at_least(50.0), quick=at_least(50.0))
    assert failing.check(FULL, ROWS).reason == NOT_EXPLAINED
    assert failing.check(BRIEF, ROWS).reason == ""
    assert replace(failing, reason="because").check(FULL, ROWS).reason == "because"
    assert replace(failing, full=at_least(40.0)).check(FULL, ROWS).reason == ""


def test_a_factor_counts_in_both_directions() -> None:
    assert within_factor(1.25) == (0.8, 1.25)


def test_a_quick_run_is_compared_with_the_quick_band_only() -> None:
    claim = Claim("made up", ours(cut("RC3")), full=(0, 1), quick=(40, 50))
    assert claim.check(BRIEF, ROWS).holds
    assert claim.check(FULL, ROWS).holds is False


def test_a_claim_without_a_quick_band_is_not_checked_by_a_quick_run() -> None:
    assert Claim("made up", ours(fct("RC4")), full=(0, 1)).check(BRIEF, ROWS) == Verdict("made up", None, None)


def test_a_claim_fails_if_rc3s_gain_falls_from_45_to_5_percent() -> None:
    claim = Claim("RC3 cuts completion times by 43.5 %", less_paper(cut("RC3")), full=(-3, 3), quick=(-15, 15))
    fallen = Evaluation((Row(cut("RC3"), 43.5, 5.0),))
    for effort in (FULL, BRIEF):
        assert claim.check(effort, ROWS).holds
        assert claim.check(effort, fallen).holds is False
