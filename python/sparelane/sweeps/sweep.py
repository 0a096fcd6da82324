"""Does a sweep: what is not in the folder yet is simulated, and everything is written there."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane.plugins import sources
from sparelane.plugins.watch import Limits, watched
from sparelane.sweeps import folder as folders
from sparelane.sweeps import pool
from sparelane.sweeps.crew import Crew
from sparelane.sweeps.journal import Journal, Kept
from sparelane.sweeps.plan import Plan, Run
from sparelane.sweeps.worker import Job, Order

# Those of commands that do not let the user say.
USUAL_LIMITS = Limits()


@dataclass(slots=True)
class Progress:
    """How far a sweep is.

    Attributes:
        wanted: all runs.
        found: those that were in the folder.
        done: those that are there by now.
        failed: why runs failed, by name.
        kept_apart: where results are that were in the folder and are not of these runs.
    """

    wanted: int
    found: int
    done: int
    failed: dict[str, str]
    kept_apart: Path | None = None

    @property
    def share(self) -> float:
        """The share of the runs that is behind us, 0 to 1."""
        return (self.done + len(self.failed)) / self.wanted if self.wanted else 1.0

    @property
    def unreached(self) -> int:
        """Runs that were not tried."""
        return self.wanted - self.done - len(self.failed)


def local(jobs: int) -> Crew:
    """Worker processes on this machine."""
    return lambda job, orders: pool.work(job, orders, jobs)


def sweep(plan: Plan, place: Path, crew: Crew, limits: Limits = USUAL_LIMITS) -> Generator[Progress]:
    """Does the runs of a plan that the folder does not hold, and writes the tables; yields how far it is.

    A call into plugins or a run that is over its limit is a run that failed.

    Closing the generator, or an exception such as Ctrl-C, ends the work and writes what is done.

    Raises:
        OutputError: the folder cannot be written, or another sweep writes into it.
        SavedResultsError: the folder holds results of another version.
        ScenarioError: no setting can be run.
        CrewError: the workers cannot do the runs; what is done is kept.
        OSError: the disk is full; what is done is kept.
    """
    folders.ready(place, plan)
    with watched(limits):
        plan.check()
    began_s = time.monotonic()
    with Journal(place) as journal:
        runs = {run.name: run for run in plan.runs}
        kept = journal.read(runs.keys())
        apart = folders.set_aside(place, plan) if journal.has_others else None
        folders.write_sweep(place, plan)
        progress = Progress(len(plan.runs), len(kept), len(kept), {}, apart)
        yield progress
        try:
            missing = [run for run in plan.runs if run.name not in kept]
            yield from _work(plan, missing, crew, journal, kept, progress, limits)
        except BaseException:
            # Wherever that came, what the journal holds is done, and nothing else.
            kept = journal.read(runs.keys())
            progress.done = len(kept)
            raise
        finally:
            folders.write(place, plan, kept, progress.failed, time.monotonic() - began_s)
    yield progress


def _work(
    plan: Plan,
    runs: list[Run],
    crew: Crew,
    journal: Journal,
    kept: dict[str, Kept],
    progress: Progress,
    limits: Limits,
) -> Iterator[Progress]:
    job: Job = {
        "text": plan.text,
        "file": plan.file,
        "folder": str(plan.folder.absolute()),
        "version": _native.__version__,
        "plugins": sources(),
        "call_limit_s": limits.call_s,
        "run_limit_s": limits.run_s,
    }
    overrides: dict[int, list[str]] = {}

    def orders() -> Iterator[Order]:
        for number, run in enumerate(runs):
            if run.setting not in overrides:
                overrides[run.setting] = plan.overrides(plan.settings[run.setting])
            yield number, overrides[run.setting], run.seed

    if not runs:
        return
    answers = crew(job, orders())
    try:
        for answer in answers:
            if answer is not None:
                number, found = answer
                name = runs[number].name
                if "error" in found:
                    found = {"error": plan.told(str(found["error"]))}
                journal.append(name, found)
                if "error" in found:
                    progress.failed[name] = found["error"]
                else:
                    kept[name] = found
                    progress.done += 1
            yield progress
    finally:
        close = getattr(answers, "close", None)
        if close is not None:
            close()
