"""The manifest of a folder of results: program, seeds, fingerprints, and the command that repeats them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from sparelane import _native
from sparelane.common.folders import SavedResultsError, replaced
from sparelane.common.frames import write_json_value

FILE = "manifest.json"
# The version of the layout of rows and manifests. It increases when older readers would misread newer files.
LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The origin of the rows in a folder.

    Attributes:
        kind: the kind of results.
        name: the name of the sweep, or the id of the experiment.
        title: a title; may be empty.
        version: the version of the program that simulated.
        engine: a fingerprint of the compiled simulator.
        commit: the commit of the sources; empty if it is unknown.
        seeds: the seeds of all runs.
        effort: `full`, or `quick` for a reduced version.
        digest: a fingerprint of all runs in order; equal digests mean equal results.
        runs: the number of runs behind the rows.
        missing: the number of further runs that failed or were not reached.
        elapsed_s: the elapsed time of all sessions, seconds. For an experiment, it includes earlier experiments of the
            same command. `None` if it was not recorded.
        cpu_s: the CPU time of the runs, seconds.
        day: the day when the results were complete, as year, month and day.
        command: the command that repeats the results.
        details: further facts, which depend on the kind.
    """

    kind: Literal["sweep", "experiment", "comparison"]
    name: str
    title: str
    version: str
    engine: str
    commit: str
    seeds: tuple[int, ...]
    effort: Literal["full", "quick"]
    digest: str
    runs: int
    missing: int
    elapsed_s: float | None
    cpu_s: float
    day: str
    command: str
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The version, with the commit if it is known."""
        return _with_commit(self.version, self.commit)

    def write(self, folder: Path) -> None:
        """Writes the manifest into the folder.

        Raises:
            OSError: the folder cannot be written.
        """
        replaced(folder / FILE, partial(write_json_value, {"layout": LAYOUT, **asdict(self)}))


def read(folder: Path) -> Manifest:
    """Reads the manifest of a folder.

    Raises:
        SavedResultsError: the manifest is missing or malformed, or another version wrote it.
    """
    found = read_any(folder)
    refuse_other_version(folder, found.version)
    return found


def read_any(folder: Path) -> Manifest:
    """Reads the manifest of a folder, written by any version.

    Raises:
        SavedResultsError: the manifest is missing or malformed, or has another layout.
    """
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version, layout = content.pop("version"), content.pop("layout")
    except KeyError as error:
        raise SavedResultsError(f'"{path}" is not a manifest as `sparelane` writes one: {error} is missing') from error
    except (AttributeError, TypeError) as error:
        raise SavedResultsError(f'"{path}" is not a manifest as `sparelane` writes one, a JSON object') from error
    except (OSError, ValueError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error
    if layout != LAYOUT:
        raise SavedResultsError(
            f'"{folder}" holds results in layout {layout}, written by sparelane {version}; this one reads layout '
            f"{LAYOUT}: use the build that wrote them, or run it again into another folder"
        )
    try:
        return Manifest(version=str(version), seeds=tuple(content.pop("seeds")), **content)
    except (KeyError, TypeError) as error:
        raise SavedResultsError(f'"{path}" is not a manifest as this version writes it: {error}') from error


def refuse_other_version(folder: Path, version: str) -> None:
    """Rejects results of another version, in which the same names may have another meaning.

    Raises:
        SavedResultsError: the version is not this one.
    """
    if version.partition(" ")[0] != _native.__version__:
        raise SavedResultsError(f'"{folder}" holds results of sparelane {version}; {_this_version()}')


def _this_version() -> str:
    return f"this is {_native.__version__}: use that version, or run it again into another folder"


@cache
def engine() -> str:
    """A fingerprint of the compiled simulator: a hash of the native module."""
    place = getattr(_native, "__file__", None)
    content = Path(place).read_bytes() if place else _native.__version__.encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@cache
def commit() -> str:
    """The commit of the sources, with a suffix if files were changed; empty outside a Git checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def program() -> str:
    """The version of this program, with the commit if it is known."""
    return _with_commit(_native.__version__, commit())


def _with_commit(version: str, commit: str) -> str:
    return f"{version} ({commit})" if commit else version
