"""Measure the acknowledgments per second of a controller in Python: NewReno in Python and the built-in one."""

from __future__ import annotations

import time
from pathlib import Path

import sparelane as sl
from sparelane import plugins

RENO = Path(__file__).parents[1] / "examples" / "own-controller" / "reno.py"

SCENARIO = """
duration = "100s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck_rate = "50Mbps"
bottleneck_delay = "10ms"
[queue]
limit = "60packets"
[scheme.tcp]
controller = "newreno"
[workload]
kind = "bulk"
flows = 3
size = "unlimited"
"""

# The fastest of several runs is reported, because the machine may be shared.
RUNS = 5


def best_seconds(controller: str) -> tuple[float, sl.Result]:
    """Return the smallest processor time of a run, and the result."""
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        result = sl.run(SCENARIO, set={"scheme.tcp.controller": controller})
        times.append(time.process_time() - began)
    return min(times), result


def main() -> None:
    """Print both speeds."""
    plugins.load(RENO)
    results = {name: best_seconds(name) for name in ("newreno", "py-newreno")}
    assert results["newreno"][1].digest == results["py-newreno"][1].digest
    for name, (seconds, result) in results.items():
        # Each segment is acknowledged separately.
        acknowledgments = int(result.flows["delivered_bytes"].sum()) // 1460
        speed = acknowledgments / seconds
        print(f"{name:11} {acknowledgments:,} acknowledgments in {seconds:.3f} s: {speed:,.0f} per second")


if __name__ == "__main__":
    main()
