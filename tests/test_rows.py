"""Rows, their differences, and how people and machines read them."""

from dataclasses import replace

import pytest

from sparelane.experiments import registry
from sparelane.experiments.base import Evaluation, Row, exact, measured
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


def test_a_reason_stands_beside_rows_that_deviate_only() -> None:
    rows = (Row("near", "FCT", "s", 1.0, 1.05, None), Row("far", "FCT", "s", 1.0, 2.0, None))
    experiment = replace(
        registry()["rc3/model"],
        evaluate=lambda effort, outcomes: Evaluation(rows),
        reasons={("near", "FCT"): "because", ("far", "FCT"): "because"},
    )
    near, far = experiment.judge(experiment.quick, {}).rows
    assert (near.reason, far.reason) == ("", "because")


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
    }


def test_a_row_reads_as_in_a_table() -> None:
    row = Row("30% over flows", "reduction", "%", 43.54, 41.0, 0.5)
    assert cells(row) == ("30% over flows", "reduction", "43.54 %", "41.00 ± 0.50 %", "−2.54 points", "")
    row = Row("30% over flows", "TCP FCT", "s", 0.1, 0.15, None, "because")
    assert cells(row) == ("30% over flows", "TCP FCT", "0.1000 s", "0.1500 s", "+0.0500 s (+50.0 %)", "because")


@pytest.mark.parametrize(("value", "unit", "text"), [(-1.234, "%", "−1.23"), (0.12345, "s", "0.1235"), (8.0, "", "8")])
def test_numbers_have_the_digits_of_their_unit(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert difference(Row("a", "b", "%", 1.0, 0.999, None)) == "0.00 points"
