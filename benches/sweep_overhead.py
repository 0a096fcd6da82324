"""Measure the processor time that a sweep adds to each of its runs.

Usage: python benches/sweep_overhead.py [--most MILLISECONDS]

Reads, hands out and records 50 short runs, and then 500. The difference, without the time of the simulations
themselves, is the cost of one more run. Exits with 1 if it is above the limit, 5 ms unless `--most` says otherwise.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
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


def overhead_s(folder: Path, seeds: int) -> float:
    """The processor time of all processes of a sweep without that of the simulations, seconds."""
    out = folder / f"out-{seeds}"
    command = [
        sys.executable,
        "-m",
        "sparelane",
        "sweep",
        "s.toml",
        "--seeds",
        str(seeds),
        "--jobs",
        "1",
        "-o",
        str(out),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["runs"] == SETTINGS * seeds
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(used_s - manifest["cpu_s"])


def main() -> int:
    """Prints the cost of a run; returns the exit status."""
    parser = argparse.ArgumentParser(description="Measure the processor time that a sweep adds to each of its runs.")
    parser.add_argument("--most", type=float, default=5.0, metavar="MILLISECONDS", help="the limit for each run")
    most_ms = parser.parse_args().most
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.toml").write_text(SWEEP, encoding="utf-8")
        few_s, many_s = overhead_s(folder, FEW_SEEDS), overhead_s(folder, MANY_SEEDS)
    cost_ms = 1000 * (many_s - few_s) / (SETTINGS * (MANY_SEEDS - FEW_SEEDS))
    sys.stdout.write(f"a run of a sweep costs {cost_ms:.2f} ms beyond its simulation; limit {most_ms:g} ms\n")
    return 0 if cost_ms <= most_ms else 1


if __name__ == "__main__":
    sys.exit(main())
