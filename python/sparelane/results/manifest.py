"""The manifest beside rows: what made them, from what, and how to make them again."""

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
# The layout of rows and manifests: it rises when a reader of the last one would misread them.
LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where a folder's rows come from.

    Attributes:
        kind: what kind of work left them.
        name: what was asked: the name of the sweep, or the id of an experiment.
        title: what it shows, in words; may be empty.
        version: of the program that simulated.
        engine: a fingerprint of the simulator as it was built.
        commit: of the program's sources, where they are at hand.
        seeds: of all runs.
        effort: whether it is all that was wanted, or a short form.
        digest: a fingerprint of all runs in order: equal digests, equal results.
        runs: how many runs the rows rest on.
        missing: how many were wanted beside these, and failed or were not reached.
        elapsed_s: how long it took, seconds, all sessions together, and of an experiment with those before it in the
            same command; `None` where that was not noted.
        cpu_s: the processor time of the runs, seconds.
        day: when it was finished, as year, month and day.
        command: what to type to make it again.
        details: more, by kind.
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
        """The version, with the commit where that is known."""
        return _with_commit(self.version, self.commit)

    def write(self, folder: Path) -> None:
        """Writes it into the folder.

        Raises:
            OSError: the folder cannot be written.
        """
        replaced(folder / FILE, partial(write_json_value, {"layout": LAYOUT, **asdict(self)}))


def read(folder: Path) -> Manifest:
    """The manifest of a folder.

    Raises:
        SavedResultsError: there is none, it cannot be read, or another version wrote it.
    """
    found = read_any(folder)
    refuse_other_version(folder, found.version)
    return found


def read_any(folder: Path) -> Manifest:
    """The manifest of a folder, whichever version wrote it.

    Raises:
        SavedResultsError: there is none, it cannot be read, or it is in another layout.
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
    """Refuses results of another version, which may mean something else by the same names.

    Raises:
        SavedResultsError: the version is not this one.
    """
    if version.partition(" ")[0] != _native.__version__:
        raise SavedResultsError(f'"{folder}" holds results of sparelane {version}; {_this_version()}')


def _this_version() -> str:
    return f"this is {_native.__version__}: use that version, or run it again into another folder"


@cache
def engine() -> str:
    """A fingerprint of the simulator as it was built: of the native module's bytes."""
    place = getattr(_native, "__file__", None)
    content = Path(place).read_bytes() if place else _native.__version__.encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@cache
def commit() -> str:
    """The commit of the program's sources in a checkout of them, marked where files differ from it; else nothing."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def program() -> str:
    """The program's version, with the commit where that is known."""
    return _with_commit(_native.__version__, commit())


def _with_commit(version: str, commit: str) -> str:
    return f"{version} ({commit})" if commit else version
