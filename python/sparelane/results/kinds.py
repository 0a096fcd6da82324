"""What a folder of results holds."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from sparelane.folders import SavedResultsError
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
    if any(next(folder.glob(f"{below}{manifest.FILE}"), None) for below in ("*/", "*/*/")):
        return Kind.REPRODUCTION
    state = ", which is empty" if next(folder.iterdir(), None) is None else ""
    raise SavedResultsError(
        f'no results in the folder "{folder}"{state}: `sparelane run`, `sweep` or `reproduce` with -o leaves some'
    )
