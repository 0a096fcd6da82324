"""Forecasts the time and memory of a run from a trial of its start.

The time of a forecast is bounded for scenarios of any size. First, the size of the run is read from the scenario
without building the network. A run that would need much memory before its first packet is not tried: its flows and
memory are estimated from its size, and its time remains unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane._native import Cancelled
from sparelane.common import memory, units
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario.settings import override_texts
from sparelane.simulation import simulate
from sparelane.simulation.result import Result

# Duration of the trial, seconds.
TRIAL_S = 1.0
# Limit of the CPU time for reading the scenario, and again for building its network, seconds; and the limit of real
# time, for busy machines. Beyond either, the forecast continues without the trial.
BUILD_S = 5.0
BUSY_BUILD_S = 20.0
# Runs whose network and open flows need more memory than this are not tried, bytes.
MOST_TRIAL_BYTES = 500e6
# Memory of each flow that starts after the trial, for its row in the simulator and in tables, bytes.
FLOW_BYTES = 500


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected size of a run.

    Attributes:
        flows: The number of flows that start; `None` if it is unknown.
        seconds: The run time on this machine; `None` if it is unknown.
        memory_bytes: The peak memory including the interpreter; `None` if it is unknown.
        tried: The share of the simulated time in the trial, 0 to 1. At 1, the numbers are exact; below, they are
            estimates.
        warnings: The warnings about the run that are known after the trial.
        untried: The reason if there was no trial; otherwise empty.
    """

    flows: int | None
    seconds: float | None
    memory_bytes: int | None
    tried: float
    warnings: tuple[str, ...] = ()
    untried: str = ""


def forecast(scenario: str | Path, settings: Sequence[str] = (), *, seed: int | None = None) -> Forecast:
    """Runs the start of a scenario for at most `TRIAL_S`, and extrapolates.

    Raises:
        ScenarioError: The scenario cannot be run.
        FileNotFoundError: The file does not exist.
        UnknownNameError: No ready-made scenario has this name.
    """
    memory.reset_peak()
    try:
        text, name, folder = simulate.read(scenario)
        overrides = override_texts(list(settings))
        size = _native.size(text, name, str(folder), overrides, seed, _deadline(), REGISTRY.catalogue())
    except Cancelled:
        return Forecast(None, None, None, 0.0, untried=f"reading it takes longer than {BUILD_S:g} s")
    if size["bytes"] > MOST_TRIAL_BYTES:
        reason = f"its network and open flows need more than {units.quantity(MOST_TRIAL_BYTES, 'B')}"
        return _by_size(size, reason)
    try:
        prepared = simulate.prepare(scenario, seed=seed, set=list(settings), waiting=_deadline())
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
    """A callback for `waiting` that cancels building after `BUILD_S`."""
    until_s = time.process_time() + BUILD_S

    def wait(seconds: float) -> None:
        if time.process_time() >= until_s or seconds >= BUSY_BUILD_S:
            raise Cancelled

    return wait


def _by_size(size: _native.Size, why: str) -> Forecast:
    """The forecast of a run without a trial, from its size."""
    flows = round(size["flows"])
    memory_bytes = memory.peak_bytes() + round(size["bytes"]) + FLOW_BYTES * flows
    return Forecast(flows, None, memory_bytes, 0.0, tuple(size["warnings"]), why)


def _extrapolated(seen: Result, reached: Sequence[tuple[float, float]]) -> Forecast:
    """The forecast of a whole run, which is assumed to continue at the pace of the second half of the trial."""
    spent_s, share = reached[-1]
    middle_s, middle = next(one for one in reached if one[0] >= spent_s / 2)
    pace = (spent_s - middle_s) / (share - middle) if share > middle else spent_s / max(share, 1e-12)
    seconds = spent_s + pace * (1 - share)
    starts = seen.flows["start_s"]
    until_s = seen.totals["end_s"]
    # Flows start at the rate of the second half of the simulated time.
    later = int((starts > until_s / 2).sum())
    flows = seen.totals["flows"] + round(later * (_duration_s(seen) - until_s) / (until_s / 2)) if until_s else 0
    grown = FLOW_BYTES * max(0, flows - seen.totals["flows"])
    return Forecast(flows, seconds, memory.peak_bytes() + grown, share, tuple(seen.early_warnings))


def _duration_s(result: Result) -> float:
    """The duration of the scenario, seconds."""
    found = _native.quantity(str(_native.tables(result.scenario, "scenario")["duration"]))
    return found[0] if found is not None else 0.0
