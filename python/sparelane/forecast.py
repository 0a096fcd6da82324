"""How long a run will take and how much room it needs, by a trial of its beginning."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane import api, memory, units
from sparelane._native import Cancelled
from sparelane.result import Result
from sparelane.settings import toml_value

# How long the trial may take, seconds.
TRIAL_S = 1.0
# What each flow that starts later adds to the memory: its row, in the simulator and in tables, bytes.
FLOW_BYTES = 500


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run is expected to be.

    Attributes:
        flows: how many start.
        seconds: of this machine's time, simulation alone.
        memory_bytes: at the peak, the interpreter included.
        tried: which share of the simulated time was tried, 0 to 1; at 1, the numbers are what the run was.
        warnings: the warnings about the run, as far as the trial shows them.
    """

    flows: int
    seconds: float
    memory_bytes: int
    tried: float
    warnings: tuple[str, ...]


def forecast(scenario: str | Path, settings: Sequence[str] = (), *, seed: int | None = None) -> Forecast:
    """Runs the beginning of a scenario, for a second at the most, and reckons on from there.

    Raises:
        ScenarioError: the scenario cannot be run.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    memory.forget_peak()
    began_s = time.monotonic()
    reached: list[tuple[float, float]] = [(0.0, 0.0)]

    def watch(share: float) -> bool:
        reached.append((time.monotonic() - began_s, share))
        return reached[-1][0] < TRIAL_S

    prepared = api.prepare(scenario, seed=seed, set=list(settings))
    began_s = time.monotonic()
    try:
        result = prepared.run(watch)
    except Cancelled:
        return _reckoned(scenario, settings, seed, reached)
    spent_s = time.monotonic() - began_s
    return Forecast(result.totals["flows"], spent_s, memory.peak_bytes(), 1.0, tuple(result.warnings))


def _reckoned(
    scenario: str | Path, settings: Sequence[str], seed: int | None, reached: Sequence[tuple[float, float]]
) -> Forecast:
    """The whole run out of its beginning: what the second half of the trial did goes on at its pace."""
    spent_s, share = reached[-1]
    middle_s, middle = next(one for one in reached if one[0] >= spent_s / 2)
    pace = (spent_s - middle_s) / (share - middle) if share > middle else spent_s / max(share, 1e-12)
    seconds = spent_s + pace * (1 - share)
    text, *_ = api.read(scenario)
    duration_s = _duration_s(text, settings)
    seen = _result(scenario, settings, seed, share * duration_s)
    starts = seen.flows["start_s"]
    until_s = seen.totals["end_s"]
    later = int((starts > until_s / 2).sum())
    flows = seen.totals["flows"] + round(later * (duration_s - until_s) / (until_s / 2)) if until_s else 0
    grown = FLOW_BYTES * max(0, flows - seen.totals["flows"])
    return Forecast(flows, seconds, memory.peak_bytes() + grown, share, tuple(seen.early_warnings))


def _result(scenario: str | Path, settings: Sequence[str], seed: int | None, duration_s: float) -> Result:
    picoseconds = max(1, round(duration_s * 1e12))
    return api.run(scenario, seed=seed, set=[*settings, f"duration={toml_value(f'{picoseconds}ps')}"])


def _duration_s(text: str, settings: Sequence[str]) -> float:
    """How long the scenario simulates, seconds; it was read once and is known to be right."""
    given = [one.partition("=")[2].strip() for one in settings if one.partition("=")[0].strip() == "duration"]
    value = given[-1].strip("\"'") if given else str(tomllib.loads(text)["duration"])
    found = units.read(value)
    return found[0] if found is not None else 0.0
