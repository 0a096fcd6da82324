"""RAPID, section IV-B and Fig. 6: how exactly packets leave by the gaps that are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from sparelane import rapid
from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rapid import testbed
from sparelane.reports import plots

# Who makes the gaps, and the mean by which their timers are late.
SENDERS: Mapping[str, str] = {
    "PAUSE frames": "0s",
    "timer in the kernel": testbed.TIMER_ERROR,
    "user-level sender": "50us",
}
LOOKS = dict(zip(SENDERS, (plots.RC3, plots.TCP, plots.THIRD), strict=True))

# Average rates of p-streams, b/s: the highest rate of the last is just below that of the interface.
AVERAGES_BPS = tuple(base * 10**power for power in (5, 6, 7, 8, 9) for base in (1, 2.5, 8))
QUICK_AVERAGES_BPS = (1e5, 1e7, 1e9, 8e9)

# Packets at each rate.
PACKETS = 200

# What the paper calls exact, microseconds.
EXACT_US = 1.0
WITHIN = Metric("gaps within 1 us", "%")
ERROR = Metric("error", "us")


def simulation(sender: str, rate_bps: float, seed: int) -> Simulation:
    """One pace by one kind of sender."""
    gap_s = testbed.WIRE_BYTES * 8 / rate_bps
    return Simulation(
        scenario=testbed.SCENARIO,
        settings=(
            f'scheme.paced={{controller="constant", window=100000, pace="{rate_bps:.0f}bps"}}',
            "workload.scheme=paced",
            f"workload.size={PACKETS}packets",
            f"duration={1 + 2 * PACKETS * gap_s:.6f}s",
            "host_at=[]",
            f"host.timer_error={SENDERS[sender]}",
            f"packets.count={PACKETS}",
        ),
        seed=seed,
        label=f"{sender} {rate_bps:.3g} b/s seed {seed}",
        cost=0.01,
    )


def rates(effort: Effort) -> list[float]:
    """All rates that p-streams probe, b/s."""
    averages = AVERAGES_BPS if effort.name == "full" else QUICK_AVERAGES_BPS
    return [float(rate) for average in averages for rate in np.unique(rapid.p_stream(average).rate_bps)]


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every sender at every rate."""
    return [
        simulation(sender, rate, seed) for sender in SENDERS for rate in rates(effort) for seed in effort.seed_numbers()
    ]


def errors_us(packets: pl.DataFrame) -> np.ndarray:
    """By how much each gap is longer than wanted, microseconds."""
    late = (packets["departed_s"] - packets["due_s"]).to_numpy()
    return np.diff(late) * 1e6


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """How large the errors are, for each kind of sender."""
    rows: list[Row] = []
    curves: dict[str, pl.DataFrame] = {}
    for sender in SENDERS:
        by_seed = [
            np.concatenate([errors_us(outcomes[simulation(sender, rate, seed)].packets) for rate in rates(effort)])
            for seed in effort.seed_numbers()
        ]
        sizes = [np.abs(errors) for errors in by_seed]
        within = [100.0 * float((size <= EXACT_US).mean()) for size in sizes]
        # PAUSE frames make the same gaps with every seed.
        is_exact = sender == "PAUSE frames"
        key = Key(sender, WITHIN)
        rows.append(Row(key, None, within[0]) if is_exact else measured(key, None, within))
        for share in (50, 95):
            values = [float(np.percentile(size, share)) for size in sizes]
            rows.append(measured(Key(sender, ERROR, average=f"{share}th percentile"), None, values))
        every = np.sort(np.concatenate(by_seed))
        shares = np.linspace(0.0, 1.0, 501)
        curves[sender] = pl.DataFrame({"error_us": np.quantile(every, shares), "share": shares})
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """The distributions of the error."""
    drawing, [axes] = plots.figure()
    for sender, look in LOOKS.items():
        curve = evaluation.curves[sender]
        plots.line(axes, sender, look, curve["error_us"].to_list(), curve["share"].to_list())
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlabel("actual gap less intended gap (us)")
    axes.set_ylabel("share of gaps")
    plots.legend_above(axes, 2)
    return drawing


METRICS = named(WITHIN)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
