"""Tests of the comparison of the kernel's controllers with ours: runs, differences and claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import polars as pl
import pytest

from sparelane.papers import registry
from sparelane.papers.engine import runner, simulations
from sparelane.papers.engine.base import Outcome, Simulation
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.linux import measured
from sparelane.papers.linux.paths import (
    CHANGING_PATHS,
    CHANGING_RUNS,
    IDLE_PATHS,
    IDLE_RUNS,
    KEPT,
    LIKE,
    LONGER,
    OURS,
    PATHS,
    QUICK_RUNS,
    RANDOM,
    RUNS,
    Changing,
    Path,
    Run,
    segments,
)
from sparelane.papers.linux.rows import FCT, FLIGHT, QUEUE, USE, fct
from sparelane.reports import plots
from sparelane.simulation import simulate
from sparelane.uml import kernel, mapping
from sparelane.uml.parameters import CONTROLLERS

EXPERIMENT = registry()["linux/controllers"]
QUICK = EXPERIMENT.quick
EVERY_RUN = (*RUNS, *IDLE_RUNS)
LOSSY = PATHS[-1]
with_kernel = pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")


@cache
def simulated(simulation: Simulation) -> Outcome:
    """Simulates a run of either side."""
    settings = simulation.settings
    ours = settings if set(OURS) <= set(settings) else (*settings, *OURS)
    return simulations.simulate(replace(simulation, settings=ours, on="simulator"))


def evaluation(change: Callable[[Run, pl.DataFrame], pl.DataFrame] = lambda run, flows: flows) -> Evaluation:
    """Evaluates quick runs in which the simulator replaces Linux, with changed flows on that side."""
    outcomes = {}
    for run in QUICK_RUNS:
        for side in ("simulator", "linux"):
            simulation = run.simulation(1, side)
            outcome = simulated(run.simulation(1, "simulator"))
            outcomes[simulation] = replace(outcome, flows=change(run, outcome.flows)) if side == "linux" else outcome
    return EXPERIMENT.explain(EXPERIMENT.full, EXPERIMENT.evaluate(QUICK, outcomes))


def slower(factor: float, *names: str) -> Callable[[Run, pl.DataFrame], pl.DataFrame]:
    """Returns a change that makes Linux's flows of these controllers, or of all, slower by a factor."""
    return lambda run, flows: (
        flows if names and run.controller not in names else flows.with_columns(pl.col("completion_s") * factor)
    )


@pytest.mark.parametrize("path", dict.fromkeys(run.path for run in EVERY_RUN), ids=lambda path: path.name)
def test_both_sides_of_a_path_send_the_same_flows_and_lose_the_same_segments(path: Path) -> None:
    for run in (run for run in EVERY_RUN if run.path == path):
        for seed in (1, 3):
            ours, linux = (run.simulation(seed, side) for side in ("simulator", "linux"))
            own = (*OURS, *LIKE.get(run.controller, ()))
            assert [word for word in ours.settings if word not in own] == list(linux.settings)
            simulate.prepare("linux-controllers", set=list(ours.settings))
            network = mapping.network(simulate.prepare("linux-controllers", set=list(linux.settings)))
            assert {flow.controller for flow in network.flows} == {CONTROLLERS[run.controller]}
            assert network.timestamps
            assert [flow.pool for flow in network.flows] == [int(path in IDLE_PATHS or path == LONGER)] * 3
            assert network.restarts_after_idle == (run.variant != KEPT)
            mss_bytes = 1448
            lost = [(flow, segment) for flow, segments in enumerate(path.lost(seed)) for segment in segments]
            assert [(loss.flow, loss.byte // mss_bytes) for loss in network.losses] == lost


@pytest.mark.parametrize("run", CHANGING_RUNS, ids=lambda run: f"{run.path.name}, {run.controller}")
def test_both_sides_of_a_changing_path_have_the_same_changes(run: Run) -> None:
    assert isinstance(run.path, Changing)
    ours, linux = (run.simulation(1, side) for side in ("simulator", "linux"))
    assert list(ours.settings) == [*linux.settings, *OURS]
    prepared = simulate.prepare("linux-controllers", set=list(linux.settings))
    network = mapping.network(prepared)
    assert [flow.size_bytes for flow in network.flows] == [30_000_000]
    # A change of both directions is two changes.
    given = [2 - ("from" in change) for _, change in run.path.changes]
    assert len(network.changes) == len(prepared.describe()["changes"]) == sum(given)
    assert bool(network.changes) == (run.path != CHANGING_PATHS[0])


def test_losses_are_drawn_for_each_segment_and_differ_by_seed() -> None:
    drawn = [LOSSY.lost(seed) for seed in range(1, 201)]
    assert len(set(drawn)) > 20
    count = sum(len(lost) for flows in drawn for lost in flows)
    expected = 200 * LOSSY.loss * sum(segments(size) for size in LOSSY.sizes)
    # Five standard deviations of the Poisson distribution.
    assert abs(count - expected) < 5 * expected**0.5
    assert PATHS[0].lost(1) == ((), (), ())


def test_without_losses_only_random_controllers_run_with_a_second_seed() -> None:
    for run in RUNS:
        is_repeated = bool(run.path.loss) or (run.controller in RANDOM and not run.variant)
        assert list(run.seeds([1, 2])) == ([1, 2] if is_repeated else [1])


def test_seeds_with_equal_losses_are_one_simulation() -> None:
    full = EXPERIMENT.plan(EXPERIMENT.full)
    assert len(set(full)) == len(full)
    [run] = [run for run in RUNS if (run.path, run.controller) == (LOSSY, "cubic")]
    seeds = EXPERIMENT.full.seed_numbers()
    kinds = {LOSSY.lost(seed) for seed in seeds}
    assert len({run.simulation(seed, "linux") for seed in seeds}) == len(kinds) < len(seeds)


def test_bursts_with_random_backoffs_run_with_each_seed_and_others_once() -> None:
    for run in IDLE_RUNS:
        is_repeated = run.controller == "lp" or (run.controller == "cdg" and run.variant in ("", KEPT))
        assert list(run.seeds([1, 2])) == ([1, 2] if is_repeated else [1]), run


def test_equal_sides_have_no_differences_and_every_claim_holds() -> None:
    found = evaluation()
    assert len({row.key for row in found.rows}) == len(found.rows)
    assert {row.key.metric for row in found.rows} >= {FCT, FLIGHT, QUEUE, USE}
    assert all(row.paper == row.value for row in found.rows)
    assert [verdict.holds for verdict in EXPERIMENT.check(EXPERIMENT.full, found)] == [True] * len(EXPERIMENT.claims)


def test_a_difference_without_a_reason_fails_its_claim() -> None:
    found = evaluation(slower(0.8, "cubic"))
    row = found.find(fct(PATHS[0], "cubic", 0))
    assert row.value == pytest.approx(1.25 * (row.paper or 0))
    verdicts = EXPERIMENT.check(EXPERIMENT.full, found)
    assert [verdict.holds for verdict in verdicts[:2]] == [True, False]
    # Three sizes on each of the two paths.
    assert verdicts[1].value == 6


def test_a_median_of_five_per_cent_fails_its_claim_and_is_in_the_notes() -> None:
    found = evaluation(slower(0.95))
    assert EXPERIMENT.check(EXPERIMENT.full, found)[0].holds is False
    text = "Completion times differ by 5.263 % in the median of 102, without their signs; 102"
    assert found.notes[0].startswith(text)


def test_differences_between_five_and_ten_per_cent_are_in_the_notes() -> None:
    found = evaluation(slower(1 / 1.07, "vegas"))
    assert "15kB: vegas completion time +7.0 %: not explained" in found.notes[1]


def test_an_unfinished_flow_is_a_row_without_a_number_and_fails() -> None:
    def lost(run: Run, flows: pl.DataFrame) -> pl.DataFrame:
        missing = pl.lit(None, pl.Float64) if run.controller == "bic" else pl.col("completion_s")
        return flows.with_columns(missing.alias("completion_s"))

    found = evaluation(lost)
    assert found.find(fct(LOSSY, "bic", 1)).value is None
    assert EXPERIMENT.check(EXPERIMENT.full, found)[1].value == 6


def test_averages_cover_the_lifetime_of_a_flow() -> None:
    [run] = [run for run in RUNS if (run.path, run.controller) == (PATHS[1], "newreno")]
    rows = measured.rows(run, 1, "simulator", simulated(run.simulation(1, "simulator")))
    assert rows["mean_in_flight_bytes"].null_count() == 2
    own = rows.row(2, named=True)
    # The link is full after slow start.
    assert 0.3 < own["link_use"] <= 1.01
    assert own["mean_in_flight_bytes"] > own["mean_queue_bytes"] > 0


@pytest.mark.slow
def test_the_figure_shows_windows_if_there_are_any() -> None:
    outcomes = {
        run.simulation(1, side): simulated(run.simulation(1, "simulator"))
        for run in RUNS
        for side in ("simulator", "linux")
    }
    with plots.style():
        drawing = EXPERIMENT.draw(EXPERIMENT.evaluate(replace(EXPERIMENT.full, seeds=1), outcomes))
        brief = EXPERIMENT.draw(evaluation())
    assert (len(drawing.axes), len(brief.axes)) == (6, 1)
    assert all(axes.get_ylabel() and axes.get_xlabel() for axes in drawing.axes)


@with_kernel
@pytest.mark.long_on_linux
def test_claims_hold_in_a_quick_run_on_the_kernel() -> None:
    [done] = runner.reproduce([runner.Task(EXPERIMENT, QUICK)], 2, lambda share: None)
    assert [verdict.text for verdict in done.verdicts if verdict.holds is False] == []
    assert len(done.evaluation.rows) > 102
