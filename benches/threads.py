"""Compare the results of the experiments' simulations on one and on several threads.

Usage: python benches/threads.py [--threads 2,3,7] [EXPERIMENT ...]

Runs each simulation of `sparelane reproduce --quick` in the simulator on one thread and on each of the other numbers,
and compares the digests. Without experiments, it takes all. Simulations that stay in one domain are not run. Their
number is printed by reason. Exits with 1 if a digest differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable

from sparelane.papers import registry
from sparelane.papers.engine.base import Simulation
from sparelane.scenario import library
from sparelane.simulation.simulate import Prepared, prepare


def simulations(experiments: Iterable[str]) -> list[Simulation]:
    """The simulations of the experiments' quick efforts, in order and each once. Those on Linux are left out."""
    known = registry()
    missing = [name for name in experiments if name not in known]
    if missing:
        sys.exit(f"threads.py: there is no experiment {missing[0]!r}; `sparelane list` names them")
    chosen = [known[name] for name in experiments] or list(known.values())
    planned = [simulation for one in chosen for simulation in one.plan(one.quick)]
    return [one for one in dict.fromkeys(planned) if one.on == "simulator"]


def prepared(simulation: Simulation, threads: int) -> Prepared:
    """The run of a simulation on this number of threads."""
    scenario = library.find(simulation.scenario)
    return prepare(scenario, seed=simulation.seed, set=simulation.settings, threads=threads)


def numbers(text: str) -> list[int]:
    """The numbers of threads in an argument.

    Raises:
        argparse.ArgumentTypeError: the text has something else.
    """
    counts = [int(part) for part in text.split(",") if part.strip().isdecimal()]
    if len(counts) < text.count(",") + 1 or min(counts) < 2:
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: numbers from 2 on, with commas between them")
    return counts


def main() -> None:
    """Compares the digests, and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=numbers, default="2,3,7", help="numbers of threads, with commas")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT")
    chosen = parser.parse_args()
    counts: list[int] = chosen.threads
    stays: Counter[str] = Counter()
    divided: Counter[int] = Counter()
    differing, began_s = 0, time.monotonic()
    planned = simulations(chosen.experiments)
    for place, simulation in enumerate(planned, 1):
        divisions = {count: prepared(simulation, count).division() for count in counts}
        reasons = [division.unsuited for division in divisions.values() if division.unsuited]
        several = [count for count, division in divisions.items() if division.domains > 1]
        if not several:
            stays[reasons[0] if reasons else "it has one domain"] += 1
            continue
        alone = prepared(simulation, 1).run().digest
        for count in several:
            divided[divisions[count].domains] += 1
            if prepared(simulation, count).run().digest != alone:
                differing += 1
                print(f"DIFFERS on {count} threads: {simulation.what}, seed {simulation.seed}, {simulation.settings}")
        print(f"{place} of {len(planned)}, {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    for domains, runs in sorted(divided.items()):
        print(f"{runs} runs in {domains} domains")
    for reason, number in stays.most_common():
        print(f"{number} simulations in one domain: {reason}")
    print(f"{differing} of {divided.total()} digests differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
