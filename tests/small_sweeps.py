"""Small sweeps that several test files share."""

from pathlib import Path

from sparelane.sweeps import sweep
from sparelane.sweeps.plan import Plan

BASE = """
duration = "100ms"

[topology]
kind = "dumbbell"
pairs = 3
access_rate = "1Gbps"
access_delay = "1ms"
bottleneck_rate = "20Mbps"
bottleneck_delay = "2ms"

[queue]
kind = "priority"
limit = "1bdp"

[scheme.tcp]
controller = "newreno"

[scheme.rc3]
controller = "rc3"

[workload]
kind = "poisson"
load = 0.5
load_on = "busiest-core"
sizes = { kind = "fixed", size = "10kB" }
"""


def with_lines(*changes: tuple[str, str]) -> str:
    """Returns the base scenario with some lines replaced."""
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


LOADS = with_lines(("load = 0.5", "load = [0.3, 0.6]"))


def plan(text: str, folder: Path = Path(), seeds: int | None = None) -> Plan:
    return Plan(text, "s.toml", folder, seeds=seeds)


def file(here: Path, text: str, name: str = "s.toml") -> Path:
    path = here / name
    path.write_text(text)
    return path


def do(text: str, place: Path, seeds: int | None = None, jobs: int = 2) -> sweep.Progress:
    *_, last = sweep.sweep(plan(text, seeds=seeds), place, sweep.local(jobs))
    return last
