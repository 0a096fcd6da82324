"""Whoever does the runs of a sweep: worker processes here (`pool`), or a cluster (`cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sparelane.sweeps.worker import Job, Order

# The number of a run, and what is kept of it.
Answer: TypeAlias = tuple[int, dict[str, Any]]

# It is given the job and the orders, and yields answers, or `None` when time passes without any.
Crew: TypeAlias = "Callable[[Job, Iterable[Order]], Iterator[Answer | None]]"


class CrewError(Exception):
    """The runs cannot be done: no worker stays alive, or a cluster cannot be reached. What is done is kept."""
