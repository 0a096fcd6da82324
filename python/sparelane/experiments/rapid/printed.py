"""What the RAPID paper prints, table by table; the schemes by their names in the scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LOSS_RATES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


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

    @property
    def durations_ms(self) -> Sequence[float | None]:
        """Of web flows: the median, then the percentiles in the order of the fields."""
        return (self.median_ms, self.p10_ms, self.p90_ms, self.p5_ms, self.p95_ms)


# Throughput under random loss at 10 Gb/s, Gb/s, by the loss rates of `LOSS_RATES`.
TABLE_III: Mapping[str, Sequence[float]] = {
    "rapid": (9.45, 9.44, 9.44, 9.41, 9.07, 6.17, 1.34, 0.01),
    "newreno": (9.75, 6.13, 4.98, 2.54, 0.923, 0.262, 0.076, 0.03),
    "vegas": (9.01, 9.66, 5.67, 3.59, 0.97, 0.32, 0.11, 0.03),
    "bic": (9.85, 9.76, 9.62, 9.3, 5.36, 0.919, 0.144, 0.04),
    "cubic": (9.85, 9.29, 9.08, 4.44, 1.0, 0.24, 0.07, 0.03),
    "highspeed": (9.54, 9.54, 9.48, 8.53, 2.43, 0.45, 0.11, 0.03),
    "h-tcp": (9.35, 9.35, 9.15, 6.76, 2.29, 0.4, 0.1, 0.03),
    "hybla": (9.35, 9.23, 8.02, 6.66, 1.96, 0.41, 0.11, 0.03),
    "lp": (9.81, 7.56, 4.97, 2.44, 0.76, 0.26, 0.071, 0.0269),
    "scalable": (9.85, 9.61, 9.61, 9.54, 8.98, 1.73, 0.213, 0.01),
    "yeah": (9.83, 9.83, 9.83, 9.81, 9.03, 1.72, 0.223, 0.07),
    "fast": (9.1, 9.1, 6.71, 6.25, 5.32, 4.72, 1.32, 0.174),
    "illinois": (9.61, 9.62, 9.57, 9.32, 5.67, 1.87, 0.62, 0.17),
    "westwood": (9.73, 5.77, 5.54, 3.59, 1.13, 0.69, 0.252, 0.053),
    "veno": (9.8, 4.99, 4.21, 2.32, 0.9, 0.4, 0.12, 0.04),
}

# Throughput under random loss at 40 Gb/s, Gb/s, by the loss rates of `LOSS_RATES`.
TABLE_IV: Mapping[str, Sequence[float]] = {
    "rapid": (18.2, 18.2, 18.1, 17.1, 14.9, 10.3, 2.16, 0.03),
    "newreno": (20.3, 20.3, 6.18, 1.96, 0.67, 0.17, 0.07, 0.03),
    "vegas": (19.6, 11.0, 13.9, 3.98, 1.02, 0.35, 0.1, 0.04),
    "bic": (20.3, 20.3, 20.3, 16.1, 5.01, 1.01, 0.157, 0.05),
    "cubic": (20.5, 20.4, 18.7, 6.75, 1.23, 0.22, 0.07, 0.03),
    "highspeed": (20.5, 19.9, 18.9, 8.78, 1.72, 0.24, 0.07, 0.03),
    "h-tcp": (20.4, 20.0, 17.9, 8.11, 0.51, 0.17, 0.07, 0.03),
    "hybla": (20.4, 16.9, 9.18, 2.04, 0.54, 0.17, 0.07, 0.03),
    "lp": (15.2, 10.7, 10.4, 2.02, 0.59, 0.16, 0.07, 0.03),
    "scalable": (20.6, 20.1, 19.9, 17.7, 8.69, 0.88, 0.09, 0.06),
    "yeah": (20.5, 20.3, 20.3, 20.0, 11.4, 1.78, 0.18, 0.07),
    "fast": (20.5, 20.2, 20.1, 6.4, 1.84, 0.55, 0.14, 0.05),
    "illinois": (20.3, 20.3, 20.1, 18.1, 6.11, 1.92, 0.52, 0.14),
    "westwood": (20.3, 20.3, 20.1, 6.4, 1.84, 0.55, 0.14, 0.05),
    "veno": (19.1, 19.1, 9.94, 2.81, 0.9, 0.21, 0.09, 0.04),
}

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

# Beside web users, with a round trip of 5 ms.
TABLE_VII: Mapping[str, BesideWeb] = {
    "none": BesideWeb(None, None, 1.31, 0.54, 4.01, 0.42, 5.92),
    "rapid": BesideWeb(6.62, 0.0, 1.48, 0.58, 5.01, 0.47, 8.2),
    "newreno": BesideWeb(5.42, 0.002, 1.47, 0.56, 4.76, 0.46, 7.42),
    "vegas": BesideWeb(4.43, 0.001, 1.36, 0.51, 4.32, 0.41, 6.57),
    "bic": BesideWeb(7.14, 0.026, 3.63, 0.809, 50.19, 0.62, 92.33),
    "cubic": BesideWeb(6.18, 0.002, 1.47, 0.6, 5.07, 0.48, 8.12),
    "highspeed": BesideWeb(6.26, 0.009, 1.8, 0.62, 12.24, 0.48, 25.3),
    "h-tcp": BesideWeb(5.52, 0.004, 1.51, 0.57, 5.74, 0.47, 10.5),
    "hybla": BesideWeb(5.54, 0.002, 1.49, 0.56, 5.3, 0.45, 8.75),
    "lp": BesideWeb(5.36, 0.002, 1.47, 0.56, 4.79, 0.45, 7.41),
    "scalable": BesideWeb(7.35, 0.036, 5.29, 0.93, 71.54, 0.7, 146.98),
    "yeah": BesideWeb(7.42, 0.033, 15.96, 1.3, 166.65, 0.88, 270.47),
    "fast": BesideWeb(6.29, 0.143, 1.49, 0.56, 44.04, 0.45, 137.38),
    "illinois": BesideWeb(6.6, 0.008, 1.75, 0.61, 10.81, 0.47, 22.78),
    "westwood": BesideWeb(5.66, 0.008, 1.59, 0.6, 6.51, 0.48, 13.126),
    "veno": BesideWeb(5.21, 0.002, 1.5, 0.56, 5.58, 0.43, 11.03),
}

# Beside web users, with a round trip of 30 ms.
TABLE_VIII: Mapping[str, BesideWeb] = {
    "none": BesideWeb(None, None, 1.31, 0.54, 4.01, 0.42, 5.92),
    "rapid": BesideWeb(6.61, 0.001, 1.45, 0.55, 5.14, 0.45, 9.13),
    "newreno": BesideWeb(1.27, 0.001, 1.33, 0.51, 4.25, 0.41, 6.54),
    "vegas": BesideWeb(2.21, 0.003, 1.34, 0.51, 4.3, 0.41, 6.49),
    "bic": BesideWeb(4.18, 0.011, 1.53, 0.56, 6.68, 0.45, 15.02),
    "cubic": BesideWeb(2.79, 0.004, 1.32, 0.52, 4.01, 0.42, 6.05),
    "highspeed": BesideWeb(3.39, 0.004, 1.38, 0.52, 4.41, 0.43, 6.68),
    "h-tcp": BesideWeb(3.07, 0.009, 1.37, 0.51, 4.47, 0.41, 7.11),
    "hybla": BesideWeb(1.19, 0.002, 1.32, 0.48, 4.3, 0.39, 6.53),
    "lp": BesideWeb(1.75, 0.001, 1.35, 0.53, 4.29, 0.43, 6.46),
    "scalable": BesideWeb(4.23, 0.037, 1.67, 0.59, 17.12, 0.468, 34.4),
    "yeah": BesideWeb(4.51, 0.045, 1.73, 0.61, 9.98, 0.49, 21.47),
    "fast": BesideWeb(3.03, 0.182, 2.1, 0.61, 121.88, 0.48, 301.57),
    "illinois": BesideWeb(3.55, 0.002, 1.43, 0.55, 4.53, 0.45, 6.92),
    "westwood": BesideWeb(1.35, 0.033, 1.39, 0.52, 5.61, 0.4, 11.89),
    "veno": BesideWeb(1.57, 0.001, 1.31, 0.48, 4.24, 0.39, 6.43),
}

# As TABLE_VII, for RAPID with tau (ms) and eta. The paper prints the gain 1/eta: its throughput falls as tau eta rises.
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
