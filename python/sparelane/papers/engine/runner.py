"""Runs the simulations of experiments on several threads, or on a cluster.

Experiments that need the same simulation share one run. The results do not depend on the number of threads. Threads
suffice, because the simulator releases the interpreter while it works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation, Verdict
from sparelane.papers.engine.rows import Evaluation, Key
from sparelane.papers.engine.simulations import simulate
from sparelane.papers.engine.store import Store

# Seconds between two checks of the workers by the main thread; the longest delay until Ctrl-C takes effect.
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Task:
    """An experiment and the effort to spend on it."""

    experiment: Experiment
    effort: Effort


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished experiment with the outcomes of its simulations."""

    task: Task
    evaluation: Evaluation
    outcomes: Outcomes
    elapsed_s: float

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on the experiment's claims."""
        return self.task.experiment.check(self.task.effort, self.evaluation)

    @property
    def unneeded_reasons(self) -> list[Key]:
        """The keys of reasons that no row needs; empty unless the effort was the full one."""
        experiment = self.task.experiment
        return experiment.unneeded_reasons(self.evaluation) if experiment.is_full(self.task.effort) else []

    def without_tables(self) -> Finished:
        """Returns a copy whose outcomes have empty tables. Saved tables can be freed: a full effort has gigabytes."""
        emptied = {simulation: outcome.without_tables() for simulation, outcome in self.outcomes.items()}
        return replace(self, outcomes=emptied)


def reproduce(
    tasks: Sequence[Task],
    jobs: int,
    report: Callable[[float], None],
    cluster: Executor | None = None,
    store: Store | None = None,
) -> Generator[Finished]:
    """Runs the tasks and yields them in order, each as soon as it and all earlier tasks are finished.

    Running simulations stop if the iterator is closed or the caller raises an exception. On Ctrl-C they stop, too; all
    tasks with complete simulations are yielded, and then `KeyboardInterrupt` is raised.

    Args:
        tasks: the experiments and their efforts.
        jobs: the number of simulations that run at the same time in this process.
        report: called a few times per second with the finished share of the whole work, 0 to 1.
        cluster: runs the simulations in other processes instead.
        store: the outcomes of earlier simulations; `None` runs all simulations.

    Raises:
        ScenarioError: a scenario cannot be run.
        PhysicsError: a simulation failed its physics check.
    """
    plans = [tuple(task.experiment.plan(task.effort)) for task in tasks]
    wanted = list(dict.fromkeys(simulation for plan in plans for simulation in plan))
    executor = _SimulationExecutor(wanted, jobs, cluster, store)
    began_s, reached = time.monotonic(), 0
    try:
        for index, (task, plan) in enumerate(zip(tasks, plans, strict=True)):
            reached = index
            executor.wait_for(plan, report)
            yield _finished(task, plan, executor, began_s)
            executor.forget_all_but({simulation for later in plans[index + 1 :] for simulation in later})
    except KeyboardInterrupt:
        # Later tasks may be complete, too, since workers take simulations of all tasks.
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

    def __init__(
        self, simulations: Sequence[Simulation], jobs: int, cluster: Executor | None, store: Store | None
    ) -> None:
        self._cancelled = threading.Event()
        self._store = store
        self._is_remote = cluster is not None
        self._done = dict.fromkeys(simulations, 0.0)
        self._total_cost = sum(simulation.cost for simulation in simulations)
        self._pool = cluster or ThreadPoolExecutor(max_workers=max(jobs, 1), thread_name_prefix="simulation")
        self.futures: dict[Simulation, Future[Outcome]] = {
            simulation: self._pool.submit(simulate, simulation, None, store)
            if cluster is not None
            else self._pool.submit(self._simulate, simulation)
            for simulation in simulations
        }

    def _simulate(self, simulation: Simulation) -> Outcome:
        def progress(fraction: float) -> bool:
            self._done[simulation] = fraction
            return not self._cancelled.is_set()

        return simulate(simulation, progress, self._store)

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
