"""RAPID, Tables I and V and Fig. 9: a transfer beside cross traffic of three levels of burstiness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcome, Outcomes, Simulation, measured
from sparelane.experiments.rapid import testbed, transfers
from sparelane.experiments.rapid.printed import TABLE_V

# The paper's names in this table, and the cross traffic.
LEVELS = {"UDP": "CBR", "SCT": "SCT", "BCT": "BCT"}
# The paper's 5-95 % range of the cross traffic's rate at 1 ms, Gb/s.
BURSTINESS = {"UDP": 0.49, "SCT": 1.40, "BCT": 2.62}
WARM_UP_SHARE = 0.1
# The buffer of the switch, varied for RAPID; what the paper's has is not known.
BUFFERS = ("1MB", "2MB", "4MB")
LINK_USE = "use of what the cross traffic leaves"


def schemes(effort: Effort) -> Sequence[str]:
    """All, or a few in a quick run."""
    return list(transfers.SCHEMES if effort.name == "full" else transfers.SHOWN)


@dataclass(frozen=True, slots=True)
class Case:
    """A transfer beside cross traffic.

    Attributes:
        scheme: of the transfer.
        level: of burstiness, a key of `LEVELS`.
        buffer: of the switch; the testbed's without it.
    """

    scheme: str
    level: str
    buffer: str | None = None

    @property
    def row(self) -> str:
        """The name of its rows."""
        usual = f"{transfers.SCHEMES[self.scheme]}, {self.level}"
        return f"{usual}, a buffer of {self.buffer}" if self.buffer else usual

    @property
    def printed(self) -> Sequence[float | None]:
        """The paper's use of the link and loss, percent; of the testbed's buffer, whatever that is."""
        place = 2 * list(LEVELS).index(self.level)
        return (None, None) if self.buffer else TABLE_V[self.scheme][place : place + 2]

    def simulation(self, seed: int, effort: Effort) -> Simulation:
        """One run."""
        return testbed.simulation(
            self.scheme,
            seed,
            effort.stop_s,
            label=f"{self.scheme} beside {self.level}{f', {self.buffer}' if self.buffer else ''}",
            cross_traffic=LEVELS[self.level],
            settings=(
                f"measure.from={effort.stop_s * WARM_UP_SHARE:g}s",
                *((f"queue.limit={self.buffer}",) if self.buffer else ()),
            ),
        )


def cases(effort: Effort) -> list[Case]:
    """Every scheme beside every level; in a full run, RAPID also with other buffers."""
    buffers = BUFFERS if effort.name == "full" else ()
    return [
        *(Case(scheme, level) for scheme in schemes(effort) for level in LEVELS),
        *(Case("rapid", level, buffer) for buffer in buffers for level in LEVELS),
    ]


def alone(level: str, seed: int, effort: Effort) -> Simulation:
    """The cross traffic without the transfer, for its burstiness."""
    return testbed.simulation(
        "newreno",
        seed,
        min(effort.stop_s, 20.0),
        label=f"{level} alone",
        cross_traffic=LEVELS[level],
        settings=("workload.size=1packets", "sample.interval=1ms", 'sample.links=[["west", "east"]]'),
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every scheme beside every level, and the levels alone."""
    return [
        *(alone(level, seed, effort) for seed in effort.seed_numbers() for level in LEVELS),
        *(case.simulation(seed, effort) for seed in effort.seed_numbers() for case in cases(effort)),
    ]


def rates_gbps(outcome: Outcome) -> pl.Series:
    """The rate of the cross traffic in every millisecond but the first hundred."""
    sent = outcome.series.filter((pl.col("quantity") == "sent_bytes") & (pl.col("time_s") > 0.1))
    return sent["value"] * 8 / 1e-3 / 1e9


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The burstiness of each level, and the use of the link and the loss of each scheme beside it."""
    rows = []
    left_gbps = {}
    for level, printed in BURSTINESS.items():
        found = {seed: rates_gbps(outcomes[alone(level, seed, effort)]) for seed in effort.seed_numbers()}
        ranges = [float(rates.quantile(0.95) or 0) - float(rates.quantile(0.05) or 0) for rates in found.values()]
        rows.append(measured(f"cross traffic, {level}", "5-95 % range at 1 ms", "Gb/s", printed, ranges))
        left_gbps[level] = {seed: 10 - float(rates.mean() or 0) for seed, rates in found.items()}  # type: ignore[arg-type]
    counted_s = effort.stop_s * (1 - WARM_UP_SHARE)
    for case in cases(effort):
        use, loss = case.printed
        runs = {seed: outcomes[case.simulation(seed, effort)] for seed in effort.seed_numbers()}
        shares = [100 * transfers.gbps(run, counted_s) / left_gbps[case.level][seed] for seed, run in runs.items()]
        rows.append(measured(case.row, LINK_USE, "%", use, shares))
        rows.append(measured(case.row, "loss", "%", loss, [transfers.loss_percent(run) for run in runs.values()]))
    evaluation = Evaluation(tuple(rows))
    return replace(evaluation, notes=order_notes(evaluation, effort))


def order_notes(evaluation: Evaluation, effort: Effort) -> tuple[str, ...]:
    """Who is first at each level."""
    notes = []
    names = [transfers.SCHEMES[scheme] for scheme in schemes(effort)]
    for level in LEVELS:
        use = {name: evaluation.find(f"{name}, {level}", LINK_USE).ours or 0.0 for name in names}
        best = sorted(use, key=lambda name: -use[name])
        notes.append(f"{level}: first {best[0]} ({use[best[0]]:.1f} %), then {best[1]} ({use[best[1]]:.1f} %).")
    return tuple(notes)


def draw(evaluation: Evaluation) -> Figure:
    """The use of the link, scheme by scheme, beside the three levels."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    known = {row.row for row in evaluation.rows}
    present = [scheme for scheme, label in transfers.SCHEMES.items() if f"{label}, UDP" in known]
    looks = (plots.TCP, plots.RC3, plots.THIRD)
    bars = [
        plots.Bars.of_rows(
            f"{level} ({BURSTINESS[level]} Gb/s)",
            look,
            [evaluation.find(Case(scheme, level).row, LINK_USE) for scheme in present],
        )
        for level, look in zip(LEVELS, looks, strict=True)
    ]
    plots.grouped_bars(axes, [transfers.SCHEMES[scheme] for scheme in present], bars)
    axes.tick_params(axis="x", rotation=30)
    axes.set_xlabel("protocol")
    axes.set_ylabel("use of what the\ncross traffic leaves (%)")
    plots.legend_above(axes, 4)
    return drawing


EXPERIMENT = Experiment(
    id="rapid/table5-burstiness",
    title="Beside bursty cross traffic",
    source="RAPID, section V-C, Tables I and V, Fig. 9",
    method="One transfer of 120 s (here, 30 s) over 10 Gb/s and 30 ms beside 2.5 Gb/s of cross traffic that answers "
    "to nothing, at three levels of burstiness.",
    assumptions=(
        *testbed.ASSUMPTIONS,
        "Use is the transfer's payload in percent of what the cross traffic leaves of 10 Gb/s; the first tenth of a "
        "run does not count.",
    ),
    full=Effort("full", seeds=3, stop_s=30.0),
    quick=Effort("quick", seeds=1, stop_s=4.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons={(Case("fast", level).row, LINK_USE): transfers.FAST_PORT for level in LEVELS},
)
