"""Measure the processor time that a sweep adds to each of its runs, and how busy it keeps all cores.

Usage: python benches/sweep_overhead.py [--most MILLISECONDS] [--least PERCENT]

Reads, hands out and records 50 short runs, and then 500. The difference, without the time of the simulations
themselves, is the cost of one more run. The limit is 5 ms unless `--most` says otherwise.

Then does 10,000 runs of about 5 ms on all cores, and prints two shares of the cores' time. The first is the processor
time of all processes, which other load of the machine decreases. The second is the time in which workers run or wait
for a core, according to Linux's scheduler: other load does not decrease it. Its limit is 90 % unless `--least` says
otherwise. Exits with 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = """\
duration = "20ms"
[topology]
kind = "dumbbell"
pairs = 1
[queue]
limit = { from = "10packets", to = "59packets", step = "1packets" }
[scheme.tcp]
controller = "newreno"
[workload]
kind = "bulk"
size = "20kB"
"""
SETTINGS = 50
FEW_SEEDS, MANY_SEEDS = 1, 10
# A run of this duration takes about 5 ms.
LONGER_DURATION, LONGER_SIZE = "20s", "100MB"
LONGER_SEEDS = 200
POLL_S = 0.05


def command(out: Path, seeds: int, jobs: int) -> list[str]:
    """The command of a sweep."""
    arguments = ["s.toml", "--seeds", str(seeds), "--jobs", str(jobs), "-o", str(out)]
    return [sys.executable, "-m", "sparelane", "sweep", *arguments]


def children_s() -> float:
    """The processor time of all processes that this one has started and that have ended, seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def overhead_s(folder: Path, seeds: int) -> float:
    """The processor time of all processes of a sweep without that of the simulations, seconds."""
    out = folder / f"out-{seeds}"
    before_s = children_s()
    subprocess.run(command(out, seeds, 1), cwd=folder, check=True, capture_output=True)
    used_s = children_s() - before_s
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["runs"] == SETTINGS * seeds
    return float(used_s - manifest["cpu_s"])


def active_s(process: int) -> float:
    """The time in which the main thread of a process ran or waited for a core, seconds; 0 if it has ended."""
    try:
        ran_ns, waited_ns, _ = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()
    except OSError:
        return 0.0
    return (int(ran_ns) + int(waited_ns)) / 1e9


def busy_shares(folder: Path) -> tuple[float, float, float]:
    """The shares of the cores' time that all processes used, and in which workers were active; milliseconds per run."""
    longer = SWEEP.replace('"20ms"', f'"{LONGER_DURATION}"').replace('"20kB"', f'"{LONGER_SIZE}"')
    (folder / "s.toml").write_text(longer, encoding="utf-8")
    out, cores = folder / "out-busy", len(os.sched_getaffinity(0))
    before_s, began_s = children_s(), time.monotonic()
    with subprocess.Popen(
        command(out, LONGER_SEEDS, cores), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as sweep:
        children = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children")
        active: dict[int, float] = {}
        while sweep.poll() is None:
            for child in map(int, children.read_text(encoding="ascii").split()):
                active[child] = max(active.get(child, 0.0), active_s(child))
            time.sleep(POLL_S)
    core_s = cores * (time.monotonic() - began_s)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["runs"] == SETTINGS * LONGER_SEEDS
    used_s = children_s() - before_s
    return used_s / core_s, sum(active.values()) / core_s, 1000 * manifest["cpu_s"] / manifest["runs"]


def main() -> int:
    """Prints the cost of a run and the shares of the cores; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Measure what a sweep adds to its runs, and how busy it keeps all cores."
    )
    parser.add_argument("--most", type=float, default=5.0, metavar="MILLISECONDS", help="the limit for each run")
    parser.add_argument("--least", type=float, default=90.0, metavar="PERCENT", help="the limit for active workers")
    limits = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.toml").write_text(SWEEP, encoding="utf-8")
        few_s, many_s = overhead_s(folder, FEW_SEEDS), overhead_s(folder, MANY_SEEDS)
        cost_ms = 1000 * (many_s - few_s) / (SETTINGS * (MANY_SEEDS - FEW_SEEDS))
        sys.stdout.write(f"a run of a sweep costs {cost_ms:.2f} ms beyond its simulation; limit {limits.most:g} ms\n")
        used, active, run_ms = busy_shares(folder)
    sys.stdout.write(
        f"{SETTINGS * LONGER_SEEDS} runs of {run_ms:.1f} ms use {used:.1%} of all cores; "
        f"workers are active {active:.1%} of the time; limit {limits.least:g} %\n"
    )
    return 0 if cost_ms <= limits.most and 100 * active >= limits.least else 1


if __name__ == "__main__":
    sys.exit(main())
