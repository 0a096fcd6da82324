"""Simulates runs of a sweep. This module is also the main program of a worker process.

A worker process reads lines of JSON from standard input: first the job, which all runs share, then one line per run. It
answers each run with a line on standard output. It exits as soon as standard input ends, even during a run, so that no
worker outlives its parent.
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
    """The facts that all runs of a sweep share."""

    text: str
    file: str
    folder: str
    version: str
    # The path and text of each plugin file.
    plugins: list[list[str]]
    # The time limits of a call into a plugin and of a run, seconds.
    call_limit_s: float | None
    run_limit_s: float | None


# A run to do: its number, its overrides, and its seed.
RunRequest = tuple[int, Sequence[str], int]


def simulate(job: Job, overrides: Sequence[str], seed: int) -> dict[str, Any]:
    """Simulates one run. Returns its measurements, or the reason of its failure under `error`."""
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
        # A worker loads each plugin once; later calls only check that it is unchanged.
        load_sources(job["plugins"])
        catalogue = REGISTRY.catalogue()
        with watched(limits):
            prepared = _native.prepare(
                job["text"], job["file"], job["folder"], list(overrides), seed, build_in_time, catalogue, threads=1
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
        # A failing run must not end the other runs.
        return {"error": f"{type(error).__name__}: {error}"}
    kept["cpu_s"] = round(time.thread_time() - began_s, 6)
    return kept


def simulate_all(job: Job, requests: Sequence[RunRequest]) -> list[tuple[int, dict[str, Any]]]:
    """Simulates several runs. Returns the number and the outcome of each.

    Raises:
        RuntimeError: the job comes from another version of sparelane.
    """
    if job["version"] != _native.__version__:
        raise RuntimeError(f"the worker has sparelane {_native.__version__}, and the sweep {job['version']}")
    return [(number, simulate(job, overrides, seed)) for number, overrides, seed in requests]


def main() -> None:
    """Does runs until standard input ends."""
    # Ctrl-C reaches the whole process group. The parent reacts to it and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    job: Job = json.loads(lines.get())
    while True:
        number, overrides, seed = json.loads(lines.get())
        answer: Mapping[str, Any] = simulate(job, overrides, seed)
        sys.stdout.write(json.dumps([number, answer]) + "\n")
        sys.stdout.flush()


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
