"""Generates the synthetic LTE traces of scenarios/traces: `python benches/lte_trace.py`.

They are made up, not measured. The logarithm of the rate is the sum of two first-order autoregressive processes, in
steps of 20 ms: shadowing changes within seconds, and fading within a tenth of a second. Outages, such as those of
handovers, begin at random times. The parameters are round numbers that give the rates, the range and the time scales of
cellular links as the field draws them; they are fitted to no data set.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "scenarios" / "traces"
STEP_S = 0.02
LENGTH_S = 60


@dataclass(frozen=True, slots=True)
class Link:
    """The parameters of one direction.

    Attributes:
        median_mbps: the median rate outside outages.
        peak_mbps: the highest rate.
        shadowing: the standard deviation of the slow process of the natural logarithm, and its time constant, seconds.
        fading: the same of the fast process.
        outages: the mean time between outages and their mean length, both in seconds and exponentially distributed.
    """

    median_mbps: float
    peak_mbps: float
    shadowing: tuple[float, float] = (0.6, 3.0)
    fading: tuple[float, float] = (0.35, 0.1)
    outages: tuple[float, float] = (15.0, 0.3)


LINKS = {"lte-down": (1, Link(14, 60)), "lte-up": (2, Link(5, 20))}


def rates(link: Link, seed: int) -> list[int]:
    """The rate of each step in kb/s."""
    draws = random.Random(seed)

    def normal() -> float:
        return math.sqrt(-2 * math.log(1 - draws.random())) * math.cos(math.tau * draws.random())

    def exponential(mean: float) -> float:
        return -mean * math.log(1 - draws.random())

    processes = [(deviation, math.exp(-STEP_S / constant)) for deviation, constant in (link.shadowing, link.fading)]
    states = [deviation * normal() for deviation, _ in processes]
    between, length = link.outages
    begins = exponential(between)
    ends = begins + exponential(length)
    steps = []
    for step in range(round(LENGTH_S / STEP_S)):
        now = step * STEP_S
        if now >= ends:
            begins = now + exponential(between)
            ends = begins + exponential(length)
        states = [
            kept * state + deviation * math.sqrt(1 - kept**2) * normal()
            for state, (deviation, kept) in zip(states, processes, strict=True)
        ]
        mbps = min(link.median_mbps * math.exp(sum(states)), link.peak_mbps)
        steps.append(0 if begins <= now < ends else round(mbps * 1000))
    return steps


def trace(name: str) -> str:
    """The CSV file of one direction."""
    seed, link = LINKS[name]
    rows = (f"{round(step * STEP_S * 1000)},{kbps}" for step, kbps in enumerate(rates(link, seed)))
    return "\n".join(["# Made by benches/lte_trace.py: synthetic, not measured.", "time_ms,rate_kbps", *rows]) + "\n"


def main() -> None:
    """Writes all traces."""
    for name in LINKS:
        (FOLDER / f"{name}.csv").write_text(trace(name))


if __name__ == "__main__":
    main()
