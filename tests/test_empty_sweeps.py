"""Tests of tables, figures, comparisons and reports of sweeps with few or no numbers."""

from pathlib import Path

import pytest

from command_line import invoke
from small_sweeps import LOADS, do, plan
from sparelane.sweeps import folder


def test_a_sweep_stopped_before_its_first_run_has_empty_tables(tmp_path: Path) -> None:
    folder.write(tmp_path, plan(LOADS, seeds=2), {}, {}, 0.0)
    saved = folder.read(tmp_path)
    assert (saved.rows.height, saved.runs.height, saved.curves.height) == (0, 0, 0)
    assert (saved.manifest.runs, saved.manifest.missing) == (0, 8)
    assert saved.axes == ["workload.load"]


@pytest.mark.parametrize("command", ["plot", "compare"])
def test_commands_that_need_numbers_report_that_there_are_no_numbers(tmp_path: Path, command: str) -> None:
    folder.write(tmp_path, plan(LOADS, seeds=2), {}, {}, 0.0)
    result = invoke(command, tmp_path)
    assert (result.exit_code, "nothing to" in result.stderr) == (2, True), result.output


def test_the_report_of_an_empty_sweep_marks_all_runs_as_missing(tmp_path: Path) -> None:
    folder.write(tmp_path, plan(LOADS, seeds=2), {}, {}, 0.0)
    result = invoke("report", tmp_path)
    assert result.exit_code == 0, result.output
    assert "8 of 8 runs are missing" in (tmp_path / "report.html").read_text()


def test_runs_without_flows_complete(tmp_path: Path) -> None:
    text = LOADS.replace("100ms", "1us")
    assert do(text, tmp_path, seeds=2).done == 8
    for command in ("report", "compare", "plot"):
        assert invoke(command, tmp_path).exit_code in (0, 2)


def test_runs_whose_flows_never_finish_complete(tmp_path: Path) -> None:
    text = LOADS.replace('{ kind = "fixed", size = "10kB" }', '{ kind = "fixed", size = "1GB" }')
    assert do(text.replace("100ms", "20s").replace("[0.3, 0.6]", "[0.9, 1.2]"), tmp_path, seeds=2).done == 8
    for command in ("report", "compare", "plot"):
        result = invoke(command, tmp_path)
        assert result.exit_code == 0, result.output
