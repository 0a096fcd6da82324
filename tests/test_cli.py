"""Tests of the command line: output, files and errors."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import polars as pl
import pytest

import sparelane
from command_line import invoke
from hangs import HANG_S
from sparelane.cli.commands import reproduce
from sparelane.cli.commands import run as run_command
from sparelane.cli.main import main
from sparelane.common import folders
from sparelane.papers.engine import runner
from sparelane.papers.engine.rows import COLUMNS
from sparelane.simulation import bench, simulate
from sparelane.terminal import console
from sparelane.terminal.streams import INCOMPLETE_OUTPUT

SMALL = """\
title = "two flows"
duration = "1s"

[topology]
kind = "dumbbell"
pairs = 2

[scheme.tcp]
controller = "newreno"

[workload]
kind = "bulk"
size = "100kB"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with a small scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_command(option: str) -> None:
    result = invoke(option)
    assert result.exit_code == 0
    for name in ("list", "run", "reproduce", "report", "bench"):
        assert name in result.stdout
        assert invoke(name, option).exit_code == 0


def test_version_is_that_of_the_package() -> None:
    assert invoke("--version").stdout.strip() == f"sparelane, version {sparelane.__version__}"


def test_list_shows_every_kind() -> None:
    result = invoke("list")
    assert result.exit_code == 0
    for word in ("newreno", "priority", "internet2", "poisson", "rc3/fig8-load", "rc3-internet2"):
        assert word in result.stdout


def test_list_of_an_entry_shows_its_parameters() -> None:
    [entry] = [entry for entry in json.loads(invoke("list", "rc3", "--json").stdout) if entry["kind"] == "controller"]
    assert set(entry) == {"kind", "name", "summary", "source", "params", "notes"}
    params = {param["name"]: param for param in entry["params"]}
    assert params["levels"]["default"] == "[40, 440, 4440]"
    assert set(params["levels"]) == {"name", "default", "allowed", "meaning", "source"}
    assert "levels" in invoke("list", "rc3").stdout


def test_list_of_an_unknown_name_suggests_the_closest() -> None:
    result = invoke("list", "newrano")
    assert result.exit_code == 2
    assert 'did you mean "newreno"?' in result.stderr


def test_run_writes_tables_and_everything_needed_to_repeat_it(here: Path) -> None:
    result = invoke("run", "small.toml", "--seed", "7")
    assert result.exit_code == 0, result.stderr
    tables = [
        f"{name}.{end}"
        for name in ("cross_traffic", "delays", "drops", "flows", "links", "packets", "series")
        for end in ("csv", "parquet")
    ]
    assert names_in(here / "out" / "small") == sorted([*tables, "run.json"])
    about = json.loads((here / "out" / "small" / "run.json").read_text(encoding="utf-8"))
    assert set(about) == {"version", "seed", "digest", "totals", "warnings", "scenario", "tables"}
    assert about["seed"] == 7
    assert about["digest"] in result.stdout
    again = sparelane.run(about["scenario"])
    assert again.digest == about["digest"]


def test_run_writes_the_requested_formats(here: Path) -> None:
    result = invoke("run", "small.toml", "-o", "x", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert names_in(here / "x") == [
        "cross_traffic.json",
        "delays.json",
        "drops.json",
        "flows.json",
        "links.json",
        "packets.json",
        "run.json",
        "series.json",
    ]
    flows = json.loads((here / "x" / "flows.json").read_text(encoding="utf-8"))
    assert [flow["size_bytes"] for flow in flows] == [100_000, 100_000]


def test_run_accepts_ready_made_scenarios_by_name(here: Path) -> None:
    result = invoke("run", "rc3-example-7")
    assert result.exit_code == 0, result.stderr
    assert (here / "out" / "rc3-example-7" / "flows.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "small.toml", "--set", "duration=5"], "--set duration = 5"),
        (["run", "small.toml", "--set", "scheme.tcp.beta=1"], "scheme.tcp.beta"),
        (["run", "small.toml", "--set", "nonsense"], "KEY=VALUE"),
        (["run", "broken.toml"], "broken.toml:2"),
        (["run", "nowhere/x.toml"], 'no file "nowhere/x.toml"'),
        (["run", "rc3-internet"], 'did you mean "rc3-internet2"?'),
        (["reproduce", "rc3/fig8-laod"], 'did you mean "rc3/fig8-load"?'),
        (["bench", "missing.topo"], 'no file "missing.topo"'),
    ],
)
def test_a_mistake_exits_with_2_names_its_place_and_writes_nothing(
    here: Path, arguments: list[str], message: str
) -> None:
    (here / "broken.toml").write_text('title = "x"\nduration = = 3\n', encoding="utf-8")
    before = sorted(here.rglob("*"))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("arguments", [["run", "small.toml"], ["reproduce", "rc3/model"]])
def test_a_folder_that_cannot_be_written_is_found_before_any_work(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(sparelane.simulation.simulate.Prepared, "run", fail)
    monkeypatch.setattr(runner, "reproduce", fail)
    (here / "taken").write_text("a file", encoding="utf-8")
    result = invoke(*arguments, "-o", "taken/below")
    assert result.exit_code == 2
    assert 'cannot write into the folder "taken/below"' in result.stderr


def test_a_json_file_that_cannot_be_written_is_found_before_any_work(here: Path) -> None:
    result = invoke("reproduce", "rc3/model", "--json", "missing/rows.json")
    assert result.exit_code == 2
    assert 'cannot write the file "missing/rows.json"' in result.stderr
    assert not (here / "out" / "reproduce" / "rc3").exists()


def test_reproduce_writes_rows_a_figure_and_the_report(here: Path) -> None:
    result = invoke("reproduce", "rc3/model", "rc3/example-7", "--quick", "-o", "done", "--json", "rows.json")
    assert result.exit_code == 0, result.stderr
    written = names_in(here / "done")
    for id in ("rc3/model", "rc3/example-7"):
        for name in ("rows.csv", "manifest.json", "figure.png", "figure.pdf"):
            assert f"{id}/{name}" in written
    report = (here / "done" / "README.md").read_text(encoding="utf-8")
    assert "[rc3/model](rc3/model/README.md)" in report
    page = (here / "done" / "rc3" / "model" / "README.md").read_text(encoding="utf-8")
    assert "Assumptions, where the paper leaves something open:" in page
    details = json.loads((here / "done" / "report.json").read_text(encoding="utf-8"))
    assert [experiment["id"] for experiment in details["experiments"]] == ["rc3/example-7", "rc3/model"]
    assert details["unfinished"] == []
    rows = json.loads((here / "rows.json").read_text(encoding="utf-8"))
    assert all(tuple(row) == COLUMNS for row in rows)
    assert {row["experiment"] for row in rows} == {"rc3/model", "rc3/example-7"}


def test_an_interrupted_reproduction_keeps_finished_experiments(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show = reproduce.show

    def interrupt(done: runner.Finished) -> None:
        show(done)
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "show", interrupt)
    result = invoke("reproduce", "rc3/example-7", "rc3/model", "-o", "done", "--json", "rows.json")
    assert result.exit_code == 130
    assert 'Finished, and saved in "done": rc3/example-7. Not finished: rc3/model' in result.stderr
    assert (here / "done" / "rc3" / "example-7" / "figure.png").is_file()
    assert json.loads((here / "done" / "report.json").read_text(encoding="utf-8"))["unfinished"] == ["rc3/model"]
    rows = json.loads((here / "rows.json").read_text(encoding="utf-8"))
    assert {row["experiment"] for row in rows} == {"rc3/example-7"}


# The command line, which also prints its steps: "building" while the network is built, "built" after that, and then the
# share of the run that is simulated.
STEPS = """
from sparelane.cli.main import main
from sparelane.simulation import simulate

real_prepare, real_run = simulate.prepare, simulate.Prepared.run

def prepare(*arguments, waiting, **options):
    def wait(seconds):
        print("building", flush=True)
        waiting(seconds)

    prepared = real_prepare(*arguments, waiting=wait, **options)
    print("built", flush=True)
    return prepared

def run(prepared, progress, *, keep):
    def report(share):
        print(f"share {share}", flush=True)
        return progress(share)

    return real_run(prepared, report, keep=keep)

simulate.prepare, simulate.Prepared.run = prepare, run
main()
"""


@contextmanager
def printing_steps(here: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the command line in a separate process that prints its steps."""
    line = [sys.executable, "-c", STEPS, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        line, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        alarm = threading.Timer(HANG_S, process.kill)
        alarm.start()
        try:
            yield process
        finally:
            alarm.cancel()
            process.kill()


def read_until(process: subprocess.Popen[str], is_reached: Callable[[str], bool]) -> None:
    """Reads the standard output of a process up to the first line for which `is_reached` is true."""
    assert process.stdout is not None
    for line in process.stdout:
        if is_reached(line):
            return
    raise AssertionError("the process ended before that line")


def rest_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Waits for the end of a process, and returns the rest of its standard output and its standard error."""
    assert process.stdout is not None
    assert process.stderr is not None
    output = process.stdout.read()
    return output, process.stderr.read()


def test_ctrl_c_ends_the_building_of_a_network(here: Path) -> None:
    with printing_steps(here, "run", "rc3-fat-tree", "--set", "topology.k=64", "-o", "out") as process:
        read_until(process, lambda line: line == "building\n")
        process.send_signal(signal.SIGINT)
        output, errors = rest_of(process)
    assert process.returncode == 130
    assert "built" not in output
    assert "Traceback" not in errors
    assert not (here / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_its_results_so_far(here: Path, number: signal.Signals) -> None:
    settings = ("--set", "duration=50000s", "--set", "sample.interval=10s")
    with printing_steps(here, "run", "dumbbell-cubic", *settings, "-o", "out") as process:
        # Two samples of the series are simulated.
        read_until(process, lambda line: line.startswith("share") and float(line.split()[1]) > 20 / 50_000)
        process.send_signal(number)
        output, errors = rest_of(process)
    assert process.returncode == 130, errors
    kept = json.loads((here / "out" / "run.json").read_text(encoding="utf-8"))
    assert kept["interrupted"] is True
    assert 0 < kept["totals"]["end_s"] < 50_000
    reached = f"interrupted: {kept['totals']['end_s']:.6g} s of 50000s were simulated"
    assert f"{reached}, and the results until then are in out" in errors
    assert "Goodput" in output
    flows = pl.read_parquet(here / "out" / "flows.parquet")
    assert flows["delivered_bytes"].sum() > 0


@pytest.fixture
def tiny_workload(here: Path) -> Path:
    """Two hosts, one router, one flow."""
    links = "link 0 2 100000000 1000000 100\nlink 1 2 100000000 1000000 100\n"
    (here / "tiny.topo").write_text("host 0\nhost 1\nrouter 2 R\n" + links, encoding="utf-8")
    (here / "tiny.flows").write_text("0 0 1 0\n", encoding="utf-8")
    return here / "tiny.topo"


def test_the_ladder_has_a_line_for_every_size(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LADDER", {4: "50us", 6: "50us"})
    result = invoke("bench", "--ladder", "--json", "l.json")
    assert result.exit_code == 0, result.stderr
    rungs = json.loads((here / "l.json").read_text(encoding="utf-8"))
    assert [(rung["ports"], rung["hosts"], rung["links"]) for rung in rungs] == [(4, 16, 96), (6, 54, 324)]
    assert all(rung["packet_hops"] > 0 and rung["flows"] > 0 for rung in rungs)
    assert all(isinstance(rung["further_hop_ns"], float) for rung in rungs)
    assert len(result.stdout.splitlines()) == 3
    assert "its own workloads" in invoke("bench", "--ladder", "--ssthresh", "20").stderr


def test_the_million_has_all_its_flows_open_at_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MILLION", bench.Million(4, 500, "150us"))
    result = invoke("bench", "--million", "--json", "m.json")
    assert result.exit_code == 0, result.stderr
    [timing] = json.loads((here / "m.json").read_text(encoding="utf-8"))
    assert (timing["ports"], timing["hosts"], timing["open_flows"]) == (4, 16, 500)
    # Each flow sends a SYN over at least two links.
    assert timing["packet_hops"] > 1_000
    assert 1 < timing["built_mb"] <= timing["peak_rss_mb"]
    heading, build, run = result.stdout.splitlines()
    assert heading == "fat tree of 4 ports, 16 hosts, 500 flows open at once"
    assert build.split()[0] == "build"
    assert f"{timing['packet_hops']:,} packet-hops" in run


@pytest.mark.parametrize("options", [["--million", "--ladder"], ["--million", "--ssthresh", "20"]])
def test_the_million_rejects_settings_of_other_workloads(options: list[str]) -> None:
    result = invoke("bench", *options)
    assert result.exit_code == 2
    assert "its own workloads" in result.stderr


def test_bench_times_a_workload(here: Path, tiny_workload: Path) -> None:
    result = invoke("bench", str(tiny_workload), "--duration", "1s", "--ssthresh", "20", "--json", "b.json")
    assert result.exit_code == 0, result.stderr
    [timing] = json.loads((here / "b.json").read_text(encoding="utf-8"))
    assert list(timing) == ["workload", "events", "packet_hops", "cpu_s", "wall_s", "peak_rss_mb"]
    assert timing["workload"] == "tiny"
    assert timing["packet_hops"] > 10_000
    assert timing["peak_rss_mb"] > 1


def test_bench_of_zero_time_only_builds(here: Path, tiny_workload: Path) -> None:
    result = invoke("bench", str(tiny_workload), "--duration", "0s", "--json", "b.json")
    assert result.exit_code == 0, result.stderr
    [timing] = json.loads((here / "b.json").read_text(encoding="utf-8"))
    assert timing["packet_hops"] == 0


def test_bench_of_a_workload_without_default_needs_a_duration(tiny_workload: Path) -> None:
    result = invoke("bench", str(tiny_workload))
    assert result.exit_code == 2
    assert "--duration" in result.stderr


def test_only_results_are_printed_without_a_terminal(here: Path) -> None:
    result = invoke("run", "small.toml")
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert here.is_dir()


@pytest.mark.parametrize("arguments", [["list"], ["list", "red"], ["schema", "--sweep"], ["reproduce", "fig8"]])
def test_names_are_listed_without_loading_heavy_libraries(arguments: list[str]) -> None:
    code = (
        "import sys; from sparelane.cli.main import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: print([one for one in ('polars', 'matplotlib', 'scipy', 'numpy') if one in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sparelane.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_package_can_be_run_as_a_module(here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(sparelane.__file__).parents[1])}
    command = [sys.executable, "-m", "sparelane", "check", "small.toml"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "2 flows" in done.stdout
    help = subprocess.run([*command[:3], "-h"], capture_output=True, text=True, check=True, env=environment)
    assert help.stdout.startswith("Usage: sparelane [OPTIONS]")


def test_a_misspelt_command_gets_the_closest_as_suggestion() -> None:
    done = invoke("reprodce", "rc3")
    assert done.exit_code == 2
    assert 'there is no command "reprodce"; did you mean "reproduce"?' in done.stderr


def test_a_queue_is_listed_with_its_parameters_and_a_pointer_to_the_others() -> None:
    shown = invoke("list", "red").stdout
    assert "max_probability" in shown
    assert "The keys of [queue] also apply" in shown
    assert "mark_at" in invoke("list", "queue").stdout


@pytest.mark.parametrize("heavy", ["polars", "matplotlib", "scipy", "rich", "numpy"])
def test_the_bench_command_loads_nothing_heavy(tiny_workload: Path, heavy: str) -> None:
    code = (
        "import sys; from sparelane.cli.main import main\n"
        f"main(['bench', {str(tiny_workload)!r}, '--duration', '1ms'], standalone_mode=False)\n"
        f"sys.exit({heavy!r} in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sparelane.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_commands_are_click_commands() -> None:
    assert all(
        isinstance(main.get_command(click.Context(main), name), click.Command)
        for name in main.list_commands(click.Context(main))
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'title = "a"\n\xf1\x02', ":2: not text in UTF-8"),
        ('title = "a"'.encode("utf-16"), ": not a text file: this is text in UTF-16"),
        (b"# caf\xe9", ":1: not text in UTF-8"),
    ],
)
def test_a_binary_file_is_a_mistake_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    result = invoke("run", str(path))
    assert result.exit_code == 2
    assert message in result.stderr
    assert str(path) in result.stderr


def test_a_missing_file_and_an_unknown_name_have_different_errors(tmp_path: Path) -> None:
    assert 'there is no file "nowhere.toml"' in invoke("run", "nowhere.toml").stderr
    assert "there is no ready-made scenario" in invoke("run", "nowhere").stderr
    assert "is not a file" in invoke("run", str(tmp_path)).stderr
    assert "is not a file" in invoke("run", "/dev/zero").stderr


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read from its start")
def test_a_file_that_cannot_be_read_is_a_mistake_with_its_reason() -> None:
    result = invoke("run", "/proc/self/mem")
    assert result.exit_code == 2
    assert result.stderr.strip() == "sparelane: /proc/self/mem: cannot be read: input/output error"


def test_without_a_terminal_progress_is_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("sparelane.terminal.console.time.monotonic", lambda: now_s)
    with console.progress("two flows") as meter:
        for second in range(1, 26):
            now_s = 1000.0 + second
            meter(second / 40)
    assert capsys.readouterr().err.splitlines() == [
        "two flows: 25 %, about 30 s left",
        "two flows: 50 %, about 20 s left",
    ]
    with console.waiting("a network") as waiting:
        for second in range(26):
            waiting(float(second))
    assert capsys.readouterr().err.splitlines() == ["a network: 10 s", "a network: 20 s"]


def test_numbers_outside_their_bounds_are_refused_before_any_work() -> None:
    assert "is not in the range" in invoke("run", "two-flows-priority", "--seed", str(2**64)).stderr
    assert "is not in the range" in invoke("reproduce", "--quick", "--seeds", "1000000000").stderr


def test_a_json_file_that_cannot_be_written_leaves_no_folder_behind(tmp_path: Path) -> None:
    result = invoke("reproduce", "rc3/example-7", "--json", "no/such/x.json", "-o", str(tmp_path / "made"))
    assert result.exit_code == 2
    assert 'cannot write the file "no/such/x.json"' in result.stderr
    assert not (tmp_path / "made").exists()


def test_tables_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    folder = str(tmp_path / "out")
    assert invoke("run", "two-flows-priority", "-o", folder, "--format", "csv").exit_code == 0
    assert invoke("run", "two-flows-priority", "-o", folder, "--format", "json").exit_code == 0
    suffixes = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert suffixes == {".json"}


def test_a_table_that_cannot_be_written_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparelane.common import frames

    def full(_: object, path: Path) -> None:
        path.write_text("half of a ta")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setitem(frames.WRITERS, "csv", full)
    result = invoke("run", "two-flows-priority", "-o", str(tmp_path), "--format", "csv")
    assert result.exit_code == 2
    assert "no space left on device" in result.stderr
    assert "digest" in result.stdout, "results are printed first"
    assert not list(tmp_path.iterdir())


def program(*arguments: str, here: Path, **extra: Any) -> subprocess.CompletedProcess[str]:
    """Runs the installed program in a separate process with the C locale."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # The user's cache may already have the outcomes, which the program would state.
    environment["SPARELANE_CACHE_LIMIT"] = os.environ["SPARELANE_CACHE_LIMIT"]
    command = [str(Path(sys.executable).with_name("sparelane")), *arguments]
    return subprocess.run(command, cwd=here, env=environment, text=True, timeout=HANG_S, check=False, **extra)


def test_a_locale_without_the_characters_of_a_table_prints_others(here: Path) -> None:
    done = program("reproduce", "rc3/model", "--quick", "--check", here=here, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "1 claim: 1 held" in done.stdout


def test_a_full_standard_output_is_reported_once_and_the_work_completes(here: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = program("reproduce", "rc3/example-7", "rc3/model", here=here, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == INCOMPLETE_OUTPUT
    [line] = done.stderr.splitlines()
    assert line.startswith("sparelane: cannot write to standard output: no space left on device; the results are saved")
    saved = here / "out" / "reproduce" / "rc3"
    assert all((saved / name / "figure.png").is_file() for name in ("example-7", "model"))


def test_a_closed_standard_output_is_no_error(here: Path) -> None:
    command = f'"{Path(sys.executable).with_name("sparelane")}" list >&-'
    done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_over_its_limit_names_the_limit_and_keeps_its_results(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, real_run = 0.0, simulate.Prepared.run

    def run(prepared: simulate.Prepared, progress: Callable[[float], bool], *, keep: bool) -> sparelane.Result:
        def report(share: float) -> bool:
            nonlocal now_s
            now_s = 60.0 if share > 0 else 0.0
            return progress(share)

        return real_run(prepared, report, keep=keep)

    monkeypatch.setattr(simulate.Prepared, "run", run)
    monkeypatch.setattr(run_command, "time", SimpleNamespace(monotonic=lambda: now_s))
    line = ["run", "dumbbell-cubic", "--set", "duration=50000s", "--run-limit", "60", "-o", "out"]
    result = invoke(*line)
    assert result.exit_code == 124
    kept = json.loads((here / "out" / "run.json").read_text(encoding="utf-8"))
    assert kept["interrupted"] is True
    assert f"reached its limit, --run-limit 60 (seconds): {kept['totals']['end_s']:.6g} s of 50000s" in result.stderr
    assert "the results until then are in out" in result.stderr


def test_a_limit_during_building_reports_that_nothing_was_simulated(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, waiting: Any, **__: Any) -> None:
        for seconds in range(100):
            waiting(float(seconds))
            time.sleep(0.05)

    monkeypatch.setattr(simulate, "prepare", never)
    result = invoke("run", "small.toml", "--run-limit", "0.2", "-o", "out")
    assert result.exit_code == 124
    assert "--run-limit 0.2 (seconds), while its network was built: nothing was simulated" in result.stderr
    assert not (here / "out").exists()


def test_a_limit_that_has_no_effect_is_refused(here: Path) -> None:
    result = invoke("run", "small.toml", "--on", "linux", "--run-limit", "5")
    assert result.exit_code == 2
    assert "--run-limit" in result.stderr


def test_ctrl_c_keeps_the_results_of_a_run_with_a_plugin(here: Path) -> None:
    law = """
        import sparelane as sl

        @sl.controller("steady")
        class Steady(sl.Controller):
            def on_ack(self, ack):
                self.cwnd_bytes = 20_000

            def on_congestion(self, event):
                pass
    """
    (here / "law.py").write_text(textwrap.dedent(law), encoding="utf-8")
    text = SMALL.replace('"newreno"', '"steady"').replace("1s", "50000s").replace('size = "100kB"', "")
    (here / "long.toml").write_text(text, encoding="utf-8")
    with printing_steps(here, "run", "long.toml", "--plugin", "law.py", "-o", "out") as process:
        read_until(process, lambda line: line.startswith("share") and float(line.split()[1]) > 0)
        process.send_signal(signal.SIGINT)
        _, errors = rest_of(process)
    assert process.returncode == 130, errors
    assert "the results until then are in out" in errors
    assert json.loads((here / "out" / "run.json").read_text(encoding="utf-8"))["interrupted"] is True


def test_a_run_is_repeated_from_its_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "sizes").mkdir()
    (here / "sizes" / "list.flows").write_text("0 2 3 100000\n", encoding="utf-8")
    text = SMALL.replace('kind = "bulk"\nsize = "100kB"', 'kind = "flows"\npath = "sizes/list.flows"')
    (here / "listed.toml").write_text(text, encoding="utf-8")
    assert invoke("run", "listed.toml", "--seed", "7", "-o", "first").exit_code == 0
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    again = invoke("run", "../first/run.json", "-o", "again")
    assert again.exit_code == 0, again.output
    assert "same digest as the saved run" in again.stdout
    # The folder is enough: it may be moved, and the files that the scenario names may be deleted.
    (here / "sizes" / "list.flows").unlink()
    (here / "first").rename(here / "moved")
    moved = invoke("run", "../moved/run.json", "-o", "../moved")
    assert "same digest as the saved run" in moved.stdout, moved.output
    assert "same digest as the saved run" in invoke("run", "../moved/run.json", "-o", "once-more").stdout
    changed = invoke("run", "again/run.json", "--seed", "8", "--set", "topology.access_delay=8ms", "-o", "third")
    assert "the digest differs from the saved run" in changed.stdout
    (here / "elsewhere" / "else.json").write_text('{"rows": 1}', encoding="utf-8")
    refused = invoke("run", "else.json")
    assert refused.exit_code == 2
    assert "not the run.json of a run" in refused.stderr


def test_a_list_in_place_of_a_value_suggests_sweep(here: Path) -> None:
    (here / "small.toml").write_text(SMALL, encoding="utf-8")
    result = invoke("run", "small.toml", "--set", 'topology.access_delay=["1ms", "2ms"]')
    assert result.exit_code == 2
    assert "topology.access_delay has several values: `sparelane sweep small.toml` runs them all" in result.stderr
    other = invoke("run", "small.toml", "--set", "topology.access_delay=never")
    assert "sweep" not in other.stderr


def test_a_folder_of_result_folders_is_refused_with_their_names(here: Path) -> None:
    (here / "small.toml").write_text(SMALL, encoding="utf-8")
    assert invoke("run", "small.toml", "-o", "out/a").exit_code == 0
    assert invoke("run", "small.toml", "--seeds", "2", "-o", "out/b").exit_code == 0
    (here / "out" / "c").mkdir()
    result = invoke("report", "out")
    assert result.exit_code == 2
    assert '"out" holds folders of results, and no results itself; allowed: one of "out/a", "out/b"' in result.stderr
    assert "out/c" not in result.stderr


def test_only_the_main_means_over_seeds_are_printed_by_default(here: Path) -> None:
    text = SMALL.replace('kind = "bulk"\nsize = "100kB"', 'kind = "poisson"\nload = 0.3\nsizes = { kind = "rc3" }')
    (here / "small.toml").write_text(text, encoding="utf-8")
    few = invoke("run", "small.toml", "--seeds", "2", "-o", "out").stdout
    all_of_them = invoke("run", "small.toml", "--seeds", "2", "-o", "out", "--all").stdout
    [more] = re.findall(r"(\d+) more means: --all prints them, and out/rows.parquet has them", few)
    lines = [sum("all flows" in line or "network" in line for line in text.splitlines()) for text in (few, all_of_them)]
    assert lines[0] == 15
    assert pl.read_parquet(here / "out" / "rows.parquet").height == 15 + int(more)
    assert "more means" not in all_of_them
    assert "completion time" in few


def test_a_result_can_be_written_to_a_pipe_or_through_a_link(tmp_path: Path) -> None:
    pipe, link, text = tmp_path / "pipe", tmp_path / "link", tmp_path / "text"
    os.mkfifo(pipe)
    text.write_text("before")
    link.symlink_to(text)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    folders.replaced(pipe, lambda path: path.write_text("into the pipe"))
    assert os.read(reader, 100) == b"into the pipe"
    os.close(reader)
    assert pipe.is_fifo()
    folders.replaced(link, lambda path: path.write_text("after"))
    assert (link.is_symlink(), text.read_text()) == (True, "after")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "pipe", "text"]
