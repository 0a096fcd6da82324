"""A transfer beside the users of the web: what Tables II, VI, VII and VIII share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome, Outcomes, Simulation
from sparelane.papers.engine.rows import Key, Metric, Row, joined, measured
from sparelane.papers.rapid import testbed, transfers
from sparelane.papers.rapid.transfers import LOSS, THROUGHPUT

PAIRS = range(2, 12)
USERS = 500
# The share of a run after which throughput, and the web flows that begin, count.
WARM_UP_SHARE = 0.1
WEB_FLOW = Metric("web flow", "ms")
MEDIAN = "median"
# Quantiles of the durations of web flows.
QUANTILES = {
    MEDIAN: 0.5,
    "10th percentile": 0.1,
    "90th percentile": 0.9,
    "5th percentile": 0.05,
    "95th percentile": 0.95,
}
# The paper's rate-adaptation parameters for web traffic.
GENTLE = ("scheme.rapid.tau=50ms", "scheme.rapid.eta=4")

# A switch that refuses web users' packets where nine tenths of its queue are full, and the transfer's where all is.
REFUSING_USERS = (
    "queue.kind=weighted-tail-drop",
    "queue.class_shares=[1.0, 0.9]",
    "scheme.web.class=1",
)


# What the tables print of each.
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (THROUGHPUT, LOSS, WEB_FLOW)}


def _listed(side: str) -> str:
    return "[" + ", ".join(f'"{side}{number}"' for number in PAIRS) + "]"


def workloads(scheme: str | None) -> str:
    """The value of `workload`: the users, beside a transfer under `scheme` if there is one."""
    users = (
        f'{{kind="web-users", scheme="web", users={USERS}, largest_file="100MB", '
        f"servers={_listed('left')}, clients={_listed('right')}}}"
    )
    transfer = f'{{kind="bulk", scheme="{scheme}", pairs=[["left0", "right0"]], size="unlimited"}}, '
    return f"[{'' if scheme is None else transfer}{users}]"


def round_trip(milliseconds: float) -> tuple[str, ...]:
    """Settings that give the transfer this round trip, in place of 30 ms."""
    delay_us = milliseconds * 1e3 / 4 - 5
    return tuple(f"link.{end}.delay={delay_us:g}us" for end in (0, 1))


@dataclass(frozen=True, slots=True)
class Run:
    """A transfer beside web users.

    Attributes:
        scheme: of the transfer; `None` for the users alone.
        settings: further overrides.
        setting: how rows call what is done.
        called: how rows call the scheme.
        variant: what is other than in the paper, as we read it.
        start_up_s: what RAPID's start takes at most.
    """

    scheme: str | None
    settings: tuple[str, ...]
    setting: str
    called: str
    variant: str = ""
    start_up_s: float = testbed.START_UP_S

    def span(self, effort: Effort) -> tuple[float, float]:
        """When the run ends and from when on it counts, seconds."""
        return testbed.span(self.scheme, effort, WARM_UP_SHARE, self.start_up_s)

    def key(self, metric: Metric, average: str = "") -> Key:
        """Which number of it a row has."""
        return Key(self.setting, metric, self.called, average, variant=self.variant)

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run under `seed`."""
        stop_s, from_s = self.span(effort)
        return Simulation(
            scenario=testbed.SCENARIO,
            settings=(
                f"workload={workloads(self.scheme)}",
                "nic.limit=1000packets",
                "nic.full=wait",
                f"duration={stop_s:g}s",
                f"measure.from={from_s:g}s",
                *testbed.start(effort),
                *self.settings,
            ),
            seed=seed,
            label=joined("web users", self.setting, self.variant, f"{self.called} seed {seed}"),
            cost=3 * stop_s,
        )

    def rows(
        self,
        effort: Effort,
        outcomes: Outcomes,
        averages: Sequence[str] = tuple(QUANTILES),
        paper: Callable[[Key], float | None] = lambda key: None,
    ) -> Iterable[Row]:
        """Yields throughput and loss of the transfer, and durations of web flows.

        Args:
            effort: the length and number of runs.
            outcomes: all outcomes of the experiment.
            averages: keys of `QUANTILES`.
            paper: the paper's number for a row, if the row's own key does not determine it.
        """
        found = [outcomes[self.simulation(seed, effort)] for seed in effort.seed_numbers()]
        if self.scheme is not None:
            stop_s, from_s = self.span(effort)
            rates = [transfers.gbps(outcome, stop_s - from_s) for outcome in found]
            yield measured(self.key(THROUGHPUT), paper(self.key(THROUGHPUT)), rates)
            losses = [transfers.loss_percent(outcome) for outcome in found]
            yield measured(self.key(LOSS), paper(self.key(LOSS)), losses)
        times = [self.durations(outcome, effort) for outcome in found]
        for average in averages:
            key, values = self.key(WEB_FLOW, average), [series.quantile(QUANTILES[average]) for series in times]
            yield measured(key, paper(key), [float(value) for value in values if value is not None])

    def durations(self, outcome: Outcome, effort: Effort) -> pl.Series:
        """How long the web flows took that began while the transfer counts and are done, milliseconds."""
        _, from_s = self.span(effort)
        flows = outcome.flows.filter((pl.col("scheme") == "web") & (pl.col("start_s") >= from_s))
        return flows["completion_s"].drop_nulls() * 1e3

    def distribution(self, outcome: Outcome, effort: Effort) -> pl.DataFrame:
        """The cumulative distribution of durations, in 200 steps: `duration_ms` and `share`."""
        series = self.durations(outcome, effort)
        shares = [step / 200 for step in range(1, 200)]
        return pl.DataFrame({"duration_ms": [series.quantile(share) for share in shares], "share": shares})


def plan(runs: Sequence[Run], effort: Effort) -> list[Simulation]:
    """Every run with every seed."""
    return [run.simulation(seed, effort) for run in runs for seed in effort.seed_numbers()]
