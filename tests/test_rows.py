"""Rows, their differences, and how people and machines read them."""

from dataclasses import replace

import pytest

from sparelane.experiments import registry
from sparelane.experiments.base import (
    NOT_EXPLAINED,
    QUICK,
    Effort,
    Evaluation,
    Row,
    Simulation,
    exact,
    loss_rate,
    measured,
)
from sparelane.experiments.text import cells, difference, number


def test_a_reduction_deviates_from_five_points_on() -> None:
    assert not Row("30%", "reduction", "%", 43.54, 48.5, None).deviates
    assert Row("30%", "reduction", "%", 43.54, 48.6, None).deviates


def test_a_time_deviates_from_a_tenth_on() -> None:
    assert not Row("30%", "TCP FCT", "s", 0.135, 0.148, None).deviates
    assert Row("30%", "TCP FCT", "s", 0.135, 0.149, None).deviates


def test_without_a_printed_number_there_is_no_difference() -> None:
    row = exact("peak", "size", "", None, 1.0)
    assert row.difference is None
    assert not row.deviates


@pytest.mark.parametrize(("ours", "paper"), [(0.05, 0.001), (0.001, 0.05), (0.0, 0.3), (4.9, 2.4), (0.002, 0.0)])
def test_small_shares_are_compared_as_ratios(ours: float, paper: float) -> None:
    assert Row("BCT", "loss", "%", paper, ours, None).deviates


@pytest.mark.parametrize(("ours", "paper"), [(0.05, 0.03), (0.0, 0.0), (0.0, 0.001), (0.0009, 0.0), (4.9, 2.5)])
def test_small_shares_agree_within_a_factor_of_two(ours: float, paper: float) -> None:
    assert not Row("BCT", "loss", "%", paper, ours, None).deviates


def test_a_change_below_zero_is_compared_in_points() -> None:
    assert not Row("small flows", "reduction", "%", 2.0, -1.0, None).deviates


def test_loss_rates_of_any_size_are_compared_as_ratios() -> None:
    assert not loss_rate("50%", "RC3 low priority", 28.46, [20.0]).deviates
    assert Row("50%", "utilisation", "%", 28.46, 20.0, None).deviates
    assert loss_rate("50%", "RC3 low priority", 28.46, [14.0]).deviates


def test_a_printed_number_that_no_run_gave_deviates() -> None:
    assert measured("30%", "TCP FCT", "s", 0.135, []).deviates


ROWS = (
    Row("near", "FCT", "s", 1.0, 1.05, None),
    Row("far", "FCT", "s", 1.0, 2.0, None),
    Row("farther", "FCT", "s", 1.0, 3.0, None),
)
MADE_UP = replace(
    registry()["rc3/model"],
    evaluate=lambda effort, outcomes: Evaluation(ROWS),
    reasons={("near", "FCT"): "because", ("far", "FCT"): "because", ("gone", "FCT"): "because"},
)


def test_beside_a_row_that_deviates_stands_its_reason_or_that_there_is_none() -> None:
    near, far, farther = MADE_UP.judge(MADE_UP.full, {}).rows
    assert (near.reason, far.reason, farther.reason) == ("", "because", NOT_EXPLAINED)
    assert [row.is_explained for row in (near, far, farther)] == [False, True, False]


def test_a_reason_that_begins_with_not_explained_does_not_explain() -> None:
    assert not Row(
        "far", "FCT", "s", 1.0, 2.0, None, reason=f"{NOT_EXPLAINED}: less memory has no part in it"
    ).is_explained


def runs(effort: Effort) -> list[Simulation]:
    return [Simulation("rc3-internet2", (), seed, label="") for seed in effort.seed_numbers()]


def test_beside_rows_of_quick_simulations_stands_no_reason_found_in_full_ones() -> None:
    simulated = replace(MADE_UP, plan=runs, full=Effort("full", seeds=10), quick=Effort("quick", seeds=1))
    _, far, farther = simulated.judge(simulated.quick, {}).rows
    assert (far.reason, farther.reason) == (QUICK, QUICK)
    assert not far.is_explained


def test_a_quick_effort_that_leaves_nothing_out_is_a_full_one() -> None:
    simulated = replace(MADE_UP, plan=runs, full=Effort("full", seeds=1), quick=Effort("quick", seeds=1))
    assert simulated.judge(simulated.quick, {}).find("far", "FCT").reason == "because"


def test_reasons_that_no_row_needs_are_found() -> None:
    assert MADE_UP.unneeded_reasons(Evaluation(ROWS)) == [("near", "FCT"), ("gone", "FCT")]


def test_machines_read_null_where_there_is_no_number() -> None:
    assert measured("a", "b", "s", 0.5, []).to_json("rc3/x") == {
        "experiment": "rc3/x",
        "row": "a",
        "metric": "b",
        "unit": "s",
        "paper": 0.5,
        "ours": None,
        "ci95": None,
        "difference": None,
        "is_loss_rate": False,
        "deviates": True,
        "reason": "",
    }


def test_a_row_reads_as_in_a_table() -> None:
    row = Row("30% over flows", "reduction", "%", 43.54, 41.0, 0.5)
    assert cells(row) == ("30% over flows", "reduction", "43.54 %", "41.00 ± 0.50 %", "−2.54 points", "")
    row = Row("30% over flows", "TCP FCT", "s", 0.1, 0.15, None, "because")
    assert cells(row) == ("30% over flows", "TCP FCT", "0.1000 s", "0.1500 s", "+0.0500 s (+50.0 %)", "because")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (-1.234, "%", "−1.23"),
        (0.0132, "%", "0.013"),
        (-0.00123, "%", "−0.0012"),
        (0.00001, "%", "0.00"),
        (0.12345, "s", "0.1235"),
        (8.0, "", "8"),
    ],
)
def test_numbers_have_the_digits_of_their_unit(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert difference(Row("a", "b", "%", 10.0, 9.9999, None)) == "0.00 points"


def test_a_difference_of_small_shares_says_their_ratio() -> None:
    assert difference(Row("a", "loss", "%", 0.06, 0.19, None)) == "+0.13 points (×3.2)"
    assert difference(Row("a", "loss", "%", 0.0, 0.19, None)) == "+0.19 points"
