"""Runs every experiment from its plan to its figure, with runs that are too short for conclusions."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sparelane
from sparelane import papers
from sparelane.papers import registry
from sparelane.papers.engine import runner, saved
from sparelane.papers.engine.base import Effort, Simulation
from sparelane.papers.engine.cells import Runs, plan
from sparelane.papers.engine.declared import SHARED
from sparelane.papers.engine.rows import Evaluation, Key, MissingRowError
from sparelane.papers.engine.runner import Finished, Task
from sparelane.papers.engine.sections import DeclarationError
from sparelane.papers.engine.statistics import jain
from sparelane.papers.pages import report
from sparelane.papers.rapid import fig13_fairness, testbed
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES
from sparelane.papers.rc3.comparison import GROUPS
from sparelane.papers.rc3.completion import BY_THE_TIMES, variant
from sparelane.papers.rc3.internet2 import BASELINE, BOTH_BY_THE_END, FLOWS, REDUCTION, TCP_LONGER
from sparelane.reports import plots
from sparelane.scenario import library

# On short paths, some small flows finish within this time.
SHORT = Effort("full", seeds=2, stop_s=0.1)


# Experiments that need a kernel are tested in test_linux_rc3.py.
SIMULATED = {id: experiment for id, experiment in registry().items() if not experiment.needs_kernel}

# Experiments whose short runs take more than two seconds of processor time.
LONG = {
    "fabric/fat-tree",
    "fabric/parking-lot",
    "rapid/fig6-gaps",
    "rapid/table3-loss10g",
    "rapid/table4-loss40g",
    "rapid/table5-burstiness",
    "rc3/drops",
    "rc3/fig11-loss",
    "rc3/fig8-load",
    "rc3/utilisation",
    "rtcp/example",
    "rtcp/fixed-window",
    "rtcp/over-subscription",
    "rtcp/preemption",
    "rtcp/random-sending",
    "rtcp/setting",
}
IDS = [pytest.param(id, marks=[pytest.mark.slow] if id in LONG else []) for id in SIMULATED]

# One experiment of each paper is saved in `make test`, since writing a figure takes ten times as long as drawing it.
SAVED_QUICKLY = {"rapid/fig7-bass", "rc3/model", "rtcp/coexistence"}

# The minimum number of seeds by paper. A run of RAPID is one transfer of thousands of round trips; others have many
# flows.
REPEATED = {"fabric": 3, "l4s": 3, "rapid": 3, "rc3": 10, "rtcp": 10}


@pytest.fixture(scope="module")
def short_runs(request: pytest.FixtureRequest) -> dict[str, Finished]:
    """Runs the experiments of the selected tests at full effort, except for shorter runs and fewer seeds."""
    callspecs = [getattr(item, "callspec", None) for item in request.session.items]
    selected = {"rc3/table1-robustness"} | {spec.params.get("id") for spec in callspecs if spec}
    tasks = [
        Task(experiment, replace(SHORT, stop_s=min(SHORT.stop_s, experiment.full.stop_s / 20)))
        for id, experiment in SIMULATED.items()
        if id in selected
    ]
    return {done.task.experiment.id: done for done in runner.reproduce(tasks, 2, lambda share: None)}


def test_rapid_has_its_slow_start_only_in_long_runs() -> None:
    paper = registry()["rapid/table3-loss10g"].full
    assert (testbed.start(paper), testbed.span("rapid", paper, 0.25)) == ((), (180.0, 60.0))
    assert testbed.span("cubic", paper, 0.25) == (120.0, 30.0)
    assert testbed.start(SHORT) == (testbed.QUICK_START,)
    assert testbed.span("rapid", SHORT, 0.25) == (0.1, 0.025)


def test_an_earlier_transfer_of_rapids_testbed_precedes_long_runs_of_other_schemes() -> None:
    fairness = registry()["rapid/fig13-fairness"]
    full, quick = fairness.plan(fairness.full), fairness.plan(fairness.quick)

    def earlier(plan: Sequence[Simulation], scheme: str) -> list[bool]:
        runs = [one for one in plan if f"workload.scheme={scheme}" in one.settings and "no earlier" not in one.label]
        return [any(setting.startswith("drop=") for setting in one.settings) for one in runs]

    assert earlier(full, "newreno") == [True] * 3
    assert not any(earlier(full, "rapid") + earlier(quick, "newreno"))


def test_three_transfers_of_rapids_testbed_are_measured_without_the_earlier_ones() -> None:
    before = testbed.Earlier(packets=30, lost_every=10, seconds=0.5)
    triple = fig13_fairness.Triple("New Reno", "", (), before)
    effort = Effort("full", seeds=1, stop_s=40.0)
    cell = triple.cell(effort)
    assert (cell.from_s, cell.stop_s) == (20.5, 40.5)
    short = replace(cell, settings=(*cell.settings, "duration=700ms", "measure.from=600ms"))
    simulation = short.simulation(1)
    result = sparelane.run(library.find(simulation.scenario), set=simulation.settings)
    flows = result.flows.sort("id")
    # The earlier transfers lose segments 9, 19 and 29 each; of the three, one has begun.
    assert flows["lost_packets"].to_list()[:2] == [3, 3]
    assert flows["start_s"].to_list() == [0.0, 0.0, 0.5]


def test_quick_efforts_of_rapid_leave_out_variants_and_most_schemes() -> None:
    short, long = (registry()[f"rapid/{id}"] for id in ("table7-web5ms", "table8-web30ms"))
    quick, full = long.plan(long.quick), long.plan(long.full)
    assert len(quick) == 5
    assert [sum("queue.limit=500KB" in one.settings for one in found) for found in (quick, full)] == [0, 6]
    # Web users without a transfer have the same runs in both tables.
    assert len(set(full) & set(short.plan(short.full))) == long.full.seeds


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ('at = "beside BCT"', 'at = "beside TCP"', '"at" has "beside TCP"; allowed: beside UDP, beside SCT'),
        ('traffic = "BCT" }', 'traffic = "TCP" }', '"kind" is "TCP"; allowed: CBR, SCT, BCT'),
        ('"first by use"', '"last by use"', '"notes" has "last by use"; allowed: order under loss'),
        ("quick = true }", "quickly = true }", '"quickly" is not a key here'),
    ],
)
def test_a_mistake_in_a_file_of_transfers_is_an_error(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    folder = Path(papers.__file__).parent / "rapid"
    (tmp_path / "rapid").mkdir()
    shutil.copy(folder / SHARED, tmp_path / "rapid")
    text = (folder / "table5-burstiness.toml").read_text(encoding="utf-8")
    assert right in text
    path = tmp_path / "rapid" / "wrong.toml"
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(DeclarationError, match=re.escape(problem)) as caught:
        papers.read(path)
    assert "rapid/wrong.toml" in str(caught.value)


def test_results_of_rapid_that_lack_rows_can_be_read() -> None:
    results, _ = saved.read_all(Path(__file__).parents[1] / "results" / "rapid", registry())
    assert len(results) == 11
    for one in results:
        rows = one.evaluation.rows
        for kept in ((), rows[:1], rows[: len(rows) // 2], rows[1:]):
            assert one.experiment.restate(Evaluation(kept)).rows == kept


@pytest.mark.parametrize("id", IDS)
def test_an_experiment_names_each_of_its_rows_once(short_runs: dict[str, Finished], id: str) -> None:
    keys = [row.key for row in short_runs[id].evaluation.rows]
    assert keys
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("id", IDS)
def test_every_reason_is_for_a_row_with_a_number_of_the_paper(short_runs: dict[str, Finished], id: str) -> None:
    judged = {row.key for row in short_runs[id].evaluation.rows if row.is_judged}
    assert set(SIMULATED[id].reasons) <= judged


@pytest.mark.parametrize("id", IDS)
def test_restating_rows_twice_equals_restating_them_once(short_runs: dict[str, Finished], id: str) -> None:
    found = short_runs[id].evaluation
    assert SIMULATED[id].restate(found).rows == found.rows


@pytest.mark.parametrize("id", IDS)
def test_every_claim_is_about_rows_of_a_full_run(short_runs: dict[str, Finished], id: str) -> None:
    experiment, found = SIMULATED[id], short_runs[id].evaluation
    for claim in experiment.claims:
        try:
            claim.value(found)
        except (MissingRowError, KeyError) as error:
            pytest.fail(f"{claim.text}: {error}")
        except (LookupError, ArithmeticError, TypeError, ValueError):
            pass  # Such short runs do not give every number.


@pytest.mark.parametrize("id", IDS)
def test_claims_differ_and_their_bands_have_their_bounds_in_order(id: str) -> None:
    claims = SIMULATED[id].claims
    assert len({claim.text for claim in claims}) == len(claims)
    bands = [band for claim in claims for band in (claim.full, claim.quick) if band is not None]
    assert all(low <= high for low, high in bands)


@pytest.mark.parametrize("id", IDS)
def test_the_figure_of_an_experiment_has_labelled_axes(short_runs: dict[str, Finished], id: str) -> None:
    with plots.style():
        drawing = SIMULATED[id].draw(short_runs[id].evaluation)
    assert drawing.axes
    assert all(axes.get_ylabel() and axes.get_xlabel() for axes in drawing.axes)


@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=[] if id in SAVED_QUICKLY else [pytest.mark.slow]) for id in SIMULATED]
)
def test_an_experiment_saves_its_rows_and_figure(short_runs: dict[str, Finished], id: str, tmp_path: Path) -> None:
    report.save_experiment(short_runs[id], tmp_path)
    assert (tmp_path / id / "figure.png").stat().st_size > 0
    assert (tmp_path / id / "rows.csv").stat().st_size > 0


@pytest.mark.parametrize("id", IDS)
def test_full_effort_has_several_seeds_if_printed_numbers_depend_on_the_seed(
    short_runs: dict[str, Finished], id: str
) -> None:
    random = any(row.interval is not None and row.paper is not None for row in short_runs[id].evaluation.rows)
    assert SIMULATED[id].full.seeds >= (REPEATED[id.partition("/")[0]] if random else 1)


def test_a_longer_run_of_tcp_contains_the_shorter_one() -> None:
    effort = replace(SHORT, seeds=1)
    shorter = replace(BASELINE, longer=())
    planned = plan([cell for one in (BASELINE, shorter) for cell in internet2.both(one, effort)], effort)
    experiment = replace(registry()["rc3/fig7-sizes"], plan=lambda effort: planned)
    [done] = runner.reproduce([Task(experiment, effort)], 2, lambda share: None)
    runs = Runs(effort, done.outcomes)
    both = [internet2.pairs(runs, setting)[0] for setting in (BASELINE, shorter)]
    assert both[0].height > 0
    assert both[0].equals(both[1])
    longer = internet2.pairs(runs, BASELINE, TCP_LONGER)[0]
    assert longer.height > both[0].height


def test_rows_with_the_papers_averaging_rule_count_and_the_others_are_varied() -> None:
    quick = replace(SHORT, name="quick")
    far = replace(BASELINE, rule=TCP_LONGER.variant)
    assert [variant(far, rule, SHORT) for rule in (BOTH_BY_THE_END, TCP_LONGER)] == ["both by the end", ""]
    # A quick run has no rows with another rule.
    assert variant(far, BOTH_BY_THE_END, quick) == ""
    assert variant(replace(BASELINE, aside="another delay"), BOTH_BY_THE_END, quick) == "another delay"


def test_jains_index_is_1_for_equal_shares_and_1_over_n_for_a_single_share() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([0.0, 0.0, 5.0, 0.0]) == pytest.approx(0.25)


def test_table_1_compares_the_misprinted_reduction_with_both_of_the_papers_numbers(
    short_runs: dict[str, Finished],
) -> None:
    printed, by_the_times = (
        short_runs["rc3/table1-robustness"].evaluation.find(Key("2000 workload (stand-in)", metric, "RC3", FLOWS))
        for metric in (REDUCTION, BY_THE_TIMES)
    )
    assert printed.paper == 13.83
    assert by_the_times.paper == pytest.approx(19.17, abs=0.01)
    assert printed.value == by_the_times.value


def test_the_groups_by_size_contain_each_size_of_the_workload_once() -> None:
    sizes = pl.DataFrame({"size_bytes": [segments * MSS_BYTES for segments in FLOW_SIZES]})
    grouped = [size for group in GROUPS.values() for size in internet2.of_sizes([sizes], group)[0]["size_bytes"]]
    assert sorted(grouped) == sorted(sizes["size_bytes"])


@pytest.mark.parametrize("id", ["rc3/mixed", "rc3/fig14-qos", "rc3/partial", "rc3/droptail"])
def test_all_runs_of_a_comparison_have_the_same_flows(short_runs: dict[str, Finished], id: str) -> None:
    for seed in SHORT.seed_numbers():
        runs = [outcome.flows for run, outcome in short_runs[id].outcomes.items() if run.seed == seed]
        end_s = min(float(flows["start_s"][-1]) for flows in runs)
        starts = [
            flows.filter(pl.col("start_s") <= end_s).select("id", "src", "dst", "size_bytes", "start_s")
            for flows in runs
        ]
        assert starts[0].height > 0
        assert all(flows.equals(starts[0]) for flows in starts)
