"""Forecasts the time and the memory of a run by a trial of its beginning.

A forecast is bounded, however large the scenario is. The size of the run is read from the scenario first, without
building it. A run that would take much memory before its first packet is not tried: its flows and its memory follow
from its size alone, and its time stays unknown.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane._native import Cancelled
from sparelane.common import memory, units
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario.settings import override_texts
from sparelane.simulation import simulate as api
from sparelane.simulation.result import Result

# How long the trial may take, seconds.
TRIAL_S = 1.0
# Reading the scenario, and building its network, may take this much time of the processor before the forecast goes on
# without it, seconds; on a busy machine, this much time.
BUILD_S = 5.0
BUSY_BUILD_S = 20.0
# Runs whose network and open flows need more memory than this are not tried, bytes.
MOST_TRIAL_BYTES = 500e6
# What each flow that starts later adds to the memory: its row, in the simulator and in tables, bytes.
FLOW_BYTES = 500


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run is expected to be.

    Attributes:
        flows: The number of flows that start; `None` if it is unknown.
        seconds: The time that the simulation takes on this machine; `None` if it is unknown.
        memory_bytes: The peak of memory, interpreter included; `None` if it is unknown.
        tried: The share of the simulated time that was tried, 0 to 1. At 1, the numbers are what the run was; below 1,
            they are estimates.
        warnings: The warnings about the run, as far as they are known without all of it.
        untried: The reason if nothing was tried; else empty.
    """

    flows: int | None
    seconds: float | None
    memory_bytes: int | None
    tried: float
    warnings: tuple[str, ...] = ()
    untried: str = ""


def forecast(scenario: str | Path, settings: Sequence[str] = (), *, seed: int | None = None) -> Forecast:
    """Runs the beginning of a scenario, for a second at most, and extrapolates.

    Raises:
        ScenarioError: The scenario cannot be run.
        FileNotFoundError: There is no such file.
        UnknownNameError: There is no ready-made scenario of that name.
    """
    memory.forget_peak()
    try:
        text, name, folder = api.read(scenario)
        overrides = override_texts(list(settings))
        size = _native.size(text, name, str(folder), overrides, seed, _deadline(), REGISTRY.catalogue())
    except Cancelled:
        return Forecast(None, None, None, 0.0, untried=f"reading it takes longer than {BUILD_S:g} s")
    if size["bytes"] > MOST_TRIAL_BYTES:
        room = f"its network and open flows need more than {units.quantity(MOST_TRIAL_BYTES, 'B')}"
        return _by_size(size, room)
    try:
        prepared = api.prepare(scenario, seed=seed, set=list(settings), waiting=_deadline())
    except Cancelled:
        return _by_size(size, f"building its network takes longer than {BUILD_S:g} s")
    began_s = time.monotonic()
    reached: list[tuple[float, float]] = [(0.0, 0.0)]

    def watch(share: float) -> bool:
        reached.append((time.monotonic() - began_s, share))
        return reached[-1][0] < TRIAL_S

    result = prepared.run(watch, keep=True)
    if result.is_interrupted:
        return _extrapolated(result, reached)
    spent_s = time.monotonic() - began_s
    return Forecast(result.totals["flows"], spent_s, memory.peak_bytes(), 1.0, tuple(result.warnings))


def _deadline() -> Callable[[float], None]:
    """A callback for `waiting` that ends the wait after `BUILD_S`."""
    until_s = time.process_time() + BUILD_S

    def wait(seconds: float) -> None:
        if time.process_time() >= until_s or seconds >= BUSY_BUILD_S:
            raise Cancelled

    return wait


def _by_size(size: _native.Size, why: str) -> Forecast:
    """The forecast of a run that is not tried, from its size."""
    flows = round(size["flows"])
    memory_bytes = memory.peak_bytes() + round(size["bytes"]) + FLOW_BYTES * flows
    return Forecast(flows, None, memory_bytes, 0.0, tuple(size["warnings"]), why)


def _extrapolated(seen: Result, reached: Sequence[tuple[float, float]]) -> Forecast:
    """The forecast of a whole run: it is taken to go on at the pace of the second half of the trial."""
    spent_s, share = reached[-1]
    middle_s, middle = next(one for one in reached if one[0] >= spent_s / 2)
    pace = (spent_s - middle_s) / (share - middle) if share > middle else spent_s / max(share, 1e-12)
    seconds = spent_s + pace * (1 - share)
    starts = seen.flows["start_s"]
    until_s = seen.totals["end_s"]
    later = int((starts > until_s / 2).sum())
    flows = seen.totals["flows"] + round(later * (_duration_s(seen) - until_s) / (until_s / 2)) if until_s else 0
    grown = FLOW_BYTES * max(0, flows - seen.totals["flows"])
    return Forecast(flows, seconds, memory.peak_bytes() + grown, share, tuple(seen.early_warnings))


def _duration_s(result: Result) -> float:
    """The duration of the scenario, seconds."""
    found = units.read(str(tomllib.loads(result.scenario)["duration"]))
    return found[0] if found is not None else 0.0
