"""RAPID, Table II: what each mechanism is for, by leaving it out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, measured
from sparelane.papers.rapid import testbed, transfers, web
from sparelane.papers.rapid.transfers import LOSS, THROUGHPUT
from sparelane.papers.rapid.web import MEDIAN, WEB_FLOW, Run
from sparelane.reports import plots

FULL = "full RAPID"
# TCP that never runs out of window, and to which no lost retransmission is a timeout.
UNSTOPPED = (
    'scheme.rapid.transport={receive_window = "unlimited", rack_tlp = true}',
    testbed.LOSSY_STREAMS_SKIPPED,
)
LONG_STREAMS = "V5: gamma 1, N 192"
# A p-stream of 192 packets takes 138 s at 100 kb/s.
LONG_START_UP_S = 180.0
# RAPID as a new connection after timeouts, which TCP has for each lost retransmission; lossy p-streams say nothing.
STARTING = (
    testbed.START_AFTER_TIMEOUTS,
    testbed.LOSSY_STREAMS_SKIPPED,
    "transport.detect_lost_retransmissions=false",
)
V2 = ("host_at.0.timestamp_clock=1ms", "host_at.0.timestamp_at=acknowledgment")
V4 = ("scheme.rapid.bass_passes=0",)


@dataclass(frozen=True, slots=True)
class Variant:
    """RAPID without one of its mechanisms.

    Attributes:
        settings: overrides of the scenario.
        start_up_s: the longest time that its start takes.
    """

    settings: tuple[str, ...]
    start_up_s: float = testbed.START_UP_S

    def span(self, effort: Effort) -> tuple[float, float]:
        """When a run ends and from when on it counts, seconds."""
        return testbed.span("rapid", effort, web.WARM_UP_SHARE, self.start_up_s)

    def idle(self, name: str, seed: int, effort: Effort) -> Simulation:
        """A run without cross traffic."""
        stop_s, from_s = self.span(effort)
        return testbed.simulation(
            "rapid",
            seed,
            stop_s,
            label=f"{name}, idle",
            settings=(f"measure.from={from_s:g}s", *testbed.start(effort), *self.settings),
        )

    def beside_web(self, name: str) -> Run:
        """Beside web users."""
        return Run("rapid", self.settings, "beside web users", name, start_up_s=self.start_up_s)


VARIANTS: Mapping[str, Variant] = {
    FULL: Variant(()),
    "V1: software timers": Variant((f"host_at.0.timer_error={testbed.TIMER_ERROR}",)),
    "V1, timers 1us late": Variant(("host_at.0.timer_error=1us",)),
    "V1, timers 5us late": Variant(("host_at.0.timer_error=5us",)),
    "V2: TCP timestamps": Variant(V2),
    "V3: no arrival timestamps": Variant(("host_at.0.timestamp_at=acknowledgment",)),
    "V4: no BASS": Variant(V4),
    "V5: gamma 1, N 64": Variant(("scheme.rapid.gamma=1",)),
    LONG_STREAMS: Variant(("scheme.rapid.gamma=1", "scheme.rapid.packets_per_rate=48"), start_up_s=LONG_START_UP_S),
    "full RAPID, lossy p-streams say nothing": Variant((testbed.LOSSY_STREAMS_SKIPPED,)),
    "V2, lossy p-streams say nothing": Variant((testbed.LOSSY_STREAMS_SKIPPED, *V2)),
    "V4, lossy p-streams say nothing": Variant((testbed.LOSSY_STREAMS_SKIPPED, *V4)),
    **{
        f"{name}, p-streams with any losses are judged": Variant(
            (testbed.LOSSY_STREAMS["p-streams with any losses are judged"], *settings)
        )
        for name, settings in (("full RAPID", ()), ("V2", V2), ("V4", V4))
    },
    "full RAPID, start-up after timeouts": Variant(STARTING),
    "V2, start-up after timeouts": Variant((*STARTING, *V2)),
    "V4, start-up after timeouts": Variant((*STARTING, *V4)),
    "full RAPID, TCP never stops": Variant(UNSTOPPED),
    "V2, TCP never stops": Variant((*UNSTOPPED, *V2)),
    "V4, TCP never stops": Variant((*UNSTOPPED, *V4)),
    "full RAPID, a switch that refuses users first": Variant(web.REFUSING_USERS),
    "V2, a switch that refuses users first": Variant((*web.REFUSING_USERS, *V2)),
    "V4, a switch that refuses users first": Variant((*web.REFUSING_USERS, *V4)),
}


def idle(name: str) -> Key:
    """The throughput of a variant without cross traffic."""
    return Key("idle path", THROUGHPUT, name)


def beside_web(name: str, metric: Metric, average: str = "") -> Key:
    """A number of a variant beside web users."""
    return VARIANTS[name].beside_web(name).key(metric, average)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every variant, alone and beside web users, with every seed."""
    return [
        simulation
        for name, variant in VARIANTS.items()
        for seed in effort.seed_numbers()
        for simulation in (variant.idle(name, seed, effort), variant.beside_web(name).simulation(seed, effort))
    ]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The table."""
    rows = []
    for name, variant in VARIANTS.items():
        stop_s, from_s = variant.span(effort)
        alone = [outcomes[variant.idle(name, seed, effort)] for seed in effort.seed_numbers()]
        rates = [transfers.gbps(outcome, stop_s - from_s) for outcome in alone]
        rows.append(measured(idle(name), None, rates))
        run = variant.beside_web(name)
        rows += run.rows(effort, outcomes, averages=(MEDIAN,))
    return Evaluation(tuple(rows))


def restate(found: Evaluation) -> Evaluation:
    """With notes on which way each variant moves."""
    return replace(found, notes=directions(found))


def directions(evaluation: Evaluation) -> tuple[str, ...]:
    """Whether each variant takes more or less than full RAPID, ours and the paper's."""
    notes = []
    for name in VARIANTS:
        if name == FULL or evaluation.find(idle(name)).paper is None:
            continue
        words = []
        for where, key, of_full in (
            ("idle", idle(name), idle(FULL)),
            ("beside web users", beside_web(name, THROUGHPUT), beside_web(FULL, THROUGHPUT)),
        ):
            row, full = evaluation.find(key), evaluation.find(of_full)
            ours, paper = (row.value or 0) - (full.value or 0), (row.paper or 0) - (full.paper or 0)
            same = "as in the paper" if ours * paper > 0 else "other than in the paper"
            words.append(f"{where} {ours:+.2f} Gb/s, {same} ({paper:+.2f})")
        notes.append(f"{name}: {'; '.join(words)}.")
    return tuple(notes)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput of each variant, alone and beside web users."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    shown = [name for name in VARIANTS if evaluation.find(idle(name)).paper is not None]
    bars = [
        plots.Bars.of_rows("idle path", plots.TCP, [evaluation.find(idle(name)) for name in shown]),
        plots.Bars.of_rows(
            "beside web users", plots.RC3, [evaluation.find(beside_web(name, THROUGHPUT)) for name in shown]
        ),
    ]
    plots.grouped_bars(axes, [textwrap.fill(name, 12) for name in shown], bars)
    axes.set_xlabel("variant")
    axes.set_ylabel("throughput (Gb/s)")
    plots.legend_above(axes, 3)
    return drawing


METRICS = named(LOSS, THROUGHPUT, WEB_FLOW)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw, restate=restate)
