"""Schemes beside each other: paired differences, their intervals, and what is said of them."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from small_sweeps import BASE, LOADS, do, file
from sparelane.cli import main
from sparelane.results.rows import ALL, TidyRow, to_frame
from sparelane.sweeps import verdict
from sparelane.sweeps.differences import QUESTIONS, Comparison, all_questions, compare

MEAN = QUESTIONS[0]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows(
    numbers: dict[tuple[str, float], list[float]], metric: str = MEAN.metric, average: str = MEAN.average
) -> pl.DataFrame:
    """Runs of schemes at loads, one value a seed."""
    made = [
        TidyRow("x", f"load = {load}", scheme, ALL, metric, average, value, "s", [seed], axes={"load": load})
        for (scheme, load), values in numbers.items()
        for seed, value in enumerate(values, 1)
    ]
    return to_frame(made, {"load": pl.Float64()})


def between(runs: pl.DataFrame) -> Comparison:
    found = compare(runs, "tcp", "rc3", MEAN)
    assert found is not None
    return found


def test_differences_are_paired_so_that_what_seeds_have_in_common_goes_away() -> None:
    common = np.random.default_rng(3).uniform(1.0, 9.0, 8)
    runs = rows({("tcp", 0.1): list(common), ("rc3", 0.1): list(0.6 * common)})
    [found] = between(runs).differences
    assert (found.change.value, found.change.low, found.change.high) == pytest.approx((-0.4, -0.4, -0.4))


def test_only_seeds_that_both_have_count() -> None:
    [found] = between(rows({("tcp", 0.1): [1.0, 2.0, 3.0], ("rc3", 0.1): [2.0, 4.0]})).differences
    assert (found.seeds, found.baseline, found.other) == ((1, 2), 1.5, 3.0)


def test_nothing_in_common_is_no_comparison() -> None:
    assert compare(rows({("tcp", 0.1): [1.0], ("rc3", 0.2): [1.0]}), "tcp", "rc3", MEAN) is None


def test_settings_of_one_scheme_alone_are_each_compared() -> None:
    made = [
        TidyRow("x", words, scheme, ALL, MEAN.metric, MEAN.average, value, "s", [1], axes={"scheme.rc3.levels": levels})
        for scheme, words, levels, value in (
            ("tcp", "", None, 4.0),
            ("rc3", "levels = 1", "1", 3.0),
            ("rc3", "levels = 2", "2", 2.0),
        )
    ]
    found = between(to_frame(made, {"scheme.rc3.levels": pl.String()}))
    assert [one.setting for one in found.differences] == ["levels = 1", "levels = 2"]
    assert [one.change.value for one in found.differences] == pytest.approx([-0.25, -0.5])


def test_a_verdict_says_by_how_much_how_surely_and_where() -> None:
    draw = np.random.default_rng(5)
    numbers: dict[tuple[str, float], list[float]] = {}
    for load, cut in ((0.1, 0.55), (0.5, 0.75)):
        tcp = draw.uniform(1.0, 2.0, 10)
        numbers |= {("tcp", load): list(tcp), ("rc3", load): list(tcp * cut * draw.uniform(0.97, 1.03, 10))}
    [said] = verdict.sentences([between(rows(numbers))])
    assert said.startswith("rc3 finishes flows 3")
    assert "sooner on average than tcp; it helps at every load: most with load = 0.1 (−4" in said
    assert "least with load = 0.5 (−2" in said


def test_a_verdict_without_a_difference_says_that_it_is_none() -> None:
    numbers = {("tcp", 0.1): [1.0, 2.0, 3.0, 4.0], ("rc3", 0.1): [2.0, 1.0, 4.0, 3.0]}
    [said] = verdict.sentences([between(rows(numbers))])
    assert said.startswith("rc3 beside tcp: no clear difference of the completion time")


def test_one_seed_has_no_interval_and_the_verdict_says_so() -> None:
    found = between(rows({("tcp", 0.1): [2.0], ("rc3", 0.1): [1.0]}))
    assert (found.overall.low, found.overall.high) == (None, None)
    [said] = verdict.sentences([found])
    assert said == "rc3 beside tcp: finishes flows 50 % sooner on average, by one seed, which has no interval."


def test_mixed_outcomes_are_counted() -> None:
    steady = [1.0, 1.01, 0.99, 1.0]
    numbers = {
        ("tcp", 0.1): steady,
        ("rc3", 0.1): [0.5 * one for one in steady],
        ("tcp", 0.9): steady,
        ("rc3", 0.9): [1.2 * one for one in steady],
    }
    [said] = verdict.sentences([between(rows(numbers))])
    assert "it helps in 1 of 2 settings (load = 0.1: −50 %), harms in 1 (load = 0.9: +20 %)" in said


def test_a_verdict_names_only_settings_in_which_the_change_is_clear() -> None:
    steady, wild = [1.0, 1.01, 0.99, 1.0], [0.2, 1.5, 2.6, 0.9]
    numbers = {
        ("tcp", 0.1): steady,
        ("rc3", 0.1): [0.4 * one for one in reversed(wild)],
        ("tcp", 0.5): steady,
        ("rc3", 0.5): [1.6 * one for one in wild],
        ("tcp", 0.9): steady,
        ("rc3", 0.9): [0.8 * one for one in steady],
    }
    found = between(rows(numbers))
    assert [verdict.outcome(one, found) for one in found.differences] == [*["no clear difference"] * 2, "better"]
    [said] = verdict.sentences([found])
    assert said.endswith("; it helps in 1 of 3 settings (load = 0.9: −20 %), makes no clear difference in 2.")


def test_shares_are_compared_in_points() -> None:
    question = next(one for one in QUESTIONS if one.metric == "retransmissions")
    numbers = {("tcp", 0.1): [4.0, 6.0], ("rc3", 0.1): [1.0, 3.0]}
    found = compare(rows(numbers, question.metric, question.average), "tcp", "rc3", question)
    assert found is not None
    assert (found.overall.value, verdict.size(found.overall, found)) == (-3.0, "3.0 points (3.0 to 3.0)")


def test_every_question_is_about_something_that_is_measured(tmp_path: Path) -> None:
    do(LOADS, tmp_path, seeds=2)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    asked = {one.question.metric for one in all_questions(runs, "tcp", "rc3")}
    assert {"completion time", "slowdown", "goodput", "finished flows", "timeouts"} <= asked


def test_compare_of_a_sweep_prints_a_table_and_a_verdict(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "out", seeds=3)
    result = invoke("compare", tmp_path / "out", "--json", tmp_path / "c.json")
    assert result.exit_code == 0, result.output
    assert "load = 0.3" in result.output
    assert "All schemes had the same flows" in result.output
    content = json.loads((tmp_path / "c.json").read_text())
    assert {(one["baseline"], one["scheme"]) for one in content} == {("tcp", "rc3")}
    other = invoke("compare", tmp_path / "out", "--baseline", "rc3")
    assert "tcp beside rc3" in other.output
    assert "Every seed gives the same numbers" not in result.output


def test_seeds_that_change_nothing_are_told(tmp_path: Path) -> None:
    alike = LOADS[: LOADS.index("[workload]")] + '[workload]\nkind = "bulk"\nsize = "100kB"\n'
    do(alike, tmp_path / "out", seeds=3)
    told = " ".join(invoke("compare", tmp_path / "out").output.split())
    assert "Every seed gives the same numbers: nothing here is random, and all numbers are exact." in told


def test_where_nothing_is_random_a_difference_is_exact_and_has_neither_interval_nor_chance(tmp_path: Path) -> None:
    alike = LOADS[: LOADS.index("[workload]")] + '[workload]\nkind = "bulk"\nsize = "100kB"\n'
    do(alike.replace('"100ms"', '"2s"').replace('"2ms"', '"40ms"'), tmp_path / "out", seeds=3)
    json_file = tmp_path / "c.json"
    told = " ".join(invoke("compare", tmp_path / "out", "--json", json_file).output.split())
    assert invoke("report", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (told, page):
        assert "exactly, nothing is random" in text
        assert re.search(r"rc3 finishes flows [\d.]+ % sooner on average than tcp, exactly: nothing is random", text)
        for words in ("better", "No clear difference", "no clear difference", "Intervals hold", " to −"):
            assert words not in text, words
    assert {(one["exact"], one["low"]) for one in json.loads(json_file.read_text())} == {(True, None)}


def test_equal_numbers_of_one_metric_are_not_taken_for_runs_without_chance(tmp_path: Path) -> None:
    do(LOADS.replace('"100ms"', '"1s"'), tmp_path, seeds=3)
    runs = pl.read_parquet(tmp_path / "runs.parquet")
    finished = next(one for one in all_questions(runs, "tcp", "rc3") if one.question.metric == "finished flows")
    assert not finished.overall.is_exact


def test_compare_of_scenario_files_runs_them_with_the_same_seeds(tmp_path: Path) -> None:
    a = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.5\nscheme = "tcp"'), "a.toml")
    b = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.5\nscheme = "rc3"'), "b.toml")
    result = invoke("compare", a, b, "--seeds", "3", "-o", tmp_path / "out", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "b beside a" in result.output
    assert "All schemes had the same flows" in result.output
    c = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.7\nscheme = "rc3"'), "c.toml")
    assert "not the same" in invoke("compare", a, c, "--seeds", "2", "-o", tmp_path / "other").output


def test_compare_of_two_sweeps_calls_schemes_after_their_folders(tmp_path: Path) -> None:
    only = LOADS.replace("[workload]", '[workload]\nscheme = "tcp"')
    do(only, tmp_path / "small", seeds=2)
    do(only.replace("1bdp", "2bdp"), tmp_path / "large", seeds=2)
    result = invoke("compare", tmp_path / "small", tmp_path / "large")
    assert result.exit_code == 0, result.output
    assert "large beside small" in result.output


def test_what_cannot_be_compared_is_one_clear_error(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "good")
    do(LOADS.replace("[workload]", '[workload]\nscheme = "tcp"'), tmp_path / "one")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    cases = [
        (("empty",), "holds no sweep"),
        (("run",), "holds a single run"),
        (("one",), "nothing to compare: the results are of tcp alone"),
        (("good", "--scheme", "rc4"), 'there is no scheme "rc4"; did you mean "rc3"'),
        (("good", "--baseline", "x"), 'there is no scheme "x"'),
        (("missing.toml",), "there is no file"),
        (("missing.toml", "good"), "there is no file"),
        (("good", "--json", "/nowhere/x.json"), "cannot write the file"),
    ]
    for (first, *rest), message in cases:
        result = invoke("compare", tmp_path / first, *rest)
        assert (result.exit_code, message in result.stderr) == (2, True), (first, rest, result.output)


def test_what_may_be_zero_is_compared_by_its_difference() -> None:
    question = next(one for one in QUESTIONS if one.metric == "timeouts")
    numbers = {("tcp", 0.1): [0.2, 0.4], ("rc3", 0.1): [0.0, 0.0], ("tcp", 0.9): [0.3, 0.5], ("rc3", 0.9): [0.1, 0.1]}
    found = compare(rows(numbers, question.metric, question.average), "tcp", "rc3", question)
    assert found is not None
    assert found.overall.value == pytest.approx(-0.3)
    assert (found.overall.sign, verdict.unit(found)) == (-1, "per flow")


def test_a_setting_without_a_ratio_does_not_spoil_the_others() -> None:
    numbers = {("tcp", 0.1): [2.0, 4.0], ("rc3", 0.1): [0.0, 0.0], ("tcp", 0.9): [2.0, 4.0], ("rc3", 0.9): [1.0, 2.0]}
    found = between(rows(numbers))
    assert (found.overall.value, found.overall.low) == pytest.approx((-0.5, -0.5))
    assert verdict.outcome(found.differences[0], found) == "no interval"
