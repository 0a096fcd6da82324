"""Tests of controllers in Python: equal digests for equal laws, and clear errors."""

from __future__ import annotations

import hashlib
import html
import importlib.util
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sparelane as sl
from hangs import HANG_S
from sparelane import plugins
from sparelane.plugins.loading import LOADED
from sparelane.plugins.registry import REGISTRY
from sparelane.plugins.watch import Limits, watched

Setting = Any

ROOT = Path(__file__).parents[1]
RENO = ROOT / "examples" / "own-controller" / "reno.py"

SCENARIO = """
duration = "4s"
seed = 3
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "20Mbps"
bottleneck_delay = "10ms"
[queue]
kind = "priority"
limit = "40packets"
[scheme.tcp]
controller = "newreno"
[[workload]]
kind = "bulk"
flows = 3
size = "unlimited"
[sample]
interval = "100ms"
flows = [0]
"""


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """Removes the registrations of a test."""
    kinds, made = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}, REGISTRY.made
    loaded = dict(LOADED)
    yield
    REGISTRY.kinds, REGISTRY.made = kinds, made
    LOADED.clear()
    LOADED.update(loaded)


def with_controller(name: str, **more: Setting) -> sl.Result:
    return sl.run(SCENARIO, set={"scheme.tcp.controller": name, **more})


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"scheme.tcp.initial_window": 3},
        {"transport.ecn": "classic", "queue.kind": "red", "queue.min": "5packets", "queue.max": "15packets"},
        {"transport.sack": False},
        {"transport.delayed_ack": True, "seed": 9},
        {"link": [{"between": ["west", "east"], "loss": 0.01}]},
        {"transport.rack_tlp": True, "transport.prr": True},
    ],
    ids=str,
)
def test_newreno_in_python_has_the_digest_of_the_built_in_one(setting: dict[str, Setting]) -> None:
    plugins.load(RENO)
    built_in = sl.run(SCENARIO, set=setting)
    own = sl.run(SCENARIO, set={**setting, "scheme.tcp.controller": "py-newreno"})
    assert own.digest == built_in.digest
    assert own.totals["events"] > 3000


def test_a_run_with_a_random_controller_repeats() -> None:
    import random

    @sl.controller("gambler")
    class RandomWindow(sl.Controller):
        random: random.Random | None = None

        def on_ack(self, ack: sl.Ack) -> None:
            self.random = self.random or random.Random(self.seed)
            self.cwnd_bytes = self.mss_bytes * self.random.randint(1, 60)

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    first, second = with_controller("gambler"), with_controller("gambler")
    assert first.digest == second.digest
    assert with_controller("gambler", seed=4).digest != first.digest


def test_it_works_inside_rc3_like_the_built_in_one() -> None:
    plugins.load(RENO)
    text = SCENARIO.replace("unlimited", "600packets")
    runs = [
        sl.run(text, set={"scheme.tcp": {"controller": "rc3", "inner": inner}}) for inner in ("newreno", "py-newreno")
    ]
    assert runs[0].digest == runs[1].digest
    assert runs[0].drops.filter(runs[0].drops["class"] > 0)["arrived_packets"].sum() > 100


def test_a_pace_is_kept_on_the_wire() -> None:
    @sl.controller("paced", summary="5 Mb/s whatever happens")
    class Paced(sl.Controller):
        rate = sl.param(5e6, "the pace", min=1e4, max=1e9, unit="bps")

        def __init__(self) -> None:
            self.cwnd_bytes = 1000 * self.mss_bytes
            self.pacing_bps = self.rate

        def on_ack(self, ack: sl.Ack) -> None:
            pass

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    for rate in ("5Mbps", "2Mbps"):
        flows = with_controller("paced", **{"scheme.tcp.rate": rate, "workload.flows": 1}).flows
        bits_per_second = flows["delivered_bytes"][0] * 8 / 3.9
        assert bits_per_second == pytest.approx(float(rate[0]) * 1e6 * 1460 / 1500, rel=0.03)


def test_an_overridden_limits_is_called_after_every_event() -> None:
    class Limited(sl.Controller):
        def on_ack(self, ack: sl.Ack) -> None:
            pass

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

        def limits(self) -> tuple[float, float | None]:
            return 7 * self.mss_bytes, None

    sl.controller("seven")(Limited)
    series = with_controller("seven", **{"workload.flows": 1}).series
    windows = series.filter(series["quantity"] == "cwnd_bytes")["value"]
    assert windows.n_unique() == 1
    assert windows[0] == 7 * 1460


def test_parameters_are_declared_checked_and_listed() -> None:
    @sl.controller("set", summary="whatever is set", source="this test")
    class Set(sl.Controller):
        count = sl.param(4, "a count", min=1, max=9, unit="segments")
        share = sl.param(0.5, "a share", min=0.1, max=0.9)
        mode = sl.param("slow", "a word", choices=["slow", "fast"])
        wait = sl.param(0.04, "a time", unit="s")
        held = sl.param(3000, "a size", unit="bytes")
        flag = sl.param(False, "yes or no")

        def __init__(self) -> None:
            got = (self.count, self.share, self.mode, self.wait, self.held, self.flag)
            seen.append(got)

        def on_ack(self, ack: sl.Ack) -> None:
            pass

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    seen: list[object] = []
    with_controller("set", duration="10ms")
    assert seen[-1] == (4, 0.5, "slow", 0.04, 3000, False)
    given: dict[str, Setting] = {
        "scheme.tcp.count": 9,
        "scheme.tcp.share": 0.25,
        "scheme.tcp.mode": "fast",
        "scheme.tcp.wait": "7ms",
        "scheme.tcp.held": "2KB",
        "scheme.tcp.flag": True,
    }
    with_controller("set", duration="10ms", **given)
    assert seen[-1] == (9, 0.25, "fast", 0.007, 2000, True)
    for key, value, expected in [
        ("count", 10, "allowed: a whole number from 1 to 9 segments"),
        ("share", 1.0, "allowed: a number from 0.1 to 0.9"),
        ("mode", "fats", 'did you mean "fast"?'),
        ("wait", 3, "needs a unit"),
        ("cuont", 3, 'did you mean "count"?'),
    ]:
        with pytest.raises(sl.ScenarioError) as refusal:
            with_controller("set", **{f"scheme.tcp.{key}": value})
        assert expected in str(refusal.value) or "unit" in str(refusal.value), str(refusal.value)
    from sparelane.cli.commands.list import catalogue

    entry = next(entry for entry in catalogue() if entry.name == "set")
    assert (entry.summary, entry.source, len(entry.params)) == ("whatever is set", "this test", 6)


BROKEN = {
    "raises": ("self.count / 0", "ZeroDivisionError: division by zero", "on_ack"),
    "negative": ("self.cwnd_bytes = -5", "cwnd_bytes is -5; allowed: bytes from 0 to 1460000000", "on_ack"),
    "not-a-number": ("self.cwnd_bytes = float('nan')", "cwnd_bytes is NaN", "on_ack"),
    "endless": ("self.cwnd_bytes = float('inf')", "cwnd_bytes is inf", "on_ack"),
    "absurd": ("self.cwnd_bytes = 1e12", "cwnd_bytes is 1000000000000", "on_ack"),
    "text": ("self.cwnd_bytes = 'wide'", "TypeError", "on_ack"),
    "late-pace": ("self.pacing_bps = 1e6", "pacing_bps: the connection had none when it began", ""),
    "no-pace": ("self.pacing_bps = 0", "pacing_bps is 0; allowed: bits per second from 1000", "on_ack"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_exception_stops_the_run_and_names_its_line(name: str, tmp_path: Path) -> None:
    statement, expected, where = BROKEN[name]
    file = tmp_path / "broken.py"
    text = f"""
        import sparelane as sl

        @sl.controller("{name}")
        class Broken(sl.Controller):
            count = 0

            def on_ack(self, ack):
                self.count += 1
                if self.count == 40:
                    {statement}

            def on_congestion(self, event):
                pass
    """
    file.write_text(textwrap.dedent(text).lstrip())
    plugins.load(file)
    with pytest.raises(sl.PluginError) as failure:
        with_controller(name)
    error = failure.value
    assert str(error).startswith(f'controller "{name}" at '), error
    assert expected in str(error)
    assert error.__cause__ is not None
    if where:
        assert (error.file, error.line) == (str(file), 10)
        assert f"{file}, line 10, in {where}" in str(error)
        assert error.__cause__.__traceback__ is not None
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line, again.plugin) == (str(error), error.line, error.plugin)
    # A failure does not affect later runs.
    assert sl.run(SCENARIO).totals["flows"] == 3


def test_an_exception_in_init_is_a_plugin_error_and_not_a_scenario_error() -> None:
    @sl.controller("stillborn")
    class FailsToStart(sl.Controller):
        def __init__(self) -> None:
            raise KeyError("rate")

        def on_ack(self, ack: sl.Ack) -> None:
            pass

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    with pytest.raises(sl.PluginError, match=r"KeyError: 'rate' \(.*test_own_controller.py, line \d+, in __init__\)"):
        with_controller("stillborn")


def test_a_class_that_cannot_be_registered_is_refused_with_the_reason() -> None:
    class Complete(sl.Controller):
        def on_ack(self, ack: sl.Ack) -> None:
            pass

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    class Incomplete(sl.Controller):
        def on_ack(self, ack: sl.Ack) -> None:
            pass

    with pytest.raises(ValueError, match='there is a controller "cubic" already'):
        sl.controller("cubic")(Complete)
    with pytest.raises(ValueError, match="lower-case letters, digits and hyphens"):
        sl.controller("My Law")(Complete)
    with pytest.raises(TypeError, match="no on_congestion"):
        sl.controller("half")(Incomplete)
    with pytest.raises(TypeError, match=r"inherits from sparelane\.Controller"):
        sl.controller("no-class")(dict)  # type: ignore[type-var]
    for needs, expected in [(["air"], 'needs has "air"; allowed: delivery_rate')]:
        with pytest.raises(ValueError, match=expected):
            sl.controller("needy")(type("Needy", (Complete,), {"needs": needs}))
    for declared, expected in [
        (sl.param(5, "", min=1), "has no doc"),
        (sl.param(5, "x", min=9, max=1), "min below max"),
        (sl.param(5, "x", min=6), "`own` is 5; allowed: a whole number from 6"),
        (sl.param("a", "x", choices=["b"]), "`own` is"),
        (sl.param("a", "x"), "list the allowed texts in choices"),
        (sl.param(math.nan, "x"), "`own` is NaN"),
    ]:
        with pytest.raises(ValueError, match=expected):
            sl.controller("declares")(type("Declares", (Complete,), {"own": declared}))
    # Registering again replaces a class, as when a notebook cell is run again.
    sl.controller("twice")(Complete)
    sl.controller("twice")(Complete)
    with pytest.raises(ValueError, match=r'there is a controller "twice" already, in .*test_own_controller'):
        sl.controller("twice")(type("Another", (Complete,), {}))


def test_an_unregistered_controller_is_refused_with_the_way_to_register_it() -> None:
    with pytest.raises(
        sl.ScenarioError, match=r"unknown; allowed: newreno.*@sparelane\.controller, for a command by --plugin"
    ):
        with_controller("my-law")


def test_a_long_callback_ends_with_ctrl_c() -> None:
    @sl.controller("slow")
    class Slow(sl.Controller):
        def on_ack(self, ack: sl.Ack) -> None:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(HANG_S)
            raise AssertionError("nothing ended the callback")

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    with pytest.raises(KeyboardInterrupt):
        with_controller("slow")


@pytest.mark.parametrize("where", ["__init__", "on_ack", "workload"])
def test_ctrl_c_ends_the_command_line_at_once(where: str, tmp_path: Path) -> None:
    text = """
        import time
        import sparelane as sl

        def wait(where):
            if where == "WHERE":
                print("waiting", flush=True)
                time.sleep(3600)

        @sl.controller("slow")
        class Slow(sl.Controller):
            def __init__(self):
                wait("__init__")

            def on_ack(self, ack):
                wait("on_ack")

            def on_congestion(self, event):
                pass

        @sl.workload("slow")
        def slow(run):
            wait("workload")
            yield sl.Flow(0.0, "left0", "right0", 9000)
    """
    (tmp_path / "slow.py").write_text(textwrap.dedent(text).replace("WHERE", where))
    (tmp_path / "slow.toml").write_text(SCENARIO.replace('"newreno"', '"slow"').replace('"bulk"', '"slow"'))
    settings = ["--set", 'workload={kind="slow"}']
    line = [
        sys.executable,
        "-c",
        "from sparelane.cli.main import main; main()",
        "run",
        "slow.toml",
        "--plugin",
        "slow.py",
    ]
    process = subprocess.Popen(
        [*line, *settings], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, reports = process.communicate(timeout=HANG_S)
    places = [f"in wait ({tmp_path / 'slow.py'}, line {line})" for line in (7, 8)]
    assert process.returncode == 130
    assert reports.strip() in [f"sparelane: interrupted {place}; nothing is saved" for place in places]


SLOW = """
    import time
    import sparelane as sl

    @sl.controller("slow")
    class Slow(sl.Controller):
        def on_ack(self, ack):
            try:
                HOW
            except Exception:
                pass

        def on_congestion(self, event):
            pass
"""


def slow(folder: Path, body: str, controllers: str = '"slow"') -> list[str]:
    """Writes a plugin with a slow method, and returns the arguments of a command that runs it."""
    (folder / "slow.py").write_text(textwrap.dedent(SLOW).replace("HOW", body))
    (folder / "slow.toml").write_text(SCENARIO.replace('"newreno"', controllers))
    return ["slow.toml", "--plugin", "slow.py", "-o", "out"]


@pytest.mark.slow
def test_a_slow_call_is_reported_with_its_line_and_ends_at_its_limit(tmp_path: Path) -> None:
    done = command("run", *slow(tmp_path, "time.sleep(3600)"), "--call-limit", "7", folder=tmp_path)
    place = f"({tmp_path / 'slow.py'}, line 9, in on_ack)"
    first, last = done.stderr.splitlines()
    reports = re.fullmatch(r'sparelane: controller "slow" has been in on_ack for (\d+) s (.*)', first)
    assert reports is not None, first
    assert (int(reports[1]) >= 5, reports[2]) == (True, place)
    assert 'sparelane: controller "slow" at 0.0' in last
    assert f"on_ack takes longer than 7 s; allowed: less, or another --call-limit {place}" in last
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("body", "limits", "message"),
    [
        ("time.sleep(3600)", ("--call-limit", "2"), "on_ack takes longer than 2 s"),
        pytest.param(
            *("[0 for _ in iter(int, 1)]", ("--call-limit", "2"), "on_ack takes longer than 2 s"),
            marks=pytest.mark.slow,
        ),
        ("time.sleep(0.3)", ("--run-limit", "2"), "the run takes longer than 2 s"),
        # A library that does not release the interpreter cannot be interrupted, so its worker is killed.
        pytest.param(
            *("sum(range(10**12))", ("--run-limit", "2"), "the run takes longer than 2 s, and had to be killed"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_sweep_lists_a_run_over_its_limit_and_completes_the_others(
    body: str, limits: tuple[str, str], message: str, tmp_path: Path
) -> None:
    arguments = slow(tmp_path, body, '["slow", "newreno", "cubic"]')
    done = command("sweep", *arguments, *limits, "--jobs", "1", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "1 of 3 runs failed; the others are complete" in done.stderr
    assert message in done.stderr
    assert set(pl.read_parquet(tmp_path / "out" / "rows.parquet")["scheme"]) == {"newreno", "cubic"}


def test_a_call_over_its_limit_also_ends_outside_the_main_thread() -> None:
    def spin() -> None:
        while True:
            time.sleep(0.01)

    @sl.controller("spinning")
    class Spinning(sl.Controller):
        def on_ack(self, ack: sl.Ack) -> None:
            spin()

        def on_congestion(self, event: sl.Congestion) -> None:
            pass

    found: list[BaseException] = []

    def run() -> None:
        try:
            with watched(Limits(call_s=1.0)):
                with_controller("spinning")
        except sl.PluginError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(HANG_S)
    [error] = found
    assert 'controller "spinning"' in str(error)
    assert "on_ack takes longer than 1 s" in str(error)


def test_many_short_calls_do_not_reach_the_limit() -> None:
    plugins.load(RENO)
    reports: list[str] = []
    with watched(Limits(call_s=1.0), reports.append):
        with_controller("py-newreno", duration="120s")
    assert reports == []


def run_in_worker(scenario: str) -> str:
    return sl.run(scenario).digest


def test_worker_processes_get_the_loaded_plugins() -> None:
    plugins.load(RENO)
    text = SCENARIO.replace('"newreno"', '"py-newreno"')
    workers = ProcessPoolExecutor(
        2, mp_context=get_context("spawn"), initializer=plugins.load_sources, initargs=(plugins.sources(),)
    )
    with workers:
        digests = set(workers.map(run_in_worker, [text, text]))
    assert digests == {sl.run(SCENARIO).digest}


def command(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", "from sparelane.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=HANG_S)


def test_the_command_line_accepts_plugin_files(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SCENARIO.replace('"newreno"', '"py-newreno"'))
    done = command("run", "own.toml", "--plugin", RENO, "-o", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sl.run(SCENARIO).digest in done.stdout
    listed = command("list", "py-newreno", "--plugin", RENO, folder=tmp_path)
    assert "congestion window of a new connection" in listed.stdout
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    (tmp_path / "fails.py").write_text("import sparelane\n\nnothing.there\n")
    for file, expected in [
        ("none.py", 'there is no plugin file "none.py"'),
        ("empty.py", "registers nothing; allowed: a file with a class under @sparelane.controller"),
        ("wrong.py", "wrong.py, line 1"),
        ("fails.py", "NameError: name 'nothing' is not defined"),
        ("own.toml", "not a file of Python"),
    ]:
        refused = command("run", "own.toml", "--plugin", file, folder=tmp_path)
        assert refused.returncode == 2, (file, refused.stderr)
        assert expected in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_run_keeps_its_plugin_and_names_it_when_repeated_without(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SCENARIO.replace('"newreno"', '"py-newreno"'))
    (tmp_path / "mine.py").write_text(RENO.read_text())
    assert command("run", "own.toml", "--plugin", "mine.py", "-o", "out", folder=tmp_path).returncode == 0
    (tmp_path / "mine.py").unlink()
    (tmp_path / "out").rename(tmp_path / "moved")
    without = command("run", "moved/run.json", folder=tmp_path)
    assert without.returncode == 2
    assert "this run was made with --plugin moved/inputs/mine.py" in without.stderr
    again = command("run", "moved/run.json", "--plugin", "moved/inputs/mine.py", "-o", "again", folder=tmp_path)
    assert "same digest as the saved run" in again.stdout, again.stderr


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("run", "sparelane run scenario.toml --seed 3 --plugin inputs/mine.py"),
        ("sweep", "sparelane sweep own.toml --set 'workload.0.flows=[1, 2]' --seeds 2 --plugin inputs/mine.py"),
    ],
)
def test_a_report_has_the_command_with_its_plugin_and_without_local_paths(verb: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SCENARIO.replace('"newreno"', '"py-newreno"'))
    (tmp_path / "mine.py").write_text(RENO.read_text())
    more = ("--set", "workload.0.flows=[1, 2]", "--seeds", "2") if verb == "sweep" else ()
    file, plugin = tmp_path / "own.toml", tmp_path / "mine.py"
    done = command(verb, file, *more, "--plugin", plugin, "-o", tmp_path / "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert command("report", tmp_path / "out", "-o", "page.html", folder=tmp_path).returncode == 0
    page = html.unescape((tmp_path / "page.html").read_text())
    assert f'<pre class="command">{line}</pre>' in page
    assert RENO.read_text() in page
    assert hashlib.sha256(RENO.read_bytes()).hexdigest() in page
    assert str(tmp_path) not in page


def test_workers_of_a_sweep_know_controllers_and_their_keys(tmp_path: Path) -> None:

    text = SCENARIO.replace('controller = "newreno"', 'controller = "py-newreno"\ninitial_window = [4, 10]')
    (tmp_path / "own.toml").write_text(text.replace("unlimited", "60packets"))
    line: list[str | Path] = ["sweep", "own.toml", "--seeds", "2", "--jobs", "2", "--plugin", RENO, "-o", "out"]
    done = command(*line, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    own = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    line[6:8] = []
    (tmp_path / "own.toml").write_text((tmp_path / "own.toml").read_text().replace("py-newreno", "newreno"))
    done = command(*line[:-1], "other", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    other = pl.read_parquet(tmp_path / "other" / "rows.parquet")
    assert len(own) > 4
    assert own["value"].equals(other["value"])
    assert command("check", "own.toml", "--plugin", RENO, folder=tmp_path).returncode == 0


def test_a_controller_that_fails_in_a_sweep_is_listed(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        SCENARIO.replace('controller = "newreno"', 'controller = "odd"\nlimit = [9, 90]')
    )
    plugin = """
        import sparelane as sl

        @sl.controller("odd")
        class Odd(sl.Controller):
            limit = sl.param(9, "segments that it stands", min=1, max=99, unit="segments")

            def on_ack(self, ack):
                self.cwnd_bytes += self.mss_bytes
                assert self.cwnd_bytes < self.limit * self.mss_bytes or self.limit > 50, "too wide"

            def on_congestion(self, event):
                self.cwnd_bytes = self.mss_bytes
    """
    (tmp_path / "odd.py").write_text(textwrap.dedent(plugin))
    done = command("sweep", "own.toml", "--plugin", "odd.py", "--jobs", "1", "-o", "out", folder=tmp_path)
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "AssertionError: too wide" in done.stdout + done.stderr
    assert (tmp_path / "out" / "rows.parquet").exists()


def test_a_changed_plugin_file_is_not_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "changing.py"
    file.write_text(RENO.read_text().replace("py-newreno", "changing"))
    plugins.load(file)
    plugins.load(file)
    file.write_text(file.read_text() + "\n")
    with pytest.raises(sl.PluginError, match="has changed since it was loaded"):
        plugins.load(file)


def test_a_controller_can_be_tried_outside_a_run() -> None:
    spec = importlib.util.spec_from_file_location("reno_to_try", RENO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__name__ = "reno_to_try"
    REGISTRY.kinds["controller"].pop("py-newreno", None)
    spec.loader.exec_module(module)
    type.__setattr__(module.NewReno, "initial_window", 10)
    law = module.NewReno()
    assert law.cwnd_bytes == 14_600
    assert law.limits() == (14_600.0, None)
