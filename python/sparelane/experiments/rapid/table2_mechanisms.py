"""RAPID, Table II: what each mechanism is for, by leaving it out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Simulation, measured
from sparelane.experiments.rapid import testbed, transfers, web
from sparelane.experiments.rapid.printed import BesideWeb
from sparelane.experiments.rapid.web import Run

FULL = "full RAPID"
IDLE = "throughput, idle path"
UNPRINTED = BesideWeb(None, None, None)


@dataclass(frozen=True, slots=True)
class Variant:
    """RAPID without one of its mechanisms, and the paper's numbers.

    Attributes:
        settings: overrides of the scenario.
        idle_gbps: throughput without cross traffic; `None` where the paper has no such variant.
        web: what it has beside web users.
    """

    settings: tuple[str, ...]
    idle_gbps: float | None = None
    web: BesideWeb = UNPRINTED

    def idle(self, name: str, seed: int, effort: Effort) -> Simulation:
        """A run without cross traffic."""
        return testbed.simulation(
            "rapid",
            seed,
            effort.stop_s,
            label=f"{name}, idle",
            settings=(f"measure.from={web.WARM_UP_SHARE * effort.stop_s:g}s", *self.settings),
        )

    def beside_web(self, name: str) -> Run:
        """Beside web users."""
        return Run("rapid", self.settings, f"{name}, web users")


VARIANTS: Mapping[str, Variant] = {
    FULL: Variant((), 9.44, BesideWeb(7.00, 0.001, 1.45)),
    "V1: software timers": Variant(
        (f"host_at.0.timer_error={testbed.TIMER_ERROR}",), 8.37, BesideWeb(6.77, 0.004, 1.28)
    ),
    "V1, timers 1us late": Variant(("host_at.0.timer_error=1us",)),
    "V1, timers 5us late": Variant(("host_at.0.timer_error=5us",)),
    "V2: TCP timestamps": Variant(
        ("host_at.0.timestamp_clock=1ms", "host_at.0.timestamp_at=acknowledgment"), 9.83, BesideWeb(7.64, 0.217, 520.64)
    ),
    "V3: no arrival timestamps": Variant(
        ("host_at.0.timestamp_at=acknowledgment",), 7.91, BesideWeb(6.43, 0.001, 1.24)
    ),
    "V4: no BASS": Variant(("scheme.rapid.bass_passes=0",), 9.82, BesideWeb(7.83, 0.151, 8705.24)),
    "V5: gamma 1, N 64": Variant(("scheme.rapid.gamma=1",), 8.99, BesideWeb(6.45, 0.002, 1.23)),
    "V5: gamma 1, N 192": Variant(
        ("scheme.rapid.gamma=1", "scheme.rapid.packets_per_rate=48"), 9.49, BesideWeb(6.33, 0.007, 1.45)
    ),
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every variant, alone and beside web users, with every seed."""
    return [
        simulation
        for name, variant in VARIANTS.items()
        for seed in effort.seed_numbers()
        for simulation in (variant.idle(name, seed, effort), variant.beside_web(name).simulation(seed, effort))
    ]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The table, and whether each variant moves as the paper says."""
    rows = []
    for name, variant in VARIANTS.items():
        alone = [outcomes[variant.idle(name, seed, effort)] for seed in effort.seed_numbers()]
        rates = [transfers.gbps(outcome, web.counted_s(effort)) for outcome in alone]
        rows.append(measured(name, IDLE, "Gb/s", variant.idle_gbps, rates))
        rows += variant.beside_web(name).rows(name, variant.web, effort, outcomes, metrics=(web.MEDIAN,))
    found = Evaluation(tuple(rows))
    return replace(found, notes=directions(found))


def directions(evaluation: Evaluation) -> tuple[str, ...]:
    """Whether each variant takes more or less than full RAPID, ours and the paper's."""
    notes = []
    for name in VARIANTS:
        if name == FULL or VARIANTS[name].idle_gbps is None:
            continue
        words = []
        for metric, where in ((IDLE, "idle"), (web.THROUGHPUT, "beside web users")):
            row, full = evaluation.find(name, metric), evaluation.find(FULL, metric)
            ours, paper = (row.ours or 0) - (full.ours or 0), (row.paper or 0) - (full.paper or 0)
            same = "as in the paper" if ours * paper > 0 else "other than in the paper"
            words.append(f"{where} {ours:+.2f} Gb/s, {same} ({paper:+.2f})")
        notes.append(f"{name}: {'; '.join(words)}.")
    return tuple(notes)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput of each variant, alone and beside web users."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    shown = [name for name, variant in VARIANTS.items() if variant.idle_gbps is not None]
    bars = [
        plots.Bars.of_rows(label, look, [evaluation.find(name, metric) for name in shown])
        for label, metric, look in (
            ("idle path", IDLE, plots.TCP),
            ("beside web users", web.THROUGHPUT, plots.RC3),
        )
    ]
    plots.grouped_bars(axes, [textwrap.fill(name, 12) for name in shown], bars)
    axes.set_xlabel("variant")
    axes.set_ylabel("throughput (Gb/s)")
    plots.legend_above(axes, 3)
    return drawing


EXPERIMENT = Experiment(
    id="rapid/table2-mechanisms",
    title="What each mechanism is for",
    source="RAPID, section VI and Table II",
    method="RAPID over 10 Gb/s and 30 ms, without one of its mechanisms at a time, on an idle path and beside web "
    "users.",
    assumptions=(
        *testbed.ASSUMPTIONS,
        *web.ASSUMPTIONS,
        "tau = 10 ms and eta = 3: the paper's number for full RAPID is that of this setting and not of the gentler "
        "one of its web tables.",
        f"V1's timers are late by {testbed.TIMER_ERROR} on average, exponentially; the paper's Fig. 6 has no numbers. "
        "V2 stamps by a clock of 1 ms when the acknowledgment leaves, V3 by one of 1 us.",
    ),
    full=Effort("full", seeds=3, stop_s=20.0),
    quick=Effort("quick", seeds=1, stop_s=4.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
)
