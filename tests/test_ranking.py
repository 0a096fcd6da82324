"""Tests of rankings of schemes and of their ties."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from made_up_runs import row
from sparelane.results.rows import to_frame
from sparelane.sweeps import ranking
from sparelane.sweeps.comparison import Subject
from sparelane.sweeps.differences import Thresholds
from sparelane.sweeps.metrics import HEADLINES, Metric, find, known
from sparelane.sweeps.ranking import Ranking

COMPLETION = HEADLINES[0]
GOODPUT = Metric("goodput", "total")
NOISE = np.array([1.0, 1.01, 0.99, 1.005, 0.995])


def runs(
    numbers: Mapping[tuple[str, str], Sequence[float] | NDArray[np.float64]], metric: Metric = COMPLETION
) -> pl.DataFrame:
    """Returns runs of schemes with queues, one value per seed."""
    made = [
        row(scheme, metric, value, seed, {"queue.kind": kind})
        for (scheme, kind), values in numbers.items()
        for seed, value in enumerate(values, 1)
    ]
    return to_frame(made, {"queue.kind": pl.String()})


def rank(frame: pl.DataFrame, metric: Metric = COMPLETION, by: Sequence[str] = ()) -> Ranking:
    schemes = frame["scheme"].unique(maintain_order=True).to_list()
    found = ranking.rank(frame, schemes, metric, Thresholds(), by=by)
    assert found is not None
    return found


def places(found: Ranking) -> dict[str, list[str]]:
    return {
        name: ["–" if cell is None else ranking.place_text(cell) for cell in cells]
        for name, cells in found.cells.items()
    }


def test_the_best_comes_first_and_unclear_differences_are_ties() -> None:
    shuffled = NOISE[[2, 0, 4, 1, 3]]
    frame = runs({("a", "fifo"): 3 * NOISE, ("b", "fifo"): NOISE, ("c", "fifo"): shuffled, ("d", "fifo"): 2 * NOISE})
    found = rank(frame)
    assert list(found.cells) in (["b", "c", "d", "a"], ["c", "b", "d", "a"])
    assert places(found) == {"a": ["4"], "b": ["1="], "c": ["1="], "d": ["3"]}


def test_more_is_better_for_goodput() -> None:
    frame = runs({("a", "fifo"): 3 * NOISE, ("b", "fifo"): NOISE}, GOODPUT)
    assert places(rank(frame, GOODPUT)) == {"a": ["1"], "b": ["2"]}


def test_negligible_differences_are_ties_even_if_they_are_certain() -> None:
    frame = runs({("a", "fifo"): NOISE, ("b", "fifo"): 1.003 * NOISE})
    assert places(rank(frame)) == {"a": ["1="], "b": ["1="]}


def test_each_setting_has_its_own_places_and_a_missing_number_is_a_dash() -> None:
    frame = runs({("a", "fifo"): NOISE, ("b", "fifo"): 2 * NOISE, ("a", "codel"): 2 * NOISE, ("c", "codel"): NOISE})
    assert places(rank(frame)) == {"c": ["–", "1"], "a": ["1", "2"], "b": ["2", "–"]}


def test_two_seeds_give_an_order_and_no_ties() -> None:
    found = rank(runs({("a", "fifo"): [1.0, 1.1], ("b", "fifo"): [1.0, 1.2]}))
    assert (places(found), found.has_ties) == ({"a": ["1"], "b": ["2"]}, False)


def test_equal_schemes_are_rarely_separated() -> None:
    draw = np.random.default_rng(6)
    apart = 0
    for _ in range(200):
        names = [(name, kind) for name in "abcd" for kind in ("fifo", "codel")]
        found = rank(runs({name: draw.lognormal(0.0, 0.2, 5).tolist() for name in names}))
        apart += any(place != "1=" for row in places(found).values() for place in row)
    assert apart / 200 <= 0.08


@pytest.mark.parametrize(
    ("schemes", "settings", "headings"),
    [
        (3, 1, ["place", "scheme", "mean completion time"]),
        (3, 3, ["scheme", "k0", "k1", "k2"]),
        (3, 9, ["queue.kind", "s0", "s1", "s2"]),
        (14, 9, ["scheme", "mean place", "first in", "last in", "smallest", "largest"]),
    ],
)
def test_the_table_of_a_ranking_has_few_columns(schemes: int, settings: int, headings: list[str]) -> None:
    frame = runs({(f"s{name}", f"k{kind}"): (name + 1) * NOISE for name in range(schemes) for kind in range(settings)})
    if settings == 1:
        frame = frame.with_columns(pl.lit("").alias("setting")).drop("queue.kind")
    names, rows = rank(frame).table()
    assert names == headings
    assert all(len(row) == len(names) for row in rows)


def test_settings_are_merged_by_a_key_or_by_its_table() -> None:
    frame = runs({("a", "fifo"): NOISE, ("b", "fifo"): 2 * NOISE, ("a", "codel"): 2 * NOISE, ("b", "codel"): NOISE})
    other = frame.with_columns(pl.lit(0.5).alias("workload.load"))
    both = pl.concat([other, other.with_columns(pl.lit(0.9).alias("workload.load"), value=pl.col("value") * 3)])
    for by in ("queue.kind", "queue", "kind"):
        answer = Subject(both, ()).compare(by=[by])
        assert answer.ranking is not None
        assert answer.ranking.settings == ("queue.kind = fifo", "queue.kind = codel")
        assert [found.setting for found in answer.comparisons[0][0].differences] == list(answer.ranking.settings)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("p99-completion", ("completion time", "99th percentile")),
        ("completion-p99", ("completion time", "99th percentile")),
        ("P99 completion time", ("completion time", "99th percentile")),
        ("p99-fct", ("completion time", "99th percentile")),
        ("fct", ("completion time", "mean over flows")),
        ("mean-completion", ("completion time", "mean over flows")),
        ("completion", ("completion time", "mean over flows")),
        ("p999-slowdown", ("slowdown", "99.9th percentile")),
    ],
)
def test_metrics_have_short_names_with_parts_in_any_order(name: str, metric: tuple[str, str]) -> None:
    names = [
        ("completion time", "mean over flows"),
        ("completion time", "99th percentile"),
        ("slowdown", "99.9th percentile"),
    ]
    frame = pl.concat([runs({("a", "fifo"): NOISE}, Metric(*one)) for one in names])
    found = find(name, known(frame))
    assert (found.metric, found.average) == metric
