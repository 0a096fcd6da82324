"""What a folder of results holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from sparelane.common.folders import SavedResultsError
from sparelane.results import manifest


class Kind(Enum):
    """What a folder holds."""

    RUN = "a run"
    SWEEP = "a sweep"
    REPRODUCTION = "experiments"


def kind_of(folder: Path) -> Kind:
    """What a folder holds.

    Raises:
        SavedResultsError: it is no folder, is empty, or holds no results.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "is not there"
        raise SavedResultsError(
            f'"{folder}" {what}; allowed: a folder that `sparelane run`, `sweep` or `reproduce` left'
        )
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
        f'no results in the folder "{folder}"{state}: `sparelane run`, `sweep` or `reproduce` with -o leaves some'
    )


# Folders that are listed one by one.
LISTED = 12


def _which(folder: Path, below: Sequence[Path]) -> str:
    """That a folder holds folders of results, and which."""
    more = f" and {len(below) - LISTED} more" if len(below) > LISTED else ""
    listed = ", ".join(f'"{path}"' for path in below[:LISTED])
    return f'"{folder}" holds folders of results, and no results itself; allowed: one of {listed}{more}'
