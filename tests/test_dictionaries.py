"""Tests of scenarios as dictionaries: they run like the same text, and errors name the key."""

from __future__ import annotations

import datetime
import tomllib
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparelane as sl
from sparelane.scenario import library
from sparelane.scenario.settings import scenario_text
from two_flows import TABLES, WORKLOADS

BASE: dict[str, Any] = {
    "duration": "1s",
    "seed": 5,
    "topology": {"kind": "dumbbell", "pairs": 2, "bottleneck_rate": "20Mbps"},
    "queue": {"kind": "fifo", "limit": "1bdp"},
    "scheme": {"own": {"controller": "rc3", "inner": {"controller": "cubic", "initial_window": 4}}},
    **TABLES,
}

TEXT = f"""
duration = "1s"
seed = 5
topology = {{ kind = "dumbbell", pairs = 2, bottleneck_rate = "20Mbps" }}
queue = {{ kind = "fifo", limit = "1bdp" }}
scheme.own = {{ controller = "rc3", inner = {{ controller = "cubic", initial_window = 4 }} }}
{WORKLOADS}"""


def test_a_dictionary_runs_as_the_same_text_does() -> None:
    of_text, of_dictionary = sl.run(TEXT), sl.run(BASE)
    assert of_dictionary.digest == of_text.digest
    assert tomllib.loads(of_dictionary.scenario) == tomllib.loads(of_text.scenario)
    assert sl.run(of_dictionary.scenario).digest == of_text.digest


@pytest.mark.parametrize("name", library.names())
def test_every_ready_made_scenario_is_equal_as_a_dictionary(name: str) -> None:
    content = tomllib.loads(library.find(name).read_text(encoding="utf-8"))
    assert tomllib.loads(scenario_text(content)) == content


def test_dotted_keys_are_paths_and_can_be_mixed_with_tables() -> None:
    given = {
        "duration": "1s",
        "seed": 5,
        "topology": {"kind": "dumbbell", "bottleneck_rate": "20Mbps"},
        "topology.pairs": 2,
        "queue.kind": "fifo",
        "queue": {"limit": "1bdp"},
        "scheme.own": {"controller": "rc3", "inner.controller": "cubic"},
        "scheme": {"own.inner.initial_window": 4},
        "workload": [{**BASE["workload"][0], "size": "1MB"}, BASE["workload"][1]],
        "sample": BASE["sample"],
    }
    with pytest.raises(sl.ScenarioError, match=r"<dict>: workload\.0\.size: given twice; allowed: once"):
        sl.check({**given, "workload.0.size": "100kB"})
    del given["workload"][0]["size"]
    assert sl.run({**given, "workload.0.size": "100kB"}).digest == sl.run(TEXT).digest
    assert "size" not in given["workload"][0], "the caller's dictionary is unchanged"


def test_settings_and_seed_apply_to_dictionaries() -> None:
    assert sl.run(BASE, seed=7).seed == 7
    changed = sl.run(BASE, set={"workload.0.size": "10kB"})
    assert changed.flows["size_bytes"][0] == 10_000


def test_values_may_have_types_of_other_libraries(tmp_path: Path) -> None:
    (tmp_path / "list.flows").write_text("0 0 1 1460\n")
    written: dict[str, Any] = {
        "a": np.int64(3),
        "b": np.float64(0.25),
        "c": np.bool_(True),
        "d": np.array([[1, 2], [3, 4]]),
        "e": (1, 2),
        "f": range(3),
        "g": Decimal("0.5"),
        "h": tmp_path / "list.flows",
        "i": OrderedDict(x=1),
        "j": datetime.date(2026, 1, 2),
        "k": np.str_("text"),
        "l": 'quotes " and \\ and \n and \x7f and \u00e9',
        "my scheme": {"k": 1},
    }
    assert tomllib.loads(scenario_text(written)) == {
        "a": 3,
        "b": 0.25,
        "c": True,
        "d": [[1, 2], [3, 4]],
        "e": [1, 2],
        "f": [0, 1, 2],
        "g": 0.5,
        "h": str(tmp_path / "list.flows"),
        "i": {"x": 1},
        "j": datetime.date(2026, 1, 2),
        "k": "text",
        "l": 'quotes " and \\ and \n and \x7f and \u00e9',
        "my scheme": {"k": 1},
    }


@pytest.mark.parametrize(
    ("change", "key", "expected"),
    [
        ({"topology": {"kind": "dumbbell", "pairz": 2}}, "topology.pairz", 'unknown key.*did you mean "pairs"'),
        ({"duration": 5}, "duration", "a time needs a unit"),
        ({"workload": [{"kind": "bulk", "size": 100}]}, "workload.0.size", "a size needs a unit"),
        ({"duration.x": 3}, "duration", "a value and a table"),
        ({"workload.7.size": "1MB"}, "workload.7", "the list has 2 elements"),
        ({"a b.c": 2}, '"a b.c"', "not a key; allowed: names joined by dots"),
        ({"title": "\ud800"}, "title", "not valid Unicode"),
    ],
)
def test_a_mistake_in_a_dictionary_names_its_key_and_no_line(change: dict[str, Any], key: str, expected: str) -> None:
    with pytest.raises(sl.ScenarioError, match=expected) as caught:
        sl.check({**BASE, **change})
    assert (caught.value.file, caught.value.line, caught.value.key) == ("<dict>", None, key)
    assert str(caught.value).startswith(f"<dict>: {key}")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"queue": {"kind": "fifo", "limit": None}}, r"queue\.limit: .* NoneType; leave the key out for its default"),
        ({"workload": [{"kind": "bulk", "size": {1}}]}, r"workload\.0\.size: a scenario has no values of type set"),
        ({"title": b"text"}, "title: a scenario has no values of type bytes"),
        ({3: 4}, "the scenario has the key 3; allowed: text"),
        ({"queue": {0.5: 4}}, r"queue has the key 0\.5; allowed: text"),
    ],
)
def test_a_value_of_another_type_names_its_key(change: dict[Any, Any], expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        sl.check({**BASE, **change})


@pytest.mark.parametrize("scenario", [42, None, b"duration", [1, 2], sl])
def test_an_object_that_is_no_scenario_is_refused_with_the_allowed_types(scenario: Any) -> None:
    with pytest.raises(TypeError, match=r"the scenario is .*; allowed: a path, the name of a ready-made scenario"):
        sl.run(scenario)


def test_a_name_that_no_file_can_have_is_not_found() -> None:
    with pytest.raises(FileNotFoundError, match="too long"):
        sl.run("x" * 5000)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (3, "set has 3; allowed: a dictionary"),
        ([("a", 1)], r"set has \('a', 1\); allowed: a dictionary"),
        ({3: 1}, "set has the key 3; allowed: keys of the scenario"),
        ({"queue.limit": None}, r"^queue\.limit: a scenario has no values of type NoneType"),
    ],
)
def test_settings_of_another_type_are_refused(settings: Any, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        sl.check(BASE, set=settings)


@pytest.mark.parametrize("seed", ["x", 1.5, True, -1, 2**64])
def test_a_seed_that_is_not_a_64_bit_integer_is_refused(seed: Any) -> None:
    with pytest.raises(sl.ScenarioError, match="allowed: a whole number from 0 to 18446744073709551615"):
        sl.run(BASE, seed=seed)


def test_a_numpy_integer_is_a_valid_seed() -> None:
    assert sl.run(BASE, seed=np.int64(3)).seed == 3  # type: ignore[arg-type]
