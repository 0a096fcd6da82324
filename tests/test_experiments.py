"""Every experiment from its plan to its figure, on runs that are too short to say anything about the paper."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sparelane.papers import registry
from sparelane.papers.engine import runner
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.rows import Key, MissingRowError
from sparelane.papers.engine.runner import Finished, Task
from sparelane.papers.engine.statistics import jain
from sparelane.papers.pages import report
from sparelane.papers.rapid import testbed
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES
from sparelane.papers.rc3.completion import BY_THE_TIMES, Reading
from sparelane.papers.rc3.deployments import GROUPS
from sparelane.papers.rc3.internet2 import BASELINE, FLOWS, REDUCTION, TCP_LONGER
from sparelane.reports import plots

# Long enough for some small flows to finish, where paths are short.
BRIEF = Effort("full", seeds=2, stop_s=0.1)


# Those that run on a kernel have tests of their own, in test_linux_rc3.py.
SIMULATED = {id: experiment for id, experiment in registry().items() if not experiment.needs_kernel}

# RAPID's runs are of one transfer over tens of seconds, thousands of round trips; the others are of many short flows.
REPEATED = {"rapid": 3, "rc3": 10, "rtcp": 10}


@pytest.fixture(scope="module")
def brief() -> dict[str, Finished]:
    """All experiments, in their full form but for the length of the runs and the number of seeds."""
    tasks = [
        Task(experiment, replace(BRIEF, stop_s=min(BRIEF.stop_s, experiment.full.stop_s / 5)))
        for experiment in SIMULATED.values()
    ]
    return {done.task.experiment.id: done for done in runner.reproduce(tasks, 2, lambda share: None)}


def test_rapid_starts_slowly_only_where_runs_are_long_enough_for_that() -> None:
    paper = registry()["rapid/table3-loss10g"].full
    assert (testbed.start(paper), testbed.span("rapid", paper, 0.25)) == ((), (180.0, 60.0))
    assert testbed.span("cubic", paper, 0.25) == (120.0, 30.0)
    assert testbed.start(BRIEF) == (testbed.QUICK_START,)
    assert testbed.span("rapid", BRIEF, 0.25) == (0.1, 0.025)


@pytest.mark.parametrize("id", SIMULATED)
def test_an_experiment_names_each_of_its_rows_once(brief: dict[str, Finished], id: str) -> None:
    keys = [row.key for row in brief[id].evaluation.rows]
    assert keys
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("id", SIMULATED)
def test_every_reason_is_for_a_row_that_the_paper_speaks_of(brief: dict[str, Finished], id: str) -> None:
    judged = {row.key for row in brief[id].evaluation.rows if row.is_judged}
    assert set(SIMULATED[id].reasons) <= judged


@pytest.mark.parametrize("id", SIMULATED)
def test_rows_that_are_restated_twice_are_as_those_that_are_restated_once(brief: dict[str, Finished], id: str) -> None:
    found = brief[id].evaluation
    assert SIMULATED[id].restate(found).rows == found.rows


@pytest.mark.parametrize("id", SIMULATED)
def test_every_claim_is_about_rows_that_a_full_run_has(brief: dict[str, Finished], id: str) -> None:
    experiment, found = SIMULATED[id], brief[id].evaluation
    for claim in experiment.claims:
        try:
            claim.value(found)
        except (MissingRowError, KeyError) as error:
            pytest.fail(f"{claim.text}: {error}")
        except (LookupError, ArithmeticError, TypeError, ValueError):
            pass  # So brief a run does not give every number.


@pytest.mark.parametrize("id", SIMULATED)
def test_claims_differ_and_their_bands_have_their_bounds_in_order(id: str) -> None:
    claims = SIMULATED[id].claims
    assert len({claim.text for claim in claims}) == len(claims)
    bands = [band for claim in claims for band in (claim.full, claim.quick) if band is not None]
    assert all(low <= high for low, high in bands)


@pytest.mark.parametrize("id", SIMULATED)
def test_an_experiment_saves_a_figure_whose_axes_say_what_they_show(
    brief: dict[str, Finished], id: str, tmp_path: Path
) -> None:
    report.save_experiment(brief[id], tmp_path)
    assert (tmp_path / id / "figure.png").stat().st_size > 0
    with plots.style():
        drawing = SIMULATED[id].draw(brief[id].evaluation)
    assert all(axes.get_ylabel() and axes.get_xlabel() for axes in drawing.axes)


@pytest.mark.parametrize("experiment", SIMULATED.values(), ids=SIMULATED)
def test_a_full_effort_repeats_where_the_paper_prints_numbers_that_depend_on_a_seed(
    experiment: Experiment, brief: dict[str, Finished]
) -> None:
    random = any(row.interval is not None and row.paper is not None for row in brief[experiment.id].evaluation.rows)
    assert experiment.full.seeds >= (REPEATED[experiment.id.partition("/")[0]] if random else 1)


def test_a_longer_run_of_tcp_holds_the_shorter_one() -> None:
    effort = replace(BRIEF, seeds=1)
    shorter = replace(BASELINE, tcp_longer=False)
    runs = [internet2.tcp_run(setting, 1, effort) for setting in (BASELINE, shorter)]
    runs.append(internet2.rc3_run(BASELINE, 1, effort))
    experiment = replace(registry()["rc3/fig7-sizes"], plan=lambda effort: runs)
    [done] = runner.reproduce([Task(experiment, effort)], 2, lambda share: None)
    both = [internet2.pairs(setting, 1, effort, done.outcomes) for setting in (BASELINE, shorter)]
    assert both[0].height > 0
    assert both[0].equals(both[1])
    longer = internet2.pairs(BASELINE, 1, effort, done.outcomes, TCP_LONGER)
    assert longer.height > both[0].height


def test_rows_by_the_rule_that_the_papers_numbers_follow_count_and_the_others_are_varied() -> None:
    far = Reading(TCP_LONGER)
    assert [far.variant(of, {"", "TCP to 10 s"}) for of in ("", "TCP to 10 s")] == ["both by the end", ""]
    # A quick run has no other rule.
    assert far.variant("", {""}) == ""
    assert Reading(aside="another delay").variant("", {""}) == "another delay"


def test_jains_index_is_one_for_equals_and_one_in_n_for_one_who_has_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([0.0, 0.0, 5.0, 0.0]) == pytest.approx(0.25)


def test_table_1_compares_the_misprinted_reduction_with_both_of_the_papers_numbers(brief: dict[str, Finished]) -> None:
    printed, by_the_times = (
        brief["rc3/table1-robustness"].evaluation.find(Key("2000 workload (stand-in)", metric, "RC3", FLOWS))
        for metric in (REDUCTION, BY_THE_TIMES)
    )
    assert printed.paper == 13.83
    assert by_the_times.paper == pytest.approx(19.17, abs=0.01)
    assert printed.value == by_the_times.value


def test_the_groups_by_size_hold_each_size_of_the_workload_once() -> None:
    sizes = pl.DataFrame({"size_bytes": [segments * MSS_BYTES for segments in FLOW_SIZES]})
    grouped = [size for group in GROUPS for size in group.of([sizes])[0]["size_bytes"]]
    assert sorted(grouped) == sorted(sizes["size_bytes"])


@pytest.mark.parametrize("id", ["rc3/mixed", "rc3/fig14-qos", "rc3/partial", "rc3/droptail"])
def test_all_runs_of_a_comparison_have_the_same_flows(brief: dict[str, Finished], id: str) -> None:
    for seed in BRIEF.seed_numbers():
        runs = [outcome.flows for run, outcome in brief[id].outcomes.items() if run.seed == seed]
        end_s = min(float(flows["start_s"][-1]) for flows in runs)
        starts = [
            flows.filter(pl.col("start_s") <= end_s).select("id", "src", "dst", "size_bytes", "start_s")
            for flows in runs
        ]
        assert starts[0].height > 0
        assert all(flows.equals(starts[0]) for flows in starts)
