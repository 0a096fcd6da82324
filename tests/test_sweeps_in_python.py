"""Tests of sweeps, comparisons and saved results from Python."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sparelane as sl
from hangs import HANG_S
from sparelane.plugins.registry import REGISTRY
from sparelane.simulation import columns
from sparelane.sweep_api import plan_of

SCENARIO: dict[str, Any] = {
    "duration": "300ms",
    "topology": {
        "kind": "dumbbell",
        "pairs": 2,
        "access_rate": "20Mbps",
        "access_delay": "100us",
        "bottleneck_rate": "20Mbps",
        "bottleneck_delay": "1ms",
    },
    "queue": {"kind": "fifo", "limit": "10packets"},
    "scheme": {"reno": {"controller": "newreno"}, "cubic": {"controller": "cubic", "initial_window": 2}},
    "workload": {"kind": "poisson", "load": 0.3, "sizes": {"kind": "fixed", "size": "60kB"}},
}


@pytest.fixture(scope="module")
def swept() -> sl.Sweep:
    return sl.sweep(SCENARIO, seeds=3, set={"queue.kind": ["fifo", "codel"]}, workers=2)


def test_a_sweep_runs_every_combination_under_each_scheme_and_seed(swept: sl.Sweep) -> None:
    assert swept.axes == ["queue.kind"]
    assert swept.schemes == ["reno", "cubic"]
    assert swept.seeds == [1, 2, 3]
    runs = swept.runs.filter(pl.col("metric") == "goodput").select("queue.kind", "scheme", pl.col("seeds").list.first())
    assert runs.n_unique() == runs.height == 2 * 2 * 3
    assert "12 runs over queue.kind, schemes reno, cubic, 3 seeds" in repr(swept)
    assert swept.failed.is_empty()


@pytest.mark.parametrize("name", columns.SWEEP)
def test_the_tables_of_sweeps_have_the_declared_columns(name: str, swept: sl.Sweep) -> None:
    frame: pl.DataFrame = getattr(swept, name)
    declared = columns.SWEEP[name]
    assert frame.columns[: len(declared)] == [column.name for column in declared]
    assert set(frame.columns[len(declared) :]) <= set(swept.axes)
    for column in declared:
        assert str(frame.schema[column.name]) == column.dtype, column.name
        assert column.is_optional or not frame[column.name].has_nulls(), column.name


def test_results_do_not_depend_on_the_number_of_workers_or_the_form_of_the_scenario(swept: sl.Sweep) -> None:
    varied = {**SCENARIO, "queue": {"limit": "10packets"}, "queue.kind": ["fifo", "codel"]}
    other = sl.sweep(varied, seeds=[1, 2, 3], workers=1)
    assert other.digest == swept.digest
    assert other.rows.drop("experiment").equals(swept.rows.drop("experiment"))


def test_a_run_of_a_sweep_equals_the_run_of_its_setting(swept: sl.Sweep) -> None:
    run = sl.run(SCENARIO, seed=2, set={"queue.kind": "codel", "workload.scheme": "cubic"})
    at = (pl.col("queue.kind") == "codel") & (pl.col("scheme") == "cubic") & (pl.col("seeds").list.first() == 2)
    of_sweep = swept.runs.filter(at & (pl.col("metric") == "goodput"))["value"]
    assert of_sweep.to_list() == run.summary().service["goodput_bps"].to_list()


def test_seeds_are_a_number_or_a_list_and_follow_the_scenario_by_default() -> None:
    from_seven = {**SCENARIO, "seed": 7}
    assert plan_of(from_seven, None, None).seeds == (7,)
    assert plan_of(from_seven, 2, None).seeds == (7, 8)
    assert plan_of(from_seven, [3, 9], None).seeds == (3, 9)
    assert plan_of(from_seven, np.arange(3), None).seeds == (0, 1, 2)
    assert plan_of(from_seven, 2, {"seed": 5}).seeds == (5, 6)


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"seeds": 0}, sl.ScenarioError, "seeds = 0; allowed: a number from 1 on, or a list of seeds"),
        ({"seeds": -1}, sl.ScenarioError, "seed = -1: out of range"),
        ({"seeds": [1, -2]}, sl.ScenarioError, "seed = -2: out of range"),
        ({"seeds": 2.5}, sl.ScenarioError, "seed = 2.5: not a whole number"),
        ({"seeds": "3"}, sl.ScenarioError, "seed = '3': not a whole number"),
        ({"progress": 3}, TypeError, "progress is 3; allowed: True, False, None or a function"),
        ({"workers": 0}, ValueError, "workers is 0; allowed: a whole number from 1 on, or None"),
        ({"set": {"queue.kindd": ["fifo", "codel"]}}, sl.ScenarioError, 'queue.kindd.* did you mean "kind"'),
        ({"set": {"queue.kind": []}}, sl.ScenarioError, "queue.kind: an empty list"),
        ({"set": {"queue.kind": ["fifo", "fifo"]}}, sl.ScenarioError, 'queue.kind: "fifo" is repeated'),
        ({"set": {"workload.load": {"from": 1, "to": 2}}}, sl.ScenarioError, "a range has one of step, factor"),
    ],
)
def test_invalid_arguments_of_a_sweep_are_refused(
    arguments: dict[str, Any], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected) as caught:
        sl.sweep(SCENARIO, **arguments)
    assert getattr(caught.value, "line", None) is None


def test_a_mistake_in_a_dictionary_names_no_line_in_a_sweep_either() -> None:
    with pytest.raises(sl.ScenarioError, match=r"^<dict>: workload\.load: an empty list") as caught:
        sl.sweep({**SCENARIO, "workload": {"kind": "poisson", "load": []}})
    assert caught.value.line is None


def test_failed_runs_are_listed_and_a_warning() -> None:
    with pytest.warns(UserWarning, match="1 of 2 runs failed, and are listed in Sweep.failed: .*load"):
        some = sl.sweep({**SCENARIO, "workload.scheme": "reno"}, set={"workload.load": [0.5, 7]}, workers=1)
    [row] = some.failed.to_dicts()
    assert row["seed"] == 1
    assert "7" in row["setting"]
    assert "workload.load" in row["error"]
    with pytest.raises(sl.ScenarioError, match=r"workload\.load"):
        sl.sweep(SCENARIO, set={"workload.load": [6, 7]}, workers=1)


def test_a_folder_keeps_results_and_only_missing_runs_are_added(tmp_path: Path) -> None:
    shares: list[float] = []
    small = {**SCENARIO, "duration": "50ms"}
    first = sl.sweep(small, seeds=2, output=tmp_path / "kept", workers=1)
    again = sl.sweep(small, seeds=2, output=tmp_path / "kept", workers=1, progress=shares.append)
    assert shares[0] == 1.0, "no run is missing"
    assert again.digest == first.digest
    loaded = sl.load(tmp_path / "kept")
    assert isinstance(loaded, sl.Sweep)
    assert loaded.rows.equals(first.rows)
    assert (tmp_path / "kept" / "sweep.toml").exists()


def test_a_sweep_without_a_folder_is_kept_as_long_as_the_object_and_can_be_saved(tmp_path: Path) -> None:
    some = sl.sweep({**SCENARIO, "duration": "50ms"}, workers=1)
    place = some.folder
    assert place.exists()
    assert some.save(tmp_path / "copy") == tmp_path / "copy"
    with pytest.raises(sl.OutputError, match="is not empty"):
        some.save(tmp_path / "copy")
    rows, copy = some.rows, pickle.loads(pickle.dumps(some))
    del some
    assert not place.exists()
    assert copy.rows.equals(rows), "a copy has only the tables"
    saved = sl.load(tmp_path / "copy")
    assert isinstance(saved, sl.Sweep)
    assert saved.rows.equals(rows)


def test_the_saved_file_of_a_dictionary_repeats_the_sweep(swept: sl.Sweep, tmp_path: Path) -> None:
    swept.save(tmp_path / "saved")
    again = sl.sweep(tmp_path / "saved" / "sweep.toml", seeds=3, set={"queue.kind": ["fifo", "codel"]}, workers=2)
    assert again.digest == swept.digest


@pytest.mark.parametrize("formats", [("parquet",), ("csv",), ("json",)])
def test_load_reads_a_run_in_any_format(formats: tuple[str, ...], tmp_path: Path) -> None:
    run = sl.run(SCENARIO, set={"workload.scheme": "reno"})
    run.save(tmp_path, formats)
    loaded = sl.load(tmp_path)
    assert isinstance(loaded, sl.Result)
    assert loaded.digest == run.digest
    assert loaded.flows.equals(run.flows)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: None, "does not exist; allowed: a folder"),
        (lambda path: path.write_text("x"), "is not a folder; allowed: a folder"),
        (lambda path: path.mkdir(), "no results in the folder .*, which is empty"),
    ],
)
def test_load_states_the_mistake_in_a_folder(make: Any, expected: str, tmp_path: Path) -> None:
    make(tmp_path / "it")
    with pytest.raises(sl.SavedResultsError, match=expected):
        sl.load(tmp_path / "it")


def test_a_comparison_prints_its_conclusions_and_has_the_numbers(swept: sl.Sweep, tmp_path: Path) -> None:
    answer = swept.compare(metric="queueing", by="queue")
    words = str(answer)
    assert "cubic" in words
    assert repr(answer) == words, "a notebook or a shell shows the conclusions"
    assert "<table" in answer._repr_html_()
    frame = answer.frame()
    assert set(frame["scheme"]) == {"cubic"}
    assert frame.filter(pl.col("metric") == "queueing").height >= 2
    swept.save(tmp_path / "saved")
    assert sl.compare(tmp_path / "saved", metric="queueing", by=["queue"]).frame().equals(frame)
    assert sl.compare(str(tmp_path / "saved"), metric="queueing", by=["queue"], schemes="cubic").frame().equals(frame)
    other = sl.compare(swept, baseline="cubic", schemes=["reno"], metric="queueing").frame()
    assert set(other["scheme"]) == {"reno"}


def test_sweeps_and_scenario_files_are_compared_by_their_names(swept: sl.Sweep, tmp_path: Path) -> None:
    for name, controller in (("one", "newreno"), ("other", "cubic")):
        text = f"""
            duration = "100ms"
            topology = {{ kind = "dumbbell", pairs = 2, bottleneck_rate = "20Mbps" }}
            scheme.tcp = {{ controller = "{controller}" }}
            workload = {{ kind = "poisson", load = 0.5, sizes = {{ kind = "fixed", size = "20kB" }} }}
        """
        (tmp_path / f"{name}.toml").write_text(textwrap.dedent(text))
    answer = sl.compare([tmp_path / "one.toml", str(tmp_path / "other.toml")], seeds=3)
    assert set(answer.frame()["scheme"]) == {"other"}
    assert "sparelane-compare-" not in str(answer), "the temporary folder of the runs still exists"
    places = []
    for name in ("one", "other"):
        places.append(tmp_path / f"out-{name}")
        sl.sweep(tmp_path / f"{name}.toml", seeds=3, output=places[-1], workers=1)
    assert set(sl.compare(places).frame()["scheme"]) == {"out-other"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (42, "compare takes sweeps, their folders, or scenario files, not int"),
        ([], "compare takes sweeps"),
        ([1], "not int"),
        (None, "not NoneType"),
    ],
)
def test_compare_refuses_what_it_cannot_compare(source: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        sl.compare(source)


def test_compare_of_a_single_run_states_the_allowed_arguments(tmp_path: Path) -> None:
    run = sl.run(SCENARIO, set={"workload.scheme": "reno"})
    with pytest.raises(TypeError, match=r"not Result; sweep\(scenario, seeds=5\)"):
        sl.compare(run)  # type: ignore[arg-type]
    run.save(tmp_path)
    with pytest.raises(sl.SavedResultsError, match="holds a single run; compare takes sweeps"):
        sl.compare(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"metric": "completionn"}, sl.UnknownNameError, "completion"),
        ({"by": "queues.kind"}, sl.UnknownNameError, "queue.kind"),
        ({"baseline": "renoo"}, sl.UnknownNameError, "reno"),
        ({"schemes": "cubics"}, sl.UnknownNameError, "cubic"),
        ({"metric": 3}, TypeError, "metric is 3; allowed: a name"),
        ({"threshold": 5}, ValueError, "threshold is 5; allowed: a share from 0 to 1"),
    ],
)
def test_a_mistyped_argument_of_compare_is_refused_with_a_suggestion(
    arguments: dict[str, Any], error: type[Exception], expected: str, swept: sl.Sweep
) -> None:
    with pytest.raises(error, match=expected):
        swept.compare(**arguments)


def test_a_report_and_a_figure_are_written(swept: sl.Sweep, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert swept.report(tmp_path / "page.html", metric="queueing") == tmp_path / "page.html"
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    plot = swept.plot("queueing")
    plot.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(sl.UnknownNameError, match="panel"):
        swept.plot("nothing")
    assert "cubic" in swept._repr_html_()


def test_progress_is_silent_unless_standard_error_is_a_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sparelane.terminal.console.LINE_EVERY_S", 0.0)
    small = {**SCENARIO, "duration": "50ms"}
    sl.sweep(small, workers=1, output=tmp_path)
    sl.sweep(small, workers=1, output=tmp_path, progress=False)
    assert capfd.readouterr() == ("", "")
    sl.sweep(small, workers=1, output=tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "100 %" in err


def test_a_progress_function_gets_the_share_and_may_cancel(tmp_path: Path) -> None:
    shares: list[float] = []

    def half(share: float) -> bool:
        shares.append(share)
        return share < 0.5

    small = {**SCENARIO, "duration": "50ms"}
    with pytest.raises(sl.Cancelled):
        sl.sweep(small, seeds=8, output=tmp_path / "part", workers=1, progress=half)
    assert shares == sorted(shares)
    assert shares[-1] >= 0.5
    sl.sweep(small, seeds=8, output=tmp_path / "part", workers=1, progress=shares.append)
    assert shares[-1] == 1.0


@pytest.fixture
def _nothing_stays_registered() -> Any:
    before, made = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}, REGISTRY.made
    yield
    REGISTRY.kinds, REGISTRY.made = before, made


@pytest.mark.usefixtures("_nothing_stays_registered")
def test_a_controller_of_this_session_runs_here_in_its_current_definition(tmp_path: Path) -> None:
    def define(gain: float) -> None:
        @sl.controller("own-law")
        class Gain(sl.Controller):
            def on_ack(self, ack: sl.Ack) -> None:
                self.cwnd_bytes = min(self.cwnd_bytes + gain * ack.acked_bytes, 60_000)

            def on_congestion(self, event: sl.Congestion) -> None:
                self.cwnd_bytes = max(self.cwnd_bytes / 2, 2 * self.mss_bytes)

    own = {**SCENARIO, "scheme": {"own": {"controller": "own-law"}, "reno": {"controller": "newreno"}}}
    define(1.0)
    first = sl.sweep(own, seeds=2, output=tmp_path / "kept")
    assert first.schemes == ["own", "reno"]
    define(0.01)
    second = sl.sweep(own, seeds=2, output=tmp_path / "kept")
    assert second.digest != first.digest, "the changed code was not used"


def script(folder: Path, text: str) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, "script.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_script_without_a_main_guard_can_sweep(tmp_path: Path) -> None:
    process = script(
        tmp_path,
        f"""
        import sparelane as sl
        print("once")
        sweep = sl.sweep({SCENARIO!r}, seeds=2, workers=2)
        print(sweep)
        """,
    )
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    assert out.count("once") == 1
    assert "<Sweep" in out
    assert err == ""


def test_ctrl_c_ends_a_sweep_and_keeps_finished_runs(tmp_path: Path) -> None:
    process = script(
        tmp_path,
        f"""
        import sparelane as sl
        def report(share):
            if share > 0:
                print("some", flush=True)
        try:
            sl.sweep({SCENARIO!r}, seeds=2000, workers=1, output="out", progress=report)
        except KeyboardInterrupt:
            kept = sl.load("out")
            print("kept", kept.runs.height > 0, flush=True)
        """,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "some\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    assert "kept True" in out
