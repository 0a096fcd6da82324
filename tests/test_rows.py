"""Tests of rows: differences, reasons, saved forms and tables."""

import math
from dataclasses import replace

import pytest

from sparelane.papers import registry
from sparelane.papers.engine.base import Effort, Simulation
from sparelane.papers.engine.rows import (
    NOT_EXPLAINED,
    QUICK,
    VARIED,
    Evaluation,
    Key,
    Metric,
    Row,
    from_record,
    measured,
    to_record,
)
from sparelane.papers.pages.text import difference, number, table

FCT, REDUCTION, LOSS = Metric("FCT", "s"), Metric("reduction", "%"), Metric("loss", "%", is_loss_rate=True)


def row(metric: Metric, paper: float | None, value: float | None, interval: float | None = None) -> Row:
    return Row(Key("30%", metric, "RC3"), paper, value, interval)


def test_a_reduction_deviates_by_more_than_five_points() -> None:
    assert not row(REDUCTION, 43.54, 48.5).deviates
    assert row(REDUCTION, 43.54, 48.6).deviates


def test_a_time_deviates_by_more_than_a_tenth() -> None:
    assert not row(FCT, 0.135, 0.148).deviates
    assert row(FCT, 0.135, 0.149).deviates


def test_without_a_printed_number_there_is_no_difference() -> None:
    unprinted = row(Metric("size"), None, 1.0)
    assert unprinted.difference is None
    assert not unprinted.deviates
    assert unprinted.check == ""


@pytest.mark.parametrize(("ours", "paper"), [(0.05, 0.001), (0.001, 0.05), (0.0, 0.3), (4.9, 2.4), (0.002, 0.0)])
def test_small_shares_are_compared_as_ratios(ours: float, paper: float) -> None:
    assert row(Metric("loss", "%"), paper, ours).deviates


@pytest.mark.parametrize(("ours", "paper"), [(0.05, 0.03), (0.0, 0.0), (0.0, 0.001), (0.0009, 0.0), (4.9, 2.5)])
def test_small_shares_agree_within_a_factor_of_two(ours: float, paper: float) -> None:
    assert not row(Metric("loss", "%"), paper, ours).deviates


def test_a_change_below_zero_is_compared_in_points() -> None:
    assert not row(REDUCTION, 2.0, -1.0).deviates


def test_loss_rates_of_any_size_are_compared_as_ratios() -> None:
    assert not row(LOSS, 28.46, 20.0).deviates
    assert row(Metric("utilisation", "%"), 28.46, 20.0).deviates
    assert row(LOSS, 28.46, 14.0).deviates


def test_a_printed_number_without_a_value_deviates() -> None:
    assert measured(Key("30%", FCT, "TCP"), 0.135, []).deviates


BELOW, ABOVE, BETWEEN, ALIKE = (-math.inf, 100.0), (100.0, math.inf), (400.0, 700.0), (100.0, 100.0)


@pytest.mark.parametrize(
    ("stated", "value", "deviates"),
    [
        (BELOW, 99.9, False),
        (BELOW, 100.0, True),
        (BELOW, 772.0, True),
        (ABOVE, 70.0, True),
        (ABOVE, 100.0, True),
        (ABOVE, 100.1, False),
        (BETWEEN, 400.0, False),
        (BETWEEN, 700.1, True),
        (ALIKE, 95.5, False),
        (ALIKE, 74.8, True),
        (BELOW, None, True),
    ],
)
def test_a_row_with_bounds_instead_of_a_number_is_compared_with_them(
    stated: tuple[float, float], value: float | None, deviates: bool
) -> None:
    judged = Row(Key("a", REDUCTION), None, value, stated=stated)
    assert judged.counts
    assert judged.deviates is deviates
    assert judged.check == (NOT_EXPLAINED if deviates else "in band")


def test_a_varied_row_is_shown_and_does_not_count() -> None:
    varied = Row(Key("a", FCT, variant="other paths"), 1.0, 2.0)
    assert varied.deviates
    assert not varied.counts
    assert varied.check == VARIED
    there = replace(MADE_UP, evaluate=lambda effort, outcomes: Evaluation((varied,)))
    assert there.judge(there.full, {}).rows[0].reason == ""
    with_reason = replace(there, reasons={varied.key: "because"})
    assert with_reason.judge(with_reason.full, {}).rows[0].reason == "because"


def test_rows_are_restated_before_they_are_explained() -> None:
    turned = replace(MADE_UP, restate=lambda found: replace(found, rows=found.rows[::-1]))
    assert [row.reason for row in turned.judge(turned.full, {}).rows] == [NOT_EXPLAINED, "because", ""]


NEAR, FAR, FARTHER, GONE = (Key(setting, FCT) for setting in ("near", "far", "farther", "gone"))
ROWS = (Row(NEAR, 1.0, 1.05), Row(FAR, 1.0, 2.0), Row(FARTHER, 1.0, 3.0))
MADE_UP = replace(
    registry()["rc3/model"],
    evaluate=lambda effort, outcomes: Evaluation(ROWS),
    reasons=dict.fromkeys((NEAR, FAR, GONE), "because"),
)


def test_a_deviating_row_has_its_reason_or_is_not_explained() -> None:
    near, far, farther = MADE_UP.judge(MADE_UP.full, {}).rows
    assert (near.reason, far.reason, farther.reason) == ("", "because", NOT_EXPLAINED)
    assert [row.is_explained for row in (near, far, farther)] == [False, True, False]
    assert [row.check for row in (near, far, farther)] == ["in band", "explained", NOT_EXPLAINED]


def test_a_reason_that_starts_with_not_explained_does_not_explain() -> None:
    assert not Row(FAR, 1.0, 2.0, reason=f"{NOT_EXPLAINED}: less memory has no part in it").is_explained


def runs(effort: Effort) -> list[Simulation]:
    return [Simulation("rc3-internet2", (), seed, label="") for seed in effort.seed_numbers()]


def test_rows_of_quick_runs_do_not_get_reasons_of_full_runs() -> None:
    simulated = replace(MADE_UP, plan=runs, full=Effort("full", seeds=10), quick=Effort("quick", seeds=1))
    _, far, farther = simulated.judge(simulated.quick, {}).rows
    assert (far.reason, farther.reason) == (QUICK, QUICK)
    assert not far.is_explained


def test_a_quick_effort_with_the_same_runs_counts_as_full() -> None:
    simulated = replace(MADE_UP, plan=runs, full=Effort("full", seeds=1), quick=Effort("quick", seeds=1))
    assert simulated.judge(simulated.quick, {}).find(FAR).reason == "because"


def test_reasons_that_no_row_needs_are_found() -> None:
    assert MADE_UP.unneeded_reasons(Evaluation(ROWS)) == [NEAR, GONE]


def test_a_saved_row_has_a_column_for_each_part_of_its_key() -> None:
    key = Key("30%", REDUCTION, "RC3", "mean over flows", "small flows", "even paths")
    assert to_record(Row(key, 43.5, 45.0, 0.5), "rc3/x") == {
        "experiment": "rc3/x",
        "setting": "30%",
        "variant": "even paths",
        "scheme": "RC3",
        "traffic": "small flows",
        "metric": "reduction",
        "average": "mean over flows",
        "value": 45.0,
        "interval": 0.5,
        "paper": 43.5,
        "paper_low": None,
        "paper_high": None,
        "unit": "%",
        "is_loss_rate": False,
        "check": "varied",
        "reason": "",
    }


@pytest.mark.parametrize(
    "saved",
    [
        measured(Key("a", FCT), 0.5, []),
        Row(Key("a", LOSS, "TCP", "mean", "b", "c"), 0.1, 0.3, 0.01, reason="because"),
        Row(Key("a", REDUCTION), None, 45.0, stated=(-math.inf, 100.0)),
        Row(Key("a", REDUCTION), None, 45.0, stated=(100.0, 100.0)),
    ],
)
def test_a_saved_row_is_read_back_equal(saved: Row) -> None:
    assert from_record(to_record(saved, "rc3/x")) == saved


def test_a_table_of_rows_has_only_columns_with_values() -> None:
    cut = Row(Key("30%", REDUCTION, "RC3", "mean over flows"), 43.54, 41.0, 0.5)
    time = Row(Key("30%", FCT, "TCP", "mean over flows"), 0.1, 0.15, None, reason="because")
    shown = table([cut, time])
    assert shown.headings == ("setting", "scheme", "metric", "average", "paper", "ours", "difference", "reason")
    assert shown.lines == [
        ("30%", "RC3", "reduction", "mean over flows", "43.54 %", "41.00 ± 0.50 %", "−2.54 points", ""),
        ("30%", "TCP", "FCT", "mean over flows", "0.1000 s", "0.1500 s", "+0.0500 s (+50.0 %)", "because"),
    ]


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ((-math.inf, 100.0), "below 100 %"),
        ((50.0, math.inf), "above 50 %"),
        ((400.0, 700.0), "400 to 700 %"),
        ((100.0, 100.0), "about 100 %"),
    ],
)
def test_bounds_replace_the_papers_number_in_a_table(stated: tuple[float, float], text: str) -> None:
    shown = table([Row(Key("a", REDUCTION), None, 45.0, stated=stated)])
    assert shown.lines[0][shown.headings.index("paper")] == text


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
    assert difference(row(REDUCTION, 10.0, 9.9999)) == "0.00 points"


def test_a_difference_of_small_shares_includes_their_ratio() -> None:
    assert difference(row(LOSS, 0.06, 0.19)) == "+0.13 points (×3.2)"
    assert difference(row(LOSS, 0.0, 0.19)) == "+0.19 points"
