"""Tests of comparisons of schemes: paired differences, intervals and verdicts."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import invoke
from made_up_runs import row
from small_sweeps import BASE, LOADS, do, file
from sparelane.results.rows import ALL, AxisValue, TidyRow, to_frame
from sparelane.sweeps import comparison, verdict
from sparelane.sweeps.differences import Comparison, Outcome, Thresholds, judge
from sparelane.sweeps.differences import compare as compare_pair
from sparelane.sweeps.metrics import HEADLINES, Metric

MEAN = HEADLINES[0]
LIMITS = Thresholds()


def rows(
    numbers: dict[tuple[str, float], list[float]], metric: str = MEAN.metric, average: str = MEAN.average
) -> pl.DataFrame:
    """Returns runs of schemes at loads, with one value per seed."""
    made = [
        row(scheme, Metric(metric, average), value, seed, {"load": load})
        for (scheme, load), values in numbers.items()
        for seed, value in enumerate(values, 1)
    ]
    return to_frame(made, {"load": pl.Float64()})


def between(runs: pl.DataFrame, metric: Metric = MEAN) -> Comparison:
    found = compare_pair(runs, "tcp", "rc3", metric)
    assert found is not None
    [judged] = judge([found], LIMITS)
    return judged


def sentences(runs: pl.DataFrame) -> str:
    return verdict.headline(between(runs), LIMITS)


def test_differences_are_paired_so_that_common_effects_of_seeds_cancel() -> None:
    common = np.random.default_rng(3).uniform(1.0, 9.0, 8)
    runs = rows({("tcp", 0.1): list(common), ("rc3", 0.1): list(0.6 * common)})
    [found] = between(runs).differences
    assert (found.change.value, found.change.low, found.change.high) == pytest.approx((-0.4, -0.4, -0.4))


def test_only_common_seeds_count() -> None:
    [found] = between(rows({("tcp", 0.1): [1.0, 2.0, 3.0], ("rc3", 0.1): [2.0, 4.0]})).differences
    assert (found.seeds, found.baseline, found.other) == ((1, 2), 1.5, 3.0)


def test_schemes_without_common_settings_are_not_compared() -> None:
    assert compare_pair(rows({("tcp", 0.1): [1.0], ("rc3", 0.2): [1.0]}), "tcp", "rc3", MEAN) is None


def test_each_setting_of_a_key_of_one_scheme_is_compared() -> None:
    made = [
        TidyRow(
            "x", message, scheme, ALL, MEAN.metric, MEAN.average, value, "s", [1], axes={"scheme.rc3.levels": levels}
        )
        for scheme, message, levels, value in (
            ("tcp", "", None, 4.0),
            ("rc3", "levels = 1", "1", 3.0),
            ("rc3", "levels = 2", "2", 2.0),
        )
    ]
    found = between(to_frame(made, {"scheme.rc3.levels": pl.String()}))
    assert [one.setting for one in found.differences] == ["levels = 1", "levels = 2"]
    assert [one.change.value for one in found.differences] == pytest.approx([-0.25, -0.5])


def test_a_verdict_has_the_change_the_interval_and_the_settings() -> None:
    draw = np.random.default_rng(5)
    numbers: dict[tuple[str, float], list[float]] = {}
    for load, cut in ((0.1, 0.55), (0.5, 0.75)):
        tcp = draw.uniform(1.0, 2.0, 10)
        numbers |= {("tcp", load): list(tcp), ("rc3", load): list(tcp * cut * draw.uniform(0.97, 1.03, 10))}
    text = sentences(rows(numbers))
    assert text.startswith("Mean completion time is 3")
    assert "lower under rc3 than under tcp; better at every load: most with load = 0.1 (−4" in text
    assert "least with load = 0.5 (−2" in text


def test_a_verdict_without_a_difference_states_that() -> None:
    numbers = {("tcp", 0.1): [1.0, 2.0, 3.0, 4.0], ("rc3", 0.1): [2.0, 1.0, 4.0, 3.0]}
    assert sentences(rows(numbers)).startswith("No clear difference in mean completion time between rc3 and tcp: 0 %")


@pytest.mark.parametrize(("seeds", "message"), [(1, "one seed"), (2, "two seeds")])
def test_one_and_two_seeds_have_no_interval_and_a_verdict_that_states_it(seeds: int, message: str) -> None:
    runs = rows({("tcp", 0.1): [2.0, 2.2][:seeds], ("rc3", 0.1): [1.0, 1.1][:seeds]})
    found = between(runs)
    assert (found.overall.low, found.overall.high) == (None, None)
    assert sentences(runs) == (
        f"Mean completion time is 50 % lower under rc3 than under tcp; {message} cannot support an interval."
    )
    assert comparison.table(found)[1][0][-2:] == ("−50 %", message)


def test_opposite_effects_are_never_averaged() -> None:
    steady = [1.0, 1.01, 0.99, 1.0]
    numbers = {
        ("tcp", 0.1): steady,
        ("rc3", 0.1): [0.5 * one for one in steady],
        ("tcp", 0.9): steady,
        ("rc3", 0.9): [1.2 * one for one in steady],
    }
    found = between(rows(numbers))
    assert (found.is_split, found.depends_on) == (True, ("load",))
    text = sentences(rows(numbers))
    assert text == (
        "Mean completion time under rc3, compared with tcp, depends on load: 50 % lower in every seed with load = 0.1; "
        "20 % higher in every seed with load = 0.9."
    )
    content = comparison.to_json(found)
    assert (content["change"], content["low"], content["depends_on"]) == (None, None, ["load"])
    assert comparison.overall_cells(found, LIMITS)[1:] == ("−50 % to +20 %", "depends on load")


def test_a_contradiction_with_two_seeds_has_no_common_number_either() -> None:
    numbers = {
        ("tcp", 0.1): [1.0, 1.1],
        ("rc3", 0.1): [0.5, 0.5],
        ("tcp", 0.9): [1.0, 1.1],
        ("rc3", 0.9): [2.0, 2.1],
    }
    text = sentences(rows(numbers))
    assert "ranges from −52 % with load = 0.1 to +95 % with load = 0.9; two seeds cannot support an interval" in text
    assert "depends" not in text


def test_scatter_around_zero_change_is_no_contradiction() -> None:
    draw = np.random.default_rng(11)
    numbers: dict[tuple[str, float], list[float]] = {}
    for load in range(12):
        numbers |= {(name, load): draw.normal(10, 1, 5).tolist() for name in ("tcp", "rc3")}
    found = between(rows(numbers))
    assert {one.change.sign for one in found.differences} == {-1, 1}
    assert not found.is_split


def test_the_key_that_separates_contradicting_settings_is_named() -> None:
    steady = [1.0, 1.01, 0.99, 1.0]
    made = [
        row(scheme, MEAN, value, seed, axes)
        for kind, factor in (("fifo", 0.5), ("codel", 3.0))
        for load in (0.1, 0.9)
        for axes in [dict[str, AxisValue]({"queue.kind": kind, "workload.load": load})]
        for scheme, factors in (("tcp", 1.0), ("rc3", factor))
        for seed, value in enumerate([factors * one * (1 + load) for one in steady], 1)
    ]
    runs = to_frame(made, {"queue.kind": pl.String(), "workload.load": pl.Float64()})
    assert between(runs).depends_on == ("queue.kind",)
    assert "depends on queue.kind: 50 % lower" in sentences(runs)
    by_kind = compare_pair(runs, "tcp", "rc3", MEAN, by=["queue.kind"])
    assert by_kind is not None
    assert [one.setting for one in by_kind.differences] == ["queue.kind = fifo", "queue.kind = codel"]
    assert [one.change.value for one in by_kind.differences] == pytest.approx([-0.5, 2.0])


def test_a_verdict_names_only_settings_in_which_the_change_is_clear() -> None:
    steady, wild = [1.0, 1.01, 0.99, 1.0], [0.2, 1.5, 2.6, 0.9]
    numbers = {
        ("tcp", 0.1): steady,
        ("rc3", 0.1): [0.4 * one for one in reversed(wild)],
        ("tcp", 0.5): steady,
        ("rc3", 0.5): [0.6 * one for one in wild],
        ("tcp", 0.9): steady,
        ("rc3", 0.9): [0.8 * one for one in steady],
    }
    found = between(rows(numbers))
    assert [one.outcome for one in found.differences] == [*[Outcome.UNCLEAR] * 2, Outcome.BETTER]
    assert sentences(rows(numbers)).endswith("; better in 1 of 3 settings (load = 0.9: −20 %), not clear in 2.")


def test_a_change_that_is_clear_by_itself_may_be_unclear_among_many() -> None:
    draw = np.random.default_rng(4)
    numbers: dict[tuple[str, float], list[float]] = {}
    for load in range(40):
        numbers |= {(name, load): draw.normal(10, 1, 5).tolist() for name in ("tcp", "rc3")}
    found = between(rows(numbers))
    alone = [one for one in found.differences if one.change.p is not None and one.change.p <= 0.05]
    assert alone
    assert {one.outcome for one in alone} == {Outcome.ADJUSTED}
    assert found.compared == 40


def test_a_difference_below_the_threshold_is_negligible_and_the_threshold_can_be_set() -> None:
    steady = np.array([1.0, 1.01, 0.99, 1.0, 1.02])
    apart = 1 + np.array([0.003, 0.005, 0.004, 0.003, 0.004])
    runs = rows({("tcp", 0.1): list(steady), ("rc3", 0.1): list(steady * apart)})
    found = compare_pair(runs, "tcp", "rc3", MEAN)
    assert found is not None
    [usual], [strict] = judge([found], LIMITS), judge([found], Thresholds(relative=0.001))
    assert (usual.outcome, strict.outcome) == (Outcome.NEGLIGIBLE, Outcome.WORSE)
    assert verdict.headline(usual, LIMITS).startswith("Mean completion time differs negligibly between rc3 and tcp")


def test_noise_around_zero_is_unclear_and_not_negligible() -> None:
    runs = rows({("tcp", 0.1): [1.0, 1.2, 0.8, 1.1], ("rc3", 0.1): [1.1, 0.9, 1.1, 1.0]})
    assert between(runs).outcome is Outcome.UNCLEAR


def test_shares_are_compared_in_points() -> None:
    metric = next(one for one in HEADLINES if one.metric == "retransmissions")
    numbers = {("tcp", 0.1): [4.0, 6.0, 5.0], ("rc3", 0.1): [1.0, 3.0, 2.0]}
    found = between(rows(numbers, metric.metric, metric.average), metric)
    assert found.overall.value == -3.0
    assert verdict.size(found.overall, metric) == "3.0 points lower in every seed"


def test_ends_of_an_interval_have_enough_digits_to_differ() -> None:
    steady = np.array([1.0, 1.01, 0.99, 1.0])
    runs = rows({("tcp", 0.1): list(steady), ("rc3", 0.1): list(steady * [0.62, 0.6202, 0.6199, 0.6201])})
    assert re.fullmatch(r"−38\.00 % \(−38\.0\d to −37\.9\d\)", verdict.change_text(between(runs).overall, MEAN))


def test_a_scheme_that_seems_better_because_fewer_flows_finish_is_doubtful() -> None:
    times = {("tcp", 0.1): [4.0, 4.1, 3.9], ("rc3", 0.1): [2.0, 2.1, 1.9]}
    shares = {("tcp", 0.1): [100.0, 100.0, 100.0], ("rc3", 0.1): [60.0, 61.0, 59.0]}
    runs = pl.concat([rows(times), rows(shares, "finished flows", "total")])
    assert between(runs).outcome is Outcome.DOUBTFUL
    assert "60.0 % finished under rc3" in sentences(runs) or "60.0 % under rc3" in sentences(runs)
    # The mean of a scheme that finishes more flows includes the slow ones, so that scheme is certainly better.
    shares = {("rc3", 0.1): [100.0, 100.0, 100.0], ("tcp", 0.1): [60.0, 61.0, 59.0]}
    runs = pl.concat([rows(times), rows(shares, "finished flows", "total")])
    assert between(runs).outcome is Outcome.BETTER


def test_the_usual_metrics_are_measured(tmp_path: Path) -> None:
    do(LOADS, tmp_path, seeds=2)
    [found] = comparison.compare(tmp_path).comparisons
    assert {"completion", "slowdown", "goodput", "finished", "timeouts"} <= {one.metric.name for one in found}


def test_compare_of_a_sweep_prints_a_table_and_a_verdict(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "out", seeds=3)
    result = invoke("compare", tmp_path / "out", "--json", tmp_path / "c.json")
    assert result.exit_code == 0, result.output
    assert "Ranking by mean completion time, by" in result.output
    assert re.search(r"^ +0\.3 .* ms .* ms", result.output, re.MULTILINE)
    assert "All schemes had the same flows" in result.output
    content = json.loads((tmp_path / "c.json").read_text())
    assert {(one["baseline"], one["scheme"]) for one in content} == {("tcp", "rc3")}
    other = invoke("compare", tmp_path / "out", "--baseline", "rc3")
    assert "tcp compared with rc3" in other.output
    assert "All seeds give the same numbers" not in result.output


def test_seeds_without_effect_are_reported(tmp_path: Path) -> None:
    alike = LOADS[: LOADS.index("[workload]")] + '[workload]\nkind = "bulk"\nsize = "100kB"\n'
    do(alike, tmp_path / "out", seeds=3)
    output = " ".join(invoke("compare", tmp_path / "out").output.split())
    assert "All seeds give the same numbers: nothing is random, one seed suffices, and all numbers are" in output


def test_a_difference_without_randomness_is_exact(tmp_path: Path) -> None:
    alike = LOADS[: LOADS.index("[workload]")] + '[workload]\nkind = "bulk"\nsize = "100kB"\n'
    do(alike.replace('"100ms"', '"2s"').replace('"2ms"', '"40ms"'), tmp_path / "out", seeds=3)
    json_file = tmp_path / "c.json"
    output = " ".join(invoke("compare", tmp_path / "out", "--json", json_file).output.split())
    assert invoke("report", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (output, page):
        assert "better (exact: nothing is random)" in text
        assert re.search(
            r"completion time is [\d.]+ % lower under rc3 than under tcp, exactly: nothing is random", text
        )
        for message in ("No clear difference", "no clear difference", "Intervals are", " to −", "seed cannot"):
            assert message not in text, message
    assert {(one["exact"], one["low"]) for one in json.loads(json_file.read_text())} == {(True, None)}


def test_equal_values_of_one_metric_do_not_make_a_run_exact(tmp_path: Path) -> None:
    do(LOADS.replace('"100ms"', '"1s"'), tmp_path, seeds=3)
    [found] = comparison.compare(tmp_path).comparisons
    finished = next(one for one in found if one.metric.name == "finished")
    assert not finished.overall.is_exact


def test_compare_of_scenario_files_runs_them_with_the_same_seeds(tmp_path: Path) -> None:
    a = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.5\nscheme = "tcp"'), "a.toml")
    b = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.5\nscheme = "rc3"'), "b.toml")
    result = invoke("compare", a, b, "--seeds", "3", "-o", tmp_path / "out", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "b compared with a" in result.output
    assert "All schemes had the same flows" in result.output
    c = file(tmp_path, BASE.replace("load = 0.5", 'load = 0.7\nscheme = "rc3"'), "c.toml")
    assert (
        "The flows differ between schemes" in invoke("compare", a, c, "--seeds", "2", "-o", tmp_path / "other").output
    )


def test_compare_of_two_sweeps_names_schemes_after_their_folders(tmp_path: Path) -> None:
    only = LOADS.replace("[workload]", '[workload]\nscheme = "tcp"')
    do(only, tmp_path / "small", seeds=2)
    do(only.replace("1bdp", "2bdp"), tmp_path / "large", seeds=2)
    result = invoke("compare", tmp_path / "small", tmp_path / "large")
    assert result.exit_code == 0, result.output
    assert "large compared with small" in result.output


def test_a_comparison_that_is_not_possible_is_one_clear_error(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "good")
    do(LOADS.replace("[workload]", '[workload]\nscheme = "tcp"'), tmp_path / "one")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    cases = [
        (("empty",), "holds no sweep"),
        (("run",), "holds a single run"),
        (("one",), "nothing to compare: the results have only tcp"),
        (("good", "--scheme", "rc4"), 'there is no scheme "rc4"; did you mean "rc3"'),
        (("good", "--baseline", "x"), 'there is no scheme "x"'),
        (("missing.toml",), "there is no file"),
        (("missing.toml", "good"), "there is no file"),
        (("good", "--json", "/nowhere/x.json"), "cannot write the file"),
    ]
    for (first, *rest), message in cases:
        result = invoke("compare", tmp_path / first, *rest)
        assert (result.exit_code, message in result.stderr) == (2, True), (first, rest, result.output)


def test_a_metric_that_may_be_zero_is_compared_by_its_difference() -> None:
    metric = next(one for one in HEADLINES if one.metric == "timeouts")
    numbers = {
        ("tcp", 0.1): [0.2, 0.4, 0.3],
        ("rc3", 0.1): [0.0, 0.0, 0.0],
        ("tcp", 0.9): [0.3, 0.5, 0.4],
        ("rc3", 0.9): [0.1, 0.1, 0.1],
    }
    found = between(rows(numbers, metric.metric, metric.average), metric)
    assert found.overall.value == pytest.approx(-0.3)
    assert (found.outcome, verdict.change_text(found.overall, metric)) == (
        Outcome.BETTER,
        "−0.3 per flow (−0.5 to −0.1)",
    )


def test_a_setting_without_a_ratio_does_not_affect_the_others() -> None:
    numbers = {
        ("tcp", 0.1): [2.0, 4.0, 3.0],
        ("rc3", 0.1): [0.0, 0.0, 0.0],
        ("tcp", 0.9): [2.0, 4.0, 3.0],
        ("rc3", 0.9): [1.0, 2.0, 1.5],
    }
    found = between(rows(numbers))
    assert (found.overall.value, found.overall.low) == pytest.approx((-0.5, -0.5))
    assert comparison.table(found)[1][0][3:] == ("−100 %", "better")
