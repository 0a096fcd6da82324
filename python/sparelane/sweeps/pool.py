"""Worker processes on this machine. If a worker dies, its run is given to another worker."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from sparelane.sweeps.executor import ExecutorError, RunOutcome
from sparelane.sweeps.worker import Job, RunRequest

# Each worker gets runs for about this much time in advance, seconds, within two bounds of their number.
AHEAD_S = 0.25
FEWEST, MOST = 1, 64
# A run is given up after this many of its workers have died.
DEATHS = 3
# Longest wait for answers before the caller gets `None`, seconds.
POLL_S = 0.1
CHUNK_BYTES = 1 << 16
# A worker ends an overlong run itself and reports the place. It cannot do so while a library of a plugin holds the
# interpreter lock. Such a worker is killed after this much additional time, seconds.
GRACE_S = 5.0
# The main module of a worker process.
MODULE = "sparelane.sweeps.worker"


class _Worker:
    """A worker process, the runs that it holds in their order, and the incomplete line of its output."""

    def __init__(self, job: Job) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        # Each run uses one thread. NumPy's work is too small for more threads.
        environment.setdefault("OMP_NUM_THREADS", "1")
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.held: deque[RunRequest] = deque()
        self.partial_line = b""
        self.has_answered = False
        self.busy_since_s = math.inf
        self._write(json.dumps(job))

    def give(self, request: RunRequest) -> None:
        """Gives a run to the worker."""
        if not self.held:
            self.busy_since_s = time.monotonic()
        self.held.append(request)
        self._write(json.dumps(request))

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # The worker is dead, which `receive` notices at the end of its output.
            return

    def receive(self) -> list[RunOutcome] | None:
        """Reads new answers. Returns `None` at the end of the worker's output."""
        assert self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), CHUNK_BYTES)
        if not chunk:
            return None
        *lines, self.partial_line = (self.partial_line + chunk).split(b"\n")
        answers = []
        for line in lines:
            number, kept = json.loads(line)
            self.held.popleft()
            self.has_answered = True
            answers.append((number, kept))
        if answers:
            self.busy_since_s = time.monotonic() if self.held else math.inf
        return answers

    def cause_of_death(self) -> str:
        """The reason why the process ended."""
        code = self.process.wait()
        if code >= 0:
            return f"its worker ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ", as the kernel does when memory runs out" if -code == signal.SIGKILL else ""
        return f"its worker was killed by {name}{hint}"

    def kill(self) -> None:
        """Kills the process and closes its streams."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def work(job: Job, requests: Iterable[RunRequest], jobs: int) -> Iterator[RunOutcome | None]:
    """Does runs in `jobs` processes. Yields answers as they arrive, and `None` after `POLL_S` without an answer.

    If a worker dies, its current run is given to another worker. After `DEATHS` deaths, the answer of the run is an
    error. Closing the iterator ends the workers.

    Raises:
        ExecutorError: workers die before any of them answers.
    """
    waiting = deque(requests)
    deaths: Counter[int] = Counter()
    workers: list[_Worker] = []
    selector = selectors.DefaultSelector()
    began_s, answered, died_early = time.monotonic(), 0, 0
    limit_s = math.inf if job["run_limit_s"] is None else job["run_limit_s"]

    def start_worker() -> None:
        worker = _Worker(job)
        workers.append(worker)
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def remove(worker: _Worker) -> None:
        assert worker.process.stdout is not None
        selector.unregister(worker.process.stdout)
        workers.remove(worker)
        worker.kill()

    try:
        for _ in range(min(jobs, len(waiting))):
            start_worker()
        while waiting or any(worker.held for worker in workers):
            ahead = _ahead((time.monotonic() - began_s) * len(workers), answered)
            # All workers get their first run before any worker gets a second one.
            for depth in range(ahead):
                for worker in workers:
                    if waiting and len(worker.held) <= depth:
                        worker.give(waiting.popleft())
            events = selector.select(POLL_S)
            for worker in list(workers):
                if time.monotonic() - worker.busy_since_s > limit_s + GRACE_S:
                    # Only the first run is stuck. The others have not started and go to other workers.
                    stuck, *others = worker.held
                    waiting.extendleft(reversed(others))
                    remove(worker)
                    # Output of the killed worker is ignored.
                    events = [(key, mask) for key, mask in events if key.data is not worker]
                    yield stuck[0], {"error": f"the run takes longer than {limit_s:g} s, and had to be killed"}
                    if waiting:
                        start_worker()
            if not events:
                yield None
            for key, _ in events:
                worker = key.data
                answers = worker.receive()
                if answers is not None:
                    answered += len(answers)
                    yield from answers
                    continue
                cause = worker.cause_of_death()
                remove(worker)
                # Workers that die before their first answer point to a broken installation, not to a bad run.
                died_early = 0 if worker.has_answered else died_early + 1
                if died_early > DEATHS * jobs and not answered:
                    raise ExecutorError(f"no worker process stays alive: {cause}")
                if worker.held:
                    # The worker died in its first run; the others are returned to the queue.
                    suspect = worker.held.popleft()
                    deaths[suspect[0]] += 1
                    waiting.extendleft(reversed(worker.held))
                    if deaths[suspect[0]] < DEATHS:
                        waiting.appendleft(suspect)
                    else:
                        yield suspect[0], {"error": f"{cause}, {DEATHS} times in this run"}
                if waiting:
                    start_worker()
    finally:
        selector.close()
        for worker in workers:
            worker.kill()


def _ahead(worked_s: float, answered: int) -> int:
    """The number of runs that a worker holds: more if runs are short, so that it never waits for the next one."""
    if not answered:
        return FEWEST
    return max(FEWEST, min(MOST, int(AHEAD_S * answered / max(worked_s, 1e-9))))
