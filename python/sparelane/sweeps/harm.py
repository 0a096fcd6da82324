"""Harm between schemes that share runs: the further runs that it needs, and how it follows from them.

The harm to a scheme is how much worse its own number is beside the others than alone, as a share of one (Ware,
Mukerjee, Seshan, Sherry: "Beyond Jain's Fairness Index", HotNets 2019):

    (alone - together) / alone      if more is better, such as throughput
    (together - alone) / together   if less is better, such as a delay

A scheme is acceptable beside another one if it harms it no more than flows of the other one's own kind would in the
same place. So each scheme has two further scenarios: one with its own workloads alone, and one in which all workloads
use it.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from sparelane.folders import SavedResultsError
from sparelane.results.manifest import Manifest
from sparelane.results.rows import ALL, NETWORK
from sparelane.settings import toml_value
from sparelane.sweeps import differences, folder, measure, overrides
from sparelane.sweeps.coexistence import Group
from sparelane.sweeps.differences import Change, Difference, without_key
from sparelane.sweeps.folder import SWEEP, SavedSweep
from sparelane.sweeps.metrics import Metric
from sparelane.sweeps.plan import Plan
from sparelane.sweeps.values import plain
from sparelane.units import quantity

# The folder of the further runs, below the sweep's.
FOLDER = "harm"
ALONE, OWN, TOGETHER = "alone", "own kind", "together"
METRICS = (
    Metric("throughput of a flow", measure.MEAN),
    Metric("completion time", measure.MEAN),
    Metric("queueing delay", measure.MEAN),
)
# Settings that a sentence lists one by one.
LISTED = 3
# Workloads that name the scheme of their flows in the scenario, and not in a file of flows.
NAMING = ("poisson", "bulk", "requests", "web-users")


@dataclass(frozen=True, slots=True)
class Harmed:
    """What a scheme suffers in one setting.

    Attributes:
        setting: in words; empty if nothing varies.
        scheme: the one that suffers.
        metric: by which number.
        alone: the number without the other schemes.
        together: the number beside them.
        harm: a share of one; below 0 if the number is better beside them.
        own_harm: the harm by flows of the scheme's own kind in the place of the others; `None` if unknown.
        excess: 1 if the others clearly harm it more than its own kind would, -1 if clearly less, else 0.
    """

    setting: str
    scheme: str
    metric: Metric
    alone: float
    together: float
    harm: Change
    own_harm: Change | None
    excess: int


def of_sweep(saved: SavedSweep, group: Group, run: Callable[[Plan, Path], None]) -> list[Harmed]:
    """The harm to each scheme of a group; runs what is missing with `run`, into a folder below the sweep's.

    Raises:
        SavedResultsError: the schemes cannot be run alone.
        ScenarioError: a scenario cannot be run.
    """
    if group.name:
        raise SavedResultsError(
            "harm needs workloads of one scheme each, so that each scheme can run alone; this sweep varies the scheme "
            "or has a mix"
        )
    scenario = _scenario(saved)
    found = []
    for name, (scheme, traffic) in group.members.items():
        frames = [_labelled(saved.runs, scheme, traffic, TOGETHER)]
        for label, content in ((ALONE, alone(scenario, name)), (OWN, of_own_kind(scenario, name))):
            plan = _plan(saved.manifest, content, label, name)
            place = saved.place / FOLDER / f"{label}-{name}".replace(" ", "-")
            run(plan, place)
            frames.append(_labelled(folder.read(place).runs, name, ALL, label))
        found += _harmed(pl.concat(frames, how="diagonal_relaxed"), name)
    return found


def alone(scenario: Mapping[str, Any], scheme: str) -> dict[str, Any]:
    """The scenario with the workloads of one scheme.

    Raises:
        SavedResultsError: a workload has no scheme of its own.
    """
    content = copy.deepcopy(dict(scenario))
    content["workload"] = [one for one in _workloads(scenario) if one["scheme"] == scheme]
    return content


def of_own_kind(scenario: Mapping[str, Any], scheme: str) -> dict[str, Any]:
    """The scenario in which all workloads use one scheme.

    Raises:
        SavedResultsError: a workload has no scheme of its own.
    """
    content = copy.deepcopy(dict(scenario))
    content["workload"] = [{**one, "scheme": scheme} for one in _workloads(scenario)]
    return content


def _workloads(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = scenario.get("workload")
    tables = given if isinstance(given, list) else [given]
    for one in tables:
        if not isinstance(one, dict) or one.get("kind") not in NAMING or not isinstance(one.get("scheme"), str):
            raise SavedResultsError(
                "harm needs one scheme in each [[workload]], so that each scheme can run alone; a mix and a file of "
                "flows have several: write a [[workload]] for each scheme"
            )
    return [dict(one) for one in tables if one is not None]


def _scenario(saved: SavedSweep) -> dict[str, Any]:
    """The scenario of a sweep, with its overrides."""
    try:
        content = tomllib.loads((saved.place / SWEEP).read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, ValueError) as error:
        raise SavedResultsError(f'cannot read "{saved.place / SWEEP}": {error}') from error
    overrides.place(content, saved.manifest.details.get("overrides", []))
    return content


def _plan(manifest: Manifest, content: Mapping[str, Any], label: str, scheme: str) -> Plan:
    seeds = manifest.seeds
    text = "".join(f"{key} = {toml_value(plain(value))}\n" for key, value in content.items() if key != "seed")
    text += f"seed = {[*seeds] if len(seeds) > 1 else seeds[0]}\n"
    file = Path(str(manifest.details.get("file", SWEEP)))
    return Plan(text, f"{file.stem}-{label}-{scheme}.toml".replace(" ", "-"), file.parent, needs_variation=False)


def _labelled(runs: pl.DataFrame, scheme: str, traffic: str, label: str) -> pl.DataFrame:
    own = runs.filter((pl.col("scheme") == scheme) & pl.col("traffic").is_in((traffic, NETWORK)))
    return own.with_columns(pl.lit(label).alias("scheme"), pl.lit(ALL).alias("traffic"))


def _harmed(runs: pl.DataFrame, scheme: str) -> list[Harmed]:
    found = []
    for metric in METRICS:
        together = differences.compare(runs, ALONE, TOGETHER, metric)
        own = differences.compare(runs, ALONE, OWN, metric)
        excess = differences.compare(runs, OWN, TOGETHER, metric)
        if together is None:
            continue
        of_own = {} if own is None else {str(one.axes): one.change for one in own.differences}
        of_excess = {} if excess is None else {str(one.axes): one for one in excess.differences}
        for one in together.differences:
            key = str(one.axes)
            own_change = of_own.get(key)
            found.append(
                Harmed(
                    one.setting,
                    scheme,
                    metric,
                    one.baseline,
                    one.other,
                    _harm(one.change, metric),
                    None if own_change is None else _harm(own_change, metric),
                    _excess(of_excess.get(key), metric),
                )
            )
    return found


def _excess(found: Difference | None, metric: Metric) -> int:
    """Whether a scheme is clearly worse off beside the others (1) than beside its own kind, or better off (-1)."""
    if found is None or found.change.p is None or found.change.p > differences.LEVEL:
        return 0
    return -found.change.sign * metric.better


def _harm(change: Change, metric: Metric) -> Change:
    """The harm of a relative change of a number."""

    def of(value: float | None) -> float | None:
        if value is None:
            return None
        return -value if metric.better > 0 else value / (1 + value) if value > -1 else float("-inf")

    ends = [end for end in (of(change.low), of(change.high)) if end is not None]
    value = of(change.value)
    assert value is not None
    return Change(value, min(ends, default=None), max(ends, default=None), change.p, change.is_exact)


HEADINGS = ("setting", "scheme", "alone", "together", "harm", "own kind")


def tables(found: Sequence[Harmed]) -> list[tuple[str, list[str], list[list[str]]]]:
    """For each metric a title, headings and rows of texts."""
    listed = dict.fromkeys(one.metric for one in found)
    return [(f"Harm by {metric.label}", *_table([one for one in found if one.metric == metric])) for metric in listed]


def _table(found: Sequence[Harmed]) -> tuple[list[str], list[list[str]]]:
    heading, settings = without_key([one.setting for one in found])
    rows = [
        [
            setting,
            one.scheme,
            quantity(one.alone, one.metric.unit),
            quantity(one.together, one.metric.unit),
            harm_text(one.harm),
            "–" if one.own_harm is None else harm_text(one.own_harm),
        ]
        for setting, one in zip(settings, found, strict=True)
    ]
    kept = [place for place in range(len(HEADINGS)) if any(row[place] for row in rows)]
    return [heading if not place else HEADINGS[place] for place in kept], [
        [row[place] for place in kept] for row in rows
    ]


def harm_text(harm: Change) -> str:
    """A harm in percent, with its interval."""
    text = f"{_percent(harm.value)} %"
    if harm.low is None or harm.high is None:
        return text
    return f"{text} ({_percent(harm.low)} to {_percent(harm.high)})"


def _percent(share: float) -> str:
    text = f"{100 * share:.0f}"
    return "0" if text == "-0" else text.replace("-", "−")


def sentences(found: Sequence[Harmed], others: Mapping[str, str]) -> list[str]:
    """Which schemes are harmed more than by their own kind, and where.

    Args:
        found: the harm to each scheme in each setting.
        others: the names of the other schemes, by scheme.
    """
    said = []
    for scheme in dict.fromkeys(one.scheme for one in found):
        for metric in dict.fromkeys(one.metric for one in found if one.scheme == scheme):
            own = [one for one in found if one.scheme == scheme and one.metric == metric]
            for sign, words in ((1, "more"), (-1, "less")):
                some = [one for one in own if one.excess == sign]
                if some:
                    where = _where(some, len(own))
                    said.append(
                        f"Beside {others[scheme]}, the {metric.label} of {scheme} suffers clearly {words} than beside "
                        f"its own kind{where}."
                    )
    return said or ["No scheme clearly suffers more, or less, than beside its own kind."]


def _where(some: Sequence[Harmed], count: int) -> str:
    if count == 1:
        return ""
    if len(some) == count:
        return " in every setting"
    if len(some) > LISTED:
        return f" in {len(some)} of {count} settings"
    return f" with {'; '.join(one.setting for one in some)}"
