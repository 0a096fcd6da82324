"""Internet-2 with something changed, compared flow by flow with the baseline's TCP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import polars as pl

from sparelane.papers.engine.base import Effort, Outcomes, Simulation
from sparelane.papers.engine.rows import Key, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import BASELINE, FCT, REDUCTION, TCP, Scheme, Setting


def mix(shares: str, by: Literal["flow", "host"]) -> str:
    """The override that gives each scheme its share of the flows, as in `tcp=0.9, rc3=0.1`.

    A workload has one scheme or a mix, so the scenario's workload is written anew; it is the same but for that.
    """
    return (
        f'workload={{kind="poisson", mix={{{shares}}}, mix_by="{by}", load_on="access", sizes={{kind="rc3"}}, '
        'destinations="another-router"}'
    )


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs from TCP on the same flows.

    Attributes:
        name: how rows call it.
        settings: overrides of the scenario, each `key=value`; among them the scheme of the flows.
        base: the setting whose TCP it is compared with.
        part: the length of its runs, as a share of the length that other experiments give to the base's.
    """

    name: str
    settings: tuple[str, ...]
    base: Setting = BASELINE
    part: float = 1.0

    def run(self, seed: int, effort: Effort) -> Simulation:
        """The base's flows under this variant."""
        load = self.base.load
        return Simulation(
            scenario=self.base.scenario,
            settings=(*self.base.overrides, *self.settings, f"workload.load={load:g}", f"duration={effort.stop_s:g}s"),
            seed=seed,
            label=f"{self.name} seed {seed}",
            cost=load * self.base.gbps * effort.stop_s,
            keep_flows=seed == 1,
        )


@dataclass(frozen=True, slots=True)
class Shared:
    """A run that other experiments make anyway: all flows under TCP, or all under RC3.

    Attributes:
        name: how rows call it.
        scheme: of all flows.
        base: its setting.
        part: how much of its run is read.
    """

    name: str
    scheme: Scheme
    base: Setting = BASELINE
    part: float = 1.0

    def run(self, seed: int, effort: Effort) -> Simulation:
        """The others' run; what it holds beyond the effort's time is not read."""
        whole = replace(effort, stop_s=effort.stop_s / self.part)
        make = internet2.tcp_run if self.scheme == "tcp" else internet2.rc3_run
        return make(self.base, seed, whole)


def tcp(variant: Variant | Shared) -> Shared:
    """What the variant is compared with."""
    return Shared("TCP", "tcp", variant.base, variant.part)


def plan(variants: Sequence[Variant | Shared], effort: Effort) -> list[Simulation]:
    """Each variant's run and TCP's on the same flows, with every seed."""
    runs = [
        run.run(seed, effort)
        for seed in effort.seed_numbers()
        for variant in variants
        for run in (tcp(variant), variant)
    ]
    return list(dict.fromkeys(runs))


def matched(
    variant: Variant | Shared, effort: Effort, outcomes: Outcomes, scheme: str | None = None
) -> list[pl.DataFrame]:
    """For each seed TCP's flows beside the variant's, as `internet2.matched` has them.

    Args:
        variant: what TCP is compared with.
        effort: how long and how often.
        outcomes: of the plan's runs.
        scheme: takes only the flows that the variant gave to this scheme.
    """
    frames = []
    for seed in effort.seed_numbers():
        regular, other = (outcomes[run.run(seed, effort)].flows for run in (tcp(variant), variant))
        chosen = other if scheme is None else other.filter(pl.col("scheme") == scheme)
        frames.append(internet2.matched(regular, chosen, effort))
    return frames


def rows(
    setting: str,
    frames: Mapping[str, Sequence[pl.DataFrame]],
    average: str,
    printed: Mapping[Key, float] = MappingProxyType({}),
    *,
    variant: str = "",
) -> Iterable[Row]:
    """The mean completion time of each scheme in seconds, and its reduction in percent of TCP's.

    Args:
        setting: how rows call it.
        frames: TCP's flows beside a scheme's, by the name of the scheme.
        average: the kind of mean.
        printed: the paper's numbers, as far as there are any.
        variant: of all rows.
    """
    for scheme, found in frames.items():
        times = internet2.all_mean_times(found, average)
        time, cut = (Key(setting, metric, scheme, average, variant=variant) for metric in (FCT, REDUCTION))
        yield measured(time, printed.get(time), [other for _, other in times])
        yield measured(cut, printed.get(cut), [reduction(*pair) for pair in times])


def tcp_row(
    setting: str,
    frames: Sequence[pl.DataFrame],
    average: str,
    printed: Mapping[Key, float] = MappingProxyType({}),
    *,
    variant: str = "",
) -> Row:
    """TCP's mean completion time."""
    key = Key(setting, FCT, TCP, average, variant=variant)
    return measured(key, printed.get(key), [tcp for tcp, _ in internet2.all_mean_times(frames, average)])


def reduction_row(key: Key, frames: Sequence[pl.DataFrame], average: str, paper: float | None = None) -> Row:
    """The reduction alone, percent of TCP's mean."""
    return measured(key, paper, [reduction(*times) for times in internet2.all_mean_times(frames, average)])
