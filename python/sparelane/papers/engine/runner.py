"""Runs the simulations of experiments on several threads; the results do not depend on the number of threads.

The simulator releases the interpreter lock while it works, so threads are enough.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from sparelane._native import Cancelled
from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation, Verdict
from sparelane.papers.engine.rows import Evaluation, Key
from sparelane.scenario import library
from sparelane.simulation.result import Result
from sparelane.simulation.simulate import run

# How long the main thread sleeps between looks at the workers, seconds: also how long Ctrl-C may take to be seen.
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Task:
    """An experiment, and how hard to try."""

    experiment: Experiment
    effort: Effort


@dataclass(frozen=True, slots=True)
class Finished:
    """An experiment that is done, with the simulations that it rests on."""

    task: Task
    evaluation: Evaluation
    outcomes: Outcomes
    elapsed_s: float

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What becomes of the experiment's claims."""
        return self.task.experiment.check(self.task.effort, self.evaluation)

    @property
    def unneeded_reasons(self) -> list[Key]:
        """The keys of reasons that no row needs; none are known where the effort was not the full one."""
        experiment = self.task.experiment
        return experiment.unneeded_reasons(self.evaluation) if experiment.is_full(self.task.effort) else []

    def without_tables(self) -> Finished:
        """The same with empty tables, for when they are saved: those of a full evaluation fill gigabytes."""
        emptied = {simulation: outcome.without_tables() for simulation, outcome in self.outcomes.items()}
        return replace(self, outcomes=emptied)


def reproduce(
    tasks: Sequence[Task], jobs: int, report: Callable[[float], None], cluster: Executor | None = None
) -> Generator[Finished]:
    """Does the tasks and yields them in the order given, each as soon as it and those before it are done.

    Closing the iterator, or an exception in the caller, stops the simulations under way. Ctrl-C stops them, too, and is
    raised again after the tasks whose simulations are all done, whatever their place in the order.

    Args:
        tasks: what to do.
        jobs: simulations at the same time, in this process.
        report: called a few times a second with the share of the whole work that is done, 0 to 1.
        cluster: does the simulations instead, in other processes.

    Raises:
        ScenarioError: a scenario cannot be run.
        PhysicsError: a simulation broke a law of its own.
    """
    plans = [tuple(task.experiment.plan(task.effort)) for task in tasks]
    wanted = list(dict.fromkeys(simulation for plan in plans for simulation in plan))
    executor = _SimulationExecutor(wanted, jobs, cluster)
    began_s, reached = time.monotonic(), 0
    try:
        for index, (task, plan) in enumerate(zip(tasks, plans, strict=True)):
            reached = index
            executor.wait_for(plan, report)
            yield _finished(task, plan, executor, began_s)
            executor.forget_all_but({simulation for later in plans[index + 1 :] for simulation in later})
    except KeyboardInterrupt:
        for task, plan in list(zip(tasks, plans, strict=True))[reached:]:
            if executor.has_done(plan):
                yield _finished(task, plan, executor, began_s)
        raise
    finally:
        executor.shutdown()


def _finished(task: Task, plan: Sequence[Simulation], executor: _SimulationExecutor, began_s: float) -> Finished:
    """Evaluates a task whose simulations are done."""
    outcomes = {simulation: executor.futures[simulation].result() for simulation in plan}
    return Finished(task, task.experiment.judge(task.effort, outcomes), outcomes, time.monotonic() - began_s)


class _SimulationExecutor:
    """Runs simulations on worker threads or on a cluster. A cluster reports no progress within a simulation."""

    def __init__(self, simulations: Sequence[Simulation], jobs: int, cluster: Executor | None) -> None:
        self._cancelled = threading.Event()
        self._is_remote = cluster is not None
        self._done = dict.fromkeys(simulations, 0.0)
        self._total_cost = sum(simulation.cost for simulation in simulations)
        self._pool = cluster or ThreadPoolExecutor(max_workers=max(jobs, 1), thread_name_prefix="simulation")
        self.futures: dict[Simulation, Future[Outcome]] = {
            simulation: self._pool.submit(simulate, simulation)
            if cluster is not None
            else self._pool.submit(self._simulate, simulation)
            for simulation in simulations
        }

    def _simulate(self, simulation: Simulation) -> Outcome:
        def progress(fraction: float) -> bool:
            self._done[simulation] = fraction
            return not self._cancelled.is_set()

        return simulate(simulation, progress)

    def wait_for(self, plan: Sequence[Simulation], report: Callable[[float], None]) -> None:
        """Waits until the plan's simulations are done, and raises the exception of the first that fails."""
        pending = {self.futures[simulation] for simulation in plan}
        while pending:
            done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            report(self._fraction())

    def has_done(self, plan: Sequence[Simulation]) -> bool:
        """Returns true if all simulations of a plan are done and none failed."""
        futures = [self.futures[simulation] for simulation in plan]
        return all(future.done() and not future.cancelled() and future.exception() is None for future in futures)

    def _fraction(self) -> float:
        self._done |= {simulation: 1.0 for simulation, future in self.futures.items() if future.done()}
        spent = sum(simulation.cost * fraction for simulation, fraction in self._done.items())
        return spent / self._total_cost if self._total_cost else 1.0

    def forget_all_but(self, needed: set[Simulation]) -> None:
        """Drops the outcomes that no later experiment reads."""
        for simulation in [known for known in self.futures if known not in needed]:
            del self.futures[simulation]

    def shutdown(self) -> None:
        """Cancels running and waiting simulations. Waits for threads, but not for a cluster."""
        self._cancelled.set()
        for future in self.futures.values():
            future.cancel()
        self._pool.shutdown(wait=not self._is_remote)


def simulate(simulation: Simulation, progress: Callable[[float], bool] | None = None) -> Outcome:
    """What is kept of a simulation."""
    path = library.find(simulation.scenario)
    if simulation.on == "linux":
        return _on_linux(path, simulation, progress)
    began_s = time.thread_time()
    outcome = distil(run(path, seed=simulation.seed, set=simulation.settings, progress=progress))
    return replace(outcome, cpu_s=time.thread_time() - began_s)


def _on_linux(path: Path, simulation: Simulation, progress: Callable[[float], bool] | None) -> Outcome:
    from sparelane.uml import running

    def waiting(_: float) -> None:
        # How far a kernel is, nobody knows from outside.
        if progress is not None and not progress(0.5):
            raise Cancelled

    # The kernel's processor time is that of other processes, and counted nowhere.
    outcome = running.run(path, seed=simulation.seed, set=simulation.settings, waiting=waiting)
    return replace(distil(outcome.result), counters=outcome.counters)


def distil(result: Result) -> Outcome:
    """The part of a run's results that experiments read."""
    return Outcome(
        flows=result.flows,
        drops=result.drops,
        delays=result.delays,
        series=result.series,
        packets=result.packets,
        digest=result.digest,
    )
