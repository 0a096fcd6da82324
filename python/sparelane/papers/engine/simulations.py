"""Runs one simulation of an experiment, in the simulator or on Linux, unless the store has its outcome already."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sparelane._native import Cancelled
from sparelane.papers.engine import store as stores
from sparelane.papers.engine.base import Outcome, Simulation
from sparelane.papers.engine.store import Store
from sparelane.scenario import library
from sparelane.simulation.result import Result
from sparelane.simulation.simulate import prepare

# Called with the share of a simulation that is done; stops the simulation by returning false.
Progress = Callable[[float], bool]


def simulate(simulation: Simulation, progress: Progress | None = None, store: Store | None = None) -> Outcome:
    """Returns the outcome of a simulation.

    Args:
        simulation: the simulation.
        progress: called while it runs.
        store: has outcomes of earlier simulations; `None` runs the simulation in any case.

    Raises:
        ScenarioError: the scenario cannot be run.
        LinuxError: there is no kernel, or it failed.
        PhysicsError: the simulator violated one of its invariants, which is a bug.
        Cancelled: `progress` returned false.
    """
    prepared = _on_linux if simulation.on == "linux" else _in_simulator
    key, run = prepared(simulation, progress)
    return run() if store is None else store.outcome(key, run)


def _in_simulator(simulation: Simulation, progress: Progress | None) -> tuple[str, Callable[[], Outcome]]:
    """The key of a simulation, and the function that runs it."""
    began_s = time.thread_time()
    # The runner has a process for each core.
    prepared = prepare(library.find(simulation.scenario), seed=simulation.seed, set=simulation.settings, threads=1)
    key = stores.simulator_key(prepared.resolved())

    def run() -> Outcome:
        outcome = to_outcome(prepared.run(progress))
        return replace(outcome, cpu_s=time.thread_time() - began_s)

    return key, run


def _on_linux(simulation: Simulation, progress: Progress | None) -> tuple[str, Callable[[], Outcome]]:
    """The key of a run on Linux, and the function that runs it."""
    from sparelane.uml import running

    prepared = running.prepare(library.find(simulation.scenario), seed=simulation.seed, set=simulation.settings)

    def waiting(_: float) -> None:
        # A kernel does not report its progress, so half is as good as any other number.
        if progress is not None and not progress(0.5):
            raise Cancelled

    def run() -> Outcome:
        # The processor time is not counted: the kernel runs in other processes.
        outcome = prepared.run(waiting)
        return replace(to_outcome(outcome.result), counters=outcome.counters)

    return stores.linux_key(prepared.fingerprint), run


def to_outcome(result: Result) -> Outcome:
    """Returns the part of a run's results that experiments read."""
    return Outcome(
        flows=result.flows,
        links=result.links,
        drops=result.drops,
        delays=result.delays,
        series=result.series,
        packets=result.packets,
        digest=result.digest,
    )
