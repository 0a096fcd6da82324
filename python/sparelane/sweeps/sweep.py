"""Runs a sweep: simulates the runs that its folder does not have yet, and writes the tables."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane.common.folders import ready_folder
from sparelane.plugins import sources
from sparelane.plugins.watch import Limits, watched
from sparelane.sweeps import folder as folders
from sparelane.sweeps import pool
from sparelane.sweeps.executor import RunExecutor
from sparelane.sweeps.journal import Journal, Kept
from sparelane.sweeps.plan import Plan, Run
from sparelane.sweeps.worker import Job, RunRequest

# The limits of callers without options for them.
USUAL_LIMITS = Limits()


@dataclass(slots=True)
class Progress:
    """The progress of a sweep.

    Attributes:
        wanted: the number of all runs.
        found: the number of runs that were in the folder at the start.
        done: the number of finished runs, including these.
        failed: the errors of failed runs, by name.
        kept_apart: the folder with results of other runs that were in the folder; `None` without such results.
    """

    wanted: int
    found: int
    done: int
    failed: dict[str, str]
    kept_apart: Path | None = None

    @property
    def share(self) -> float:
        """The share of runs that finished or failed, 0 to 1."""
        return (self.done + len(self.failed)) / self.wanted if self.wanted else 1.0

    @property
    def unreached(self) -> int:
        """The number of runs that were not tried."""
        return self.wanted - self.done - len(self.failed)


def local(jobs: int) -> RunExecutor:
    """Returns an executor with `jobs` worker processes on this machine."""
    return lambda job, requests: pool.work(job, requests, jobs)


def sweep(plan: Plan, place: Path, executor: RunExecutor, limits: Limits = USUAL_LIMITS) -> Generator[Progress]:
    """Does the runs of a plan that the folder does not have yet, writes the tables, and yields the progress.

    A run fails if it, or one of its calls into plugins, exceeds its time limit. Closing the generator, or an exception
    such as KeyboardInterrupt, ends the work and writes the finished runs.

    Raises:
        OutputError: the folder cannot be written, or another sweep writes into it.
        SavedResultsError: the folder holds results of another version.
        ScenarioError: no setting can be run.
        ExecutorError: the executor failed; finished runs are saved.
        OSError: the disk is full; finished runs are saved.
    """
    # A sweep with a mistake leaves no folder behind.
    folders.check(place, plan)
    with watched(limits):
        plan.check()
    ready_folder(place)
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
            yield from _work(plan, missing, executor, journal, kept, progress, limits)
        except BaseException:
            # The exception may have come between a journal entry and its count, so the journal decides.
            kept = journal.read(runs.keys())
            progress.done = len(kept)
            raise
        finally:
            folders.write(place, plan, kept, progress.failed, time.monotonic() - began_s)
    yield progress


def _work(
    plan: Plan,
    runs: list[Run],
    executor: RunExecutor,
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
    # The runs of a setting share its overrides.
    overrides: dict[int, list[str]] = {}

    def requests() -> Iterator[RunRequest]:
        for number, run in enumerate(runs):
            if run.setting not in overrides:
                overrides[run.setting] = plan.overrides(plan.settings[run.setting])
            yield number, overrides[run.setting], run.seed

    if not runs:
        return
    answers = executor(job, requests())
    try:
        for answer in answers:
            if answer is not None:
                number, found = answer
                name = runs[number].name
                # Failed runs are in the journal too, but `Journal.read` skips them, so they are tried again.
                if "error" in found:
                    found = {"error": plan.in_file_terms(str(found["error"]))}
                journal.append(name, found)
                if "error" in found:
                    progress.failed[name] = found["error"]
                else:
                    kept[name] = found
                    progress.done += 1
            yield progress
    finally:
        # Closing a generator ends its workers.
        close = getattr(answers, "close", None)
        if close is not None:
            close()
