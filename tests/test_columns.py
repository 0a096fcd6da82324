"""Checks that the declared columns match the tables of real runs, the docstrings and the reference."""

from __future__ import annotations

import inspect

import polars as pl
import pytest

import sparelane as sl
from sparelane.simulation import columns, stored
from sparelane.simulation.columns import Column, Columns
from sparelane.simulation.result import Result
from sparelane.simulation.summary import Summary

# Together, these runs have a row in every table and a value in every column.
RUNS = {
    "a bit of everything": """
duration = "60ms"
[topology]
kind = "star"
[measure]
delays = true
[scheme.rc3]
controller = "rc3"
[queue]
kind = "priority"
[[workload]]
kind = "bulk"
pairs = [["h1", "h2"]]
size = "300kB"
traffic_class = "urgent"
[[workload]]
kind = "bulk"
pairs = [["h3", "h2"]]
[[workload]]
kind = "bulk"
pairs = [["h5", "h1"]]
size = "60kB"
writes = { first = "15kB", then = "15kB", every = "1ms" }
[[cross_traffic]]
kind = "constant"
from = ["h4"]
to = ["h5"]
rate = "10Mbps"
[sample]
interval = "1ms"
flows = [0]
""",
    "requests": """
duration = "100ms"
[topology]
kind = "star"
[scheme.tcp]
controller = "newreno"
[workload]
kind = "requests"
load = 0.1
sizes = { kind = "fixed", size = "20kB" }
""",
    "a log of packets": """
duration = "2s"
[topology]
kind = "dumbbell"
pairs = 1
[scheme.rapid]
controller = "rapid"
[workload]
kind = "bulk"
flows = 1
[packets]
flow = 0
""",
    "a thousand flows, for percentiles of tails": """
duration = "300ms"
[topology]
kind = "dumbbell"
pairs = 2
[scheme.tcp]
controller = "newreno"
[workload]
kind = "poisson"
load = 0.3
sizes = { kind = "fixed", size = "1kB" }
""",
}


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [sl.run(text) for text in RUNS.values()]


@pytest.mark.parametrize("name", columns.RESULT)
def test_the_tables_of_runs_have_the_declared_columns(name: str, results: list[Result]) -> None:
    check(columns.RESULT[name], [getattr(result, name) for result in results])


@pytest.mark.parametrize("name", columns.SUMMARY)
def test_the_tables_of_summaries_have_the_declared_columns(name: str, results: list[Result]) -> None:
    check(columns.SUMMARY[name], [getattr(result.summary(), name) for result in results])


def check(declared: Columns, frames: list[pl.DataFrame]) -> None:
    for frame in frames:
        found = [description(declared, name) for name in frame.columns]
        # Numbered columns share one description.
        assert list(dict.fromkeys(found)) == list(declared)
        for column, name in zip(found, frame.columns, strict=True):
            assert str(frame.schema[name]) == column.dtype, name
            assert column.is_optional or not frame[name].has_nulls(), name
    rows = pl.concat([frame.cast({pl.Categorical: pl.String}) for frame in frames], how="diagonal")
    assert rows.height > 0, "no run has a row in this table"
    for column in declared:
        names = [name for name in rows.columns if column.matches(name)]
        assert any(rows[name].count() for name in names), f"no run has a value of {column.name}"


def description(declared: Columns, name: str) -> Column:
    [found] = [column for column in declared if column.matches(name)]
    return found


@pytest.mark.parametrize(
    ("owner", "name", "declared"),
    [
        *((Result, name, declared) for name, declared in columns.RESULT.items()),
    ],
)
def test_the_docstring_of_a_table_lists_each_column_with_type_and_unit(
    owner: type, name: str, declared: Columns
) -> None:
    text = inspect.getdoc(inspect.getattr_static(owner, name))
    assert text is not None
    assert len(text.splitlines()[0]) > 20, "it starts with the meaning of a row"
    words = " ".join(text.split())
    for column in declared:
        assert f" {column.name} ({column.dtype}" in words
        if column.unit:
            assert f" {column.name} ({column.dtype}, {column.unit}" in words


def test_the_docstring_of_a_summary_lists_the_columns_of_its_four_tables() -> None:
    words = " ".join((inspect.getdoc(Summary) or "").split())
    for declared in columns.SUMMARY.values():
        for column in declared:
            assert f" {column.name} ({column.kind}): {column.meaning}" in words


def test_the_unit_in_a_name_is_the_unit_of_the_column() -> None:
    endings = {"_s": "s", "_bytes": "bytes", "_bps": "bit/s", "_packets": "packets"}
    for declared in [*columns.RESULT.values(), *columns.SUMMARY.values()]:
        for column in declared:
            for ending, unit in endings.items():
                if column.name.endswith(ending):
                    assert column.unit == unit, column.name


def test_every_saved_table_is_declared() -> None:
    assert set(stored.TABLES) == set(columns.RESULT) - {"requests"}
