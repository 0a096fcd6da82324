"""The interface of executors, which do the runs of a sweep: worker processes (`pool`) or a cluster (`cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sparelane.sweeps.worker import Job, RunRequest

# The number of a run, and its outcome.
RunOutcome: TypeAlias = tuple[int, dict[str, Any]]

# Takes the job and the requests. Yields the outcome of each run, and `None` at times without an outcome.
RunExecutor: TypeAlias = "Callable[[Job, Iterable[RunRequest]], Iterator[RunOutcome | None]]"


class ExecutorError(Exception):
    """The executor failed: no worker stays alive, or a cluster cannot be reached. Finished runs are saved."""
