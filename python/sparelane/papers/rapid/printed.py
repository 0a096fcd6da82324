"""What the RAPID paper prints in Tables I, II, V and VI; the schemes by their names in the scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparelane.papers.engine.rows import Key
from sparelane.papers.rapid.transfers import LOSS, THROUGHPUT
from sparelane.papers.rapid.web import QUANTILES, WEB_FLOW, Run


@dataclass(frozen=True, slots=True)
class BesideWeb:
    """A transfer beside web users; `None` where nothing is printed.

    Attributes:
        gbps: the throughput of the transfer.
        loss_percent: what it lost.
        median_ms: of the durations of web flows, as are the percentiles that follow.
    """

    gbps: float | None
    loss_percent: float | None
    median_ms: float | None
    p10_ms: float | None = None
    p90_ms: float | None = None
    p5_ms: float | None = None
    p95_ms: float | None = None

    def numbers(self, run: Run) -> dict[Key, float]:
        """Those that are printed, by the keys that they have for a run."""
        durations_ms = (self.median_ms, self.p10_ms, self.p90_ms, self.p5_ms, self.p95_ms)
        printed = {run.key(THROUGHPUT): self.gbps, run.key(LOSS): self.loss_percent} | {
            run.key(WEB_FLOW, average): duration_ms
            for average, duration_ms in zip(QUANTILES, durations_ms, strict=True)
        }
        return {key: number for key, number in printed.items() if number is not None}


# Link use and loss in percent, beside UDP (constant rate), SCT and BCT.
TABLE_V: Mapping[str, Sequence[float]] = {
    "rapid": (90.62, 0.0, 90.54, 0.014, 83.43, 0.06),
    "newreno": (23.77, 0.001, 26.3, 0.001, 17.81, 0.001),
    "vegas": (39.37, 0.0, 40.41, 0.001, 34.52, 0.001),
    "bic": (52.31, 0.021, 56.16, 0.017, 53.01, 0.011),
    "cubic": (47.29, 0.002, 44.7, 0.002, 34.38, 0.002),
    "highspeed": (49.27, 0.004, 49.59, 0.003, 46.68, 0.002),
    "h-tcp": (45.57, 0.008, 43.56, 0.006, 40.82, 0.003),
    "hybla": (25.1, 0.001, 23.83, 0.001, 22.88, 0.001),
    "lp": (25.39, 0.001, 25.48, 0.001, 16.58, 0.001),
    "scalable": (63.01, 0.072, 60.24, 0.046, 57.54, 0.04),
    "yeah": (64.56, 0.064, 58.9, 0.051, 53.01, 0.043),
    "fast": (40.95, 0.145, 36.98, 0.31, 28.92, 0.375),
    "illinois": (49.67, 0.002, 54.34, 0.003, 46.03, 0.003),
    "westwood": (21.93, 0.001, 22.74, 0.001, 22.19, 0.001),
    "veno": (19.29, 0.001, 20.68, 0.001, 20.96, 0.001),
}

# Throughput in Gb/s beside UDP (constant rate), SCT and BCT.
TABLE_I: Mapping[str, Sequence[float]] = {
    "rapid": (6.86, 6.61, 6.09),
    "cubic": (3.58, 3.25, 2.51),
    "scalable": (4.77, 4.38, 4.20),
}

# What RAPID with tau = 50 ms and eta = 4 loses beside BCT (section V-C), percent.
GENTLE_BCT_LOSS = 0.013

# Beside web users with a round trip of 5 ms, for RAPID with tau (ms) and eta. The paper prints the gain 1/eta: its
# throughput falls as tau eta rises.
TABLE_VI: Mapping[tuple[int, int], BesideWeb] = {
    (50, 4): BesideWeb(6.62, 0.0, 1.48, 0.58, 5.01, 0.47, 8.2),
    (10, 1): BesideWeb(6.61, 0.0, 1.64, 0.62, 8.27, 0.49, 19.09),
    (20, 2): BesideWeb(6.65, 0.0, 1.59, 0.62, 6.34, 0.49, 14.21),
    (30, 3): BesideWeb(6.67, 0.0, 1.52, 0.58, 5.55, 0.47, 10.52),
    (50, 6): BesideWeb(6.71, 0.0, 1.53, 0.58, 6.84, 0.47, 8.2),
    (5, 1): BesideWeb(6.81, 0.0, 2.25, 0.7, 36.89, 0.55, 62.35),
    (10, 2): BesideWeb(6.82, 0.0, 2.16, 0.71, 30.78, 0.55, 50.76),
    (20, 4): BesideWeb(6.82, 0.0, 1.9, 0.64, 24.84, 0.48, 43.19),
    (30, 6): BesideWeb(6.81, 0.0, 1.81, 0.63, 19.71, 0.51, 43.65),
    (10, 3): BesideWeb(6.95, 0.0, 2.48, 0.71, 35.78, 0.55, 64.47),
    (20, 6): BesideWeb(6.91, 0.0, 2.01, 0.68, 41.48, 0.54, 93.38),
    (5, 2): BesideWeb(7.01, 0.002, 3.04, 0.75, 55.58, 0.57, 101.85),
    (10, 4): BesideWeb(6.99, 0.001, 2.65, 0.72, 45.55, 0.55, 78.43),
    (5, 3): BesideWeb(7.03, 0.007, 4.44, 0.78, 82.15, 0.59, 241.98),
    (10, 6): BesideWeb(7.06, 0.004, 2.56, 0.72, 39.35, 0.55, 64.54),
}
