"""Simulates runs of a sweep, one after another; also the main program of a worker process.

A worker process reads lines of JSON from standard input: first the job, which all runs have in common, then one line a
run; it answers each run with a line on standard output. It ends when standard input does, in the middle of a run too,
so that no worker outlives whoever started it.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sparelane import _native
from sparelane.plugins import REGISTRY, PluginError, load_sources
from sparelane.plugins.failure import OverLimitError
from sparelane.plugins.watch import Limits, watched
from sparelane.sweeps.measure import measure


class Job(TypedDict):
    """What all runs of a sweep have in common."""

    text: str
    file: str
    folder: str
    version: str
    # Path and text of each file of plugins.
    plugins: list[list[str]]
    # How long a call into plugins, and a run, may take, seconds.
    call_limit_s: float | None
    run_limit_s: float | None


# What a worker is told of a run: its number, the overrides, and the seed.
Order = tuple[int, Sequence[str], int]


def simulate(job: Job, overrides: Sequence[str], seed: int) -> dict[str, Any]:
    """What is kept of one run; or why it failed, under `error`."""
    began_s = time.thread_time()
    limits = Limits(job["call_limit_s"], job["run_limit_s"])
    over = (
        f"the run takes longer than {limits.run_s:g} s; allowed: less, or another --run-limit" if limits.run_s else ""
    )
    ends_s = time.monotonic() + (limits.run_s or math.inf)

    def is_in_time(_: float) -> bool:
        return time.monotonic() < ends_s

    def build_in_time(_: float) -> None:
        if not is_in_time(0.0):
            raise _native.Cancelled

    try:
        load_sources(job["plugins"])
        catalogue = REGISTRY.catalogue()
        with watched(limits):
            prepared = _native.prepare(
                job["text"], job["file"], job["folder"], list(overrides), seed, build_in_time, catalogue
            )
            results = prepared.run(is_in_time)
        kept = measure(results)
    except _native.Cancelled:
        return {"error": over}
    except (_native.ScenarioError, _native.PhysicsError, PluginError) as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "not enough memory"}
    except (Exception, OverLimitError) as error:
        # One failing run must not end the others.
        return {"error": f"{type(error).__name__}: {error}"}
    kept["cpu_s"] = round(time.thread_time() - began_s, 6)
    return kept


def simulate_all(job: Job, orders: Sequence[Order]) -> list[tuple[int, dict[str, Any]]]:
    """What is kept of several runs, by their numbers.

    Raises:
        RuntimeError: this is another version than the one that sent them.
    """
    if job["version"] != _native.__version__:
        raise RuntimeError(f"the worker has sparelane {_native.__version__}, and the sweep {job['version']}")
    return [(number, simulate(job, overrides, seed)) for number, overrides, seed in orders]


def main() -> None:
    """Works until standard input ends."""
    # Ctrl-C is for whoever started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    job: Job = json.loads(lines.get())
    while True:
        number, overrides, seed = json.loads(lines.get())
        answer: Mapping[str, Any] = simulate(job, overrides, seed)
        sys.stdout.write(json.dumps([number, answer]) + "\n")
        sys.stdout.flush()


def _listen(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
