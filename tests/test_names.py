"""Names that users type."""

from pathlib import Path

import pytest

import sparelane
from sparelane import library
from sparelane.experiments import registry, select
from sparelane.names import UnknownNameError

# Every module that defines an experiment names it after itself.
MODULES = Path(sparelane.__file__).parent / "experiments"


def modules(paper: str) -> list[str]:
    return sorted(
        path.stem.replace("_", "-")
        for path in (MODULES / paper).glob("*.py")
        if "\nEXPERIMENT = " in path.read_text("utf-8")
    )


RAPID, RC3, RTCP = modules("rapid"), modules("rc3"), modules("rtcp")


def test_every_experiment_is_found() -> None:
    assert {"rc3/fig8-load", "rc3/example-66", "rc3/drops", "rtcp/example"} <= set(registry())
    papers = {"rapid": RAPID, "rc3": RC3, "rtcp": RTCP}
    assert list(registry()) == [f"{paper}/{name}" for paper, names in papers.items() for name in names]


def test_experiments_say_what_they_assume() -> None:
    for experiment in registry().values():
        assert experiment.title, experiment.id
        assert experiment.source, experiment.id
        assert experiment.assumptions, experiment.id
        assert experiment.quick.seeds <= experiment.full.seeds, experiment.id


def test_reasons_belong_to_no_row_twice_and_are_not_empty() -> None:
    for experiment in registry().values():
        assert all(experiment.reasons.values()), experiment.id


def test_no_name_means_all() -> None:
    assert select([]) == list(registry().values())


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["rc3/model"], ["rc3/model"]),
        (["rc3"], [f"rc3/{name}" for name in RC3]),
        (["rc3/fig"], [f"rc3/{name}" for name in RC3 if name.startswith("fig")]),
        (["rc3/model", "rc3/drops", "rc3/model"], ["rc3/drops", "rc3/model"]),
    ],
)
def test_a_name_is_an_id_or_the_beginning_of_some(names: list[str], ids: list[str]) -> None:
    assert [experiment.id for experiment in select(names)] == ids


def test_an_unknown_experiment_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r'no experiment "rc3/fig8-laod"; did you mean "rc3/fig8-load"\?'):
        select(["rc3/fig8-laod"])


def test_an_empty_name_is_not_the_beginning_of_all() -> None:
    with pytest.raises(UnknownNameError):
        select([""])


def test_a_path_is_taken_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rc3-internet2").write_text("x", encoding="utf-8")
    assert library.resolve("rc3-internet2") == Path("rc3-internet2")


def test_a_missing_path_is_not_taken_for_a_name() -> None:
    with pytest.raises(FileNotFoundError, match=r'no file "nowhere/x\.toml"'):
        library.resolve("nowhere/x.toml")


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r'did you mean "rc3-internet2"\?'):
        library.resolve("rc3-internet")
