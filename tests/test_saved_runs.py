"""Tests that every format that `run` writes is read back equal."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import sparelane as sl
from sparelane.cli.main import main
from sparelane.common import frames
from sparelane.common.folders import SavedResultsError
from sparelane.simulation import stored
from sparelane.simulation.result import FORMATS, Result

FULL = """\
duration = "1s"

[topology]
kind = "dumbbell"
pairs = 2

[scheme.one]
controller = "newreno"

[scheme.two]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "one"

[[workload]]
kind = "poisson"
scheme = "two"
load = 0.05
sizes = { kind = "fixed", size = "100kB" }

[[cross_traffic]]
from = ["left0"]
to = ["right0"]
kind = "constant"
rate = "1Mbps"

[sample]
interval = "20ms"
flows = [0]
queues = [["west", "east"]]
links = [["west", "east"]]

[measure]
delays = true
"""
# A run without flows and samples, in which all tables are empty except those of links.
EMPTY = """\
duration = "1s"
topology = { kind = "dumbbell" }
scheme.tcp.controller = "newreno"
workload = { kind = "bulk", start = "2s" }
"""
LOG = FULL.replace("[measure]\ndelays = true\n", "[packets]\nflow = 0\n")


@pytest.fixture(scope="module")
def runs() -> dict[str, Result]:
    return {name: sl.run(text) for name, text in (("full", FULL), ("empty", EMPTY), ("log", LOG))}


@pytest.mark.parametrize("formats", [["parquet"], ["csv"], ["json"], ["json", "csv"]])
@pytest.mark.parametrize("name", ["full", "empty", "log"])
def test_a_saved_run_is_loaded_equal(
    runs: dict[str, Result], name: str, formats: Sequence[str], tmp_path: Path
) -> None:
    run = runs[name]
    run.save(tmp_path, formats)
    loaded = Result.load(tmp_path)
    for one in (loaded, pickle.loads(pickle.dumps(loaded))):
        for table in stored.TABLES:
            before, after = getattr(run, table), getattr(one, table)
            assert before.schema == after.schema
            assert before.equals(after), table
        facts = ("digest", "seed", "version", "totals", "warnings", "is_interrupted", "scenario")
        assert [getattr(one, fact) for fact in facts] == [getattr(run, fact) for fact in facts]
        assert one.summary().service.equals(run.summary().service)


def test_the_test_runs_have_values_that_formats_could_lose(runs: dict[str, Result]) -> None:
    """Tables without rows, columns without values, columns with some, text, and 64-bit numbers."""
    empty, full, log = runs["empty"], runs["full"], runs["log"]
    assert all(table.is_empty() for table in (empty.flows, empty.series, empty.packets, empty.cross_traffic))
    assert full.flows["request"].null_count() == len(full.flows)
    assert 0 < full.flows["finish_s"].null_count() < len(full.flows)
    assert 0 < log.packets["stamped_s"].null_count() == len(log.packets)
    kinds = {kind for run in runs.values() for table in stored.TABLES for kind in getattr(run, table).dtypes}
    assert {str(kind) for kind in kinds} == {"UInt32", "UInt64", "Float64", "Boolean", "Categorical"}


def test_columns_are_equal_after_conversion_to_a_table_and_back() -> None:
    frame = pl.DataFrame(
        {
            "whole": pl.Series([1, None, 2**63], dtype=pl.UInt64),
            "text": pl.Series(["a", None, "b"], dtype=pl.Categorical),
            "flag": [True, None, False],
            "none": pl.Series([None, None, None], dtype=pl.Float64),
        }
    )
    again = frames.to_frame(frames.to_columns(frame))
    assert again.equals(frame)
    assert again.schema == frame.schema


@pytest.mark.parametrize("ending", FORMATS)
def test_a_run_saved_in_one_format_is_drawn_and_reported(runs: dict[str, Result], ending: str, tmp_path: Path) -> None:
    runs["full"].save(tmp_path, [ending])
    for command in ("plot", "report"):
        done = CliRunner().invoke(main, [command, str(tmp_path)])
        assert (done.exit_code, done.stderr) == (0, ""), done.output


def test_another_format_replaces_the_previous_one(runs: dict[str, Result], tmp_path: Path) -> None:
    runs["full"].save(tmp_path, ["parquet", "csv"])
    runs["empty"].save(tmp_path, ["json"])
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}
    assert Result.load(tmp_path).digest == runs["empty"].digest


def test_a_table_that_is_missing_or_malformed_is_named(runs: dict[str, Result], tmp_path: Path) -> None:
    runs["full"].save(tmp_path, ["csv"])
    (tmp_path / "links.csv").write_text("from,to\nwest,east\n", encoding="utf-8")
    (tmp_path / "drops.csv").write_text("from,to,class,arrived_packets,dropped_packets\na,b,0,many,0\n")
    (tmp_path / "flows.csv").unlink()
    loaded = Result.load(tmp_path)
    for table, words in (
        ("links", "its columns are from, to; run.json states from, to, rate_bps"),
        ("drops", "many"),
        ("flows", 'does not have the table "flows" in any format'),
    ):
        with pytest.raises(SavedResultsError) as raised:
            getattr(loaded, table)
        assert words in str(raised.value)
    done = CliRunner().invoke(main, ["plot", str(tmp_path)])
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_text_without_types_is_refused_with_the_remedy(runs: dict[str, Result], tmp_path: Path) -> None:
    runs["full"].save(tmp_path, ["csv"])
    about = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    for tables in ("null", "[]", '{"flows": 3}'):
        content = {**about, "tables": json.loads(tables)}
        (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(SavedResultsError, match="repeat the run with `sparelane run` on it"):
            _ = Result.load(tmp_path).flows
    (tmp_path / "run.json").write_text(json.dumps({**about, "tables": {"flows": {"id": "Colour"}}}), encoding="utf-8")
    with pytest.raises(SavedResultsError, match="Colour"):
        _ = Result.load(tmp_path).flows


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SavedResultsError):
        Result.load(tmp_path)
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SavedResultsError, match="version"):
        Result.load(tmp_path)


def test_results_of_an_earlier_run_stay_complete_if_the_disk_is_full(
    runs: dict[str, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs["full"].save(tmp_path)

    def full(_: pl.DataFrame, path: Path) -> None:
        path.write_text("half of")
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setitem(frames.WRITERS, "parquet", full)
        with pytest.raises(OSError, match="No space left"):
            runs["empty"].save(tmp_path)
    assert Result.load(tmp_path).digest == runs["full"].digest
    assert Result.load(tmp_path).flows.equals(runs["full"].flows)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_first_format_stays_if_the_second_cannot_be_written(
    runs: dict[str, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs["empty"].save(tmp_path)

    def full(_: pl.DataFrame, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setitem(frames.WRITERS, "csv", full)
    with pytest.raises(OSError, match="No space left"):
        runs["full"].save(tmp_path, ["csv", "parquet"])
    assert Result.load(tmp_path).flows.equals(runs["full"].flows)
    assert not list(tmp_path.glob("*.csv"))
