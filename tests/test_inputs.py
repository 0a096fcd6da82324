"""Tests of the copies of input files in the folder of a run."""

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import sparelane as sl
from sparelane.cli.main import main
from sparelane.simulation import inputs

LISTED = """\
title = "{title}"
duration = "1s"

[topology]
kind = "dumbbell"
pairs = 2

[scheme.tcp]
controller = "newreno"

[[workload]]
kind = "flows"
path = "{first}"

[[workload]]
kind = "flows"
path = "{second}"
"""
FLOWS = "0 2 3 {size}\n"


def scenario(here: Path, *, title: str = "two lists") -> Path:
    """Returns a scenario with two files of the same name, one of them outside its folder."""
    (here / "own").mkdir()
    (here / "own" / "list.flows").write_text(FLOWS.format(size=100_000))
    (here / "list.flows").write_text(FLOWS.format(size=200_000))
    path = here / "own" / "s.toml"
    path.write_text(LISTED.format(title=title, first="list.flows", second="../list.flows"))
    return path


def saved(here: Path) -> sl.Result:
    result = sl.run(scenario(here))
    result.save(here / "out")
    return result


def test_a_run_is_repeated_from_its_moved_folder_after_its_files_are_deleted(tmp_path: Path) -> None:
    result = saved(tmp_path)
    for path in (tmp_path / "own" / "list.flows", tmp_path / "list.flows"):
        path.write_text(FLOWS.format(size=1))
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    assert sl.run(tmp_path / "elsewhere" / "run.json").digest == result.digest
    about = json.loads((tmp_path / "elsewhere" / "run.json").read_text())
    assert str(tmp_path) not in json.dumps(about)
    assert [one["file"] for one in about["files"]] == ["inputs/list.flows", "inputs/list-2.flows"]
    for one in about["files"]:
        assert hashlib.sha256((tmp_path / "elsewhere" / one["file"]).read_bytes()).hexdigest() == one["sha256"]


def test_a_run_repeated_into_its_own_folder_keeps_its_files(tmp_path: Path) -> None:
    result = saved(tmp_path)
    again = sl.run(tmp_path / "out" / "run.json")
    again.save(tmp_path / "out")
    assert sl.run(tmp_path / "out" / "run.json").digest == result.digest
    assert sorted(one.name for one in (tmp_path / "out" / "inputs").iterdir()) == ["list-2.flows", "list.flows"]


def test_files_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    saved(tmp_path)
    sl.run("two-flows-priority").save(tmp_path / "out")
    assert not (tmp_path / "out" / "inputs").exists()
    assert "files" not in json.loads((tmp_path / "out" / "run.json").read_text())


def test_a_title_that_looks_like_a_path_is_unchanged(tmp_path: Path) -> None:
    result = sl.run(scenario(tmp_path, title="list.flows"))
    result.save(tmp_path / "out")
    again = sl.run(tmp_path / "out" / "run.json")
    assert again.digest == result.digest
    assert 'title = "list.flows"' in again.scenario


def test_paths_are_unchanged_if_a_file_is_deleted_before_it_is_copied(tmp_path: Path) -> None:
    result = sl.run(scenario(tmp_path))
    (tmp_path / "list.flows").unlink()
    kept = inputs.copy(result.scenario, tmp_path / "own", tmp_path)
    assert (kept.is_whole, kept.scenario) == (False, result.scenario)
    result.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["folder"] == str(tmp_path / "own")


@pytest.mark.parametrize("content", ["0 2 3 100000\n", "0 2 3 100000\n" * 20_000])
def test_the_report_of_a_run_includes_the_files_of_its_scenario_or_their_places(tmp_path: Path, content: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "list.flows").write_text(content)
    text = LISTED[: LISTED.rindex("[[workload]]")].format(title="a list", first="list.flows")
    (tmp_path / "own" / "s.toml").write_text(text)
    sl.run(tmp_path / "own" / "s.toml").save(tmp_path / "out")
    done = CliRunner().invoke(main, ["report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"list.flows (SHA-256 {hashlib.sha256(content.encode()).hexdigest()})" in page
    assert ("is in the folder of the results" in page) is (len(content) > 100_000)
    assert str(tmp_path) not in page
