"""Tests of overrides from Python."""

from pathlib import Path
from typing import Any

import pytest

from sparelane.scenario.settings import Value, override_texts, toml_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        ("40ms", '"40ms"'),
        ('a "b"', '"a \\"b\\""'),
        ([40, 440], "[40, 440]"),
        (["x", 1.5], '["x", 1.5]'),
        ({"tcp": 0.9, "rc3": 0.1}, "{tcp = 0.9, rc3 = 0.1}"),
    ],
)
def test_values_are_written_as_toml(value: Value, text: str) -> None:
    assert toml_value(value) == text


def test_a_mapping_and_a_list_are_equivalent() -> None:
    assert override_texts({"workload.load": 0.5, "duration": "5s"}) == ["workload.load=0.5", 'duration="5s"']
    assert override_texts(["workload.load=0.5"]) == ["workload.load=0.5"]
    assert override_texts("workload.load=0.5") == ["workload.load=0.5"]
    assert override_texts(None) == []


def test_values_of_unsupported_types_are_refused() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        toml_value(None)  # type: ignore[arg-type]


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    given: dict[str, Any] = {
        "a": numpy.float64(0.1),
        "b": numpy.int64(3),
        "c": numpy.bool_(True),
        "d": numpy.array([1, 2]),
        "e": numpy.float32(0.5),
    }
    assert override_texts(given) == ["a=0.1", "b=3", "c=true", "d=[1, 2]", "e=0.5"]


def test_a_path_is_a_string() -> None:
    assert override_texts({"topology.file": Path("a") / "b.topo"}) == ['topology.file="a/b.topo"']
