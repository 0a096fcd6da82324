"""Worker processes on this machine. One that dies takes nothing with it: its run is given to another."""

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

from sparelane.sweeps.crew import Answer, CrewError
from sparelane.sweeps.worker import Job, Order

# Runs that a worker holds at once are so many that they last about this long, seconds, between two bounds.
AHEAD_S = 0.25
FEWEST, MOST = 1, 64
# A run whose worker died so often is not given to another.
DEATHS = 3
# How long to wait for answers before whoever listens is told that time passes, seconds.
POLL_S = 0.1
CHUNK_BYTES = 1 << 16
# A worker ends a run that is over its limit itself, and says where that was; one that cannot, as while a library of
# somebody's own code holds the interpreter, is ended after so much more, seconds.
GRACE_S = 5.0
# What a worker process runs.
MODULE = "sparelane.sweeps.worker"


class _Worker:
    """A process, the runs that it holds in the order in which it does them, and what it has begun to say."""

    def __init__(self, job: Job) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        # Each run has one thread; what NumPy could use more for is small.
        environment.setdefault("OMP_NUM_THREADS", "1")
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.held: deque[Order] = deque()
        self.said = b""
        self.has_answered = False
        self.busy_since_s = math.inf
        self._write(json.dumps(job))

    def give(self, order: Order) -> None:
        """Hands it a run."""
        if not self.held:
            self.busy_since_s = time.monotonic()
        self.held.append(order)
        self._write(json.dumps(order))

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # It is dead; the end of its output says so.
            return

    def hear(self) -> list[Answer] | None:
        """Its answers since the last time; `None` when there will be no more."""
        assert self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), CHUNK_BYTES)
        if not chunk:
            return None
        *lines, self.said = (self.said + chunk).split(b"\n")
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
        """Why it ended, as far as is known."""
        code = self.process.wait()
        if code >= 0:
            return f"its worker ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ", as the kernel does where memory runs out" if -code == signal.SIGKILL else ""
        return f"its worker was killed by {name}{hint}"

    def dismiss(self) -> None:
        """Ends it, whatever it does."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def work(job: Job, orders: Iterable[Order], jobs: int) -> Iterator[Answer | None]:
    """Does the runs in so many processes; yields each answer when it is there, and `None` when time passes without.

    A run whose worker dies is given to another one, three times at most; then its answer is the error.

    Closing the iterator ends the workers.

    Raises:
        CrewError: no worker stays alive for long enough to answer anything.
    """
    waiting = deque(orders)
    deaths: Counter[int] = Counter()
    workers: list[_Worker] = []
    selector = selectors.DefaultSelector()
    began_s, answered, stillborn = time.monotonic(), 0, 0
    limit_s = math.inf if job["run_limit_s"] is None else job["run_limit_s"]

    def hire() -> None:
        worker = _Worker(job)
        workers.append(worker)
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def release(worker: _Worker) -> None:
        assert worker.process.stdout is not None
        selector.unregister(worker.process.stdout)
        workers.remove(worker)
        worker.dismiss()

    try:
        for _ in range(min(jobs, len(waiting))):
            hire()
        while waiting or any(worker.held for worker in workers):
            ahead = _ahead((time.monotonic() - began_s) * len(workers), answered)
            for depth in range(ahead):
                for worker in workers:
                    if waiting and len(worker.held) <= depth:
                        worker.give(waiting.popleft())
            events = selector.select(POLL_S)
            for worker in list(workers):
                if time.monotonic() - worker.busy_since_s > limit_s + GRACE_S:
                    # What it says from now on is not heard.
                    stuck, *others = worker.held
                    waiting.extendleft(reversed(others))
                    release(worker)
                    events = [(key, mask) for key, mask in events if key.data is not worker]
                    yield stuck[0], {"error": f"the run takes longer than {limit_s:g} s, and had to be killed"}
                    if waiting:
                        hire()
            if not events:
                yield None
            for key, _ in events:
                worker = key.data
                answers = worker.hear()
                if answers is not None:
                    answered += len(answers)
                    yield from answers
                    continue
                cause = worker.cause_of_death()
                release(worker)
                stillborn = 0 if worker.has_answered else stillborn + 1
                if stillborn > DEATHS * jobs and not answered:
                    raise CrewError(f"no worker process stays alive: {cause}")
                if worker.held:
                    suspect = worker.held.popleft()
                    deaths[suspect[0]] += 1
                    waiting.extendleft(reversed(worker.held))
                    if deaths[suspect[0]] < DEATHS:
                        waiting.appendleft(suspect)
                    else:
                        yield suspect[0], {"error": f"{cause}, {DEATHS} times in this run"}
                if waiting:
                    hire()
    finally:
        selector.close()
        for worker in workers:
            worker.dismiss()


def _ahead(worked_s: float, answered: int) -> int:
    """How many runs a worker holds: more where they are short, so that it never waits for the next."""
    if not answered:
        return FEWEST
    return max(FEWEST, min(MOST, int(AHEAD_S * answered / max(worked_s, 1e-9))))
