"""RAPID, Tables I and V and Fig. 9: a transfer beside cross traffic of three levels of burstiness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.claims import (
    Value,
    falling,
)
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, measured
from sparelane.papers.rapid import testbed, transfers, web
from sparelane.papers.rapid.transfers import LOSS, THROUGHPUT
from sparelane.reports import plots

# The paper's names in this table, and the cross traffic.
LEVELS = {"UDP": "CBR", "SCT": "SCT", "BCT": "BCT"}
WARM_UP_SHARE = 0.1
# The buffer of the switch, varied for RAPID and New Reno; what the paper's has is not known.
BUFFERS = {"1.5 MB": "1.5MB", "1000 packets": "1000packets"}
STALLING = ("host_at.0.ring=512", "host_at.0.stall_every=1s", "host_at.0.stall_length=1ms")
LINK_USE = Metric("use of what the cross traffic leaves", "%")
RANGE = Metric("5-95 % range at 1 ms", "Gb/s")


def schemes(effort: Effort) -> Sequence[str]:
    """All, or a few in a quick run."""
    return list(transfers.SCHEMES if effort.name == "full" else transfers.SHOWN)


@dataclass(frozen=True, slots=True)
class Case:
    """A transfer beside cross traffic.

    Attributes:
        scheme: of the transfer.
        level: of burstiness, a key of `LEVELS`.
        what: differs from the table's setting, if anything.
        settings: overrides of the scenario that make it differ.
    """

    scheme: str
    level: str
    what: str = ""
    settings: tuple[str, ...] = ()

    def key(self, metric: Metric) -> Key:
        """Which number of it a row has."""
        return Key(f"beside {self.level}", metric, transfers.SCHEMES[self.scheme], variant=self.what)

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run."""
        stop_s, from_s = testbed.span(self.scheme, effort, WARM_UP_SHARE)
        return testbed.simulation(
            self.scheme,
            seed,
            stop_s,
            label=f"{self.scheme} beside {self.level} {self.what}".rstrip(),
            cross_traffic=LEVELS[self.level],
            settings=(
                f"measure.from={from_s:g}s",
                *testbed.start(effort),
                *self.settings,
            ),
        )


# RAPID as it is beside web users.
GENTLE = Case("rapid", "BCT", "tau = 50 ms and eta = 4", web.GENTLE)

# What the programs that send UDP write at once, varied.
BURSTS = ("cross_traffic.0.burst=30",)

# What was tried for the losses that slow growers have in the paper and not here.
HYPOTHESES = (
    ("stalls of 1 ms each second, rings of 512", STALLING),
    ("netem's queue of 1000 packets", ("nic.limit=1000packets", "nic.full=drop")),
    ("programs that write 30 packets at once", BURSTS),
    # What a receiver's PAUSE frames hold back waits in the switch, which has room for 400 packets: a longer ring.
    ("PAUSE frames for 10 ms each second", transfers.PAUSES),
    ("9 MB of memory that all ports share", ('switch={memory="9MB"}', "queue.limit=9MB")),
)


def cases(effort: Effort) -> list[Case]:
    """Every scheme beside every level; in a full run, also what is varied."""
    usual = [Case(scheme, level) for scheme in schemes(effort) for level in LEVELS]
    if effort.name == "quick":
        return [*usual, GENTLE]
    buffers = [
        Case(scheme, level, f"a buffer of {buffer}", (f"queue.limit={limit}",))
        for buffer, limit in BUFFERS.items()
        for scheme in ("rapid", "newreno")
        for level in LEVELS
    ]
    losses = [Case("rapid", "BCT", what, (setting,)) for what, setting in testbed.LOSSY_STREAMS.items()]
    tried = [Case(scheme, "UDP", what, settings) for what, settings in HYPOTHESES for scheme in ("rapid", "newreno")]
    return [*usual, GENTLE, *buffers, *losses, *tried]


def burstiness(level: str) -> Key:
    """The key of the 5-95 % range of the cross traffic's rate."""
    return Key(level, RANGE, "cross traffic")


def alone(level: str, seed: int, effort: Effort, settings: tuple[str, ...] = ()) -> Simulation:
    """The cross traffic without the transfer, for its burstiness."""
    return testbed.simulation(
        "newreno",
        seed,
        min(effort.stop_s, 20.0),
        label=f"{level} alone {' '.join(settings)}".rstrip(),
        cross_traffic=LEVELS[level],
        settings=("workload.size=1packets", "sample.interval=1ms", 'sample.links=[["west", "east"]]', *settings),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every scheme beside every level, and the levels alone."""
    return [
        *(alone(level, seed, effort) for seed in effort.seed_numbers() for level in LEVELS),
        *(alone("UDP", seed, effort, BURSTS) for seed in effort.seed_numbers() if effort.name == "full"),
        *(case.simulation(seed, effort) for seed in effort.seed_numbers() for case in cases(effort)),
    ]


def rates_gbps(outcome: Outcome) -> pl.Series:
    """The rate of the cross traffic in every millisecond but the first hundred."""
    sent = outcome.series.filter((pl.col("quantity") == "sent_bytes") & (pl.col("time_s") > 0.1))
    return sent["value"] * 8 / 1e-3 / 1e9


def spread_gbps(outcome: Outcome) -> float:
    """From the fifth percentile of those rates to the 95th."""
    rates = rates_gbps(outcome)
    return float(rates.quantile(0.95) or 0) - float(rates.quantile(0.05) or 0)


def evaluate(declared: Declaration, effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The burstiness of each level, and the use of the link and the loss of each scheme beside it."""
    rows = []
    left_gbps = {}
    for level in LEVELS:
        found = {seed: rates_gbps(outcomes[alone(level, seed, effort)]) for seed in effort.seed_numbers()}
        ranges = [spread_gbps(outcomes[alone(level, seed, effort)]) for seed in effort.seed_numbers()]
        rows.append(measured(burstiness(level), None, ranges))
        left_gbps[level] = {seed: 10 - float(rates.mean() or 0) for seed, rates in found.items()}  # type: ignore[arg-type]
    if effort.name == "full":
        ranges = [spread_gbps(outcomes[alone("UDP", seed, effort, BURSTS)]) for seed in effort.seed_numbers()]
        rows.append(measured(Key("UDP", RANGE, "cross traffic", variant="30 packets at once"), None, ranges))
    for case in cases(effort):
        # The paper prints one number of the gentle RAPID; other variants are compared with the usual numbers.
        paper = declared.printed.get if case == GENTLE else declared.paper
        stop_s, from_s = testbed.span(case.scheme, effort, WARM_UP_SHARE)
        runs = {seed: outcomes[case.simulation(seed, effort)] for seed in effort.seed_numbers()}
        rates = {seed: transfers.gbps(run, stop_s - from_s) for seed, run in runs.items()}
        shares = [100 * rate / left_gbps[case.level][seed] for seed, rate in rates.items()]
        numbers = {
            THROUGHPUT: list(rates.values()),
            LINK_USE: shares,
            LOSS: [transfers.loss_percent(run) for run in runs.values()],
        }
        rows += [measured(case.key(metric), paper(case.key(metric)), values) for metric, values in numbers.items()]
    evaluation = Evaluation(tuple(rows))
    return replace(evaluation, notes=order_notes(evaluation, effort))


def order_notes(evaluation: Evaluation, effort: Effort) -> tuple[str, ...]:
    """Who is first at each level."""
    notes = []
    for level in LEVELS:
        use = {
            transfers.SCHEMES[scheme]: evaluation.find(Case(scheme, level).key(LINK_USE)).value or 0.0
            for scheme in schemes(effort)
        }
        best = sorted(use, key=lambda name: -use[name])
        notes.append(f"{level}: first {best[0]} ({use[best[0]]:.1f} %), then {best[1]} ({use[best[1]]:.1f} %).")
    return tuple(notes)


def draw(evaluation: Evaluation) -> Figure:
    """The use of the link, scheme by scheme, beside the three levels."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    known = {row.key for row in evaluation.rows}
    present = [scheme for scheme in transfers.SCHEMES if Case(scheme, "UDP").key(LINK_USE) in known]
    looks = (plots.TCP, plots.RC3, plots.THIRD)
    bars = [
        plots.Bars.of_rows(
            f"{level} ({evaluation.paper(burstiness(level))} Gb/s)",
            look,
            [evaluation.find(Case(scheme, level).key(LINK_USE)) for scheme in present],
        )
        for level, look in zip(LEVELS, looks, strict=True)
    ]
    plots.grouped_bars(axes, [transfers.SCHEMES[scheme] for scheme in present], bars)
    axes.tick_params(axis="x", rotation=30)
    axes.set_xlabel("protocol")
    axes.set_ylabel("use of what the\ncross traffic leaves (%)")
    # Some intervals are wider than what a share can be.
    axes.set_ylim(0.0, 105.0)
    plots.legend_above(axes, 4)
    return drawing


def _keys(which: str, level: str, metric: Metric) -> list[Key]:
    """The rows of one scheme beside a level, or of all others than RAPID."""
    chosen = [scheme for scheme in transfers.SCHEMES if scheme != "rapid"] if which == "others" else [which]
    return [Case(scheme, level).key(metric) for scheme in chosen]


def _losses_less_the_least(level: str) -> Value:
    return lambda evaluation: (
        evaluation.ours(Case("rapid", level).key(LOSS))
        - min(evaluation.ours(key) for key in _keys("others", level, LOSS))
    )


def _all_fall(evaluation: Evaluation) -> float:
    return min(
        falling([Case(scheme, level).key(LINK_USE) for level in LEVELS])(evaluation) for scheme in transfers.SCHEMES
    )


METRICS = named(RANGE, LOSS, THROUGHPUT, LINK_USE)
VALUES = {"losses less the least": _losses_less_the_least, "smallest fall": lambda: _all_fall}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, partial(evaluate, declared), draw)
