"""Search the state of RAPID's hosts in which schemes with slow growth are as slow as in the paper's Table V.

Usage: python benches/rapid_earlier.py [--seconds N] [--markdown FILE]

Linux 2.6.32 caches the slow-start threshold of each destination and acknowledges stretches of segments. The paper gives
neither the transfers before the measured ones nor how many segments an acknowledgment covers. This search declares all
of its choices: the earlier transfer (none, or one that loses each hundredth or each thousandth segment), or a constant
threshold instead; one acknowledgment for two or three segments; and, for schemes that fill the queue, its size. Each
transfer runs once, with seed 1, next to constant-rate cross traffic. The project's own numbers are in
`rapid_earlier.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.simulations import to_outcome
from sparelane.papers.rapid import testbed
from sparelane.papers.rapid.transfers import Run, gbps, loss_percent
from sparelane.scenario import library
from sparelane.simulation.simulate import run

# The paper's use of the remaining capacity in percent, and its loss in percent (Table V, UDP).
PAPER = {
    "New Reno": (23.77, 0.001),
    "Westwood": (21.93, 0.001),
    "Veno": (19.29, 0.001),
    "BIC": (52.31, 0.021),
    "CUBIC": (47.29, 0.002),
    "H-TCP": (45.57, 0.008),
    "Scalable": (63.01, 0.072),
}
SLOW = ("New Reno", "Westwood", "Veno")
# The states of the cache: an earlier transfer, or overrides in its place.
CACHES: dict[str, tuple[testbed.Earlier | None, str]] = {
    "no earlier transfer": (None, ""),
    "1 % lost before": (testbed.Earlier(1050, 100, 10), ""),
    "0.1 % lost before": (testbed.Earlier(10_500, 1000, 20), ""),
    "constant threshold of 64": (None, "scheme.{scheme}.initial_ssthresh=64"),
}
ACKNOWLEDGMENTS = (2, 3)
QUEUES = (400, 1000)
# The capacity left by the cross traffic, in Gb/s.
LEFT_GBPS = testbed.CAPACITY_BPS / 1e9 - 2.5


def main() -> int:
    """Parse the command line, run the search and print it."""
    parser = argparse.ArgumentParser(description="Search the state of RAPID's hosts for Table V.")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    arguments = parser.parse_args()
    head = [
        f"Runs of {arguments.seconds:g} s, seed 1, next to constant-rate cross traffic.",
        "",
        "| scheme | cache | segments per acknowledgment | queue (packets) | use (%) | paper | loss (%) | paper |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines = []
    for line in rows(arguments.seconds):
        print(line, flush=True)
        lines.append(line)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join([*head, *lines]) + "\n")
    return 0


def rows(stop_s: float) -> Iterator[str]:
    """Yield the rows of the table."""
    for scheme in SLOW:
        for cache in CACHES:
            for every in ACKNOWLEDGMENTS:
                yield row(scheme, cache, every, QUEUES[0], stop_s)
    for scheme in PAPER:
        if scheme not in SLOW:
            for queue in QUEUES:
                yield row(scheme, "1 % lost before", 3, queue, stop_s)


def row(scheme: str, cache: str, every: int, queue: int, stop_s: float) -> str:
    """Return one row."""
    earlier, threshold = CACHES[cache]
    overrides = [
        f"queue.limit={queue}packets",
        f'transport.delayed_ack={{every={every}, timeout="40ms"}}',
        *([threshold.format(scheme=testbed.scheme(scheme))] if threshold else []),
    ]
    one = Run("", scheme, testbed.scheme(scheme), "", "CBR", tuple(overrides), earlier=earlier)
    cell = one.cell(Effort("full", seeds=1, stop_s=stop_s))
    outcome = to_outcome(run(library.find(cell.scenario), seed=1, set=cell.settings))
    use, loss = 100 * gbps(outcome, cell) / LEFT_GBPS, loss_percent(outcome)
    printed_use, printed_loss = PAPER[scheme]
    return f"| {scheme} | {cache} | {every} | {queue} | {use:.1f} | {printed_use} | {loss:.4f} | {printed_loss} |"


if __name__ == "__main__":
    sys.exit(main())
