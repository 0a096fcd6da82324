"""Sends runs to a Dask cluster. Runs of a worker that dies are done by another one, as Dask sees to.

Results are kept under names that tell builds of the simulator apart; so a worker of another build is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import logging
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from sparelane import _native
from sparelane.results import manifest
from sparelane.sweeps.crew import Answer, Crew, CrewError
from sparelane.sweeps.worker import Job, Order, simulate_all

if TYPE_CHECKING:
    from distributed import Client, Future

# How long to wait for the scheduler, and for its first worker, seconds.
PATIENCE_S = 10.0
# How long to wait for a connection, and then for the scheduler's greeting, seconds.
KNOCK_S = 1.5
GREETING_S = 5.0
# A greeting begins with its length in eight bytes; it is no longer than this.
MOST_GREETING_BYTES = 1 << 20
# How long a task should last, seconds: much longer than Dask takes to hand it over.
TASK_S = 1.0
# The most runs in a task, and tasks under way for each thread of the workers.
MOST_RUNS = 500
TASKS_A_THREAD = 3
POLL_S = 0.2

T = TypeVar("T")
# The version, and the fingerprint of the simulator.
Build = tuple[str, str]


def connect(address: str) -> Crew:
    """The workers of the cluster whose scheduler has this address, for the runs of a sweep.

    Raises:
        CrewError: Dask is not installed, nothing answers there, or there are no workers.
    """
    client = _client(address)
    return lambda job, orders: _work(client, job, orders)


def executor(address: str) -> Executor:
    """The same workers, for any function that they can import.

    Raises:
        CrewError: as for `connect`.
    """
    return _OneBuild(_client(address).get_executor(pure=False))


class _OneBuild(Executor):
    """Workers that are asked for their build before they do anything."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def submit(self, do: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        return self._pool.submit(do_in_build, _build(), do, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait=wait)


def do_in_build(wanted: Build, do: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """What a function returns on a worker.

    Raises:
        CrewError: the worker has another build of the simulator than the one that is wanted.
    """
    if (here := _build()) != wanted:
        names = [f"{version}, build {engine[:8]}" for version, engine in (here, wanted)]
        raise CrewError(
            f"the Dask worker on {socket.gethostname()} has another build of sparelane ({names[0]}) than the one that "
            f"sends the runs ({names[1]}): install the same wheel on all machines, and start the workers anew"
        )
    return do(*args, **kwargs)


def _build() -> Build:
    return _native.__version__, manifest.engine()


def _client(address: str) -> Client:
    """A connection to a cluster that has workers.

    Raises:
        CrewError: it is no address, Dask is not installed, nothing answers there, or there are no workers.
    """
    place = check_address(address)
    if importlib.util.find_spec("distributed") is None:
        raise CrewError("--dask needs the package distributed: pip install 'sparelane[dask]'")
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if place is not None:
        _knock(address, *place)
    try:
        client = Client(address, timeout=PATIENCE_S, set_as_default=False)
    except Exception as error:
        # Whatever Dask makes of an answer that it does not understand.
        raise CrewError(f'no Dask scheduler answers at "{address}": {error or "no answer"}') from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError as error:
        client.close()
        raise CrewError(f'the Dask cluster at "{address}" has no workers') from error
    return client


def check_address(address: str) -> tuple[str, int] | None:
    """The host and port of a scheduler's address; `None` if Dask checks it, as for any protocol but TCP and TLS.

    Raises:
        CrewError: it is no address.
    """
    match = re.fullmatch(r"(?:(?:tcp|tls)://)?\[?([^\[\]/]+?)\]?:(\d+)", address)
    if match is not None:
        return match[1], int(match[2])
    if "://" in address and not address.startswith(("tcp://", "tls://")):
        return None
    raise CrewError(f'"{address}" is no address of a Dask scheduler, as in tcp://10.0.0.1:8786')


def _knock(address: str, host: str, port: int) -> None:
    """Checks quickly whether anything listens at an address of TCP; Dask would try for long."""
    try:
        with socket.create_connection((host, port), timeout=KNOCK_S) as connection:
            if not address.startswith("tls://"):
                _hear_greeting(connection)
    except (OSError, OverflowError) as error:
        strerror = getattr(error, "strerror", None)
        cause = strerror.lower() if strerror else str(error)
        raise CrewError(f'no Dask scheduler answers at "{address}": {cause}') from error


def _hear_greeting(connection: socket.socket) -> None:
    """Finds out whether a scheduler is at the other end: it speaks first. Dask would wait long, or fail in its depths.

    Raises:
        ConnectionError: something else is there.
    """
    connection.settimeout(GREETING_S)
    length = b""
    with contextlib.suppress(TimeoutError):
        while len(length) < 8 and (part := connection.recv(8 - len(length))):
            length += part
    if len(length) < 8 or not 0 < int.from_bytes(length, "little") <= MOST_GREETING_BYTES:
        raise ConnectionError("what is there is no Dask scheduler")


def _work(client: Client, job: Job, orders: Iterable[Order]) -> Iterator[Answer | None]:
    from distributed import wait

    waiting = iter(orders)
    # Runs whose task failed with a worker: each is tried alone, to find the one that kills it.
    alone: deque[Order] = deque()
    under_way: dict[Future, list[Order]] = {}
    began_s, answered = time.monotonic(), 0
    try:
        while True:
            threads = max(1, sum(client.nthreads().values()))
            size = _task_size((time.monotonic() - began_s) * threads, answered)
            while len(under_way) < TASKS_A_THREAD * threads:
                batch = [alone.popleft()] if alone else list(itertools.islice(waiting, size))
                if not batch:
                    break
                under_way[client.submit(do_in_build, _build(), simulate_all, job, batch, pure=False)] = batch
            if not under_way:
                return
            try:
                with client.as_current():
                    done = wait(list(under_way), timeout=POLL_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                if client.status not in ("running", "connecting"):
                    raise CrewError("the connection to the Dask scheduler is lost") from None
                yield None
                continue
            for future in done:
                batch = under_way.pop(future)
                answers = _answers(future, batch, alone)
                answered += len(answers)
                yield from answers
    except (OSError, asyncio.CancelledError) as error:
        raise CrewError(f"the connection to the Dask scheduler is lost: {error}") from error
    finally:
        _leave(client, list(under_way))


def _answers(future: Future, batch: list[Order], alone: deque[Order]) -> list[Answer]:
    """The answers of a task; its runs go into `alone` where it ended with its workers."""
    from distributed import KilledWorker

    if future.status == "finished":
        found: list[Answer] = [(number, dict(kept)) for number, kept in future.result()]
        return found
    if future.status in ("cancelled", "lost"):
        raise CrewError("the Dask scheduler gave up the work, or is gone")
    error: Any = future.exception()
    if isinstance(error, CrewError):
        raise error
    if not isinstance(error, KilledWorker):
        raise CrewError(f"a worker of the Dask cluster cannot do the runs: {type(error).__name__}: {error}")
    if len(batch) == 1:
        return [(batch[0][0], {"error": "the workers that were given this run died, one after another"})]
    alone.extend(batch)
    return []


def _task_size(worked_s: float, answered: int) -> int:
    """How many runs go into a task."""
    if not answered:
        return 1
    return max(1, min(MOST_RUNS, int(TASK_S * answered / max(worked_s, 1e-9))))


def _leave(client: Client, under_way: list[Future]) -> None:
    """Takes back what is under way, and closes the connection."""
    try:
        if under_way:
            client.cancel(under_way, force=True)
        client.close(timeout=2)
    except Exception:
        # Whatever a cluster that is gone answers, there is nothing left to do with it.
        return
