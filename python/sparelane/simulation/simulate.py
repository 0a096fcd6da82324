"""Runs, prepares and checks scenarios from Python."""

from __future__ import annotations

import errno
import json
import numbers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario import library
from sparelane.scenario.settings import DICTIONARY, Settings, override_texts, scenario_text
from sparelane.simulation.result import Result
from sparelane.simulation.traces import parse

# A path, the name of a ready-made scenario, TOML text, or a dictionary.
Scenario = str | os.PathLike[str] | Mapping[str, Any]

# The name of a scenario that is a text, in messages.
TEXT_NAME = "<text>"

# The longest value that a message repeats, characters.
LONGEST = 60

# The largest seed: 64 bits.
MAX_SEED = 2**64 - 1

# The most threads of a run.
MAX_THREADS = 1024

# The suffix of the file with the scenario and the facts of a saved run.
SAVED_SUFFIX = ".json"

# The largest scenario file, bytes.
MAX_FILE_BYTES = 64 << 20


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    progress: _native.Progress | None = None,
    trace: str | None = None,
    trace_folder: str | Path = ".",
    threads: int | None = None,
) -> Result:
    """Simulates a scenario and returns its results.

    Args:
        scenario: A path, the name of a ready-made scenario, TOML text of more than one line, or a dictionary with the
            tables and keys of a scenario. The `run.json` of a saved run repeats that run.
        seed: The seed of the random draws; `None` takes the scenario's.
        set: Values that replace the scenario's: `{"workload.load": 0.5}` or `["workload.load=0.5"]`.
        progress: Called about twenty times a second with the finished share of the simulated time, 0 to 1. Returning
            `False` cancels the run; any other value, including `None`, continues.
        trace: Packet traces to write, such as `"flow=3,port=west:east"`: see docs/traces.md.
        trace_folder: An existing folder for the traces.
        threads: The number of threads, on which results do not depend. `None` takes the scenario's, and otherwise all
            cores if the run gains from them.

    Raises:
        ScenarioError: The scenario is not valid; the message names file, line and key.
        TypeError: The scenario, or a value in it, has a type that is not supported.
        FileNotFoundError: The file does not exist.
        UnknownNameError: No ready-made scenario has that name.
        TraceError: A trace is not possible.
        PluginError: Python code of a plugin failed, or a controller set an impossible window or pace.
        Cancelled: `progress` returned `False`.
        KeyboardInterrupt: The user pressed Ctrl-C.
        PhysicsError: The simulator violated one of its invariants, which is a bug.
    """
    prepared = prepare(scenario, seed=seed, set=set, trace=trace, trace_folder=trace_folder, threads=threads)
    return prepared.run(progress)


@dataclass(frozen=True, slots=True)
class Division:
    """The division of a run: each domain is a part of the network that one thread simulates at a time."""

    domains: int
    threads: int
    # The number of threads that was asked for: `threads` if none was.
    asked: int
    # Why there is one domain, if more threads were asked for.
    unsuited: str | None


class Prepared:
    """A scenario that is parsed and built, ready to run."""

    def __init__(self, native: _native.Prepared, folder: Path) -> None:
        self._native = native
        self._folder = folder

    def run(self, progress: _native.Progress | None = None, *, keep: bool = False) -> Result:
        """Simulates the scenario. Can be called once.

        Args:
            progress: As for `sparelane.run`.
            keep: If true, a cancelled run returns its results so far, with `is_interrupted` set, instead of raising.

        Raises:
            PluginError: Python code of a plugin failed, or a controller set an impossible window or pace.
            Cancelled: `progress` returned `False`, and `keep` is false.
            KeyboardInterrupt: The user pressed Ctrl-C.
            RuntimeError: The scenario has run already.
            PhysicsError: The simulator violated one of its invariants, which is a bug.
        """
        return Result(self._native.run(progress, keep), self._folder)

    def division(self) -> Division:
        """The domains and threads that the run takes place in.

        Raises:
            RuntimeError: It has run already.
        """
        return Division(*self._native.division())

    def describe(self) -> _native.Description:
        """The scenario with units, defaults and presets resolved, for programs that run it elsewhere.

        Raises:
            RuntimeError: It has run already.
        """
        return self._native.describe()

    def resolved(self) -> str:
        """The scenario as text with units, defaults, presets and files resolved.

        Scenarios with equal texts give equal results in the same build of the simulator.

        Raises:
            RuntimeError: It has run already.
        """
        return self._native.resolved()

    def flows(self, max_flows: int) -> list[_native.FlowDescription]:
        """The flows that start by the end of the run, in order of start, with all random draws made.

        Flows that start when another one completes are not included. At most the first `max_flows` are returned.

        Raises:
            PluginError: Python code of a plugin failed.
            RuntimeError: It has run already.
        """
        return self._native.flows(max_flows)


def prepare(
    scenario: Scenario,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    waiting: Callable[[float], object] | None = None,
    trace: str | None = None,
    trace_folder: str | Path = ".",
    threads: int | None = None,
) -> Prepared:
    """Parses a scenario and builds its network and flows, as `run` does before it simulates.

    Args:
        scenario: As for `run`.
        seed: As for `run`.
        set: As for `run`.
        waiting: Called about twenty times a second with the time that building has taken so far, seconds.
        trace: As for `run`.
        trace_folder: As for `run`.
        threads: As for `run`.

    Raises:
        ScenarioError: The scenario is not valid.
        TypeError: The scenario, or a value in it, has a type that is not supported.
        FileNotFoundError: The file does not exist.
        UnknownNameError: No ready-made scenario has that name.
        TraceError: A trace is not possible.
        PluginError: Python code of a plugin failed.
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    text, name, folder = read(scenario)
    seed = None if seed is None else checked_seed(seed)
    requests = parse(trace).requests(Path(trace_folder)) if trace is not None else []
    threads = None if threads is None else checked_threads(threads)
    overrides, catalogue = override_texts(set), REGISTRY.catalogue()
    native = _native.prepare(text, name, str(folder), overrides, seed, waiting, catalogue, requests, threads)
    return Prepared(native, folder)


def check(scenario: Scenario, *, set: Settings | None = None) -> None:
    """Validates a scenario: parses it and builds its network and flows, without simulating.

    Args:
        scenario: As for `run`.
        set: As for `run`.

    Raises:
        ScenarioError: The scenario is not valid.
        TypeError: The scenario, or a value in it, has a type that is not supported.
        FileNotFoundError: The file does not exist.
        UnknownNameError: No ready-made scenario has that name.
        PluginError: Python code of a plugin failed.
    """
    prepare(scenario, set=set)


def read(scenario: Scenario) -> tuple[str, str, Path]:
    """Reads a scenario.

    Returns:
        The text, the name for messages, and the folder that relative paths in the scenario start from.

    Raises:
        FileNotFoundError: The file does not exist.
        ScenarioError: The file cannot be read, or a dictionary has a key that is not valid.
        TypeError: The scenario, or a value in a dictionary, has a type that is not supported.
        UnknownNameError: No ready-made scenario has that name.
    """
    if isinstance(scenario, Mapping):
        return scenario_text(scenario), DICTIONARY, Path.cwd()
    if not isinstance(scenario, str | os.PathLike):
        raise TypeError(
            f"the scenario is {_shortened(scenario)}; allowed: a path, the name of a ready-made scenario, TOML text, "
            "or a dictionary"
        )
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, TEXT_NAME, Path.cwd()
    try:
        path = library.resolve(os.fspath(scenario))
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise FileNotFoundError(f"there is no file {_shortened(scenario)}: the name is too long") from error
    if is_saved(path):
        content = saved_run(path)
        return str(content["scenario"]), str(path), Path(str(content.get("folder", path.parent)))
    return read_text(path), str(path), path.parent


def checked_threads(threads: int) -> int:
    """Returns a number of threads as a plain `int`.

    Raises:
        ScenarioError: It is not a whole number from 1 to `MAX_THREADS`.
    """
    is_whole = isinstance(threads, numbers.Integral) and not isinstance(threads, bool)
    if not is_whole or not 1 <= threads <= MAX_THREADS:
        wrong = "out of range" if is_whole else "not a whole number"
        raise ScenarioError(f"threads = {threads!r}: {wrong}; allowed: a whole number from 1 to {MAX_THREADS}")
    return int(threads)


def checked_seed(seed: int) -> int:
    """Returns a seed as a plain `int`.

    Raises:
        ScenarioError: The seed is not an unsigned integer of 64 bits.
    """
    is_whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if not is_whole or not 0 <= seed <= MAX_SEED:
        wrong = "out of range" if is_whole else "not a whole number"
        raise ScenarioError(f"seed = {seed!r}: {wrong}; allowed: a whole number from 0 to {MAX_SEED}")
    return int(seed)


def _shortened(value: object) -> str:
    """A value and its type on one short line, for messages."""
    text = repr(value).partition("\n")[0]
    return f"{text if len(text) <= LONGEST else text[: LONGEST - 3] + '...'} ({type(value).__name__})"


def is_saved(path: Path) -> bool:
    """True if a file is the `run.json` of a saved run instead of a scenario, judging by its suffix."""
    return path.suffix == SAVED_SUFFIX


def saved_run(path: Path) -> dict[str, object]:
    """Reads the `run.json` of a saved run.

    Raises:
        ScenarioError: the file cannot be read, or does not describe a run.
    """
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("scenario"), str):
        raise ScenarioError(f"{path}: not the run.json of a run; allowed: one that `sparelane run` has written")
    return content


def read_text(path: Path) -> str:
    """Reads the text of a scenario file.

    Raises:
        ScenarioError: the file cannot be read, is not UTF-8 text, or is larger than `MAX_FILE_BYTES`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB; a scenario is a short text")
    text = _native.decoded(content, str(path))
    if not text.strip():
        raise ScenarioError(f"{path}: this file is empty; allowed: a scenario, as `sparelane new FILE` writes one")
    return text
