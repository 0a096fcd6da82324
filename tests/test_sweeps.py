"""Tests of sweeps: axes of a file, runs, results, interruptions and failures."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sparelane as sl
from command_line import invoke
from hangs import HANG_S, wait_until
from small_sweeps import BASE, LOADS, do, file, plan, with_lines
from sparelane import _native
from sparelane.results import manifest, rows
from sparelane.scenario import library
from sparelane.sweeps import folder
from sparelane.sweeps.journal import Journal
from sparelane.sweeps.plan import Plan


def axes_of(text: str) -> dict[str, list[str]]:
    return {
        axis.key: [str(value) for value in axis.values]
        for axis in plan(text, seeds=2).axes
        if axis.key != "workload.scheme"
    }


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("load = [0.1, 0.5]", ["0.1", "0.5"]),
        ("load = { from = 0.1, to = 0.9, step = 0.2 }", ["0.1", "0.3", "0.5", "0.7", "0.9"]),
        ("load = { from = 0.1, to = 0.55, step = 0.2 }", ["0.1", "0.3", "0.5"]),
        ("load = { from = 0.001, to = 1, factor = 10 }", ["0.001", "0.01", "0.1", "1"]),
        ("load = { from = 0.2, to = 1, points = 3 }", ["0.2", "0.6", "1"]),
        ("load = { from = 0.01, to = 1, points = 3, log = true }", ["0.01", "0.1", "1"]),
        ("load = { each = [0.2, 0.4] }", ["0.2", "0.4"]),
        ('load = ["10%", "30%"]', ["10%", "30%"]),
    ],
)
def test_lists_and_ranges_have_exact_values(line: str, values: list[str]) -> None:
    assert axes_of(with_lines(("load = 0.5", line))) == {"workload.load": values}


def test_ranges_carry_units() -> None:
    rate = 'bottleneck_rate = { from = "10Mbps", to = "1000Mbps", factor = 10 }'
    text = with_lines(('bottleneck_rate = "20Mbps"', rate))
    assert axes_of(text) == {"topology.bottleneck_rate": ["10Mbps", "100Mbps", "1000Mbps"]}


@pytest.mark.parametrize(
    ("old", "new", "axes"),
    [
        ('controller = "rc3"', 'controller = "rc3"\nlevels = [40, 400]', {}),
        (
            'controller = "rc3"',
            'controller = "rc3"\nlevels = { each = [[40, 400], [10, 100]] }',
            {"scheme.rc3.levels": ["[40, 400]", "[10, 100]"]},
        ),
        ("load = 0.5", 'load = 0.5\nsources = ["left0", "left1"]', {}),
        ("load = 0.5", "load = 0.5\nmix = { tcp = 0.5, rc3 = 0.5 }", {}),
        (
            'sizes = { kind = "fixed", size = "10kB" }',
            'sizes = { kind = "fixed", size = ["10kB", "20kB"] }',
            {"workload.sizes.size": ["10kB", "20kB"]},
        ),
        (
            'sizes = { kind = "fixed", size = "10kB" }',
            'sizes = { kind = "points", bytes = [1460, 2920], probability = [0.5, 0.5] }',
            {},
        ),
        ("[queue]", '[sample]\nflows = [0, 1]\nqueues = [["west", "east"]]\n\n[queue]', {}),
        (
            "[queue]",
            '[[link]]\nbetween = ["west", "east"]\ndelay = ["1ms", "2ms"]\n\n[queue]',
            {"link.0.delay": ["1ms", "2ms"]},
        ),
        ("pairs = 3", "pairs = [3, 4]", {"topology.pairs": ["3", "4"]}),
        ("[queue]", '[measure]\nfrom = "5ms"\ndelays = true\n\n[queue]', {}),
        ("[queue]", '[drop]\nfrom = "left0"\nto = "west"\nsegments = [3, 4]\n\n[queue]', {}),
    ],
)
def test_a_key_with_a_list_as_value_keeps_it(old: str, new: str, axes: dict[str, list[str]]) -> None:
    assert axes_of(with_lines((old, new))) == axes


@pytest.mark.parametrize("name", library.names())
def test_no_list_of_a_ready_made_scenario_is_taken_for_a_sweep(name: str) -> None:
    path = library.find(name)
    assert all(axis.chooses for axis in Plan(path.read_text(), str(path), path.parent, seeds=2).axes)


def test_every_key_with_a_list_or_table_as_value_declares_it() -> None:
    params = [param for entry in _native.catalogue() for param in entry["params"]]
    lists = {param["allowed"] for param in params if param["takes"][0]}
    tables = {param["allowed"] for param in params if param["takes"][1]}
    assert all(re.search(r"list|two nodes|increasing|several as", words) for words in lists)
    assert all("table" in words or "{" in words or words == "the name of a controller" for words in tables)
    others = {param["allowed"] for param in params} - lists - tables
    assert [words for words in others if "[" in words or "{" in words or "list" in words] == []


def test_schemes_vary_if_the_workload_names_none() -> None:
    settings = [(one.scheme, plan(LOADS).describe(one)) for one in plan(LOADS).settings]
    assert settings == [(scheme, f"load = {load}") for load in (0.3, 0.6) for scheme in ("tcp", "rc3")]


def test_settings_of_a_scheme_do_not_multiply_the_others() -> None:
    text = with_lines(('controller = "rc3"', 'controller = "rc3"\nlevels = { each = [[40], [400]] }'))
    made = plan(text)
    assert [(one.scheme, made.values(one)["scheme.rc3.levels"]) for one in made.settings] == [
        ("tcp", None),
        ("rc3", "[40]"),
        ("rc3", "[400]"),
    ]


def test_controllers_vary_like_schemes() -> None:
    text = with_lines(
        ('controller = "newreno"', 'controller = ["newreno", "cubic"]'), ("load = 0.5", 'load = 0.5\nscheme = "tcp"')
    )
    assert [one.scheme for one in plan(text).settings] == ["newreno", "cubic"]


def test_seeds_are_those_of_the_file_or_the_requested_number() -> None:
    assert plan(LOADS).seeds == (1,)
    assert plan(LOADS, seeds=3).seeds == (1, 2, 3)
    assert plan("seed = 7\n" + LOADS, seeds=2).seeds == (7, 8)
    assert plan("seed = [3, 5]\n" + LOADS).seeds == (3, 5)
    assert plan("seed = { from = 1, to = 9, step = 4 }\n" + LOADS).seeds == (1, 5, 9)


def test_overrides_replace_values_of_the_file() -> None:
    def set_in(text: str, *settings: str) -> Plan:
        return Plan(text, "s.toml", Path(), settings=settings, needs_variation=False)

    varied = set_in(BASE, "workload.load=[0.2, 0.4]", "topology.pairs={ from = 2, to = 4, step = 1 }", "seed=[3, 5]")
    assert {axis.key: list(map(str, axis.values)) for axis in varied.axes if not axis.chooses} == {
        "workload.load": ["0.2", "0.4"],
        "topology.pairs": ["2", "3", "4"],
    }
    assert varied.seeds == (3, 5)
    # A value replaces a list of the file, and one scheme is selected.
    fixed = set_in(LOADS, "workload.load=0.4", "workload.scheme=rc3")
    assert (fixed.axes, len(fixed.settings)) == ([], 1)
    (run,), (of_file,) = fixed.runs, set_in(with_lines(("load = 0.5", "load = 0.4")), "workload.scheme=rc3").runs
    assert run.seed == of_file.seed


def test_settings_are_named_by_unambiguous_keys() -> None:
    varied = plan(with_lines(('kind = "priority"', 'kind = ["fifo", "priority"]'), ("pairs = 3", "pairs = [2, 3]")))
    assert varied.describe(varied.settings[0]) == "pairs = 2, queue.kind = fifo"


def test_a_sweep_with_overrides_equals_that_of_the_changed_file_and_can_be_repeated(tmp_path: Path) -> None:
    changed = with_lines(("load = 0.5", "load = [0.3, 0.6]"))
    settings = ("--set", "workload.load=[0.3, 0.6]", "--set", "seed=[2, 7]")
    result = invoke("sweep", file(tmp_path, BASE), *settings, "-o", tmp_path / "set")
    assert result.exit_code == 0, result.output
    do(f"seed = [2, 7]\n{changed}", tmp_path / "file")
    one, other = (pl.read_parquet(tmp_path / name / "rows.parquet").drop("experiment") for name in ("set", "file"))
    assert one.equals(other)
    command = manifest.read(tmp_path / "set").command
    assert "sweep" in command
    assert "--set 'workload.load=[0.3, 0.6]' --set 'seed=[2, 7]'" in command
    # Seeds that are not consecutive are listed instead of their number.
    assert "--seeds" not in command


def test_names_of_runs_follow_from_content_and_seed_and_not_from_notation() -> None:
    names = {run.name for run in plan(LOADS, seeds=2).runs}
    assert len(names) == 8
    other = "# A comment.\n" + with_lines(("load = 0.5", "load = { from = 0.3, to = 0.9, step = 0.3 }"))
    assert names < {run.name for run in plan('title = "Other words"\n' + other, seeds=3).runs}
    louder = {run.name for run in plan(LOADS.replace("1bdp", "2bdp"), seeds=2).runs}
    assert not names & louder


def test_names_of_runs_depend_on_the_files_that_a_scenario_names(tmp_path: Path) -> None:
    text = with_lines(
        ('kind = "poisson"', 'kind = "flows"\npath = "f.flows"'),
        ("load = 0.5\n", ""),
        ('load_on = "busiest-core"\n', ""),
        ('sizes = { kind = "fixed", size = "10kB" }\n', ""),
    )
    names = []
    for content in ("0 0 3 1000\n", "0 0 3 2000\n"):
        (tmp_path / "f.flows").write_text(content)
        names.append([run.name for run in plan(text, tmp_path).runs])
    assert not set(names[0]) & set(names[1])


# Mistakes in a sweep file: the old text, the new text, and a part of the message.
MISTAKES: list[tuple[str, str, str]] = [
    ("load = 0.5", "load = []", "workload.load: an empty list"),
    ("load = 0.5", "load = [0.3, 0.3]", "workload.load: 0.3 is repeated"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9 }", "a range has one of step, factor and points"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, stepp = 0.2 }", 'unknown key "stepp" in a range'),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, step = 0.1, points = 3 }", "a range has one of"),
    ("load = 0.5", "load = { from = 0.9, to = 0.1, step = 0.2 }", "is not above from"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, step = 0 }", "allowed: a step above 0"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, step = -1 }", "allowed: a step above 0"),
    ("load = 0.5", "load = { from = 0, to = 0.9, factor = 2 }", "from above 0, and a factor above 1"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, factor = 1 }", "from above 0, and a factor above 1"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, points = 1 }", "points, a whole number from 2"),
    ("load = 0.5", "load = { from = 0.1, to = 0.9, points = 3, log = 3 }", "log, true or false"),
    ("load = 0.5", 'load = { from = "a", to = "b", step = 1 }', 'from = "a" is not a number'),
    ("load = 0.5", "load = { from = 0.1, to = 9e9, step = 1e-9 }", "values; allowed: at most 10000"),
    ("load = 0.5", "load = { each = 3 }", "each is the only key of its table; allowed: a list of the values"),
    ("load = 0.5", "load = { each = [] }", "an empty list"),
    ("load = 0.5", "lod = [0.3, 0.5]\nload = 0.5", "unknown key"),
    ("load = 0.5", "load = [7, 8]", "workload.load = 7"),
    ('limit = "1bdp"', 'limit = { from = "1bdp", to = "9packets", step = "1bdp" }', "allowed: one unit"),
    ('duration = "100ms"', 'duration = "100ms"\nseed = []', "seed: an empty list"),
    ('duration = "100ms"', 'duration = "100ms"\nseed = ["a", "b"]', "seed: a is not a seed"),
    ('duration = "100ms"', 'duration = "100ms"\nseed = -1', "-1 is not a seed"),
    ('duration = "100ms"', 'duration = ["1ms"', "not valid TOML"),
    ("load = 0.5", 'load = 0.5\nscheme = "tcp"', "nothing varies"),
    ("load = 0.5", "load = [0.5]\nscheme = 'tcp'", "nothing varies"),
    (
        "pairs = 3",
        "pairs = { from = 1, to = 9999, step = 1 }\nx = { from = 1, to = 9999, step = 1 }",
        "runs; allowed",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[new for _, new, _ in MISTAKES])
def test_a_mistake_in_a_sweep_is_one_clear_error_before_any_run(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    result = invoke("sweep", file(tmp_path, with_lines((old, new))), "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("sparelane: ")
    assert message in result.stderr
    assert str(tmp_path / "s.toml") in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_unreadable_or_unwritable_file_is_one_clear_error(tmp_path: Path) -> None:
    s = file(tmp_path, LOADS)
    taken = file(tmp_path, "", "taken")
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    (run_folder / "run.json").write_text("{}")
    assert invoke("reproduce", "rc3/model", "-o", tmp_path / "experiments").exit_code == 0
    cases = [
        (("sweep", tmp_path / "missing.toml"), "there is no file"),
        (("sweep", "no-such-name"), "there is no ready-made scenario"),
        (("sweep", s, "-o", taken), "cannot write into the folder"),
        (("sweep", s, "-o", "/proc/nowhere"), "cannot write into the folder"),
        (("sweep", s, "-o", run_folder), 'holds other results ("run.json")'),
        (("sweep", s, "-o", tmp_path / "experiments" / "rc3" / "model"), "holds results of an experiment"),
        (("sweep", s, "-o", tmp_path / "o", "--dask", "127.0.0.1:1"), "no Dask scheduler answers"),
        (("sweep", s, "-o", tmp_path / "o", "--dask", "nonsense"), "is not the address of a Dask scheduler"),
    ]
    for arguments, message in cases:
        result = invoke(*arguments)
        assert (result.exit_code, message in result.stderr) == (2, True), (arguments, result.output)


def test_a_folder_of_another_version_or_build_is_refused_and_unchanged(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "out")
    path = tmp_path / "out" / manifest.FILE
    for key, value, message in (
        ("version", "0.0.1", "of sparelane 0.0.1; this is"),
        ("engine", "abc", "another build"),
        ("layout", 99, "in layout 99, written by sparelane"),
    ):
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, key: value}))
        before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
        result = invoke("sweep", file(tmp_path, LOADS), "-o", path.parent)
        assert (result.exit_code, message in result.stderr) == (2, True), result.output
        assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before
        path.write_text(json.dumps(content))


def test_rows_are_tidy_and_have_the_means_of_the_runs(tmp_path: Path) -> None:
    text = with_lines(('duration = "100ms"', 'duration = "1s"'), ("load = 0.5", "load = [0.3, 0.6]"))
    progress = do(text, tmp_path, seeds=4)
    assert (progress.done, progress.failed, progress.unreached) == (16, {}, 0)
    saved = folder.read(tmp_path)
    assert saved.rows.columns == [*rows.SCHEMA, "workload.load"]
    assert saved.schemes == ["tcp", "rc3"]
    assert saved.rows["workload.load"].unique().sort().to_list() == [0.3, 0.6]
    keys = ["setting", "scheme", "traffic", "metric", "average"]
    assert saved.rows.select(keys).is_unique().all()
    assert saved.rows.filter(pl.col("low") > pl.col("value") + 1e-9).is_empty()
    assert saved.rows.filter(pl.col("high") < pl.col("value") - 1e-9).is_empty()
    means = saved.runs.group_by(keys).agg(pl.col("value").mean().alias("mean"), pl.len())
    joined = saved.rows.join(means, on=keys)
    assert joined.height == saved.rows.height
    assert (joined["value"] - joined["mean"]).abs().max() == pytest.approx(0, abs=1e-6)
    assert (joined["seeds"].list.len() == joined["len"]).all()
    assert saved.manifest.seeds == (1, 2, 3, 4)
    assert (saved.manifest.runs, saved.manifest.missing) == (16, 0)


def test_numbers_of_a_run_equal_those_of_the_scenario_run_alone(tmp_path: Path) -> None:
    do(LOADS, tmp_path, seeds=2)
    alone = sl.run(LOADS.replace("[0.3, 0.6]", "0.6"), seed=2, set={"workload.scheme": "rc3"})
    saved = folder.read(tmp_path)
    mine = saved.runs.filter(
        (pl.col("workload.load") == 0.6) & (pl.col("scheme") == "rc3") & (pl.col("seeds").list.first() == 2)
    )

    def number(metric: str, average: str) -> float:
        [value] = mine.filter((pl.col("metric") == metric) & (pl.col("average") == average))["value"]
        return float(value)

    flows = alone.flows
    assert number("flows", "total") == flows.height
    assert number("completion time", "mean over flows") == pytest.approx(flows["completion_s"].mean())
    assert flows["completion_s"].count() < 20
    with pytest.raises(ValueError, match="not enough values"):
        number("completion time", "95th percentile")
    assert number("slowdown", "median") == pytest.approx((flows["completion_s"] / flows["ideal_s"]).median())
    service = alone.summary().service.row(0, named=True)
    assert number("goodput", "total") == pytest.approx(service["goodput_bps"])
    assert number("retransmissions", "total") == pytest.approx(100 * service["retransmitted"])
    assert number("round trip", "mean over flows") == pytest.approx(service["rtt_s"])
    assert number("queueing delay", "mean over flows") == pytest.approx(service["queueing_s"])
    lines = (json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines())
    assert alone.digest in {kept["digest"] for _, kept in lines}


def test_fairness_covers_unlimited_flows_only(tmp_path: Path) -> None:
    """The limited flows that are still open at the end of the run differ between schemes."""
    do(LOADS, tmp_path / "ends", seeds=2)
    endless = BASE.split("[workload]")[0].replace("100ms", "1s") + '[workload]\nkind = "bulk"\nsize = "unlimited"\n'
    do(endless, tmp_path / "endless", seeds=2)
    for name, has_fairness in (("ends", False), ("endless", True)):
        metrics = set(pl.read_parquet(tmp_path / name / "rows.parquet")["metric"])
        assert ("fairness" in metrics) == has_fairness, name


def test_every_scheme_has_the_same_traffic(tmp_path: Path) -> None:
    do(LOADS, tmp_path, seeds=3)
    assert manifest.read(tmp_path).details["paired"] is True
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    by_name = dict(lines)
    made = plan(LOADS, seeds=3)
    traffic: dict[tuple[Any, int], set[str]] = {}
    for run in made.runs:
        load = made.values(made.settings[run.setting])["workload.load"]
        traffic.setdefault((load, run.seed), set()).add(by_name[run.name]["traffic"])
    assert [len(found) for found in traffic.values()] == [1] * 6
    assert len(set.union(*traffic.values())) == 6


def test_competing_flows_have_separate_rows(tmp_path: Path) -> None:
    start, end = BASE.split("[workload]")
    beside = f'{start}[[workload]]{end}scheme = ["tcp", "rc3"]\n[[workload]]\nkind = "bulk"\nscheme = "tcp"\n'
    beside = beside.replace("[scheme.tcp]", '[scheme.long]\ncontroller = "cubic"\n\n[scheme.tcp]')
    beside = beside.replace('kind = "bulk"\nscheme = "tcp"', 'kind = "bulk"\nscheme = "long"')
    do(beside, tmp_path)
    found = folder.read(tmp_path).rows
    assert {"all flows", "beside: long", "network"} <= set(found["traffic"])
    assert set(found["scheme"]) == {"tcp", "rc3"}


def test_a_failed_run_is_listed_and_the_others_complete(tmp_path: Path) -> None:
    text = with_lines(("load = 0.5", "load = [0.3, 9.0]"))
    result = invoke("sweep", file(tmp_path, text), "-o", tmp_path / "out", "--jobs", "2")
    assert result.exit_code == 3, result.output
    assert "2 of 4 runs failed" in result.stderr
    assert "workload.load = 9.0" in result.stderr
    saved = folder.read(tmp_path / "out")
    assert [one["setting"] for one in saved.manifest.details["failed"]] == ["load = 9.0"] * 2
    assert set(saved.rows["workload.load"]) == {0.3}


def test_a_sweep_continues_after_a_stop_and_can_be_extended(tmp_path: Path) -> None:
    first = do(LOADS, tmp_path)
    assert (first.found, first.done) == (0, 4)
    again = do(LOADS, tmp_path)
    assert (again.found, again.done) == (4, 4)
    more = do(LOADS, tmp_path, seeds=2)
    assert (more.found, more.done) == (4, 8)


def test_another_file_with_the_same_folder_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    assert invoke("sweep", file(tmp_path, LOADS), "-o", tmp_path / "out").exit_code == 0
    before = {one.name: one.read_bytes() for one in (tmp_path / "out").iterdir()}
    other = file(tmp_path, LOADS.replace("0.6", "0.7"), "other.toml")
    result = invoke("sweep", other, "-o", tmp_path / "out")
    assert (result.exit_code, 'holds the sweep "s", and this is "other"' in result.stderr) == (2, True), result.output
    assert {one.name: one.read_bytes() for one in (tmp_path / "out").iterdir()} == before


def test_results_that_no_longer_belong_to_the_file_are_moved(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert invoke("sweep", file(tmp_path, LOADS), "--seeds", 2, "-o", out).exit_code == 0
    rows, about = (out / "rows.parquet").read_bytes(), (out / "manifest.json").read_bytes()
    # More values of the same keys extend the sweep.
    more = invoke("sweep", file(tmp_path, LOADS.replace("0.6]", "0.6, 0.7]")), "--seeds", 2, "-o", out)
    assert "other results" not in more.output
    assert not (out / "earlier").exists()
    again = invoke("sweep", file(tmp_path, LOADS), "--seeds", 2, "-o", out)
    assert f"results of other runs that were in the folder are now in {out / 'earlier' / '1'}" in " ".join(
        again.output.split()
    )
    kept = pl.read_parquet(out / "earlier" / "1" / "rows.parquet")
    assert sorted(set(kept["workload.load"])) == [0.3, 0.6, 0.7]
    assert (out / "rows.parquet").read_bytes() == rows
    assert json.loads((out / "manifest.json").read_text())["digest"] == json.loads(about)["digest"]
    assert invoke("sweep", file(tmp_path, LOADS), "--seeds", 2, "-o", out).exit_code == 0
    assert [one.name for one in (out / "earlier").iterdir()] == ["1"]
    assert invoke("report", out / "earlier" / "1").exit_code == 0


def test_an_incomplete_line_of_the_journal_is_ignored_and_its_run_repeated(tmp_path: Path) -> None:
    do(LOADS, tmp_path / "whole", seeds=2)
    do(LOADS, tmp_path / "cut", seeds=2)
    path = tmp_path / "cut" / "results.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * 0.6)])
    assert 0 < do(LOADS, tmp_path / "cut", seeds=2).found < 8
    assert_equal(tmp_path / "cut", tmp_path / "whole")
    assert do(LOADS, tmp_path / "cut", seeds=2).found == 8


def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with Journal(tmp_path / "out"):
        result = invoke("sweep", file(tmp_path, LOADS), "-o", tmp_path / "out")
    assert (result.exit_code, "another sweep writes into" in result.stderr) == (2, True)


def test_a_full_disk_stops_the_sweep_and_keeps_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append
    written: list[str] = []

    def full(self: Journal, name: str, kept: Any) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(name)
        append(self, name, kept)

    monkeypatch.setattr(Journal, "append", full)
    result = invoke("sweep", file(tmp_path, LOADS), "--seeds", "2", "-o", tmp_path / "out")
    assert (result.exit_code, "no space left on device" in result.stderr) == (2, True), result.output
    monkeypatch.undo()
    assert folder.read(tmp_path / "out").manifest.runs == 3
    assert do(LOADS, tmp_path / "out", seeds=2).found == 3
    do(LOADS, tmp_path / "whole", seeds=2)
    assert_equal(tmp_path / "out", tmp_path / "whole")


@pytest.mark.parametrize(("is_written", "done"), [(False, 3), (True, 4)])
def test_an_interrupted_sweep_counts_the_runs_in_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool, done: int
) -> None:
    """The signal arrives just before or just after a run is recorded."""
    append = Journal.append
    runs: list[str] = []

    def interrupted(self: Journal, name: str, kept: Any) -> None:
        runs.append(name)
        if len(runs) < 4 or is_written:
            append(self, name, kept)
        if len(runs) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", interrupted)
    result = invoke("sweep", file(tmp_path, LOADS), "--seeds", "2", "-o", tmp_path / "out")
    assert (result.exit_code, "interrupted; finished runs are saved" in result.stderr) == (130, True), result.output
    saved = folder.read(tmp_path / "out")
    assert (saved.manifest.runs, saved.manifest.missing, lines_in(tmp_path / "out")) == (done, 8 - done, done)


def assert_equal(one: Path, other: Path) -> None:
    for name in (folder.ROWS, folder.RUNS, folder.CURVES):
        assert pl.read_parquet(one / name).equals(pl.read_parquet(other / name)), name
    assert manifest.read(one).digest == manifest.read(other).digest


# 200 runs that take some hundredths of a second each.
TWO_HUNDRED = with_lines(
    ('duration = "100ms"', 'duration = "3s"'),
    ("load = 0.5", "load = { from = 0.1, to = 0.5, step = 0.1 }"),
    ('bottleneck_rate = "20Mbps"', 'bottleneck_rate = "100Mbps"'),
)


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the command in a separate process."""
    code = "import sys; sys.argv[0] = 'sparelane'; from sparelane.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lines_in(place: Path) -> int:
    path = place / "results.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(of: int) -> list[int]:
    found = Path(f"/proc/{of}/task/{of}/children")
    return [int(one) for one in found.read_text().split()] if found.exists() else []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found by /proc")
def test_a_sweep_killed_twice_has_the_results_of_an_uninterrupted_one(tmp_path: Path) -> None:
    s, out = file(tmp_path, TWO_HUNDRED), tmp_path / "killed"
    arguments = ("sweep", s, "--seeds", "20", "--jobs", "2", "-o", out)
    with started(*arguments) as process:
        wait_until(lambda: lines_in(out) >= 30)
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
    # No worker outlives the command.
    wait_until(lambda: not any(Path(f"/proc/{worker}/exe").exists() for worker in workers))
    before = lines_in(out)
    assert 30 <= before < 200
    with started(*arguments) as process:
        wait_until(lambda: lines_in(out) >= before + 30)
        victim = children(process.pid)[0]
        os.kill(victim, signal.SIGKILL)
        assert process.wait(HANG_S) == 0
    assert lines_in(out) == 200
    do(TWO_HUNDRED, tmp_path / "alone", seeds=20)
    assert_equal(out, tmp_path / "alone")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_reports_it_and_keeps_finished_runs(tmp_path: Path, signal_number: signal.Signals) -> None:
    s, out = file(tmp_path, TWO_HUNDRED), tmp_path / "out"
    with started("sweep", s, "--seeds", "20", "--jobs", "2", "-o", out) as process:
        wait_until(lambda: lines_in(out) >= 10)
        process.send_signal(signal_number)
        assert process.wait(HANG_S) == 130
        assert process.stderr is not None
        assert b"interrupted; finished runs are saved" in process.stderr.read()
    saved = folder.read(out)
    assert saved.manifest.runs == lines_in(out)
    assert saved.manifest.missing == 200 - lines_in(out)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def dask(module: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_results(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    port, out = free_port(), tmp_path / "dask"
    address = f"tcp://127.0.0.1:{port}"
    worker = ("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    with (
        dask("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
        dask(*worker) as victim,
        dask(*worker),
    ):
        wait_until(lambda: answers(port))
        with started("sweep", file(tmp_path, TWO_HUNDRED), "--seeds", "20", "--dask", address, "-o", out) as process:
            wait_until(lambda: lines_in(out) >= 20)
            victim.kill()
            assert lines_in(out) < 200
            assert process.wait(HANG_S) == 0
    do(TWO_HUNDRED, tmp_path / "here", seeds=20)
    assert_equal(out, tmp_path / "here")


@pytest.mark.slow
def test_experiments_on_a_dask_cluster_have_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with (
        dask("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
        dask("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"),
    ):
        wait_until(lambda: answers(port))
        there = invoke("reproduce", "rc3/example-7", "--dask", address, "-o", tmp_path / "there")
    here = invoke("reproduce", "rc3/example-7", "-o", tmp_path / "here")
    assert (there.exit_code, here.exit_code) == (0, 0), there.output
    one, other = ((tmp_path / where / "rc3" / "example-7" / "rows.csv").read_text() for where in ("there", "here"))
    assert one == other


def test_a_dask_cluster_without_workers_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    from distributed import Client

    waiting = Client.wait_for_workers
    monkeypatch.setattr(Client, "wait_for_workers", lambda self, count, timeout: waiting(self, count, timeout=0.5))
    port = free_port()
    with dask("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"):
        wait_until(lambda: answers(port))
        result = invoke("sweep", file(tmp_path, LOADS), "--dask", f"127.0.0.1:{port}", "-o", tmp_path / "out")
    assert (result.exit_code, "has no workers" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n", b""])
def test_an_address_without_a_dask_scheduler_is_a_clear_error_at_once(
    greeting: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    from sparelane.sweeps import cluster

    for limit in ("PROBE_TIMEOUT_S", "GREETING_TIMEOUT_S", "CONNECT_TIMEOUT_S"):
        monkeypatch.setattr(cluster, limit, 10 * HANG_S)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        result = invoke("sweep", file(tmp_path, LOADS), "--dask", address, "-o", tmp_path / "out")
        assert (result.exit_code, "it is not a Dask scheduler" in result.stderr) == (2, True), result.output
        thread.join(HANG_S)


def test_a_run_that_kills_its_workers_is_marked_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparelane.sweeps import pool
    from sparelane.sweeps.worker import Job

    script = tmp_path / "sparelane_dies.py"
    script.write_text(
        "import json, os, sys\n"
        "sys.stdin.readline()\n"
        "for line in sys.stdin:\n"
        "    number = json.loads(line)[0]\n"
        "    if number == 2: os.kill(os.getpid(), 9)\n"
        "    print(json.dumps([number, {}]), flush=True)\n"
    )
    monkeypatch.setattr(pool, "MODULE", "sparelane_dies")
    monkeypatch.syspath_prepend(tmp_path)
    job: Job = {
        "text": "",
        "file": "",
        "folder": "",
        "version": "",
        "plugins": [],
        "call_limit_s": None,
        "run_limit_s": None,
    }
    found = [one for one in pool.work(job, [(number, [], 1) for number in range(6)], 2) if one is not None]
    assert sorted(number for number, _ in found) == list(range(6))
    [error] = [kept["error"] for _, kept in found if kept]
    assert error.startswith("its worker was killed by SIGKILL")


def test_workers_that_never_answer_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparelane.sweeps import pool

    monkeypatch.setattr(pool, "MODULE", "no_such_module_at_all")
    result = invoke("sweep", file(tmp_path, LOADS), "-o", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == 2
    assert "no worker process stays alive: its worker ended with exit code 1" in result.stderr


def test_the_example_of_the_documentation_is_a_sweep_of_sixty_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    made = plan(text, seeds=5)
    made.check()
    assert len(made.runs) == 60
