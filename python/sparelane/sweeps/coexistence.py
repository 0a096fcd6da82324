"""Evaluates schemes that share a run: their shares of the goodput, and the fairness between them.

Such schemes are not alternatives. They compete for the same queues, so a difference between their numbers shows how
they share, and not which one is better. The evaluation has three parts:

- the share of the goodput and the share of the flows;
- Jain's fairness index over the throughputs of all flows that last to the end of the run;
- the harm to each scheme, which needs further runs; see `sparelane.sweeps.harm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sparelane.common.units import quantity
from sparelane.results.rows import ALL, axis_names
from sparelane.sweeps import measure
from sparelane.sweeps.differences import without_key
from sparelane.sweeps.intervals import Interval, mean_intervals

BESIDE = "beside: "
OF_ONE = f", {ALL}"
SHARE = "share of goodput"


@dataclass(frozen=True, slots=True)
class Group:
    """Schemes that share runs.

    Attributes:
        name: the scheme of their settings, as in the column `scheme`; empty if the schemes do not vary.
        members: the name of each scheme, with the values of `scheme` and `traffic` in its rows.
    """

    name: str
    members: dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Portion:
    """The share of one scheme in one setting.

    Attributes:
        setting: the setting as text; empty if nothing varies.
        scheme: the name of the scheme.
        goodput_percent: the share of the goodput of all flows, as the mean over seeds.
        interval: the 95 % interval of that share.
        flows_percent: the share of the flows.
        throughput_bps: the mean throughput of a flow without end; `None` without such flows.
        jain: Jain's index over the flows without end of all schemes; `None` for fewer than two.
    """

    setting: str
    scheme: str
    goodput_percent: float
    interval: Interval
    flows_percent: float
    throughput_bps: float | None
    jain: float | None


def groups(runs: pl.DataFrame) -> list[Group]:
    """The groups of schemes that share runs. Only runs with several schemes have shares of the goodput."""
    rows = runs.filter(pl.col("metric") == SHARE)
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for scheme, listed in (
        rows.group_by("scheme", maintain_order=True).agg(pl.col("traffic").unique(maintain_order=True)).iter_rows()
    ):
        if listed == [ALL]:
            found.setdefault("", {})[scheme] = (scheme, ALL)
            continue
        for traffic in listed:
            member = scheme if traffic == ALL else traffic.removeprefix(BESIDE).removesuffix(OF_ONE)
            found.setdefault(scheme, {})[member] = (scheme, traffic)
    return [Group(name, members) for name, members in found.items() if len(members) > 1]


def portions(runs: pl.DataFrame, group: Group) -> list[Portion]:
    """The shares of each scheme of a group, setting by setting."""
    found = []
    settings = runs.filter(pl.col("scheme").is_in([scheme for scheme, _ in group.members.values()]))
    for (setting, *_), rows in settings.group_by(["setting", *axis_names(runs)], maintain_order=True):
        flows = {name: _mean(_of(rows, *where, "flows", measure.TOTAL)) for name, where in group.members.items()}
        every = sum(count for count in flows.values() if count)
        for name, (scheme, traffic) in group.members.items():
            shares = _of(rows, scheme, traffic, SHARE, measure.TOTAL)
            if not shares:
                continue
            # Equal shares under all seeds are exact: an interval of no width would say nothing.
            [interval] = mean_intervals([shares]) if len(set(shares)) > 1 else [(None, None)]
            together = traffic.replace(ALL, measure.TOGETHER) if ALL in traffic else f"{traffic}, {measure.TOGETHER}"
            found.append(
                Portion(
                    str(setting),
                    name,
                    sum(shares) / len(shares),
                    interval,
                    100.0 * (flows[name] or 0.0) / every if every else 0.0,
                    _mean(_of(rows, scheme, traffic, "throughput of a flow", measure.MEAN)),
                    _mean(_of(rows, scheme, together, "fairness", "Jain's index")),
                )
            )
    return found


def _of(rows: pl.DataFrame, scheme: str, traffic: str, metric: str, average: str) -> list[float]:
    of_it = (pl.col("scheme") == scheme) & (pl.col("traffic") == traffic) & (pl.col("metric") == metric)
    values: list[float] = rows.filter(of_it & (pl.col("average") == average))["value"].to_list()
    return values


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


HEADINGS = ("setting", "scheme", "goodput", "flows", "per flow", "Jain")


def table(found: Sequence[Portion]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table, without empty columns.

    `goodput` and `flows` are shares; `per flow` is the mean throughput of a flow without end.
    """
    heading, settings = without_key([one.setting for one in found])
    rows = [
        [
            setting,
            one.scheme,
            _percent(one.goodput_percent, one.interval),
            f"{one.flows_percent:.1f} %",
            "" if one.throughput_bps is None else quantity(one.throughput_bps, "bit/s"),
            "" if one.jain is None else f"{one.jain:.3f}",
        ]
        for setting, one in zip(settings, found, strict=True)
    ]
    kept = [place for place in range(len(HEADINGS)) if any(row[place] for row in rows)]
    return [heading if not place else HEADINGS[place] for place in kept], [
        [row[place] for place in kept] for row in rows
    ]


def _percent(value: float, interval: Interval) -> str:
    low, high = interval
    if low is None or high is None:
        return f"{value:.1f} %"
    return f"{value:.1f} % ({max(low, 0.0):.1f} to {min(high, 100.0):.1f})"


def sentences(group: Group, found: Sequence[Portion]) -> list[str]:
    """Sentences about a group: the range of each scheme's share, and of Jain's index."""
    names = list(group.members)
    listed = " and ".join([", ".join(names[:-1]), names[-1]])
    where = f" ({group.name})" if group.name and group.name not in names else ""
    lines = [f"{listed} share each run{where}: they compete for the same queues and are not alternatives."]
    for name in names:
        own = [one for one in found if one.scheme == name]
        if own:
            lines.append(f"{name} gets {_range(own)}.")
    indices = [(one.jain, one.setting) for one in found if one.jain is not None]
    if indices:
        (least, worst), (most, best) = min(indices), max(indices)
        span = (
            f"{least:.3f}"
            if f"{least:.3f}" == f"{most:.3f}"
            else f"{least:.3f} (with {worst}) to {most:.3f} (with {best})"
        )
        lines.append(f"Jain's index over the throughputs of all lasting flows is {span}; 1 is an even split.")
    return lines


def others(group: Group) -> dict[str, str]:
    """The names of the competitors of each scheme of a group."""
    names = list(group.members)
    return {name: " and ".join(other for other in names if other != name) for name in names}


def _range(own: Sequence[Portion]) -> str:
    least, most = (choose(own, key=lambda one: one.goodput_percent) for choose in (min, max))
    flows = f"with {least.flows_percent:.0f} % of the flows"
    if len(own) == 1 or f"{least.goodput_percent:.1f}" == f"{most.goodput_percent:.1f}":
        return f"{_percent(least.goodput_percent, least.interval)} of the goodput {flows}"
    same = f"{least.flows_percent:.0f}" == f"{most.flows_percent:.0f}"
    return (
        f"between {least.goodput_percent:.1f} % (with {least.setting}) and {most.goodput_percent:.1f} % "
        f"(with {most.setting}) of the goodput{f' {flows}' if same else ''}"
    )


def to_json(found: Portion) -> dict[str, Any]:
    """The shares of a scheme as JSON values."""
    return {
        "setting": found.setting,
        "scheme": found.scheme,
        "goodput_percent": found.goodput_percent,
        "low": found.interval[0],
        "high": found.interval[1],
        "flows_percent": found.flows_percent,
        "throughput_bps": found.throughput_bps,
        "jain": found.jain,
    }
