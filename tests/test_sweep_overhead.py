"""What a run of a sweep costs beside its simulation."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

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

MOST_S = 0.005

# A measurement in processor time, of 550 runs.
pytestmark = pytest.mark.slow


def processor_s(here: Path, seeds: int) -> tuple[int, float]:
    """How many runs a sweep has, and the processor time of all its processes beside the simulations."""
    place = here / f"out-{seeds}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
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
        str(place),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return manifest["runs"], used_s - manifest["cpu_s"]


def test_a_run_costs_less_than_five_milliseconds_beside_its_simulation(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP, encoding="utf-8")
    (few, few_s), (many, many_s) = processor_s(tmp_path, 1), processor_s(tmp_path, 10)
    assert (few, many) == (50, 500)
    assert (many_s - few_s) / (many - few) < MOST_S
