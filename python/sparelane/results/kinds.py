"""Determines the kind of results in a folder: a run, a sweep, or experiments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from sparelane.common.folders import SavedResultsError
from sparelane.results import manifest


class Kind(Enum):
    """The kind of results in a folder."""

    RUN = "a run"
    SWEEP = "a sweep"
    REPRODUCTION = "experiments"


def kind_of(folder: Path) -> Kind:
    """The kind of results in a folder.

    Raises:
        SavedResultsError: the path is not a folder, or holds no results.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise SavedResultsError(f'"{folder}" {what}; allowed: a folder of `sparelane run`, `sweep` or `reproduce`')
    if (folder / "run.json").exists():
        return Kind.RUN
    if (folder / manifest.FILE).exists():
        return Kind.REPRODUCTION if manifest.read_any(folder).kind == "experiment" else Kind.SWEEP
    for path in itertools.chain(folder.glob(f"*/{manifest.FILE}"), folder.glob(f"*/*/{manifest.FILE}")):
        if manifest.read_any(path.parent).kind == "experiment":
            return Kind.REPRODUCTION
    state = ", which is empty" if next(folder.iterdir(), None) is None else ""
    below = sorted(
        {path.parent for name in ("run.json", "report.json", manifest.FILE) for path in folder.glob(f"*/{name}")}
    )
    if below:
        raise SavedResultsError(_which(folder, below))
    raise SavedResultsError(
        f'no results in the folder "{folder}"{state}: `sparelane run`, `sweep` or `reproduce` with -o saves some'
    )


# The largest number of folders that a message lists.
LISTED = 12


def _which(folder: Path, below: Sequence[Path]) -> str:
    """The message for a folder that contains folders of results instead of results."""
    more = f" and {len(below) - LISTED} more" if len(below) > LISTED else ""
    listed = ", ".join(f'"{path}"' for path in below[:LISTED])
    return f'"{folder}" holds folders of results, and no results itself; allowed: one of {listed}{more}'
