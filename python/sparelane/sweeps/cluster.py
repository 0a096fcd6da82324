"""Sends runs to a Dask cluster. If a worker dies, Dask gives its runs to another one.

The names of stored results depend on the build of the simulator, so workers with another build are rejected.
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
from sparelane.sweeps.executor import ExecutorError, RunExecutor, RunOutcome
from sparelane.sweeps.worker import Job, RunRequest, simulate_all

if TYPE_CHECKING:
    from distributed import Client, Future

# Longest wait for the scheduler, and for its first worker, seconds.
CONNECT_TIMEOUT_S = 10.0
# Longest wait for a TCP connection, and then for the scheduler's greeting, seconds.
PROBE_TIMEOUT_S = 1.5
GREETING_TIMEOUT_S = 5.0
# A greeting begins with its length in eight bytes, which is at most this.
MOST_GREETING_BYTES = 1 << 20
# Target duration of a task, seconds; much longer than Dask's overhead per task.
TASK_S = 1.0
# The largest number of runs in a task, and of submitted tasks for each thread of the workers.
MOST_RUNS = 500
TASKS_A_THREAD = 3
POLL_S = 0.2

T = TypeVar("T")
# The version and the fingerprint of the simulator.
Build = tuple[str, str]


def connect(address: str) -> RunExecutor:
    """Connects to a cluster and returns it as an executor for the runs of a sweep.

    Args:
        address: the address of the scheduler.

    Raises:
        ExecutorError: Dask is not installed, the scheduler does not answer, or it has no workers.
    """
    client = _client(address)
    return lambda job, requests: _work(client, job, requests)


def executor(address: str) -> Executor:
    """Connects to a cluster and returns an executor for any function that its workers can import.

    Raises:
        ExecutorError: as for `connect`.
    """
    return _OneBuild(_client(address).get_executor(pure=False))


class _OneBuild(Executor):
    """An executor whose workers check their build before each call."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def submit(self, do: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        return self._pool.submit(do_in_build, _build(), do, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._pool.shutdown(wait=wait)


def do_in_build(wanted: Build, do: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls a function on a worker, after checking the worker's build.

    Raises:
        ExecutorError: the worker has another build of the simulator.
    """
    if (here := _build()) != wanted:
        names = [f"{version}, build {engine[:8]}" for version, engine in (here, wanted)]
        raise ExecutorError(
            f"the Dask worker on {socket.gethostname()} has another build of sparelane ({names[0]}) than the one that "
            f"sends the runs ({names[1]}): install the same wheel on all machines, and restart the workers"
        )
    return do(*args, **kwargs)


def _build() -> Build:
    return _native.__version__, manifest.engine()


def _client(address: str) -> Client:
    """Connects to a cluster, and waits for its first worker.

    Raises:
        ExecutorError: the address is malformed, Dask is not installed, the scheduler does not answer, or it has no
            workers.
    """
    place = check_address(address)
    if importlib.util.find_spec("distributed") is None:
        raise ExecutorError("--dask needs the package distributed: pip install 'sparelane[dask]'")
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if place is not None:
        _probe(address, *place)
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except Exception as error:
        # Dask raises many kinds of exceptions for answers that it does not understand.
        raise ExecutorError(f'no Dask scheduler answers at "{address}": {error or "no answer"}') from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_TIMEOUT_S)
    except TimeoutError as error:
        client.close()
        raise ExecutorError(f'the Dask cluster at "{address}" has no workers') from error
    return client


def check_address(address: str) -> tuple[str, int] | None:
    """The host and port of a scheduler's address; `None` if Dask checks it, as for any protocol but TCP and TLS.

    Raises:
        ExecutorError: the address is malformed.
    """
    match = re.fullmatch(r"(?:(?:tcp|tls)://)?\[?([^\[\]/]+?)\]?:(\d+)", address)
    if match is not None:
        return match[1], int(match[2])
    if "://" in address and not address.startswith(("tcp://", "tls://")):
        return None
    raise ExecutorError(f'"{address}" is not the address of a Dask scheduler, such as tcp://10.0.0.1:8786')


def _probe(address: str, host: str, port: int) -> None:
    """Checks quickly that a scheduler listens at a TCP address, since Dask itself would retry for a long time."""
    try:
        with socket.create_connection((host, port), timeout=PROBE_TIMEOUT_S) as connection:
            if not address.startswith("tls://"):
                _check_greeting(connection)
    except (OSError, OverflowError) as error:
        strerror = getattr(error, "strerror", None)
        cause = strerror.lower() if strerror else str(error)
        raise ExecutorError(f'no Dask scheduler answers at "{address}": {cause}') from error


def _check_greeting(connection: socket.socket) -> None:
    """Checks that a scheduler is at the other end, which sends a greeting first.

    Without this check, Dask would wait for a long time or fail with an obscure error.

    Raises:
        ConnectionError: the other end is not a scheduler.
    """
    connection.settimeout(GREETING_TIMEOUT_S)
    length = b""
    with contextlib.suppress(TimeoutError):
        while len(length) < 8 and (part := connection.recv(8 - len(length))):
            length += part
    if len(length) < 8 or not 0 < int.from_bytes(length, "little") <= MOST_GREETING_BYTES:
        raise ConnectionError("it is not a Dask scheduler")


def _work(client: Client, job: Job, requests: Iterable[RunRequest]) -> Iterator[RunOutcome | None]:
    from distributed import wait

    waiting = iter(requests)
    # Runs of a task whose workers died. Each is tried alone, to find the run that kills workers.
    alone: deque[RunRequest] = deque()
    submitted: dict[Future, list[RunRequest]] = {}
    began_s, answered = time.monotonic(), 0
    try:
        while True:
            # Workers may join or leave at any time.
            threads = max(1, sum(client.nthreads().values()))
            size = _task_size((time.monotonic() - began_s) * threads, answered)
            while len(submitted) < TASKS_A_THREAD * threads:
                batch = [alone.popleft()] if alone else list(itertools.islice(waiting, size))
                if not batch:
                    break
                submitted[client.submit(do_in_build, _build(), simulate_all, job, batch, pure=False)] = batch
            if not submitted:
                return
            try:
                with client.as_current():
                    done = wait(list(submitted), timeout=POLL_S, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                if client.status not in ("running", "connecting"):
                    raise ExecutorError("the connection to the Dask scheduler is lost") from None
                yield None
                continue
            for future in done:
                batch = submitted.pop(future)
                answers = _answers(future, batch, alone)
                answered += len(answers)
                yield from answers
    except (OSError, asyncio.CancelledError) as error:
        raise ExecutorError(f"the connection to the Dask scheduler is lost: {error}") from error
    finally:
        _close(client, list(submitted))


def _answers(future: Future, batch: list[RunRequest], alone: deque[RunRequest]) -> list[RunOutcome]:
    """The answers of a task. If its workers died, its runs are added to `alone` instead."""
    from distributed import KilledWorker

    if future.status == "finished":
        found: list[RunOutcome] = [(number, dict(kept)) for number, kept in future.result()]
        return found
    if future.status in ("cancelled", "lost"):
        raise ExecutorError("the Dask scheduler cancelled or lost the work")
    error: Any = future.exception()
    if isinstance(error, ExecutorError):
        raise error
    if not isinstance(error, KilledWorker):
        raise ExecutorError(f"a worker of the Dask cluster cannot do the runs: {type(error).__name__}: {error}")
    if len(batch) == 1:
        return [(batch[0][0], {"error": "all workers that tried this run died"})]
    alone.extend(batch)
    return []


def _task_size(worked_s: float, answered: int) -> int:
    """The number of runs in a task, for a duration of about `TASK_S`."""
    if not answered:
        return 1
    return max(1, min(MOST_RUNS, int(TASK_S * answered / max(worked_s, 1e-9))))


def _close(client: Client, submitted: list[Future]) -> None:
    """Cancels submitted tasks, and closes the connection."""
    try:
        if submitted:
            client.cancel(submitted, force=True)
        client.close(timeout=2)
    except Exception:
        # Errors of a cluster that is gone do not matter any more.
        return
