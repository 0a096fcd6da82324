"""`sparelane check` takes bounded time and memory, since it estimates the size of a scenario before it builds it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hangs import HANG_S
from sparelane import _native
from sparelane.cli.main import main
from sparelane.common import memory
from sparelane.simulation import forecast, simulate

SCENARIO = """\
duration = "1s"
topology = { kind = "dumbbell", pairs = 2 }
scheme.tcp.controller = "newreno"
workload = { kind = "bulk" }
"""
POISSON = SCENARIO.replace(
    '{ kind = "bulk" }', '{ kind = "poisson", load = 0.5, load_on = "busiest-core", sizes = { kind = "rc3" } }'
)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def measured(*settings: str) -> dict[str, float]:
    """Returns the estimated memory of a scenario, and the measured growth of a process that builds and starts it."""
    program = f"""
import json, sys
from sparelane import _native
from sparelane.simulation import simulate
from sparelane.common import memory
text, settings = {SCENARIO!r}, sys.argv[1:]
size = _native.size(text, "text", ".", settings)
resident = int(open("/proc/self/statm").read().split()[1]) * 4096
memory.reset_peak()
simulate.run(text, set=[*settings, "duration=1ps"])
print(json.dumps({{**size, "grown": memory.peak_bytes() - resident}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *settings], capture_output=True, text=True, timeout=HANG_S, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("setting", ["topology.pairs=40000", "workload.flows=40000"])
def test_the_memory_of_a_run_is_estimated_to_within_a_factor_of_two_and_a_half(setting: str) -> None:
    found = measured(setting)
    assert found["bytes"] / 2.5 < found["grown"] < found["bytes"] * 2.5, found


@pytest.mark.parametrize("setting", ["topology.pairs=1000000", "workload.flows=3000000"])
def test_a_huge_scenario_is_not_built_and_its_numbers_are_marked_as_estimates(
    setting: str, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it was built")

    size = _native.size

    def smaller(*arguments: Any) -> dict[str, Any]:
        # Replaces the scenario by a similar one at a thousandth of the cost.
        text, name, folder, overrides, *rest = arguments
        found = size(text, name, folder, [one.replace("000", "", 1) for one in overrides], *rest)
        return {
            "nodes": 1000 * found["nodes"],
            "cables": 1000 * found["cables"],
            "flows": 1000 * found["flows"],
            "open_flows": 1000 * found["open_flows"],
            "bytes": 1000 * found["bytes"],
            "warnings": ["a key has no effect"],
        }

    monkeypatch.setattr(simulate, "prepare", never)
    monkeypatch.setattr(_native, "size", smaller)
    done = check(scenario, "--set", setting)
    assert done.exit_code == 0, done.output
    flows = f"{int(setting.partition('=')[2]):,}"
    assert done.stdout.startswith(f"about {flows} flows, about ")
    assert "estimated from its size; the time is unknown, as it was not tried" in done.stdout
    assert "--run-limit" in done.stdout
    assert "warning: a key has no effect" in done.stderr


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("size", "flows, time and memory are unknown: reading it takes longer than 5 s"),
        ("prepare", "it was not tried: building its network takes longer than 5 s"),
    ],
)
def test_a_scenario_that_takes_too_long_to_read_or_build_is_reported(
    step: str, message: str, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 2))

    monkeypatch.setattr("sparelane.simulation.forecast.time.process_time", lambda: float(next(clock)))
    real: Callable[..., Any] = getattr(_native, step)

    def slow(*arguments: Any) -> Any:
        waiting = arguments[5]
        for seconds in range(100):
            waiting(float(seconds))
        return real(*arguments)

    monkeypatch.setattr(_native, step, slow)
    done = check(scenario)
    assert done.exit_code == 0, done.output
    assert message in done.stdout


def test_the_time_of_a_sweep_of_huge_settings_is_unknown(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "MOST_TRIAL_BYTES", 1e6)
    done = check(scenario, "--set", "topology.pairs=[2, 2000]")
    assert done.exit_code == 0, done.output
    assert "2 runs, 2 settings: the time is unknown" in done.stdout
    first, second, _ = done.stdout.splitlines()
    assert first.startswith("topology.pairs = 2: ") or "about" not in first
    assert "about 2,000 flows" in second


def test_the_size_of_a_scenario_is_known_without_building_it() -> None:
    size = _native.size(SCENARIO, "text", ".", ["topology.pairs=10", "workload.flows=70"])
    assert (size["nodes"], size["cables"], size["flows"], size["open_flows"]) == (22, 21, 70, 70)
    assert size["bytes"] > 0


def test_a_load_on_the_core_is_read_in_time_linear_in_the_hosts() -> None:
    """One step per pair of hosts would take minutes."""
    before = memory.peak_bytes()
    size = _native.size(POISSON, "text", ".", ["topology.pairs=100000"])
    assert size["flows"] > 0
    assert memory.peak_bytes() - before < 500e6


@pytest.mark.parametrize("setting", ["workload.flows=1000000000", "topology.pairs=5000000"])
def test_a_scenario_that_exceeds_any_memory_is_refused(setting: str, scenario: str) -> None:
    done = check(scenario, "--set", setting)
    assert done.exit_code == 2
    assert "allowed" in done.stderr


def test_a_scheme_that_another_run_of_the_sweep_uses_is_not_called_unused(tmp_path: Path) -> None:
    file = tmp_path / "three.toml"
    file.write_text(
        'duration = "100ms"\n[topology]\nkind = "dumbbell"\n'
        + "".join(f'[scheme.{name}]\ncontroller = "{name}"\n' for name in ("cubic", "newreno", "vegas", "bbr"))
        + '[workload]\nkind = "bulk"\nscheme = ["cubic", "newreno", "vegas"]\n',
        encoding="utf-8",
    )
    result = CliRunner().invoke(main, ["check", str(file)])
    assert result.exit_code == 0, result.output
    assert [line for line in result.stderr.splitlines() if "no workload has flows" in line] == [
        "warning: no workload has flows of scheme bbr"
    ]


def test_a_warning_of_one_of_the_tried_settings_names_it(scenario: str) -> None:
    done = check(scenario, "--set", "workload.size=100kB", "--set", 'duration=["1ms", "60s"]')
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if "had not finished" in line] == [
        "warning: duration = 1ms: completion times and slowdowns are those of finished flows only: "
        "2 of 2 flows had not finished by the end of the run"
    ]
