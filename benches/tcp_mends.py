"""List what the papers' experiments owe to each point in which TCP is as in today's stacks, and not as it was before.

Usage: python benches/tcp_mends.py [--jobs N] [--markdown FILE] [EXPERIMENT ...]

Each run of the experiments' quick efforts is made as it is and once more with each of these points undone, by the key
that there is for it. Where the digest is the same, nothing hangs on the point; where it differs, the table has by how
much the mean completion time of the flows that finish both times changes, or what all receivers got, where none does:
the largest change among the experiment's runs. The table of the project's own runs is `tcp_mends.md`.
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
from sparelane.papers.engine.runner import simulate

# Each point, and what undoes it.
UNDONE: Mapping[str, tuple[str, ...]] = {
    "a cut starts from what is outstanding, at most the window": ("transport.flight_size=outstanding",),
    "retransmissions give round-trip samples": ("transport.timestamps=false",),
    "reports survive a timeout": ("transport.sack_survives_timeout=false",),
    "a queue takes what fits, not only where a full packet does": ('queue.room="full-packet"',),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What undoing one point does to one run.

    Attributes:
        differs: whether the digest does.
        percent: the change of the completion times, or of what was received; 0 where that cannot be told.
        applies: whether the scenario takes the key.
    """

    differs: bool
    percent: float = 0.0
    applies: bool = True


def main() -> int:
    """Take the command line, run, show."""
    parser = argparse.ArgumentParser(description="What the experiments owe to TCP as in today's stacks.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="all without any")
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
    """For each experiment and each of its runs, what undoing each point does. Equal runs are made once."""
    plans = {one.id: list(one.plan(one.quick)) for one in experiments if not one.needs_kernel}
    plans = {name: [run for run in plan if run.on != "linux"] for name, plan in plans.items()}
    distinct = list(dict.fromkeys(run for plan in plans.values() for run in plan))
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(distinct, pool.map(changes, distinct), strict=True))
    return {name: [found[run] for run in plan] for name, plan in plans.items() if plan}


def changes(simulation: Simulation) -> list[Change]:
    """What undoing each point does to a run."""
    usual = simulate(simulation)
    return [against(usual, replace(simulation, settings=(*simulation.settings, *undone))) for undone in UNDONE.values()]


def against(usual: Outcome, simulation: Simulation) -> Change:
    """The run with a point undone beside the usual one."""
    try:
        other = simulate(simulation)
    except ScenarioError:
        return Change(differs=False, applies=False)
    if other.digest == usual.digest:
        return Change(differs=False)
    before, after = (times(outcome, usual, other) or received(outcome) for outcome in (usual, other))
    return Change(differs=True, percent=100.0 * (after / before - 1.0) if before else 0.0)


def times(outcome: Outcome, *both: Outcome) -> float:
    """The mean completion time of the flows that are done in both; 0 without any."""
    done = both[0].flows.filter(pl.col("finish_s").is_not_null()).select("id")
    done = done.join(both[1].flows.filter(pl.col("finish_s").is_not_null()).select("id"), on="id")
    return float(outcome.flows.join(done, on="id")["completion_s"].mean() or 0.0)  # type: ignore[arg-type]


def received(outcome: Outcome) -> float:
    """What all receivers got, bytes."""
    return float(outcome.flows["measured_bytes"].sum())


def show(found: Mapping[str, Sequence[Sequence[Change]]]) -> str:
    """The table: of how many runs the digest hangs on each point, and by how much at most."""
    lines = [f"| experiment | runs | {' | '.join(UNDONE)} |", "| --- | --- |" + " --- |" * len(UNDONE)]
    for name, runs in found.items():
        cells = []
        for place in range(len(UNDONE)):
            column = [run[place] for run in runs]
            differing = [one for one in column if one.differs]
            if not any(one.applies for one in column):
                cells.append("no such key there")
            elif not differing:
                cells.append("none")
            else:
                most = max(differing, key=lambda one: abs(one.percent)).percent
                cells.append(f"{len(differing)}, {most:+.1f} %")
        lines.append(f"| {name} | {len(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
