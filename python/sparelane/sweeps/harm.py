"""Computes the harm between schemes that share runs, from further runs of each scheme without the others.

The harm to a scheme is the relative degradation of its number in competition (Ware, Mukerjee, Seshan, Sherry: "Beyond
Jain's Fairness Index", HotNets 2019):

    (alone - together) / alone      if more is better, such as throughput
    (together - alone) / together   if less is better, such as a delay

A competitor is acceptable if it harms a scheme no more than flows of the scheme's own kind would in its place. Each
scheme therefore has two further scenarios: one with only its own workloads, and one in which all workloads use it. A
mix of schemes has only the second one, since its flows cannot be removed separately.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import _native
from sparelane.common.folders import SavedResultsError
from sparelane.common.units import quantity
from sparelane.results.manifest import Manifest
from sparelane.results.rows import ALL, NETWORK
from sparelane.scenario.settings import toml_value
from sparelane.sweeps import differences, folder, measure
from sparelane.sweeps.coexistence import Group
from sparelane.sweeps.differences import Change, Difference
from sparelane.sweeps.folder import SWEEP, SavedSweep
from sparelane.sweeps.metrics import Metric
from sparelane.sweeps.plan import Plan
from sparelane.sweeps.values import plain

# The subfolder of the further runs.
FOLDER = "harm"
ALONE, OWN, TOGETHER = "alone", "own kind", "together"
METRICS = (
    Metric("throughput of a flow", measure.MEAN),
    Metric("completion time", measure.MEAN),
    Metric("queueing delay", measure.MEAN),
)
MEANING = (
    "Harm is the relative degradation of a number, compared with the scheme alone, or with flows of its own kind in "
    "place of the others (Ware et al., HotNets 2019)."
)
# The largest number of settings that a sentence lists.
LISTED = 3
# Workloads whose schemes are given in the scenario and not in a file of flows.
NAMING = ("poisson", "bulk", "requests", "web-users")


@dataclass(frozen=True, slots=True)
class Harmed:
    """The harm to a scheme in one setting.

    Attributes:
        setting: the setting as text; empty if nothing varies.
        scheme: the harmed scheme.
        metric: the metric of the harm.
        alone: the number without the other schemes; `None` for a mix, whose flows cannot be removed.
        own: the number with flows of the scheme's own kind in place of the others.
        together: the number in competition with the others.
        harm: the harm relative to `alone`, as a fraction; negative if the number is better in competition.
        own_harm: the harm by flows of the scheme's own kind, relative to `alone`.
        own_change: the harm relative to `own`.
        excess: 1 if the others clearly harm the scheme more than its own kind would, -1 if clearly less, otherwise 0.
    """

    setting: str
    scheme: str
    metric: Metric
    alone: float | None
    own: float
    together: float
    harm: Change | None
    own_harm: Change | None
    own_change: Change
    excess: int


def of_sweep(saved: SavedSweep, group: Group, run: Callable[[Plan, Path], None]) -> list[Harmed]:
    """The harm to each scheme of a group.

    Args:
        saved: the sweep.
        group: the schemes that share runs.
        run: does the runs of a plan that a folder does not have yet. The folder is a subfolder of the sweep's.

    Raises:
        SavedResultsError: the schemes cannot run alone.
        ScenarioError: a scenario cannot be run.
    """
    if group.name:
        raise SavedResultsError(
            "harm needs workloads with one scheme each, so that each scheme can run alone; this sweep varies the "
            "scheme or has a mix"
        )
    scenario = _scenario(saved)
    found = []
    for name, (scheme, traffic) in group.members.items():
        frames = [_labelled(saved.runs, scheme, traffic, TOGETHER)]
        for label, make in ((ALONE, alone), (OWN, of_own_kind)):
            content = make(scenario, name)
            if content is None:
                continue
            plan = _plan(saved.manifest, content, label, name)
            place = saved.place / FOLDER / f"{label}-{name}".replace(" ", "-")
            run(plan, place)
            frames.append(_labelled(folder.read(place).runs, name, ALL, label))
        found += _harmed(pl.concat(frames, how="diagonal_relaxed"), name)
    return found


def alone(scenario: Mapping[str, Any], scheme: str) -> dict[str, Any] | None:
    """The scenario with only the workloads of one scheme; `None` if a workload has a mix.

    Raises:
        SavedResultsError: a workload does not name its schemes.
    """
    workloads = _workloads(scenario)
    if any("mix" in one for one in workloads):
        return None
    return {**copy.deepcopy(dict(scenario)), "workload": [one for one in workloads if one["scheme"] == scheme]}


def of_own_kind(scenario: Mapping[str, Any], scheme: str) -> dict[str, Any]:
    """The scenario in which all workloads use one scheme.

    Raises:
        SavedResultsError: a workload does not name its schemes.
    """
    workloads = [
        {**{key: value for key, value in one.items() if key not in ("mix", "mix_by")}, "scheme": scheme}
        for one in _workloads(scenario)
    ]
    return {**copy.deepcopy(dict(scenario)), "workload": workloads}


def _workloads(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = scenario.get("workload")
    tables = given if isinstance(given, list) else [given]
    for one in tables:
        content = one if isinstance(one, dict) else {}
        is_named = isinstance(content.get("scheme"), str) or isinstance(content.get("mix"), dict)
        if not is_named or content.get("kind") not in NAMING:
            raise SavedResultsError(
                "harm needs workloads that name one scheme or one mix, so that they can run with other schemes; a file "
                "of flows and a sweep of schemes do not"
            )
    return [dict(one) for one in tables if one is not None]


def _scenario(saved: SavedSweep) -> dict[str, Any]:
    """The scenario of a sweep, with its overrides."""
    place = saved.place / SWEEP
    try:
        text = place.read_text(encoding="utf-8")
        return _native.tables(text, str(place), saved.manifest.details.get("overrides", []))
    except (OSError, ValueError) as error:
        raise SavedResultsError(f'cannot read "{place}": {error}') from error


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
        beyond = differences.compare(runs, OWN, TOGETHER, metric)
        if beyond is None:
            continue
        together, own = (differences.compare(runs, ALONE, name, metric) for name in (TOGETHER, OWN))
        of_together, of_own = (
            {} if one is None else {str(each.axes): each for each in one.differences} for one in (together, own)
        )
        for one in beyond.differences:
            whole, mine = (found.get(str(one.axes)) for found in (of_together, of_own))
            found.append(
                Harmed(
                    one.setting,
                    scheme,
                    metric,
                    None if whole is None else whole.baseline,
                    one.baseline,
                    one.other,
                    None if whole is None else _harm(whole.change, metric),
                    None if mine is None else _harm(mine.change, metric),
                    _harm(one.change, metric),
                    _excess(one, metric),
                )
            )
    return found


def _excess(found: Difference, metric: Metric) -> int:
    """1 if a scheme is clearly worse with the others than with its own kind, -1 if clearly better, otherwise 0."""
    if found.change.p is None or found.change.p > differences.LEVEL:
        return 0
    return -found.change.sign * metric.better


def _harm(change: Change, metric: Metric) -> Change:
    """Converts a relative change of a number to harm."""

    def of(value: float | None) -> float | None:
        if value is None:
            return None
        return -value if metric.better > 0 else value / (1 + value) if value > -1 else float("-inf")

    ends = [end for end in (of(change.low), of(change.high)) if end is not None]
    value = of(change.value)
    assert value is not None
    return Change(value, min(ends, default=None), max(ends, default=None), change.p, change.is_exact)


def tables(found: Sequence[Harmed]) -> list[tuple[str, list[str], list[list[str]]]]:
    """The title, headings and rows of a table for each metric."""
    listed = dict.fromkeys(one.metric for one in found)
    return [_table(metric, [one for one in found if one.metric == metric]) for metric in listed]


def _table(metric: Metric, found: Sequence[Harmed]) -> tuple[str, list[str], list[list[str]]]:
    heading, settings = differences.without_key([one.setting for one in found])
    unit, is_alone = metric.unit, all(one.alone is not None for one in found)
    rows = []
    for setting, one in zip(settings, found, strict=True):
        named = [setting, one.scheme] if any(settings) else [one.scheme]
        if one.alone is not None and one.harm is not None and is_alone:
            own = "–" if one.own_harm is None else harm_text(one.own_harm)
            numbers = [quantity(one.alone, unit), quantity(one.together, unit), harm_text(one.harm), own]
        else:
            numbers = [quantity(one.own, unit), quantity(one.together, unit), harm_text(one.own_change)]
        rows.append([*named, *numbers])
    names = [heading, "scheme"] if any(settings) else ["scheme"]
    if is_alone:
        return f"Harm by {metric.label}", [*names, "alone", "together", "harm", "own kind"], rows
    return f"Harm by {metric.label}, relative to its own kind", [*names, "own kind", "together", "harm"], rows


def harm_text(harm: Change) -> str:
    """Formats a harm in percent, with its interval."""
    text = f"{_percent(harm.value)} %"
    if harm.low is None or harm.high is None:
        return text
    return f"{text} ({_percent(harm.low)} to {_percent(harm.high)})"


def _percent(share: float) -> str:
    text = f"{100 * share:.0f}"
    return "0" if text == "-0" else text.replace("-", "−")


def sentences(found: Sequence[Harmed], others: Mapping[str, str]) -> list[str]:
    """Sentences about schemes that are clearly worse or better in competition than with their own kind.

    Args:
        found: the harm to each scheme in each setting.
        others: the names of the other schemes, by scheme.
    """
    lines = []
    for scheme in dict.fromkeys(one.scheme for one in found):
        for metric in dict.fromkeys(one.metric for one in found if one.scheme == scheme):
            own = [one for one in found if one.scheme == scheme and one.metric == metric]
            for sign, words in ((1, "worse"), (-1, "better")):
                some = [one for one in own if one.excess == sign]
                if some:
                    where = _where(some, len(own))
                    lines.append(
                        f"The {metric.label} of {scheme} is clearly {words} in competition with {others[scheme]} than "
                        f"with its own kind{where}."
                    )
    return lines or ["No scheme is clearly worse or better than in competition with its own kind."]


def _where(some: Sequence[Harmed], count: int) -> str:
    if count == 1:
        return ""
    if len(some) == count:
        return " in every setting"
    if len(some) > LISTED:
        return f" in {len(some)} of {count} settings"
    return f" with {'; '.join(one.setting for one in some)}"
