"""Tests of the names of experiments and scenarios that users type."""

from pathlib import Path

import pytest

import sparelane
from sparelane.cli.commands.reproduce import experiment_ids
from sparelane.common import experiment_index
from sparelane.common.names import UnknownNameError
from sparelane.papers import index, registry, select
from sparelane.papers.engine.declared import SHARED
from sparelane.scenario import library

# An experiment has the name of the file that declares it.
PLACE = Path(sparelane.__file__).parent / "papers"


def named(paper: str) -> list[str]:
    return sorted(path.stem for path in (PLACE / paper).glob("*.toml") if path.name != SHARED)


PAPERS = {paper: named(paper) for paper in ("fabric", "l4s", "linux", "rapid", "rc3", "rtcp")}
RC3 = PAPERS["rc3"]


def test_every_experiment_is_found() -> None:
    assert {"rc3/fig8-load", "rc3/example-66", "rc3/drops", "rtcp/example"} <= set(registry())
    assert list(registry()) == [f"{paper}/{name}" for paper, names in PAPERS.items() for name in names]


def test_experiments_state_their_assumptions() -> None:
    for experiment in registry().values():
        assert experiment.title, experiment.id
        assert experiment.source, experiment.id
        assert experiment.assumptions, experiment.id
        assert experiment.quick.seeds <= experiment.full.seeds, experiment.id


def test_reasons_are_unique_per_row_and_not_empty() -> None:
    for experiment in registry().values():
        assert all(experiment.reasons.values()), experiment.id


def test_without_names_all_experiments_are_selected() -> None:
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
def test_a_name_is_an_id_or_a_prefix_of_ids(names: list[str], ids: list[str]) -> None:
    assert [experiment.id for experiment in select(names)] == ids


def test_an_unknown_experiment_gets_the_closest_as_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r'no experiment "rc3/fig8-laod"; did you mean "rc3/fig8-load"\?'):
        select(["rc3/fig8-laod"])


def test_an_empty_name_does_not_select_all() -> None:
    with pytest.raises(UnknownNameError):
        select([""])


def test_a_path_has_precedence_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rc3-internet2").write_text("x", encoding="utf-8")
    assert library.resolve("rc3-internet2") == Path("rc3-internet2")


def test_a_missing_path_is_not_taken_for_a_name() -> None:
    with pytest.raises(FileNotFoundError, match=r'no file "nowhere/x\.toml"'):
        library.resolve("nowhere/x.toml")


def test_an_unknown_scenario_gets_the_closest_as_suggestion() -> None:
    with pytest.raises(UnknownNameError, match=r'did you mean "rc3-internet2"\?'):
        library.resolve("rc3-internet")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("dumbell", '"dumbbell-cubic" or "rcp-dumbbell"'),
        ("internet2", '"rc3-internet2"'),
        ("rc3-telstr", '"rc3-telstra"'),
    ],
)
def test_a_part_of_a_name_suggests_the_names_that_contain_it(name: str, suggested: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"did you mean {suggested}\?"):
        library.resolve(name)


def test_a_message_lists_few_names_and_shortens_a_long_one() -> None:
    many = [f"one-{number}" for number in range(100)]
    assert str(UnknownNameError("entry", "zzz", many)) == 'there is no entry "zzz"; `sparelane list` names all 100'
    assert str(UnknownNameError("entry", "zzz", many[:2])) == 'there is no entry "zzz"; there are: one-0, one-1'
    assert len(str(UnknownNameError("entry", "z" * 5000, many))) < 200


def test_a_name_unlike_all_others_gets_no_suggestion() -> None:
    with pytest.raises(UnknownNameError, match='no ready-made scenario "xyz"; `sparelane list` names all'):
        library.resolve("xyz")


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("fig9", ["rc3/fig9-bdp"]),
        ("rc3/fig8", ["rc3/fig8-load"]),
        ("rc3/example", ["rc3/example-66", "rc3/example-7"]),
        ("table6", ["rapid/table6-tau-eta"]),
        ("rtcp/example", ["rtcp/example"]),
    ],
)
def test_an_id_without_its_paper_is_accepted_if_it_is_unique(name: str, ids: list[str]) -> None:
    assert experiment_ids([name]) == ids


def test_an_ambiguous_id_suggests_all_candidates() -> None:
    with pytest.raises(UnknownNameError, match='did you mean "rapid/fig8-timescales" or "rc3/fig8-load"'):
        experiment_ids(["fig8"])
    with pytest.raises(UnknownNameError, match='did you mean "rc3/fig8-load"'):
        experiment_ids(["fig8-laod"])


def test_a_scenario_in_place_of_an_experiment_is_recognised_and_vice_versa() -> None:
    with pytest.raises(UnknownNameError, match="but a ready-made scenario: `sparelane run rc3-internet2`"):
        experiment_ids(["rc3-internet2"])
    with pytest.raises(FileNotFoundError, match="but an experiment: `sparelane reproduce rc3/fig8-load`"):
        library.resolve("rc3/fig8-load")


def test_the_index_matches_the_experiments() -> None:
    text = experiment_index.text(index.entries())
    assert experiment_index.FILE.read_text(encoding="utf-8") == text, "`make goldens` updates it"
