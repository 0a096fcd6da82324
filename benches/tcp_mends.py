"""List the effect of each modern TCP feature on the papers' experiments.

Usage: python benches/tcp_mends.py [--jobs N] [--markdown FILE] [EXPERIMENT ...]

Each quick run of the experiments is repeated with each feature disabled by its key. If the digest stays the same, the
feature has no effect. Otherwise the table has the largest change over the experiment's runs: of the mean completion
time of flows that finish in both runs or, without such flows, of the bytes received. The table of the project's own
runs is `tcp_mends.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from sparelane import ScenarioError
from sparelane.common.names import UnknownNameError
from sparelane.papers import select
from sparelane.papers.engine.base import Experiment, Outcome, Simulation
from sparelane.papers.engine.simulations import simulate

# Each feature, and the override that disables it.
UNDONE: Mapping[str, tuple[str, ...]] = {
    "FlightSize is limited to the window": ("transport.flight_size=outstanding",),
    "retransmissions give round-trip samples": ("transport.timestamps=false",),
    "SACK information survives a timeout": ("transport.sack_survives_timeout=false",),
    "a queue accepts every packet that fits": ('queue.room="full-packet"',),
}


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of disabling one feature on one run.

    Attributes:
        differs: Whether the digest differs.
        percent: The change of the completion times or of the bytes received; 0 if undefined.
        applies: Whether the scenario accepts the key.
    """

    differs: bool
    percent: float = 0.0
    applies: bool = True


def main() -> int:
    """Parse the command line, run the comparison and print it."""
    parser = argparse.ArgumentParser(description="List the effect of modern TCP features on the experiments.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all experiments")
    arguments = parser.parse_args()
    try:
        chosen = select(arguments.experiments)
    except UnknownNameError as error:
        parser.error(str(error))
    text = show(measure(chosen, arguments.jobs))
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return 0


def measure(experiments: Sequence[Experiment], jobs: int) -> dict[str, list[list[Change]]]:
    """Return the effect of each feature on each run of each experiment. Equal runs are executed once."""
    plans = {one.id: list(one.plan(one.quick)) for one in experiments if not one.needs_kernel}
    plans = {name: [run for run in plan if run.on != "linux"] for name, plan in plans.items()}
    distinct = list(dict.fromkeys(run for plan in plans.values() for run in plan))
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(distinct, pool.map(changes, distinct), strict=True))
    return {name: [found[run] for run in plan] for name, plan in plans.items() if plan}


def changes(simulation: Simulation) -> list[Change]:
    """Return the effect of each feature on a run."""
    usual = simulate(simulation)
    return [against(usual, replace(simulation, settings=(*simulation.settings, *undone))) for undone in UNDONE.values()]


def against(usual: Outcome, simulation: Simulation) -> Change:
    """Compare a run with a feature disabled with the usual run."""
    try:
        other = simulate(simulation)
    except ScenarioError:
        return Change(differs=False, applies=False)
    if other.digest == usual.digest:
        return Change(differs=False)
    before, after = (times(outcome, usual, other) or received(outcome) for outcome in (usual, other))
    return Change(differs=True, percent=100.0 * (after / before - 1.0) if before else 0.0)


def times(outcome: Outcome, *both: Outcome) -> float:
    """Return the mean completion time of the flows that finish in both runs; 0 without such flows."""
    done = both[0].flows.filter(pl.col("finish_s").is_not_null()).select("id")
    done = done.join(both[1].flows.filter(pl.col("finish_s").is_not_null()).select("id"), on="id")
    return float(outcome.flows.join(done, on="id")["completion_s"].mean() or 0.0)  # type: ignore[arg-type]


def received(outcome: Outcome) -> float:
    """Return the bytes received by all flows."""
    return float(outcome.flows["measured_bytes"].sum())


def show(found: Mapping[str, Sequence[Sequence[Change]]]) -> str:
    """Return the table: the number of runs that each feature changes, and the largest change."""
    lines = [f"| experiment | runs | {' | '.join(UNDONE)} |", "| --- | --- |" + " --- |" * len(UNDONE)]
    for name, runs in found.items():
        cells = []
        for place in range(len(UNDONE)):
            column = [run[place] for run in runs]
            differing = [one for one in column if one.differs]
            if not any(one.applies for one in column):
                cells.append("no such key")
            elif not differing:
                cells.append("none")
            else:
                most = max(differing, key=lambda one: abs(one.percent)).percent
                cells.append(f"{len(differing)}, {most:+.1f} %")
        lines.append(f"| {name} | {len(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
