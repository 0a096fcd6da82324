"""Tests of saved results, their pages, and the command that writes them."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from command_line import invoke
from sparelane import _native
from sparelane import papers as experiments
from sparelane.cli.commands import reproduce as command
from sparelane.common import experiment_index
from sparelane.common.folders import SavedResultsError
from sparelane.papers import registry
from sparelane.papers.engine import runner, saved
from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import OF_ONE, OfRows
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.engine.runner import Finished, Task
from sparelane.papers.pages import report
from sparelane.papers.pages.text import band, claim_cells, heading, table
from sparelane.reports import plots
from sparelane.results import manifest

FCT = Metric("FCT", "s")
GAIN = Key("gain", Metric("reduction", "%"), "RC3", "mean", "small flows", "even paths")
FAR, FARTHER, LOST = Key("far", FCT), Key("farther", FCT), Key("lost", Metric("loss", "%", is_loss_rate=True))
BECAUSE = "because the moon was full, as the varied rows show"


def plan(effort: Effort) -> Sequence[Simulation]:
    return [
        Simulation("rc3-example-7", (), seed, label=f"seed {seed}", keep_flows=True) for seed in effort.seed_numbers()
    ]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    flows = float(sum(outcome.flows.height for outcome in outcomes.values()))
    rows = (
        Row(Key("flows", Metric("count")), None, flows, stated=(1.0, 5.0)),
        Row(GAIN, 43.5, 45.0, 0.1),
        Row(FAR, 1.0, 2.0),
        Row(FARTHER, 1.0, 3.0),
        Row(LOST, 0.001, 0.05),
    )
    return Evaluation(rows, notes=("A note.",))


def ours(key: Key) -> OfRows:
    return OfRows(OF_ONE["ours"], [key])


def experiment(id: str, **changes: object) -> Experiment:
    made_up = replace(
        registry()["rc3/example-7"],
        id=id,
        title="Made up",
        assumptions=("Shared by all.", f"Of {id} alone."),
        full=Effort("full", seeds=3),
        quick=Effort("quick", seeds=1),
        plan=plan,
        evaluate=evaluate,
        draw=lambda evaluation: Figure(figsize=(1, 1)),
        reasons={FAR: BECAUSE, FARTHER: BECAUSE, GAIN: "not needed"},
        claims=(
            Claim("RC3 gains (section 5)", ours(GAIN), full=(40, 47), quick=(30, math.inf)),
            Claim("RC3 gains much (section 6)", ours(GAIN), full=(60, math.inf)),
        ),
        fitted=("The moon, on Table I.",),
    )
    return replace(made_up, **changes)  # type: ignore[arg-type]


MODEL = registry()["rc3/model"].judge(registry()["rc3/model"].full, {})
MADE_UP = {"rc3/one": experiment("rc3/one"), "rc3/two": experiment("rc3/two")}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    """Replaces the registry by two made-up experiments."""
    known = dict(MADE_UP)
    for module in (experiments, report):
        monkeypatch.setattr(module, "registry", lambda: known)
    monkeypatch.setattr(experiment_index, "ids", lambda: list(known))
    return known


def done(experiment: Experiment, effort: Effort) -> Finished:
    [finished] = runner.reproduce([Task(experiment, effort)], 1, lambda share: None)
    return finished


def test_saved_results_are_read_back_equal(tmp_path: Path) -> None:
    finished = done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full)
    report.save_experiment(finished, tmp_path)
    [read], unknown = saved.read_all(tmp_path, MADE_UP)
    assert unknown == []
    assert read.effort == finished.task.effort
    assert read.evaluation.rows == finished.evaluation.rows
    assert read.evaluation.notes == finished.evaluation.notes
    assert read.verdicts == finished.verdicts
    assert list(read.cpu_s) == [("rc3-example-7", (), seed) for seed in (1, 2, 3)]
    assert read.is_full
    assert not read.is_outdated


def test_curves_keep_their_names_and_have_plain_file_names(tmp_path: Path) -> None:
    finished = done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full)
    curves = {name: pl.DataFrame({"x": [len(name)]}) for name in ("BCT, N = 64", "bct n/64", "../µs", "плюс")}
    finished = replace(finished, evaluation=replace(finished.evaluation, curves=curves))
    saved.write(finished, tmp_path)
    files = sorted(path.name for path in (tmp_path / saved.CURVES).iterdir())
    assert files == ["bct-n-64-2.csv", "bct-n-64.csv", "curve.csv", "s.csv"]
    [read], _ = saved.read_all(tmp_path, MADE_UP)
    assert {name: curve["x"].item() for name, curve in read.evaluation.curves.items()} == {
        name: len(name) for name in curves
    }


def test_saved_results_get_current_reasons_and_claims(tmp_path: Path) -> None:
    report.save_experiment(done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full), tmp_path)
    claim = Claim("new", ours(GAIN), full=(46, math.inf))
    now = experiment("rc3/one", reasons={LOST: "found since"}, claims=(claim,))
    [read], _ = saved.read_all(tmp_path, {"rc3/one": now})
    assert {row.key.setting: row.reason for row in read.evaluation.rows if row.deviates} == {
        "far": "not explained",
        "farther": "not explained",
        "lost": "found since",
    }
    assert [verdict.holds for verdict in read.verdicts] == [False]


def test_results_are_outdated_if_the_experiment_would_simulate_other_runs(tmp_path: Path) -> None:
    report.save_experiment(done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full), tmp_path)
    now = experiment("rc3/one", plan=lambda effort: [replace(run, settings=("seed=3",)) for run in plan(effort)])
    [read], _ = saved.read_all(tmp_path, {"rc3/one": now})
    assert read.is_outdated


def test_results_of_a_removed_experiment_are_named(tmp_path: Path) -> None:
    report.save_experiment(done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].quick), tmp_path)
    assert saved.read_all(tmp_path, {"rc3/two": MADE_UP["rc3/two"]}) == ([], ["rc3/one"])


def test_unreadable_results_are_refused_with_their_place(tmp_path: Path) -> None:
    place = tmp_path / "rc3" / "one"
    place.mkdir(parents=True)
    for content in ("{}", "nonsense", '{"layout": 1, "version": "0.1.0", "name": "rc3/one"}'):
        (place / manifest.FILE).write_text(content, encoding="utf-8")
        with pytest.raises(SavedResultsError, match=r"rc3/one/manifest\.json"):
            saved.read_all(tmp_path, MADE_UP)
    report.save_experiment(done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full), tmp_path)
    (place / saved.ROWS).write_text("setting,metric\na,b\n", encoding="utf-8")
    with pytest.raises(SavedResultsError, match=r"rc3/one"):
        saved.read_all(tmp_path, MADE_UP)


def test_a_manifest_has_version_seeds_and_digests_of_results(tmp_path: Path) -> None:
    finished = done(MADE_UP["rc3/one"], MADE_UP["rc3/one"].full)
    report.save_experiment(finished, tmp_path)
    found = manifest.read(tmp_path / "rc3" / "one")
    assert (found.kind, found.name, found.effort, found.seeds) == ("experiment", "rc3/one", "full", (1, 2, 3))
    assert (found.runs, found.command) == (3, "sparelane reproduce rc3/one")
    assert (found.version, found.engine, found.commit) == (_native.__version__, manifest.engine(), manifest.commit())
    digests = [outcome.digest for outcome in finished.outcomes.values()]
    assert [run["digest"] for run in found.details["runs"]] == digests
    fewer = replace(MADE_UP["rc3/one"].full, seeds=2)
    assert manifest.read(_saved(fewer, tmp_path / "fewer")).command == "sparelane reproduce rc3/one --seeds 2"
    assert found.digest != manifest.read(_saved(MADE_UP["rc3/one"].quick, tmp_path / "quick")).digest


def _saved(effort: Effort, folder: Path) -> Path:
    report.save_experiment(done(MADE_UP["rc3/one"], effort), folder)
    return folder / "rc3" / "one"


def test_saved_rows_get_current_reasons_and_checks(tmp_path: Path, made_up: dict[str, Experiment]) -> None:
    report.save_experiment(done(made_up["rc3/one"], made_up["rc3/one"].full), tmp_path)
    made_up["rc3/one"] = experiment("rc3/one", reasons={LOST: "found since"})
    assert invoke("report", str(tmp_path)).exit_code == 0
    rows = pl.read_csv(tmp_path / "rc3" / "one" / saved.ROWS).select("setting", "check", "reason").rows()
    assert rows == [
        ("flows", "in band", ""),
        ("gain", "varied", ""),
        ("far", "not explained", "not explained"),
        ("farther", "not explained", "not explained"),
        ("lost", "explained", "found since"),
    ]


def test_pages_combine_batches_of_different_times_and_summarise_them(
    tmp_path: Path, made_up: dict[str, Experiment]
) -> None:
    report.save_experiment(done(made_up["rc3/one"], made_up["rc3/one"].full), tmp_path / "results")
    report.save_experiment(done(made_up["rc3/two"], made_up["rc3/two"].quick), tmp_path / "results")
    result = invoke("report", str(tmp_path / "results"), "--see", str(tmp_path / "speed.md"))
    assert result.exit_code == 0, result.stderr
    index = tmp_path / "results" / "README.md"
    text = index.read_text(encoding="utf-8")
    assert "(../speed.md)" in text
    assert [
        line.split(" | ")[1:] for line in text.splitlines() if line.startswith("| [rc3/") and BECAUSE[:9] in line
    ] == [
        ["3 seeds", "1 of 4", "1 of 2", "because the moon was full, as the varied rows show (2); not explained (1) |"],
    ]
    assert "| [rc3/two](rc3/two/README.md) | quick, 1 seed | 1 of 4 | 1 of 1 |  |" in text
    claims = (tmp_path / "results" / "claims.md").read_text(encoding="utf-8")
    assert "RC3 gains much (section 6) | 45 % | at least 60 | fails: not explained |" in claims
    assert "Of 4 claims, 1 fails: [the claims that fail, with our numbers](claims.md)." in text
    links = re.findall(r"\]\((rc3[^)]+)\)", text)
    assert {"rc3/one/README.md", "rc3/two/README.md"} == set(links)
    one, two = ((index.parent / id / "README.md").read_text(encoding="utf-8") for id in ("rc3/one", "rc3/two"))
    for words in (
        "- Shared by all.",
        "- Of rc3/one alone.",
        "Fitted: The moon, on Table I.",
        "`sparelane reproduce rc3/one`",
    ):
        assert words in one
    assert one.count(BECAUSE) == 1
    assert "# rc3/two: Made up (quick, 1 seed)" in two
    assert "**Not the full effort**, which is full, 3 seeds." in two
    for page in (one, two):
        [figure] = re.findall(r"!\[.*\]\((.*)\)", page)
        assert (index.parent / "rc3" / "one" / figure).is_file()
    assert "reduced effort: rc3/two" in result.stdout
    assert "rc3/one: gain, even paths, small flows: RC3 reduction, mean" in result.stdout


def test_experiments_without_differences_are_named_below_the_table(
    tmp_path: Path, made_up: dict[str, Experiment]
) -> None:
    met, bare = Evaluation((Row(Key("met", FCT), 1.0, 1.0),)), Evaluation((Row(Key("bare", FCT), None, 1.0),))
    made_up["rc3/one"] = experiment("rc3/one", evaluate=lambda effort, outcomes: met, claims=())
    made_up["rc3/two"] = experiment("rc3/two", evaluate=lambda effort, outcomes: bare, claims=())
    for one in made_up.values():
        report.save_experiment(done(one, one.full), tmp_path)
    assert invoke("report", str(tmp_path)).exit_code == 0
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    met_by = "All rows are in band and all claims hold"
    assert f"{met_by}: [rc3/one](rc3/one/README.md).\n" in text
    assert "The paper prints no number, and no claim is checked: [rc3/two](rc3/two/README.md).\n" in text
    assert [line.split(" | ")[:3] for line in text.splitlines() if line.startswith("| **")] == [
        ["| **rc3, all**", "", "1 of 1"]
    ]
    assert "| [rc3/" not in text


def test_the_report_command_checks_the_claims_of_all_batches(tmp_path: Path, made_up: dict[str, Experiment]) -> None:
    report.save_experiment(done(made_up["rc3/two"], made_up["rc3/two"].quick), tmp_path)
    assert invoke("report", str(tmp_path), "--check").exit_code == 0
    report.save_experiment(done(made_up["rc3/one"], made_up["rc3/one"].full), tmp_path)
    assert invoke("report", str(tmp_path), "--check").exit_code == 1
    assert invoke("report", str(tmp_path)).exit_code == 0


def test_a_report_of_nothing_is_a_mistake(tmp_path: Path) -> None:
    result = invoke("report", str(tmp_path))
    assert result.exit_code == 2
    assert "no results in the folder" in result.stderr


def test_reproduce_check_exits_with_1_if_a_claim_fails(tmp_path: Path, made_up: dict[str, Experiment]) -> None:
    result = invoke("reproduce", "rc3/one", "--check", "-o", str(tmp_path), "--jobs", "1")
    assert result.exit_code == 1, result.stderr
    for words in ("RC3 gains (section 5)", "40 to 47", "holds", "at least 60", "fails", "2 claims: 1 held, 1 failed"):
        assert words in result.stdout
    [entry] = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["experiments"]
    assert [(claim["value"], claim["low"], claim["high"], claim["holds"]) for claim in entry["claims"]] == [
        (45.0, 40, 47, True),
        (45.0, 60, None, False),
    ]
    assert entry["fitted"] == ["The moon, on Table I."]


def test_reproduce_quick_check_counts_claims_that_are_not_checked(
    tmp_path: Path, made_up: dict[str, Experiment]
) -> None:
    result = invoke("reproduce", "rc3/one", "--quick", "--check", "-o", str(tmp_path), "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "2 claims: 1 held, 0 failed, 1 not checked" in result.stdout
    assert "rc3/one: Made up (quick, 1 seed)" in result.stdout
    assert BECAUSE not in result.stdout


def test_results_that_cannot_be_written_do_not_stop_the_others(
    tmp_path: Path, made_up: dict[str, Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = report.save_experiment

    def fail_first(finished: Finished, folder: Path) -> None:
        if finished.task.experiment.id == "rc3/one":
            raise OSError("no space left on device")
        save(finished, folder)

    monkeypatch.setattr(report, "save_experiment", fail_first)
    result = invoke("reproduce", "--quick", "-o", str(tmp_path), "--jobs", "1")
    assert result.exit_code == command.UNWRITTEN
    assert "cannot write the results of rc3/one: no space left on device" in result.stderr
    assert (tmp_path / "rc3" / "two" / saved.ROWS).is_file()
    assert "rc3/two" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_reason_of_several_rows_is_a_footnote() -> None:
    rows = [
        Row(Key("a", FCT), 1.0, 2.0, reason=BECAUSE),
        Row(Key("b", FCT), 1.0, 2.0, reason=BECAUSE),
        Row(Key("c", FCT), 1.0, 2.0, reason="another reason, and a long one, too"),
        Row(Key("d", FCT), 1.0, 2.0, reason="not explained"),
        Row(Key("e", FCT), 1.0, 2.0, reason="not explained"),
    ]
    shown = table(rows)
    reasons = [text[-1] for text in shown.lines]
    assert reasons == ["[1]", "[1]", "another reason, and a long one, too", "not explained", "not explained"]
    assert shown.footnotes == [f"[1] {BECAUSE}"]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ((1.0, 2.5), "1 to 2.5"),
        ((-3.0, 3.0), "−3 to 3"),
        ((4, math.inf), "at least 4"),
        ((float("-inf"), 0.5), "at most 0.5"),
    ],
)
def test_a_band_reads_as_words(limits: tuple[float, float], words: str) -> None:
    assert band(limits) == words


def test_a_claim_without_a_number_states_the_reason() -> None:
    verdict = Claim("gone", ours(Key("gone", FCT)), full=(0, 1)).check(Effort("full", seeds=1), Evaluation(()))
    assert claim_cells(verdict)[1:] == (
        "–",
        "0 to 1",
        'fails: cannot compute the number: no row "gone: FCT"',
    )


def test_a_heading_names_a_quick_effort() -> None:
    one = MADE_UP["rc3/one"]
    assert heading(one, one.quick) == "rc3/one: Made up (quick, 1 seed)"
    assert heading(one, one.full) == "rc3/one: Made up"


def test_a_figure_states_its_number_of_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    titles: list[str] = []
    monkeypatch.setattr(plots, "say_effort", lambda drawing, words: titles.append(words))
    for effort in (MADE_UP["rc3/one"].quick, MADE_UP["rc3/one"].full):
        report.save_experiment(done(MADE_UP["rc3/one"], effort), tmp_path)
    assert titles == ["quick, 1 seed", "3 seeds"]


def test_figures_are_drawn_again_from_saved_results(tmp_path: Path, made_up: dict[str, Experiment]) -> None:
    drawn: list[Evaluation] = []

    def draw(evaluation: Evaluation) -> Figure:
        drawn.append(evaluation)
        return registry()["rc3/model"].draw(MODEL)

    made_up["rc3/one"] = experiment("rc3/one", evaluate=lambda effort, outcomes: MODEL, draw=draw)
    report.save_experiment(done(made_up["rc3/one"], made_up["rc3/one"].full), tmp_path)
    before = (tmp_path / "rc3" / "one" / "figure.png").read_bytes()
    (tmp_path / "rc3" / "one" / "figure.png").unlink()
    result = invoke("report", str(tmp_path), "--redraw")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "rc3" / "one" / "figure.png").read_bytes() == before
    first, again = drawn
    assert set(again.curves) == set(first.curves) != set()
    assert all(again.curves[name].columns == first.curves[name].columns for name in first.curves)
    assert again.curves["curve"].height == first.curves["curve"].height
