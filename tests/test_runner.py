"""Tests of simulations on several threads."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from sparelane.papers import registry
from sparelane.papers.engine import runner
from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.engine.runner import Finished, Task

QUICK = Effort("quick", seeds=1)


def short_run(seed: int) -> Simulation:
    return Simulation("rc3-internet2", ("duration=30ms",), seed, label=f"seed {seed}")


def experiment(id: str, seeds: range) -> Experiment:
    """Returns an experiment with one row per seed, the number of flows."""

    def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
        counts = {run.seed: outcome.flows.height for run, outcome in outcomes.items()}
        return Evaluation(tuple(Row(Key(f"{seed}", Metric("flows")), None, count) for seed, count in counts.items()))

    return replace(
        registry()["rc3/model"], id=id, plan=lambda effort: [short_run(seed) for seed in seeds], evaluate=evaluate
    )


def work(jobs: int) -> list[Finished]:
    tasks = [Task(experiment("a", range(1, 5)), QUICK), Task(experiment("b", range(3, 7)), QUICK)]
    return list(runner.reproduce(tasks, jobs, lambda share: None))


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    alone, together = work(1), work(3)
    for one, other in zip(alone, together, strict=True):
        assert one.evaluation == other.evaluation
        digests = [[outcome.digest for outcome in done.outcomes.values()] for done in (one, other)]
        assert digests[0] == digests[1]


def test_experiments_finish_in_the_requested_order_and_share_simulations() -> None:
    first, second = work(2)
    assert [first.task.experiment.id, second.task.experiment.id] == ["a", "b"]
    assert first.outcomes[short_run(3)] is second.outcomes[short_run(3)]


def test_closing_the_iterator_stops_the_simulations() -> None:
    long = Simulation("rc3-internet2", ("duration=1000s",), 1, label="long")
    endless = replace(experiment("endless", range(0)), plan=lambda effort: [long])
    working = runner.reproduce([Task(experiment("a", range(1, 2)), QUICK), Task(endless, QUICK)], 2, lambda share: None)
    next(working)
    working.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("simulation")]


def test_ctrl_c_keeps_finished_experiments_even_after_an_unfinished_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = Simulation("rc3-internet2", ("duration=1000s",), 1, label="long")
    endless = replace(experiment("endless", range(0)), plan=lambda effort: [long])
    futures: list[Future[Any]] = []

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
            futures.append(super().submit(*arguments, **options))
            return futures[-1]

    def press(share: float) -> None:
        if all(future.done() for future in futures[1:]):
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "ThreadPoolExecutor", Pool)
    working = runner.reproduce([Task(endless, QUICK), Task(experiment("a", range(1, 3)), QUICK)], 2, press)
    kept = next(working)
    assert kept.task.experiment.id == "a"
    assert len(kept.evaluation.rows) == 2
    with pytest.raises(KeyboardInterrupt):
        next(working)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("simulation")]


def test_a_failing_simulation_fails_the_experiment() -> None:
    wrong = Simulation("rc3-internet2", ("duration=never",), 1, label="wrong")
    task = Task(replace(experiment("wrong", range(0)), plan=lambda effort: [wrong]), QUICK)
    with pytest.raises(ValueError, match="duration"):
        list(runner.reproduce([task], 2, lambda share: None))


def test_progress_ends_at_1() -> None:
    shares: list[float] = []
    list(runner.reproduce([Task(experiment("a", range(1, 4)), QUICK)], 2, shares.append))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
