"""Running a scenario from Python."""

from __future__ import annotations

from pathlib import Path

from sparelane import _native, library
from sparelane.result import Result
from sparelane.settings import Settings, override_texts

# What a scenario that is not in a file is called in messages.
TEXT_NAME = "<text>"


def run(
    scenario: str | Path,
    *,
    seed: int | None = None,
    set: Settings | None = None,
    progress: _native.Progress | None = None,
) -> Result:
    """Simulates a scenario.

    Args:
        scenario: a path, the name of a ready-made scenario, or the scenario itself as TOML text of more than one line.
        seed: of every random draw; `None` takes the scenario's.
        set: values that replace the scenario's: `{"workload.load": 0.5}` or `["workload.load=0.5"]`.
        progress: called about twenty times a second with the share of simulated time that is done, 0 to 1;
            returns `True` to go on, `False` to cancel.

    Raises:
        ScenarioError: the scenario cannot be run; names file, line and key.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
        PhysicsError: the simulator broke a law of its own, which is a defect of the simulator.
        Cancelled: `progress` returned `False`.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    return prepare(scenario, seed=seed, set=set).run(progress)


class Prepared:
    """A scenario that is read and built, and has not run yet."""

    def __init__(self, native: _native.Prepared) -> None:
        self._native = native

    def run(self, progress: _native.Progress | None = None) -> Result:
        """Simulates; once only.

        Raises:
            PhysicsError: the simulator broke a law of its own, which is a defect of the simulator.
            Cancelled: `progress` returned `False`.
            KeyboardInterrupt: the user pressed Ctrl-C.
            RuntimeError: it has run already.
        """
        return Result(self._native.run(progress))


def prepare(scenario: str | Path, *, seed: int | None = None, set: Settings | None = None) -> Prepared:
    """Reads a scenario and builds its network and flows; what `run` does before it simulates.

    Raises:
        ScenarioError: the scenario cannot be run.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    text, name, folder = read(scenario)
    return Prepared(_native.prepare(text, name, str(folder), override_texts(set), seed))


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
    return path.read_text(encoding="utf-8"), str(path), path.parent
