"""Tests of claims with made-up numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sparelane.papers.engine.base import Claim, Effort, Verdict
from sparelane.papers.engine.claims import Value, values
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, Metric, Row

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


def value(name: str, *keys: Key) -> Value:
    return of_groups(name, keys)


def of_groups(name: str, *groups: Sequence[Key]) -> Value:
    [(_, found)] = values(name, groups)
    return found


def check(value: Value, full: tuple[float, float] = (-math.inf, math.inf)) -> Verdict:
    return Claim("made up", value, full).check(FULL, ROWS)


@pytest.mark.parametrize(
    ("value", "number", "unit"),
    [
        (value("ours", cut("RC3")), 45.0, "%"),
        (value("over_paper", fct("RC3")), 1.25, "× printed"),
        (value("less_paper", cut("RC3")), 1.5, "points from printed"),
        (value("ratio", fct("RCP"), fct("RC3")), 4.0, "×"),
        (value("difference", fct("RCP"), fct("RC3")), 0.3, "s"),
        (value("falling", *map(fct, ("RCP", "TCP", "RC3"))), 2.0, "×"),
        (value("falling", *map(fct, ("RC3", "TCP", "RCP"))), 0.5, "×"),
        (value("largest_factor", fct("TCP"), fct("RC3")), 1.25, "× printed"),
        (value("largest_difference", cut("RC3")), 1.5, "points from printed"),
        (value("least", fct("RC3"), fct("TCP")), 0.1, "s"),
        (value("largest", fct("RC3"), fct("TCP")), 0.2, "s"),
        (value("inside", fct("RC3"), fct("none")), 0.02, "s inside"),
        (value("over_largest", fct("RC3"), fct("TCP"), fct("RCP")), 0.25, "×"),
        (value("over_least", fct("RC3"), fct("TCP"), fct("RCP")), 0.5, "×"),
        (value("least_over", fct("TCP"), fct("RCP"), fct("RC3")), 2.0, "×"),
        (value("over_median", fct("RCP"), fct("RC3"), fct("TCP"), fct("RCP")), 2.0, "×"),
        (value("spread", fct("RC3"), fct("TCP"), fct("RCP")), 4.0, "×"),
        (value("less_least", cut("RC3"), fct("TCP"), fct("RCP")), 44.8, "points"),
        (value("lead_of_difference", fct("RCP"), fct("RC3"), fct("TCP"), fct("RC3")), 0.2, "s"),
        (of_groups("least_falling", [fct("RCP"), fct("RC3")], [fct("RCP"), fct("TCP")]), 2.0, "×"),
        (of_groups("largest_spread", [fct("RCP"), fct("RC3")], [fct("RCP"), fct("TCP")]), 4.0, "×"),
    ],
)
def test_a_value_is_computed_from_rows(value: Value, number: float, unit: str) -> None:
    assert check(value).value == pytest.approx(number)
    assert check(value).holds
    assert Claim("made up", value, (0, 1)).unit == unit


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (value("ours", fct("RC4")), 'no row "30%: RC4 FCT"'),
        (value("ours", fct("lost")), 'no run gave a number for the row "30%: lost FCT"'),
        (value("over_paper", fct("RCP")), 'no printed number in the row "30%: RCP FCT"'),
        (value("over_paper", fct("none")), "divide"),
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
        ((45.0, math.inf), True),
        ((45.1, math.inf), False),
        ((-math.inf, 45.0), True),
        ((-math.inf, 44.9), False),
    ],
)
def test_a_claim_holds_within_its_band_and_on_its_bounds(band: tuple[float, float], holds: bool) -> None:
    assert check(value("ours", cut("RC3")), band).holds is holds


def test_a_failed_claim_has_a_reason_or_is_not_explained() -> None:
    failing = Claim("made up", value("ours", cut("RC3")), full=(50.0, math.inf), quick=(50.0, math.inf))
    assert failing.check(FULL, ROWS).reason == NOT_EXPLAINED
    assert failing.check(BRIEF, ROWS).reason == ""
    assert replace(failing, reason="because").check(FULL, ROWS).reason == "because"
    assert replace(failing, full=(40.0, math.inf)).check(FULL, ROWS).reason == ""


def test_a_quick_run_is_compared_with_the_quick_band_only() -> None:
    claim = Claim("made up", value("ours", cut("RC3")), full=(0, 1), quick=(40, 50))
    assert claim.check(BRIEF, ROWS).holds
    assert claim.check(FULL, ROWS).holds is False


def test_a_claim_without_a_quick_band_is_not_checked_by_a_quick_run() -> None:
    assert Claim("made up", value("ours", fct("RC4")), full=(0, 1)).check(BRIEF, ROWS) == Verdict("made up", None, None)


def test_a_claim_fails_if_rc3s_gain_falls_from_45_to_5_percent() -> None:
    claim = Claim("RC3 cuts completion times by 43.5 %", value("less_paper", cut("RC3")), full=(-3, 3), quick=(-15, 15))
    fallen = Evaluation((Row(cut("RC3"), 43.5, 5.0),))
    for effort in (FULL, BRIEF):
        assert claim.check(effort, ROWS).holds
        assert claim.check(effort, fallen).holds is False
