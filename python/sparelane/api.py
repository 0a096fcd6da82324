"""Running a scenario from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from sparelane import _native, library
from sparelane._native import ScenarioError
from sparelane.plugins.registry import REGISTRY
from sparelane.result import Result
from sparelane.settings import Settings, override_texts
from sparelane.traces import parse

# What a scenario that is not in a file is called in messages.
TEXT_NAME = "<text>"

# The largest seed: 64 bits.
MAX_SEED = 2**64 - 1

# What a run leaves beside its tables, with its scenario, ends so.
SAVED_SUFFIX = ".json"

# A scenario file is not larger than this, bytes: what is, is not one.
MAX_FILE_BYTES = 64 << 20


def run(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    progress: _native.Progress | None = None,
    trace: str | None = None,
    trace_folder: str | Path = ".",
) -> Result:
    """Simulates a scenario.

    Args:
        scenario: a path, the name of a ready-made scenario, or the scenario itself as TOML text of more than one line;
            the `run.json` of a run repeats it.
        seed: of every random draw; `None` takes the scenario's.
        set: values that replace the scenario's: `{"workload.load": 0.5}` or `["workload.load=0.5"]`.
        progress: called about twenty times a second with the share of simulated time that is done, 0 to 1;
            returns `False` to cancel, anything else (`None` too) to go on.
        trace: traces of packets to write, as in `"flow=3,port=west:east"`: see docs/traces.md.
        trace_folder: where to, a folder that is there.

    Raises:
        TraceError: there cannot be such a trace.
        ScenarioError: the scenario cannot be run; names file, line and key.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
        PhysicsError: the simulator broke a law of its own, which is a defect of the simulator.
        PluginError: a controller of one's own failed, or allowed what cannot be.
        Cancelled: `progress` returned `False`.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    return prepare(scenario, seed=seed, set=set, trace=trace, trace_folder=trace_folder).run(progress)


class Prepared:
    """A scenario that is read and built, and has not run yet."""

    def __init__(self, native: _native.Prepared, folder: Path) -> None:
        self._native = native
        self._folder = folder

    def run(self, progress: _native.Progress | None = None, *, keep: bool = False) -> Result:
        """Simulates; once only.

        Args:
            progress: as for `run` of this module.
            keep: a run that `progress` cancels is no error: its result has what was there until then, and is marked as
                interrupted.

        Raises:
            PhysicsError: the simulator broke a law of its own, which is a defect of the simulator.
            PluginError: a controller of one's own failed, or allowed what cannot be.
            Cancelled: `progress` returned `False`, and `keep` is not set.
            KeyboardInterrupt: the user pressed Ctrl-C.
            RuntimeError: it has run already.
        """
        return Result(self._native.run(progress, keep), self._folder)


def prepare(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    waiting: Callable[[float], object] | None = None,
    trace: str | None = None,
    trace_folder: str | Path = ".",
) -> Prepared:
    """Reads a scenario and builds its network and flows; what `run` does before it simulates.

    Args:
        scenario: as for `run`.
        seed: as for `run`.
        set: as for `run`.
        waiting: called about twenty times a second with the seconds that the building has lasted.
        trace: as for `run`.
        trace_folder: as for `run`.

    Raises:
        TraceError: there cannot be such a trace.
        ScenarioError: the scenario cannot be run.
        PluginError: a workload, distribution or controller of one's own failed.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    text, name, folder = read(scenario)
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise ScenarioError(f"seed = {seed}: out of range; allowed: a whole number from 0 to {MAX_SEED}")
    asked = parse(trace).asked(Path(trace_folder)) if trace is not None else []
    overrides, catalogue = override_texts(set), REGISTRY.catalogue()
    native = _native.prepare(text, name, str(folder), overrides, seed, waiting, catalogue, asked)
    return Prepared(native, folder)


def check(scenario: str | Path, *, set: Settings | None = None) -> None:
    """Reads a scenario and builds its network and flows, without simulating.

    Raises:
        ScenarioError: the scenario cannot be run.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    prepare(scenario, set=set)


def read(scenario: str | Path) -> tuple[str, str, Path]:
    """A scenario's text, its name for messages, and the folder that paths in it start from.

    Raises:
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, TEXT_NAME, Path.cwd()
    path = library.resolve(str(scenario))
    if is_saved(path):
        content = saved_run(path)
        return str(content["scenario"]), str(path), Path(str(content.get("folder", path.parent)))
    return read_text(path), str(path), path.parent


def is_saved(path: Path) -> bool:
    """Whether a file is what a run has left beside its tables, and no scenario of its own, by its name."""
    return path.suffix == SAVED_SUFFIX


def saved_run(path: Path) -> dict[str, object]:
    """What the `run.json` of a run says.

    Raises:
        ScenarioError: it is no such file.
    """
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("scenario"), str):
        raise ScenarioError(f"{path}: not the run.json of a run; allowed: one that `sparelane run` has written")
    return content


def read_text(path: Path) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: it cannot be read, is not text in UTF-8, or is too large to be a scenario.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB; a scenario is a text of some lines")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path}:{line}: not text in UTF-8, as a scenario has to be") from error
