"""The interface of executors, which do the runs of a sweep: worker processes (`pool`) or a cluster (`cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sparelane.sweeps.worker import Job, Order

# The number of a run, and its outcome.
Answer: TypeAlias = tuple[int, dict[str, Any]]

# Takes the job and the orders. Yields an answer for each order, and `None` at times without an answer.
RunExecutor: TypeAlias = "Callable[[Job, Iterable[Order]], Iterator[Answer | None]]"


class ExecutorError(Exception):
    """The executor failed: no worker stays alive, or a cluster cannot be reached. Finished runs are saved."""
