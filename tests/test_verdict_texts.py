"""Tests with random numbers that the headlines and tables of comparisons are true."""

import re

import numpy as np
import polars as pl
import pytest

from made_up_runs import row
from sparelane.results.rows import to_frame
from sparelane.sweeps import comparison, verdict
from sparelane.sweeps.comparison import Subject
from sparelane.sweeps.differences import Comparison, Outcome, Thresholds
from sparelane.sweeps.metrics import Metric

LIMITS = Thresholds()
METRICS = (
    Metric("completion time", "mean over flows"),
    Metric("goodput", "total"),
    Metric("retransmissions", "total"),
    Metric("timeouts", "mean over flows"),
)
KINDS = ("fifo", "codel", "red")


def random_runs(draw: np.random.Generator) -> tuple[pl.DataFrame, Metric]:
    """Returns runs of two schemes with random settings, effects, noise and numbers of seeds."""
    metric = METRICS[draw.integers(len(METRICS))]
    seeds = int(draw.choice([1, 2, 3, 4, 5, 10]))
    kinds = KINDS[: draw.integers(1, 4)]
    loads = [0.1, 0.5, 0.9][: draw.integers(1, 4)]
    noise = float(draw.choice([0.0, 0.001, 0.02, 0.3]))
    effects = draw.choice([0.0, 0.003, 0.05, 0.5, -0.003, -0.05, -0.5], size=(len(kinds), len(loads)))
    if draw.random() < 0.3:
        # The same effect in all settings.
        effects = np.full_like(effects, effects.flat[0])
    made = []
    for place, kind in enumerate(kinds):
        for other, load in enumerate(loads):
            common = draw.lognormal(0, 0.3 if noise else 0.0, seeds)
            for scheme, factor in (("tcp", 1.0), ("rc3", 1.0 + effects[place, other])):
                values = 10 * common * factor * draw.lognormal(0, noise, seeds)
                made += [
                    row(scheme, metric, value, seed, {"queue.kind": kind, "workload.load": load})
                    for seed, value in enumerate(values, 1)
                ]
    return to_frame(made, {"queue.kind": pl.String(), "workload.load": pl.Float64()}), metric


def sign_word(value: float) -> str:
    return "lower" if value < 0 else "higher"


@pytest.mark.parametrize("number", range(300))
def test_the_text_of_a_comparison_is_true_for_its_numbers(number: int) -> None:
    runs, metric = random_runs(np.random.default_rng(number))
    answer = Subject(runs, ()).compare("tcp", metric=metric.name)
    [[one, *_]] = answer.comparisons
    text = verdict.headline(one, LIMITS)
    for found in one.differences:
        true_of_a_setting(found.outcome, found.change.value, found.change.low, found.change.high, metric, one)
        # A clear difference has the same sign as the difference of the printed means.
        if found.outcome in (Outcome.BETTER, Outcome.WORSE):
            assert (found.other > found.baseline) == (found.change.value > 0)
    clear = {found.change.sign for found in one.differences if found.outcome in (Outcome.BETTER, Outcome.WORSE)}
    seeds = min(len(pair.samples) for pair in one.pairs)
    if len(clear) == 2:
        assert one.is_split
    if one.is_split:
        true_of_a_contradiction(text, one)
        return
    assert "depends on" not in text
    whole = one.overall
    if one.outcome in (Outcome.BETTER, Outcome.WORSE):
        assert (
            f"{sign_word(whole.value)} under rc3 than under tcp" in text or f"{sign_word(whole.value)} in every" in text
        )
        assert abs(whole.value) >= LIMITS.of(metric)
    elif one.outcome is Outcome.NEGLIGIBLE:
        assert "differs negligibly between rc3 and tcp" in text
    elif one.outcome in (Outcome.UNCLEAR, Outcome.ADJUSTED):
        assert text.startswith("No clear difference")
    elif one.outcome is Outcome.EQUAL:
        assert "is equal between rc3 and tcp" in text
    else:
        assert seeds < 3
        assert "cannot support an interval" in text
        assert not re.search(r"\d to \S?\d", text.split(";")[0])
    # The numbers of settings add up.
    if counts := re.search(r"(?:better|worse) in (\d+) of (\d+) settings", text):
        assert int(counts[2]) == len(one.differences)
        assert int(counts[1]) == sum(found.outcome in (Outcome.BETTER, Outcome.WORSE) for found in one.differences)


def true_of_a_setting(
    outcome: Outcome, value: float, low: float | None, high: float | None, metric: Metric, one: Comparison
) -> None:
    least = LIMITS.of(metric)
    is_better = value != 0 and (value > 0) == (metric.better > 0)
    if outcome in (Outcome.BETTER, Outcome.WORSE):
        assert (outcome is Outcome.BETTER) == is_better
        assert abs(value) >= least
        assert low is None or high is None or low > 0 or high < 0
    elif outcome is Outcome.NEGLIGIBLE:
        assert abs(value) < least
    elif outcome in (Outcome.ONE_SEED, Outcome.TWO_SEEDS):
        assert low is None
        assert high is None
    elif outcome is Outcome.UNCLEAR and low is not None and high is not None:
        assert low <= 0 <= high or len(one.differences) > 1


def true_of_a_contradiction(text: str, one: Comparison) -> None:
    """Checks that there is no overall number and that both directions occur."""
    values = [found.change.value for found in one.differences]
    assert min(values) < 0 < max(values)
    assert comparison.to_json(one)["change"] is None
    if not one.is_certain:
        assert "ranges from" in text
        assert "cannot support an interval" in text
        return
    assert "depends on" in text
    if one.depends_on:
        # Clear settings with the same values of these keys agree.
        seen: dict[tuple[str, ...], int] = {}
        for found in one.differences:
            if found.outcome in (Outcome.BETTER, Outcome.WORSE):
                key = tuple(str(found.axes[name]) for name in one.depends_on)
                assert seen.setdefault(key, found.change.sign) == found.change.sign


def test_the_random_comparisons_cover_every_outcome() -> None:
    """The test above needs all kinds of outcomes."""
    outcomes: set[str] = set()
    for number in range(300):
        runs, metric = random_runs(np.random.default_rng(number))
        [[one, *_]] = Subject(runs, ()).compare("tcp", metric=metric.name).comparisons
        outcomes |= {str(found.outcome) for found in one.differences}
        outcomes |= {"split"} if one.is_split and one.is_certain else {"range"} if one.is_split else set()
    assert outcomes >= {
        *("better", "worse", "negligible", "equal", "no clear difference", "one seed", "two seeds", "split", "range")
    }


def test_ratios_that_rise_while_the_means_fall_are_not_clear() -> None:
    baseline, other = [1.0] * 19 + [1000.0], [1.1] * 19 + [100.0]
    rows = [
        row(scheme, Metric("completion time", "mean over flows"), value, seed, {})
        for scheme, values in (("tcp", baseline), ("rc3", other))
        for seed, value in enumerate(values)
    ]
    [[one, *_]] = Subject(to_frame(rows), ()).compare().comparisons
    assert one.outcome is Outcome.UNCLEAR


def test_a_scheme_with_one_bad_seed_is_clearly_better_if_it_is_better_in_each() -> None:
    baseline, other = [8.3, 7.9, 6.9, 6.9, 7.2], [3.0, 0.31, 0.33, 0.34, 0.32]
    rows = [
        row(scheme, Metric("queueing delay", "mean over flows"), value, seed, {})
        for scheme, values in (("tcp", baseline), ("rc3", other))
        for seed, value in enumerate(values)
    ]
    [[one, *_]] = Subject(to_frame(rows), ()).compare().comparisons
    assert one.outcome is Outcome.BETTER
