"""RTCP, section V-A, Figs. 4 to 7: the testbed's flows on the TCP of Linux, beside the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_most
from sparelane.experiments.rows import Evaluation, Key, Metric, MissingNumberError, Row
from sparelane.experiments.rtcp.clients import CLASSES, FCT, GOODPUT, RCT, SCHEMES, SIZES, Sample, sample
from sparelane.experiments.statistics import estimate

SCENARIO = "rtcp-linux"
Side = Literal["simulator", "linux"]
SIDES: tuple[Side, ...] = ("simulator", "linux")
# What runs go on for beyond the requests' time, so that what was asked for can arrive, in lengths of that.
LONG_RUN = 6
# Hosts of Linux acknowledge nearly every packet, since the receiving program reads each at once.
OURS = ("transport.delayed_ack=false",)
# The switch marks for DCTCP alone, since others would ask for marks as well.
ASKS: Mapping[str, tuple[str, ...]] = {"DCTCP": ("queue.mark_at=20packets",)}
SHARES = (50, 99)
Samples = Mapping[Side, Sequence[Sample]]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a figure shows: what is asked for, and how.

    Attributes:
        name: of the rows.
        sizes: of flows, as the paper calls them.
        load: of the client's link.
        alpha: RTCP's.
        schemes: those of the figure that Linux has.
        overrides: `key=value` each.
    """

    name: str
    sizes: str
    load: float
    alpha: float
    schemes: tuple[str, ...] = ("Cubic", "DCTCP", "BBR", "RTCP")
    overrides: tuple[str, ...] = ()


ONE_SERVER = ('workload.servers=["left0"]',)
FAN_OUT = ("workload.fan_out=[{ flows = 1, share = 0.5 }, { flows = 2, share = 0.3 }, { flows = 8, share = 0.2 }]",)
FIG_4 = Setting("Fig. 4, web search, load 0.11", "web search", 0.11, 500, ("Cubic", "DCTCP", "RTCP"), ONE_SERVER)
FIG_5 = Setting("Figs. 5 and 6, web search, load 0.8", "web search", 0.8, 800)
FIG_5_LESS = Setting("Figs. 5 and 6, web search, load 0.6", "web search", 0.6, 800)
FIG_6 = Setting("Figs. 5 and 6, data mining, load 0.8", "data mining", 0.8, 15)
FIG_7 = Setting("Fig. 7, incast, load 0.8", "web search", 0.8, 1000, overrides=FAN_OUT)
SETTINGS = (FIG_4, FIG_5, FIG_5_LESS, FIG_6, FIG_7)
QUICK_SETTINGS = (FIG_4,)


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting."""

    setting: Setting
    scheme: str

    def simulation(self, seed: int, side: Side, effort: Effort) -> Simulation:
        """One run under a seed; both sides send the flows that the simulator draws with it."""
        setting = self.setting
        return Simulation(
            scenario=SCENARIO,
            settings=(
                f"workload.sizes.kind={SIZES[setting.sizes]}",
                f"workload.load={setting.load:g}",
                f"workload.scheme={SCHEMES[self.scheme]}",
                f"workload.end={effort.stop_s:g}s",
                f"duration={LONG_RUN * effort.stop_s:g}s",
                *((f"scheme.rtcp.alpha={setting.alpha:g}",) if self.scheme == "RTCP" else ()),
                *ASKS.get(self.scheme, ()),
                *setting.overrides,
                *(OURS if side == "simulator" else ()),
            ),
            seed=seed,
            on=side,
            label=f"{setting.name}, {self.scheme}, seed {seed}, {side}",
            cost=10.0 * setting.load * effort.stop_s if side == "linux" else 0.03 * setting.load * effort.stop_s,
        )

    def key(self, metric: Metric, average: str = "", traffic: str = "") -> Key:
        """The row of one quantity."""
        return Key(self.setting.name, metric, self.scheme, average, traffic)


def _runs(effort: Effort) -> list[Run]:
    settings = QUICK_SETTINGS if effort.name == "quick" else SETTINGS
    return [Run(setting, scheme) for setting in settings for scheme in setting.schemes]


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both sides of each run, under each seed."""
    return [
        run.simulation(seed, side, effort) for run in _runs(effort) for seed in effort.seed_numbers() for side in SIDES
    ]


def _times(setting: Setting) -> Metric:
    """What is timed: flows, or where a request asks for several, requests, which end with the last of theirs."""
    return RCT if setting is FIG_7 else FCT


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Ours beside Linux's: percentiles over the flows of all seeds together."""
    rows: list[Row] = []
    left = dict.fromkeys(SIDES, 0)
    for run in _runs(effort):
        samples = {
            side: [sample(outcomes[run.simulation(seed, side, effort)], effort) for seed in effort.seed_numbers()]
            for side in SIDES
        }
        rows += _rows(run, samples)
        for side in SIDES:
            left[side] += sum(one.unfinished for one in samples[side])
    return Evaluation(
        tuple(rows),
        (
            f"Flows that did not finish: on Linux {left['linux']}, in the simulator {left['simulator']}.",
            *_statements(rows),
        ),
    )


def _rows(run: Run, samples: Samples) -> list[Row]:
    metric, rows = _times(run.setting), []
    for name in CLASSES:
        of = f"{name} {metric.name}"
        for share in SHARES:
            key = run.key(metric, f"{share}th percentile", name)
            rows.append(_row(key, samples, of, partial(_percentile, share)))
    rows.append(_row(run.key(GOODPUT.metric), samples, "goodput", _mean))
    return rows


def _percentile(share: int, values: np.ndarray) -> float:
    return float(np.percentile(values, share))


def _mean(values: np.ndarray) -> float:
    return float(values.mean())


def _row(key: Key, samples: Samples, of: str, reduce: Callable[[np.ndarray], float]) -> Row:
    """Ours beside Linux's, with the interval of their difference: both sides have the same flows under a seed."""

    def over(side: Side, seeds: Sequence[int]) -> float | None:
        together = np.concatenate([samples[side][at].values[of] for at in seeds])
        return reduce(together) if together.size else None

    every = list(range(len(samples["linux"])))
    ours, linux = (over(side, every) for side in SIDES)
    if ours is None or linux is None:
        return Row(key, None, None)
    parts = []
    for out in every[: len(every) if len(every) > 1 else 0]:
        less = [over(side, [at for at in every if at != out]) for side in SIDES]
        if less[0] is not None and less[1] is not None:
            parts.append(len(every) * (ours - linux) - (len(every) - 1) * (less[0] - less[1]))
    return Row(key, linux, ours, estimate(parts).ci95 if len(parts) > 1 else None)


def _statements(rows: Sequence[Row]) -> list[str]:
    """What the paper says of RTCP's place among the schemes, and where it holds on Linux and in the simulator."""
    found = {row.key: row for row in rows}
    notes = []
    for name, words, others in (
        ("urgent", "RTCP's 99th percentile of urgent flows is the least", ("Cubic", "DCTCP", "BBR")),
        ("high-volume", "RTCP's 99th percentile of high-volume flows is above Cubic's", ("Cubic",)),
        ("high-volume", "RTCP's 99th percentile of high-volume requests is below Cubic's", ("Cubic",)),
    ):
        is_above, is_of_requests = "above" in words, "requests" in words
        held: dict[Side, list[str]] = {side: [] for side in SIDES}
        asked = [one for one in SETTINGS if name == "urgent" or (one is FIG_7) == is_of_requests]
        asked = [one for one in asked if any(key.setting == one.name for key in found)]
        for setting in asked:
            average = f"{SHARES[1]}th percentile"
            own, *theirs = (
                found.get(Run(setting, scheme).key(_times(setting), average, name)) for scheme in ("RTCP", *others)
            )
            for side in SIDES:
                number = _number(own, side)
                there = [other for row in theirs if (other := _number(row, side)) is not None]
                if number is not None and there and (number > min(there)) == is_above:
                    held[side].append(setting.name)
        if asked:
            on_linux, simulated = (
                f"{len(names)} of {len(asked)}{_but(asked, names)}" for names in (held["linux"], held["simulator"])
            )
            notes.append(f"{words}, as the paper says: on Linux in {on_linux}; in the simulator in {simulated}.")
    return notes


def _but(asked: Sequence[Setting], held: Sequence[str]) -> str:
    left = [setting.name for setting in asked if setting.name not in held]
    return f" (not in {'; '.join(left)})" if left else ""


def _number(row: Row | None, side: Side) -> float | None:
    return None if row is None else row.paper if side == "linux" else row.value


def _median(evaluation: Evaluation) -> float:
    shares = [abs(row.value / row.paper - 1) for row in evaluation.rows if row.value is not None and row.paper]
    if not shares:
        raise MissingNumberError("a number on both sides")
    return 100 * float(np.median(shares))


def _unexplained(evaluation: Evaluation) -> float:
    return sum((row.value is None or row.deviates) and not row.is_explained for row in evaluation.rows)


def draw(evaluation: Evaluation) -> Figure:
    """Times of both classes and goodput: for each setting, each scheme on Linux and here."""
    settings = [one for one in SETTINGS if any(row.key.setting == one.name for row in evaluation.rows)]
    shown = (("urgent", SHARES[1]), ("high-volume", SHARES[1]), ("", 0))
    drawing, panels = plots.figure(len(shown), width_inches=1.4 * plots.PAGE_INCHES, rows=len(settings))
    for at, setting in enumerate(settings):
        for axes, (name, share) in zip(panels[len(shown) * at :], shown, strict=False):
            bars = []
            keys = [_shown_key(Run(setting, scheme), name, share) for scheme in setting.schemes]
            for words, look, side in SHOWN_SIDES:
                numbers = [_number(evaluation.find(key), side) for key in keys]
                bars.append(
                    plots.Bars.of_rows(
                        words, look, [Row(key, None, value) for key, value in zip(keys, numbers, strict=True)]
                    )
                )
            plots.grouped_bars(axes, list(setting.schemes), bars)
            if name == "urgent":
                axes.set_yscale("log")
            axes.set_xlabel(setting.name)
            unit = keys[0].metric.unit
            axes.set_ylabel(f"{name} {share}th {keys[0].metric.name} ({unit})" if name else f"goodput ({unit})")
            plots.legend_above(axes, 2)
    return drawing


SHOWN_SIDES: tuple[tuple[str, plots.Look, Side], ...] = (
    ("Linux", plots.TCP, "linux"),
    ("simulator", plots.RC3, "simulator"),
)


def _shown_key(run: Run, name: str, share: int) -> Key:
    return run.key(_times(run.setting), f"{share}th percentile", name) if name else run.key(GOODPUT.metric)


REASONS: Mapping[Key, str] = {}

EXPERIMENT = Experiment(
    id="rtcp/testbed",
    title="The testbed's flows on Linux",
    source="RTCP, section V-A, Figs. 4 to 7",
    method="A client fetches flows from one server or four, over 1 Gb/s and 200 us: on the TCP of Linux 6.12 in "
    "virtual time (`sparelane run rtcp-linux --on linux`) and in the simulator. RTCP there is the source of the BPF "
    "program, built into the kernel; Cubic, DCTCP and BBR are the kernel's own. Where other pages have the paper's "
    "number, this one has Linux's.",
    assumptions=(
        "Both sides send the same flows, which the simulator draws with the seed. Each has its own connection. Linux "
        "has no PCC.",
        "Flows below 30 kB are urgent, and weigh 24,000 bytes, others 12,000; delta = 125; alpha is the paper's for "
        "each figure; the least window is two segments.",
        "The switch's queue holds 4.5 MB, half of its memory, and marks for DCTCP what is behind 20 packets (on Linux "
        "what has waited for as long as 20 packets take).",
        "Hosts have no bound on the receive window, and acknowledge nearly every packet.",
        "Requests come during the simulated time that an effort names; flows that start in the first tenth of it do "
        "not count. Percentiles are over the flows of all seeds together; requests of Fig. 7 take as long as the last "
        "of their flows.",
        "What stands behind ± is the interval of the difference, not of our number: the jackknife's, by leaving out "
        "one seed at a time on both sides.",
    ),
    full=Effort("full", seeds=5, stop_s=2.0),
    quick=Effort("quick", seeds=1, stop_s=1.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=(
        Claim("The median difference from Linux is under 3 %", _median, full=at_most(3.0)),
        Claim("No number differs by more than 10 % without a reason: how many do", _unexplained, full=at_most(0.0)),
    ),
    needs_kernel="linux",
    witness="Linux",
)
