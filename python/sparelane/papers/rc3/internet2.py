"""The simulation behind most of RC3's evaluation (NSDI 2014 section 5.1), and the authors' way of averaging.

The same flows run twice, once under TCP and once under another scheme. A flow counts if it finishes in both runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import templates
from sparelane.papers.engine.rows import Key, Metric, Row, joined, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES, reduction

Scheme = Literal["tcp", "rc3"]
# The schemes of scenarios and their names in rows.
TCP, RC3 = "TCP", "RC3"
SCHEMES: Mapping[Scheme, str] = {"tcp": TCP, "rc3": RC3}

FCT = Metric("FCT", "s")
REDUCTION = Metric("reduction", "%")

# Flows that start before this share of the run do not count: 2 s of 5 s in the authors' scripts.
WARM_UP_SHARE = 0.4

# The authors' averaging script reads TCP's results until twice the time at which RC3's end.
LONG_RUN = 2

# The sizes of the workload.
SIZES_BYTES = [segments * MSS_BYTES for segments in FLOW_SIZES]


@dataclass(frozen=True, slots=True)
class Setting:
    """A network and its load: one column of the paper's tables.

    Attributes:
        name: the setting in keys of rows.
        overrides: the differences from the scenario, each `key=value`.
        load: the load of every link, 0 to 1.
        gbps: the rate of the access links, which determines the expected work.
        rc3_overrides: further overrides of RC3's runs.
        longer: the schemes that a full effort simulates for `LONG_RUN` times as long. Rules of averaging that stop
            earlier read the first part of the same run.
        scenario: the name of the shipped scenario.
        variant: the difference from the paper in keys of rows.
        part: the length of its runs, as a share of the effort's.
        full_only: quick efforts leave it out.
        rule: the variant of the rule of averaging that the paper's numbers follow, if it is not the first.
        aside: the variant of rows whose numbers belong to another setting, and do not count.
    """

    name: str
    overrides: tuple[str, ...] = ()
    load: float = 0.3
    gbps: float = 1.0
    rc3_overrides: tuple[str, ...] = ()
    longer: tuple[Scheme, ...] = ()
    scenario: str = "rc3-internet2"
    variant: str = ""
    part: float = 1.0
    full_only: bool = False
    rule: str = ""
    aside: str = ""

    def stop_s(self, effort: Effort) -> float:
        """Returns the time in seconds up to which flows start and, by the first rule, finish."""
        return self.part * effort.stop_s

    def cell(self, scheme: Scheme, effort: Effort) -> Cell:
        """Returns all flows under one scheme; TCP and RC3 have the same flows."""
        further = self.rc3_overrides if scheme == "rc3" else ()
        lengths = LONG_RUN if scheme in self.longer and effort.name != "quick" else 1
        settings = (*self.overrides, *further, f"workload.load={self.load:g}", f"workload.scheme={scheme}")
        return self._cell(settings, lengths * self.stop_s(effort), joined(self.name, self.variant, scheme))

    def changed(self, label: str, overrides: Sequence[str], effort: Effort) -> Cell:
        """Returns the same flows with further overrides, which include the scheme."""
        settings = (*self.overrides, *overrides, f"workload.load={self.load:g}")
        return self._cell(settings, self.stop_s(effort), label)

    def _cell(self, settings: tuple[str, ...], stop_s: float, label: str) -> Cell:
        return Cell(
            self.scenario,
            (*settings, f"duration={stop_s:g}s"),
            label,
            cost=self.load * self.gbps * stop_s,
            keep_flows=True,
        )


BASELINE = Setting("30%", longer=("tcp",))

# The four settings of Fig. 9, with buffers of the delay-bandwidth products that the paper names.
_SLOW, _FAR = "topology.access_rate=100Mbps", "topology.core_delay=100ms"

# The settings that files name in `like`.
NAMED: Mapping[str, Setting] = {
    "baseline": BASELINE,
    "slow near": Setting("100 Mb/s 40 ms", (_SLOW, "queue.limit=500KB"), gbps=0.1, longer=("tcp",)),
    "slow far": Setting("100 Mb/s 400 ms", (_SLOW, _FAR, "queue.limit=5MB"), gbps=0.1, longer=("tcp",)),
    "fast near": Setting("1 Gb/s 40 ms", longer=("tcp",)),
    "fast far": Setting("1 Gb/s 400 ms", (_FAR, "queue.limit=50MB"), longer=("tcp",)),
    # Hosts receive at a tenth of their sending rate, so that routers' links to them are the bottleneck (section 5.1.2).
    "downlink": Setting(
        "downlink 100 Mb/s",
        (
            "topology.access_rate=1Gbps",
            'link=[{select="access",rate="100Mbps",rate_from="routers"}]',
            "queue.limit=500KB",
        ),
        gbps=0.1,
    ),
    "fat tree": Setting("", scenario="rc3-fat-tree", gbps=24),
    # The paths that the core capacities were made for, which load all core links equally.
    "even paths": replace(BASELINE, overrides=('routing="single-path"',), longer=(), variant="even paths"),
}


def read_settings(rest: Section) -> list[Setting]:
    """Returns the settings that a file lists, each by its differences from a named one.

    Raises:
        DeclarationError: a key is wrong.
    """
    return [_setting(part) for part in templates(rest, "setting")]


def chosen(settings: Iterable[Setting], effort: Effort) -> list[Setting]:
    """Returns the settings of an effort."""
    return [one for one in settings if effort.name == "full" or not one.full_only]


def _setting(part: Section) -> Setting:
    base = part.one_of("like", NAMED, "baseline")
    # A setting whose runs of TCP differ from the base's shares none with other experiments, so they need not be longer.
    is_own = any(key in part for key in ("overrides", "load", "scenario", "part"))
    longer = () if is_own else base.longer
    if "longer" in part:
        longer = tuple(part.some_of("longer", {name: scheme for scheme, name in SCHEMES.items()}))
    found = replace(
        base,
        name=part.text("name", base.name),
        variant=part.text("variant", base.variant),
        scenario=part.text("scenario", base.scenario),
        overrides=(*base.overrides, *part.texts("overrides")),
        rc3_overrides=(*base.rc3_overrides, *part.texts("rc3_overrides")),
        load=part.number("load", base.load),
        gbps=part.number("gbps", base.gbps),
        part=part.number("part", base.part),
        longer=longer,
        full_only=part.flag("full_only"),
        rule=part.one_of("rule", RULES, FIRST_RULE).variant,
        aside=part.text("aside", ""),
    )
    part.finish()
    return found


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of averaging: which flows count.

    Attributes:
        tcp_runs: the time until which TCP's flows may finish, in lengths of the effort's runs.
        rc3_runs: the same for RC3's flows.
        variant: the rule in keys of rows.
        is_printed: the paper's numbers may follow this rule.
    """

    tcp_runs: int
    rc3_runs: int
    variant: str
    is_printed: bool = True

    def applies(self, setting: Setting) -> bool:
        """Returns true if a full effort simulates the setting for as long as the rule needs."""
        return (self.tcp_runs == 1 or "tcp" in setting.longer) and (self.rc3_runs == 1 or "rc3" in setting.longer)


BOTH_BY_THE_END = Rule(1, 1, "")
TCP_LONGER = Rule(LONG_RUN, 1, "TCP to 10 s")
BOTH_LONGER = Rule(LONG_RUN, LONG_RUN, "both to 10 s", is_printed=False)
# The variant of rows by the first rule if the paper's numbers follow another one.
FIRST_RULE = "both by the end"
RULES: Mapping[str, Rule] = {
    FIRST_RULE: BOTH_BY_THE_END,
    TCP_LONGER.variant: TCP_LONGER,
    BOTH_LONGER.variant: BOTH_LONGER,
}


def notes(effort: Effort) -> tuple[str, ...]:
    """Returns the note of a quick effort."""
    if effort.name != "quick":
        return ()
    counted_s = (1 - WARM_UP_SHARE) * effort.stop_s
    return (
        f"A quick run has {effort.stop_s:g} s. No flow that takes longer than {counted_s:g} s counts, which shortens "
        "mean completion times, TCP's most of all. Compare the numbers of the full effort.",
    )


def both(setting: Setting, effort: Effort) -> tuple[Cell, Cell]:
    """Returns the cells of TCP and of RC3."""
    return setting.cell("tcp", effort), setting.cell("rc3", effort)


def pairs(runs: Runs, setting: Setting, rule: Rule = BOTH_BY_THE_END) -> list[pl.DataFrame]:
    """Returns the `matched` flows of TCP and RC3, a table for each seed."""
    return against_tcp(runs, setting, setting.cell("rc3", runs.effort), rule=rule)


def against_tcp(
    runs: Runs, setting: Setting, other: Cell, *, flows: str = "", rule: Rule = BOTH_BY_THE_END
) -> list[pl.DataFrame]:
    """Returns the `matched` flows of TCP and another cell, a table for each seed.

    Args:
        runs: the outcomes.
        setting: the setting of TCP.
        other: the cell with the same flows under something else.
        flows: selects the flows that the other cell assigns to this scheme.
        rule: the rule of averaging.
    """
    stop_s = setting.stop_s(runs.effort)
    return [
        matched(tcp.flows, found.flows.filter(pl.col("scheme") == flows) if flows else found.flows, stop_s, rule)
        for tcp, found in runs.together(setting.cell("tcp", runs.effort), other)
    ]


def matched(regular: pl.DataFrame, other: pl.DataFrame, stop_s: float, rule: Rule = BOTH_BY_THE_END) -> pl.DataFrame:
    """Returns the flows that count, a row each.

    The columns are `size_bytes`, `ideal_s`, which is the least time that the flow's path allows, and the completion
    times `regular_s` and `other_s`. All times are in seconds.
    """
    late_enough = pl.col("start_s").is_between(WARM_UP_SHARE * stop_s, stop_s)
    finished = other.filter(pl.col("finish_s") <= rule.rc3_runs * stop_s).select("id", other_s="completion_s")
    return (
        regular.filter(late_enough & (pl.col("finish_s") <= rule.tcp_runs * stop_s))
        .select("id", "size_bytes", "ideal_s", regular_s="completion_s")
        .join(finished, on="id", maintain_order="left")
        .drop("id")
    )


# The averages, with the power of a flow's size that is its weight.
FLOWS, BYTES = "mean over flows", "mean over bytes"
AVERAGES: Mapping[str, int] = {FLOWS: 0, BYTES: 1}

# The completion times of `matched`.
TIMES = ("regular_s", "other_s")


def mean_times(flows: pl.DataFrame, average: str) -> tuple[float, float] | None:
    """Returns the mean completion times of `matched` flows in both runs, seconds; `None` without flows."""
    if flows.is_empty():
        return None
    weights = flows["size_bytes"].cast(pl.Float64).to_numpy() ** AVERAGES[average]
    regular_s, other_s = (float(np.average(flows[name].to_numpy(), weights=weights)) for name in TIMES)
    return regular_s, other_s


def all_mean_times(frames: Iterable[pl.DataFrame], average: str) -> list[tuple[float, float]]:
    """Returns `mean_times` of every seed that has flows."""
    return [times for frame in frames if (times := mean_times(frame, average)) is not None]


def reductions(frames: Iterable[pl.DataFrame], average: str = FLOWS) -> list[float]:
    """Returns the reduction of the mean completion time of `matched` flows, percent, of every seed that has flows."""
    return [reduction(*times) for times in all_mean_times(frames, average)]


def of_size(size_bytes: int, scheme: str = RC3) -> Key:
    """Returns the key of the reduction of flows of one size."""
    return Key(f"{size_bytes} bytes", REDUCTION, scheme)


def reductions_by_size(flows: pl.DataFrame) -> dict[int, float]:
    """Returns the reduction of the mean completion time of `matched` flows, percent, by size in bytes."""
    means = flows.group_by("size_bytes").agg(pl.col(TIMES).mean())
    return {size: reduction(regular_s, other_s) for size, regular_s, other_s in means.iter_rows()}


def size_rows(frames: Mapping[str, Sequence[pl.DataFrame]]) -> Iterable[Row]:
    """Yields the reduction of each scheme's `matched` flows, of which there is a table for each seed, size by size."""
    cuts = {scheme: [reductions_by_size(flows) for flows in found] for scheme, found in frames.items()}
    for size in SIZES_BYTES:
        for scheme, by_seed in cuts.items():
            yield measured(of_size(size, scheme), None, [found[size] for found in by_seed if size in found])


# Groups of flows, with the smallest and the largest size in bytes: flows that the first window of four segments holds,
# flows that take some round trips of slow start, and flows that fill the pipe.
GROUPS: Mapping[str, tuple[int, int]] = {
    "flows up to 4 KB": (0, 4_380),
    "flows of 7 to 390 KB": (4_381, 389_820),
    "flows of 1.7 and 3 MB": (389_821, 2**62),
}


def of_sizes(frames: Iterable[pl.DataFrame], sizes_bytes: tuple[int, int]) -> list[pl.DataFrame]:
    """Returns the flows whose sizes lie between two bounds, which are included."""
    return [frame.filter(pl.col("size_bytes").is_between(*sizes_bytes)) for frame in frames]


def completion_rows(
    setting: str,
    frames: Mapping[str, Sequence[pl.DataFrame]],
    *,
    variant: str = "",
    has_tcp: bool = True,
    time: Metric = FCT,
    per_second: float = 1.0,
) -> Iterable[Row]:
    """Yields completion times and reductions, over flows and over bytes.

    Args:
        setting: the setting in the rows' keys.
        frames: the `matched` flows of each scheme, a table for each seed.
        variant: the variant in the rows' keys.
        has_tcp: whether TCP's time, of the first scheme's flows, is a row.
        time: the metric of completion times.
        per_second: the number of the metric's units in a second.
    """
    for average in AVERAGES:
        times = {scheme: all_mean_times(found, average) for scheme, found in frames.items()}
        if has_tcp:
            tcp = [per_second * tcp_s for tcp_s, _ in next(iter(times.values()))]
            yield measured(Key(setting, time, TCP, average, variant=variant), None, tcp)
        for scheme, found in times.items():
            key = Key(setting, time, scheme, average, variant=variant)
            yield measured(key, None, [per_second * other_s for _, other_s in found])
            yield measured(replace(key, metric=REDUCTION), None, [reduction(*one) for one in found])
