"""Tests of the JSON Schema of scenarios and of its agreement with the parser."""

import copy
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator
from jsonschema.exceptions import best_match

import sparelane
from sparelane.cli.commands.new import OF_RUN, OF_SWEEP, SCENARIO
from sparelane.cli.main import main
from sparelane.scenario import library, schema
from sparelane.scenario.settings import toml_value

SCENARIOS = Draft7Validator(json.loads(schema.text()))
SWEEPS = Draft7Validator(json.loads(schema.text(is_sweep=True)))

SMALL = """\
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 2
[queue]
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
inner = { controller = "cubic", beta = 0.7 }
[workload]
kind = "poisson"
scheme = "tcp"
load = 0.3
sizes = { kind = "fixed", size = "10packets" }
"""


def violation(validator: Draft7Validator, content: Any) -> str | None:
    """Returns the message of the schema for an invalid document, or `None`."""
    error = best_match(validator.iter_errors(content))
    return None if error is None else error.message


def changed(key: str, value: Any) -> dict[str, Any]:
    """Returns the small scenario with another value for a dotted key, or without the key if the value is `None`."""
    content: dict[str, Any] = copy.deepcopy(tomllib.loads(SMALL))
    table = content
    *outer, last = key.split(".")
    for part in outer:
        table = table.setdefault(part, {})
    if value is None:
        del table[last]
    else:
        table[last] = value
    return content


def is_accepted(content: dict[str, Any]) -> bool:
    """Returns whether the parser accepts a scenario."""
    text = "\n".join(f"{key} = {toml_value(value)}" for key, value in content.items())
    try:
        sparelane.check(f"{text}\n")
    except sparelane.ScenarioError:
        return False
    return True


def test_the_schemas_are_valid_json_schemas() -> None:
    for validator in (SCENARIOS, SWEEPS):
        Draft7Validator.check_schema(validator.schema)


@pytest.mark.parametrize("name", library.names())
def test_every_ready_made_scenario_is_valid(name: str) -> None:
    content = tomllib.loads(library.find(name).read_text(encoding="utf-8"))
    assert violation(SCENARIOS, content) is None
    assert violation(SWEEPS, content) is None


def test_files_of_new_are_valid() -> None:
    assert violation(SCENARIOS, tomllib.loads(SCENARIO.format(**OF_RUN))) is None
    sweep = tomllib.loads(SCENARIO.format(**OF_SWEEP))
    assert violation(SWEEPS, sweep) is None
    assert violation(SCENARIOS, sweep) is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 2**64 - 1),
        ("duration", "1.5e3 ms"),
        ("duration", "900 000us".replace(" ", "")),
        ("duration", "900000\u00b5s"),
        ("queue", {"kind": "red", "min": "5packets", "max": "15 packets"}),
        ("queue", {"limit": "0.5bdp", "low_priority": "drop"}),
        ("queue_at", {"routers": ["west"], "limit": "10packets"}),
        ("queue_at", [{"share": "50%", "of": "queues", "limit": "10packets"}]),
        ("transport", {"preset": "linux", "delayed_ack": True, "ecn": False}),
        ("transport", {"delayed_ack": {"every": 2, "timeout": "40ms"}, "receive_window": "unlimited"}),
        ("scheme.rc3.inner", "cubic"),
        ("scheme.rc3.levels", [4, 44]),
        ("scheme.tcp.initial_ssthresh", "unbounded"),
        ("workload.load", "30%"),
        ("workload.mix", {"tcp": 0.5, "rc3": "50%"}),
        ("workload", [{"kind": "bulk", "scheme": "tcp", "pairs": [["left0", "right1"]], "size": "unlimited"}]),
        ("link", [{"between": ["west", "east"], "loss": 0.01, "loss_from": "west"}]),
        ("sample", {"flows": [0], "queues": [["west", "east"]]}),
        ("drop", {"from": "west", "to": "east", "segments": [3]}),
    ],
)
def test_values_that_the_parser_accepts_are_valid(key: str, value: Any) -> None:
    content = changed(key, value)
    if key == "workload.mix":
        del content["workload"]["scheme"]
    assert is_accepted(content)
    assert violation(SCENARIOS, content) is None
    assert violation(SWEEPS, content) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("duration", None),
        ("duration", 5),
        ("duration", "5"),
        ("duration", "5 S"),
        ("duration", "-5s"),
        ("durration", "5s"),
        ("seed", -1),
        ("seed", "one"),
        ("routing", "shortest"),
        ("topology", None),
        ("topology.kind", None),
        ("topology.kind", "dumbell"),
        ("topology.k", 4),
        ("topology.pairs", 0),
        ("topology.pairs", 2.5),
        ("queue.limit", 100),
        ("queue.limit", "100 pakets"),
        ("queue.kind", "fifo2"),
        ("queue.min", {"a": 1}),
        ("queue", {"kind": "red"}),
        ("queue", {"kind": "fifo", "min": "3packets"}),
        ("queue", "fifo"),
        ("queue_at", [{"routers": "west"}]),
        ("nic.full", "explode"),
        ("scheme", None),
        ("scheme.tcp.controller", None),
        ("scheme.tcp.controller", "renoo"),
        ("scheme.tcp.levels", [4]),
        ("scheme.tcp.class", 900),
        ("scheme.rc3.levels", [1, 2, 3, 4, 5, 6, 7]),
        ("scheme.rc3.levels", "4"),
        ("scheme.rc3.inner", {"controller": "cubic", "levels": [4]}),
        ("scheme.rc3.inner", 3),
        ("transport.sack", "yes"),
        ("transport.preset", "windows"),
        ("transport.delayed_ack", {"each": 2}),
        ("workload.kind", "poison"),
        ("workload.sizes", None),
        ("workload.sizes", "rc3"),
        ("workload.sizes.kind", "fixt"),
        ("workload.sizes", {"kind": "fixed"}),
        ("workload.load", "30 percent"),
        ("workload.load", 3.5),
        ("workload.load", True),
        ("workload.users", 3),
        ("link", [{"between": ["west"], "delay": "1ms"}]),
        ("link", [{"betwen": ["west", "east"], "delay": "1ms"}]),
        ("sample.flows", 0),
        ("sample.interval", 10),
        ("drop", [{"from": "west", "to": "east"}]),
        ("packets", []),
    ],
)
def test_wrong_values_are_invalid_and_refused_by_the_parser(key: str, value: Any) -> None:
    content = changed(key, value)
    assert violation(SCENARIOS, content) is not None
    assert not is_accepted(content)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workload.load", [0.1, 0.2]),
        ("workload.load", {"from": 0.1, "to": 0.9, "step": 0.2}),
        ("queue.limit", {"from": "1packets", "to": "100packets", "factor": 10}),
        ("duration", ["1s", "2s"]),
        ("seed", [1, 2, 3]),
        ("queue.kind", ["fifo", "priority"]),
        ("scheme.rc3.levels", {"each": [[4], [4, 44]]}),
        ("scheme.tcp.controller", ["newreno", "cubic"]),
        ("workload.sizes.size", ["1packets", "1bdp"]),
        ("queue", [{"kind": "fifo", "limit": "0.25bdp"}, {"kind": "codel"}]),
        ("queue", [{"name": "small", "kind": "fifo"}, {"name": "AQM", "kind": "codel"}]),
        ("queue", {"each": [{"kind": "fifo"}, {"kind": "codel"}]}),
        ("workload.sizes", [{"name": "web", "kind": "web-search"}, {"kind": "rc3"}]),
    ],
)
def test_lists_and_ranges_are_valid_only_in_sweeps(key: str, value: Any) -> None:
    content = changed(key, value)
    assert violation(SWEEPS, content) is None
    assert violation(SCENARIOS, content) is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workload.load", []),
        ("workload.load", [0.1, "much"]),
        ("workload.load", {"from": 0.1, "to": 0.9}),
        ("workload.load", {"from": 0.1, "to": 0.9, "step": 0.2, "points": 3}),
        ("workload.lod", [0.1, 0.2]),
        ("scheme.tcp.controller", ["newreno", "renoo"]),
        ("topology.kind", 3),
        ("queue", []),
        ("queue", [{"kind": "fifo"}, 3]),
        ("queue", {"from": 1, "to": 2, "points": 2}),
        ("queue", [{"name": "", "kind": "fifo"}, {"kind": "codel"}]),
        ("queue", [{"name": 3, "kind": "fifo"}, {"kind": "codel"}]),
    ],
)
def test_wrong_lists_and_ranges_are_invalid(key: str, value: Any) -> None:
    assert violation(SWEEPS, changed(key, value)) is not None


def test_keys_have_descriptions() -> None:
    loaded = SCENARIOS.schema["properties"]["routing"]
    assert loaded["description"].startswith("the choice among equally short paths")
    assert "Allowed: single-path, first-cable, ecmp, spray, spray-round-robin." in loaded["description"]


def test_the_command_prints_or_writes_the_schema(tmp_path: Path) -> None:
    runner = CliRunner()
    assert json.loads(runner.invoke(main, ["schema"]).stdout) == json.loads(schema.text())
    done = runner.invoke(main, ["schema", "--sweep", "-o", str(tmp_path / "sweep.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "sweep.json").read_text(encoding="utf-8")) == json.loads(schema.text(is_sweep=True))
    assert runner.invoke(main, ["schema", "-o", str(tmp_path / "no" / "such.json")]).exit_code == 2


def test_the_schema_includes_controllers_of_plugins(tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(
        "import sparelane\n\n\n"
        "@sparelane.controller('schema-test-law')\n"
        "class Law(sparelane.Controller):\n"
        "    gain = sparelane.param(0.5, 'how much', min=0.0, max=1.0)\n\n"
        "    def on_ack(self, ack):\n        pass\n\n"
        "    def on_congestion(self, event):\n        pass\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "sparelane", "schema", "--plugin", str(plugin)]
    environment = {**os.environ, "PYTHONPATH": str(Path(sparelane.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    own = Draft7Validator(json.loads(done.stdout))
    content = changed("scheme.tcp", {"controller": "schema-test-law", "gain": 0.5})
    assert violation(own, content) is None
    content["scheme"]["tcp"]["gain"] = 2.0
    assert violation(own, content) is not None
