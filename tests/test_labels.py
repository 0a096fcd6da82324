"""Tests of the short labels of a key's values in a sweep."""

from pathlib import Path

import polars as pl
import pytest

from small_sweeps import BASE, do, plan, with_lines
from sparelane._native import ScenarioError
from sparelane.sweeps.labels import labels

FIFO = {"kind": "fifo", "limit": "0.25bdp"}
QUEUE = '[queue]\nkind = "priority"\nlimit = "1bdp"\n'


def of_queues(tables: str) -> str:
    """Returns the small sweep with several queues and one scheme."""
    return f"queue = [{tables}]\n" + with_lines((QUEUE, ""), ("[workload]", '[workload]\nscheme = "tcp"'))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([FIFO, {"kind": "codel"}], ("fifo 0.25bdp", "codel")),
        ([FIFO, {"kind": "fifo", "limit": "1bdp"}], ("fifo 0.25bdp", "fifo 1bdp")),
        # If short forms would be equal, they include their keys.
        (
            [{"kind": "codel", "target": "5ms"}, {"kind": "codel", "interval": "5ms"}],
            ("codel target=5ms", "codel interval=5ms"),
        ),
        (
            [{"kind": "red", "min": 5, "max": 15}, {"kind": "red", "min": 5, "max": 30}],
            ("red min=5 max=15", "red min=5 max=30"),
        ),
        # A long label omits settings that all tables of the kind share.
        (
            [{"kind": "pie", "target": "15ms", "update": "15ms", "burst": one} for one in ("100ms", "150ms")],
            ("pie burst=100ms", "pie burst=150ms"),
        ),
        ([{"kind": "red", "gentle": True}, {"kind": "red", "gentle": False}], ("red gentle", "red gentle=false")),
        ([{"controller": "rc3", "inner": "cubic"}, {"controller": "cubic"}], ("rc3 inner=cubic", "cubic")),
        (
            [{"controller": "rc3", "inner": {"controller": "bic", "beta": 0.8}}, {"controller": "rc3"}],
            ("rc3 inner=bic inner.beta=0.8", "rc3"),
        ),
        ([[{"kind": "fifo"}, {"kind": "codel"}], [{"kind": "fifo"}]], ("fifo + codel", "fifo")),
        ([{"tcp": 0.5, "rc3": 0.5}, {"tcp": 1}], ("tcp=0.5 rc3=0.5", "tcp=1")),
        ([{}, {"kind": "fifo"}], ("{}", "fifo")),
        ([0.5, "1bdp", True, [40, 400]], ("0.5", "1bdp", "true", "[40, 400]")),
    ],
)
def test_the_label_of_a_table_has_its_kind_and_the_differing_keys(
    values: list[object], expected: tuple[str, ...]
) -> None:
    assert labels(values) == expected


def test_a_name_replaces_the_label_and_changes_no_run() -> None:
    unnamed = plan(of_queues('{ kind = "fifo", limit = "0.25bdp" }, { kind = "codel" }'))
    named = plan(of_queues('{ name = "small buffer", kind = "fifo", limit = "0.25bdp" }, { kind = "codel" }'))
    assert [named.describe(setting) for setting in named.settings] == ["queue = small buffer", "queue = codel"]
    assert [run.name for run in named.runs] == [run.name for run in unnamed.runs]
    named.check()


def test_a_name_labels_a_mix_of_schemes() -> None:
    text = with_lines(("[workload]", '[workload]\nmix = [{ name = "half", tcp = 0.5, rc3 = 0.5 }, { tcp = 1 }]'))
    found = plan(text)
    assert [setting.scheme for setting in found.settings] == ["half", "tcp 1"]
    assert found.settings[0].compared == {"tcp", "rc3"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('{ name = "a", kind = "fifo" }, { name = "a", kind = "codel" }', 'the name "a" is repeated'),
        ('{ name = "", kind = "fifo" }, { kind = "codel" }', "allowed: a text that is not empty"),
        ('{ name = 3, kind = "fifo" }, { kind = "codel" }', "name = 3; allowed: a text"),
        ('{ name = "a", kind = "fifo" }, { name = "b", kind = "fifo" }', "is repeated; allowed: each value once"),
        ('{ name = "codel", kind = "fifo" }, { kind = "codel" }', 'two values have the label "codel"'),
    ],
)
def test_a_name_that_is_not_unique_is_refused(tables: str, message: str) -> None:
    with pytest.raises(ScenarioError, match="queue") as error:
        plan(of_queues(tables))
    assert message in str(error.value)


def test_saved_results_and_their_manifest_have_short_names(tmp_path: Path) -> None:
    do(of_queues('{ kind = "fifo", limit = "0.25bdp" }, { kind = "codel" }'), tmp_path)
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert set(rows["queue"]) == {"fifo 0.25bdp", "codel"}
    assert set(rows["setting"]) == {"queue = fifo 0.25bdp", "queue = codel"}
    assert "{'" not in (tmp_path / "manifest.json").read_text()


def test_the_label_of_a_boolean_is_spelled_as_in_the_file(tmp_path: Path) -> None:
    text = BASE.replace("[workload]", '[measure]\ndelays = [true, false]\n\n[workload]\nscheme = "tcp"')
    do(text, tmp_path)
    assert set(pl.read_parquet(tmp_path / "rows.parquet")["measure.delays"]) == {"true", "false"}
