"""Tests of the first steps: `new`, `check`, scenarios on standard input, and `run --seeds`."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sparelane as sl
from small_sweeps import BASE, LOADS, file
from sparelane.cli.main import main
from sparelane.simulation.forecast import forecast
from sparelane.sweeps import folder
from sparelane.sweeps.plan import Plan

ONE = BASE.replace("load = 0.5", 'load = 0.5\nscheme = "tcp"')


def invoke(*arguments: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)


def test_a_new_scenario_can_be_run_and_has_comments(tmp_path: Path) -> None:
    result = invoke("new", tmp_path / "mine")
    assert result.exit_code == 0, result.output
    path = tmp_path / "mine.toml"
    text = path.read_text()
    assert text.count("#") > 10
    assert invoke("run", path, "-o", tmp_path / "out").exit_code == 0
    assert invoke("plot", tmp_path / "out").exit_code == 0


def test_a_new_sweep_is_a_valid_sweep(tmp_path: Path) -> None:
    assert invoke("new", tmp_path / "mine.toml", "--sweep").exit_code == 0
    path = tmp_path / "mine.toml"
    made = Plan(path.read_text(), str(path), tmp_path, seeds=5)
    made.check()
    assert [setting.scheme for setting in made.settings] == ["tcp", "rc3"] * 3


def test_new_does_not_replace_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    result = invoke("new", tmp_path / "mine")
    assert (result.exit_code, "exists already" in result.stderr) == (2, True)
    assert (tmp_path / "mine.toml").read_text() == "mine"
    assert invoke("new", tmp_path / "nowhere" / "x.toml").exit_code == 2


def test_check_of_a_short_run_prints_its_exact_size(tmp_path: Path) -> None:
    flows = sl.run(ONE).totals["flows"]
    result = invoke("check", file(tmp_path, ONE))
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{flows} flows, ")


def test_an_estimate_from_the_beginning_of_a_run_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparelane.simulation.forecast.TRIAL_S", 0.1)
    settings = ["duration=60s", "bottleneck_rate=100Mbps".replace("bottleneck_rate", "topology.bottleneck_rate")]
    found = forecast(ONE, settings, seed=1)
    assert found.tried < 1
    whole = sl.run(ONE, seed=1, set=settings)
    assert found.flows == pytest.approx(whole.totals["flows"], rel=0.25)
    assert found.seconds is not None
    assert found.seconds > 0.05
    assert found.memory_bytes is not None
    assert found.memory_bytes > 20e6


def test_an_estimate_counts_flows_that_all_start_at_once_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparelane.simulation.forecast.TRIAL_S", 0.05)
    bulk = ONE.split("[workload]")[0] + '[workload]\nkind = "bulk"\nscheme = "tcp"\n'
    found = forecast(bulk, ["duration=10min", "topology.bottleneck_rate=1Gbps"])
    assert (found.flows, found.tried < 1) == (3, True)


def test_check_of_a_sweep_prints_the_number_and_the_duration_of_runs(tmp_path: Path) -> None:
    result = invoke("check", file(tmp_path, LOADS), "--seeds", "3", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "load = 0.3, tcp: " in result.output
    assert "load = 0.6, rc3: " in result.output
    assert "12 runs, 4 settings: about" in result.output


# Command lines, standard input, and a part of the message.
MISTAKES: list[tuple[tuple[str, ...], str | bytes, str]] = [
    (("check", "-"), BASE.replace("load = 0.5", "lod = 0.5"), "workload.lod: unknown key"),
    (("check", "-"), LOADS.replace("[0.3, 0.6]", "[7, 8]"), "workload.load = 7"),
    (("check", "missing.toml"), "", "there is no file"),
    (("check", "-", "--set", "load"), ONE, "an override is KEY=VALUE"),
    (("run", "-"), "", "stdin: empty"),
    (("run", "-"), b"title = \xff", "stdin:1: not text in UTF-8"),
    (("run", "-"), "duration", "not valid TOML"),
    (("run", "-", "--seeds", "3", "-o", "out"), ONE.replace("0.5", "9.5"), "workload.load = 9.5"),
    (("run", "-", "--seeds", "1"), ONE, "1 is not in the range"),
    (("sweep", "-", "-o", "out"), ONE, "stdin: nothing varies"),
    (("sweep", "-", "-o", "out"), " \n", "stdin: empty"),
]


@pytest.mark.parametrize(("arguments", "text", "message"), MISTAKES, ids=[message for *_, message in MISTAKES])
def test_each_mistake_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], text: str | bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments, text=text)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


def test_a_scenario_from_standard_input_gives_the_same_run(tmp_path: Path) -> None:
    result = invoke("run", "-", "--seed", "3", "-o", tmp_path, text=ONE)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "run.json").read_text())["digest"] == sl.run(ONE, seed=3).digest


def test_a_sweep_from_standard_input_is_the_same_sweep(tmp_path: Path) -> None:
    assert invoke("sweep", "-", "-o", tmp_path / "a", text=LOADS).exit_code == 0
    assert invoke("sweep", file(tmp_path, LOADS), "-o", tmp_path / "b").exit_code == 0
    assert folder.read(tmp_path / "a").manifest.digest == folder.read(tmp_path / "b").manifest.digest


def test_a_run_with_seeds_prints_means_and_saves_rows(tmp_path: Path) -> None:
    arguments = ("run", file(tmp_path, ONE), "--seed", "4", "--seeds", "3", "--set", "workload.load=0.6")
    result = invoke(*arguments, "-o", tmp_path / "out", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "means over 3 seeds" in result.output
    saved = folder.read(tmp_path / "out")
    assert saved.manifest.seeds == (4, 5, 6)
    assert "--set workload.load=0.6 --seed 4 --seeds 3" in saved.manifest.command
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    digests = {json.loads(line)[1]["digest"] for line in lines}
    assert digests == {sl.run(ONE, seed=seed, set={"workload.load": 0.6}).digest for seed in (4, 5, 6)}


def test_other_settings_add_runs_to_the_same_folder(tmp_path: Path) -> None:
    arguments = ("run", file(tmp_path, ONE), "--seeds", "2", "-o", tmp_path / "out")
    invoke(*arguments, "--set", "workload.load=0.6")
    assert "from an earlier run" not in invoke(*arguments, "--set", "workload.load=0.4").output
    assert "(2 from an earlier run)" in invoke(*arguments, "--set", "workload.load=0.4").output


def test_the_scenario_of_new_explains_its_keys() -> None:
    from sparelane.cli.commands.new import OF_RUN, OF_SWEEP, SCENARIO

    for words in (OF_RUN, OF_SWEEP):
        assert tomllib.loads(SCENARIO.format(**words))["topology"]["pairs"] == 4
