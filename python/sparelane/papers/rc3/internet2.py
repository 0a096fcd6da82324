"""The simulation that most of RC3's evaluation rests on (NSDI 2014 section 5.1), and the authors' way of averaging.

The same flows run twice, once under TCP and once under RC3; a flow counts if it finishes in both runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sparelane.papers.engine.base import Effort, Outcomes, Simulation
from sparelane.papers.engine.rows import Key, Metric, Row, joined, measured
from sparelane.papers.rc3.analytic import reduction

SCENARIO = "rc3-internet2"

Scheme = Literal["tcp", "rc3"]
SCHEMES: tuple[Scheme, ...] = ("tcp", "rc3")
# How rows call them.
TCP, RC3 = "TCP", "RC3"

# What is measured: completion times, and by how much they are shorter than TCP's.
FCT = Metric("FCT", "s")
REDUCTION = Metric("reduction", "%")

# Flows that start before this share of the run are left out: 2 s of 5 s in the authors' scripts.
WARM_UP_SHARE = 0.4

# The authors' averaging script reads TCP's results up to twice the time at which RC3's end.
LONG_RUN = 2

# The paths that the capacities were made for, which load all core links alike; the scenario has those of ns-3.
EVEN_PATHS = 'routing="single-path"'


@dataclass(frozen=True, slots=True)
class Setting:
    """One column of the paper's tables: what differs from the baseline.

    Attributes:
        name: how rows call it.
        overrides: `key=value` each.
        load: of every link, 0 to 1.
        gbps: rate of the access links, for the estimate of the work.
        rc3_overrides: further ones for RC3's runs alone.
        tcp_longer: a full effort lets TCP run on to where the authors' averaging script stops, which doubles TCP's
            work; rules of averaging that look no further read the first part of the same run.
        rc3_longer: a full effort lets RC3 run on as far.
        scenario: the ready-made scenario that the overrides change.
        variant: what is other than in the paper, for rows; such a setting has no printed number.
        part: the length of its runs, as a share of the effort's.
    """

    name: str
    overrides: tuple[str, ...]
    load: float
    gbps: float = 1.0
    rc3_overrides: tuple[str, ...] = ()
    tcp_longer: bool = False
    rc3_longer: bool = False
    scenario: str = SCENARIO
    variant: str = ""
    part: float = 1.0

    def varied(self, variant: str, *overrides: str) -> Setting:
        """The same with further overrides, for both schemes, and without longer runs."""
        return replace(
            self, variant=variant, overrides=(*self.overrides, *overrides), tcp_longer=False, rc3_longer=False
        )

    def effort(self, effort: Effort) -> Effort:
        """The effort with the length of this setting's runs."""
        return replace(effort, stop_s=self.part * effort.stop_s)


BASELINE = Setting("30%", (), 0.3, tcp_longer=True)

# The four settings of Fig. 9, with buffers of the delay-bandwidth products that the paper names.
_SLOW = ("topology.access_rate=100Mbps",)
_FAR = ("topology.core_delay=100ms",)
SLOW_NEAR = Setting("100 Mb/s 40 ms", (*_SLOW, "queue.limit=500KB"), 0.3, gbps=0.1, tcp_longer=True)
SLOW_FAR = Setting("100 Mb/s 400 ms", (*_SLOW, *_FAR, "queue.limit=5MB"), 0.3, gbps=0.1, tcp_longer=True)
FAST_NEAR = Setting("1 Gb/s 40 ms", (), 0.3, tcp_longer=True)
FAST_FAR = Setting("1 Gb/s 400 ms", (*_FAR, "queue.limit=50MB"), 0.3, tcp_longer=True)

# Hosts receive at a tenth of what they send at: routers' links to them are the bottleneck (section 5.1.2, summary).
DOWNLINK = Setting(
    "downlink 100 Mb/s",
    (
        "topology.access_rate=1Gbps",
        'link=[{select="access",rate="100Mbps",rate_from="routers"}]',
        "queue.limit=500KB",
    ),
    0.3,
    gbps=0.1,
)

# By the names that files call them.
NAMED: Mapping[str, Setting] = {
    "baseline": BASELINE,
    "slow near": SLOW_NEAR,
    "slow far": SLOW_FAR,
    "fast near": FAST_NEAR,
    "fast far": FAST_FAR,
    "downlink": DOWNLINK,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """Which flows count.

    Attributes:
        tcp_runs: until when TCP's flows may finish, in lengths of the effort's runs.
        rc3_runs: until when RC3's may.
        variant: what rows say of the rule.
        is_printed: the paper's numbers may follow it.
    """

    tcp_runs: int
    rc3_runs: int
    variant: str
    is_printed: bool = True

    def applies(self, setting: Setting) -> bool:
        """Whether a full effort runs the setting for as long as the rule looks."""
        return (self.tcp_runs == 1 or setting.tcp_longer) and (self.rc3_runs == 1 or setting.rc3_longer)


BOTH_BY_THE_END = Rule(1, 1, "")
TCP_LONGER = Rule(LONG_RUN, 1, "TCP to 10 s")
BOTH_LONGER = Rule(LONG_RUN, LONG_RUN, "both to 10 s", is_printed=False)


def simulation(setting: Setting, scheme: Scheme, seed: int, stop_s: float) -> Simulation:
    """One run of a setting. TCP and RC3 with equal settings and seeds see the same flows."""
    return Simulation(
        scenario=setting.scenario,
        settings=(
            *setting.overrides,
            *(setting.rc3_overrides if scheme == "rc3" else ()),
            f"workload.load={setting.load:g}",
            f"workload.scheme={scheme}",
            f"duration={stop_s:g}s",
        ),
        seed=seed,
        label=joined(setting.name, setting.variant, f"{scheme} seed {seed}"),
        cost=setting.load * setting.gbps * stop_s,
        keep_flows=seed == 1,
    )


def notes(effort: Effort) -> tuple[str, ...]:
    """What a reader of a quick effort's rows should know."""
    if effort.name != "quick":
        return ()
    counted_s = (1 - WARM_UP_SHARE) * effort.stop_s
    return (
        f"Quick: runs of {effort.stop_s:g} s. No flow that takes longer than {counted_s:g} s can count, so the times "
        "come out short, TCP's most of all; the full effort is the one to compare.",
    )


def tcp_run(setting: Setting, seed: int, effort: Effort) -> Simulation:
    """TCP, for as long as any rule looks where the setting asks for that, else for as long as RC3."""
    lengths = LONG_RUN if setting.tcp_longer and effort.name != "quick" else 1
    return simulation(setting, "tcp", seed, lengths * setting.effort(effort).stop_s)


def rc3_run(setting: Setting, seed: int, effort: Effort) -> Simulation:
    """RC3 on the same flows."""
    lengths = LONG_RUN if setting.rc3_longer and effort.name != "quick" else 1
    return simulation(setting, "rc3", seed, lengths * setting.effort(effort).stop_s)


def plan(settings: Sequence[Setting], effort: Effort) -> list[Simulation]:
    """Both schemes in every setting with every seed."""
    return [
        run(setting, seed, effort)
        for setting in settings
        for seed in effort.seed_numbers()
        for run in (tcp_run, rc3_run)
    ]


def pairs(
    setting: Setting, seed: int, effort: Effort, outcomes: Outcomes, rule: Rule = BOTH_BY_THE_END
) -> pl.DataFrame:
    """TCP's flows beside RC3's, as `matched` has them."""
    tcp, rc3 = (outcomes[run(setting, seed, effort)].flows for run in (tcp_run, rc3_run))
    return matched(tcp, rc3, setting.effort(effort), rule)


def matched(regular: pl.DataFrame, other: pl.DataFrame, effort: Effort, rule: Rule = BOTH_BY_THE_END) -> pl.DataFrame:
    """The flows that count, one row each: `size_bytes`, `ideal_s`, and `regular_s` and `other_s`, the completion times.

    `ideal_s` is the least time that the flow's path allows. All times are in seconds.
    """
    late_enough = pl.col("start_s").is_between(WARM_UP_SHARE * effort.stop_s, effort.stop_s)
    finished = other.filter(pl.col("finish_s") <= rule.rc3_runs * effort.stop_s).select("id", other_s="completion_s")
    return (
        regular.filter(late_enough & (pl.col("finish_s") <= rule.tcp_runs * effort.stop_s))
        .select("id", "size_bytes", "ideal_s", regular_s="completion_s")
        .join(finished, on="id", maintain_order="left")
        .drop("id")
    )


# A flow counts as often as this power of its size says.
FLOWS, BYTES = "mean over flows", "mean over bytes"
AVERAGES: Mapping[str, int] = {FLOWS: 0, BYTES: 1}

# The completion times of `matched`.
TIMES = ("regular_s", "other_s")


def mean_times(flows: pl.DataFrame, average: str) -> tuple[float, float] | None:
    """The mean completion times of `matched` flows in both runs, seconds; `None` without flows."""
    if flows.is_empty():
        return None
    weights = flows["size_bytes"].cast(pl.Float64).to_numpy() ** AVERAGES[average]
    regular_s, other_s = (float(np.average(flows[name].to_numpy(), weights=weights)) for name in TIMES)
    return regular_s, other_s


def reductions_by_size(flows: pl.DataFrame) -> dict[int, float]:
    """Reduction of the mean completion time of `matched` flows in percent, by size in bytes, where there are any."""
    means = flows.group_by("size_bytes").agg(pl.col(TIMES).mean())
    return {size: reduction(regular_s, other_s) for size, regular_s, other_s in means.iter_rows()}


# Flows by what they are to slow start, and the largest of each in bytes: those that the first window of four segments
# holds, those that take some round trips of it, and those that fill the pipe.
SIZES: Mapping[str, tuple[int, int]] = {
    "flows up to 4 KB": (0, 4_380),
    "flows of 7 to 390 KB": (4_381, 389_820),
    "flows of 1.7 and 3 MB": (389_821, 2**62),
}


def reductions_by_group(setting: str, frames: Sequence[pl.DataFrame], variant: str = "") -> Iterable[Row]:
    """RC3's reduction of the mean completion time of `matched` flows, a row for each of `SIZES`.

    Args:
        setting: how rows call it.
        frames: one for each seed.
        variant: of all rows.
    """
    for name, (least, most) in SIZES.items():
        groups = (frame.filter(pl.col("size_bytes").is_between(least, most)) for frame in frames)
        cuts = [reduction(*times) for times in all_mean_times(list(groups), FLOWS)]
        yield measured(Key(setting, REDUCTION, RC3, name, variant=variant), None, cuts)


def all_pairs(setting: Setting, effort: Effort, outcomes: Outcomes, rule: Rule = BOTH_BY_THE_END) -> list[pl.DataFrame]:
    """`pairs` of every seed."""
    return [pairs(setting, seed, effort, outcomes, rule) for seed in effort.seed_numbers()]


def all_mean_times(frames: Sequence[pl.DataFrame], average: str) -> list[tuple[float, float]]:
    """`mean_times` of every seed that has flows."""
    return [times for frame in frames if (times := mean_times(frame, average)) is not None]


def completion_rows(
    setting: str,
    frames: Sequence[pl.DataFrame],
    printed: Mapping[Key, float],
    *,
    scheme: str = RC3,
    variant: str = "",
    time: Metric = FCT,
    per_second: float = 1.0,
) -> Iterable[Row]:
    """TCP's time, the other scheme's time and the reduction of `matched` flows, over flows and over bytes.

    Args:
        setting: how rows call it.
        frames: one for each seed.
        printed: the paper's numbers, as far as there are any.
        scheme: what is compared with TCP.
        variant: of all rows.
        time: the metric of completion times.
        per_second: how many of its units are a second.
    """
    for average in AVERAGES:
        times = all_mean_times(frames, average)
        regular, other, cut = (
            Key(setting, metric, of, average, variant=variant)
            for metric, of in ((time, TCP), (time, scheme), (REDUCTION, scheme))
        )
        yield measured(regular, printed.get(regular), [per_second * tcp_s for tcp_s, _ in times])
        yield measured(other, printed.get(other), [per_second * other_s for _, other_s in times])
        yield measured(cut, printed.get(cut), [reduction(*pair) for pair in times])
