"""Results outside the simulator's memory: the state of a pickled result, and the folder of a saved run.

`Result.save` writes each table in one or more formats, and `run.json` with facts about the run and the type of every
column. CSV and JSON store no types, so a reader that guesses would read an empty column as text. With the types in
`run.json`, a table is the same from every format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sparelane.common.folders import SavedResultsError

if TYPE_CHECKING:
    import polars as pl

    from sparelane import _native

FILE = "run.json"
TABLES = ("flows", "links", "drops", "cross_traffic", "delays", "packets", "series")
FACTS = ("digest", "seed", "version", "scenario", "totals", "warnings", "traces", "is_interrupted")


class Stored:
    """The columns of a run and facts about it, with the interface of native results.

    Attributes:
        saved_warnings: all warnings about the run from its file; `None` if they are computed from the tables.
    """

    def __init__(self, state: Mapping[str, object]) -> None:
        self._state = state
        self.digest = cast("str", state["digest"])
        self.seed = cast("int", state["seed"])
        self.version = cast("str", state["version"])
        self.scenario = cast("str", state["scenario"])
        self.totals = cast("_native.Totals", state["totals"])
        self.warnings = cast("list[str]", state["warnings"])
        self.traces = cast("list[tuple[Path, int, OSError | None]]", state["traces"])
        self.is_interrupted = cast("bool", state["is_interrupted"])
        self.saved_warnings = cast("list[str] | None", state.get("saved_warnings"))

    def flows(self) -> dict[str, _native.Column]:
        """One row per flow."""
        return self._table("flows")

    def links(self) -> dict[str, _native.Column]:
        """One row per direction of a cable."""
        return self._table("links")

    def drops(self) -> dict[str, _native.Column]:
        """One row per direction of a cable and class."""
        return self._table("drops")

    def cross_traffic(self) -> dict[str, _native.Column]:
        """One row per source of cross traffic."""
        return self._table("cross_traffic")

    def delays(self) -> dict[str, _native.Column]:
        """One row per scheme, class of traffic and bin of delays."""
        return self._table("delays")

    def packets(self) -> dict[str, _native.Column]:
        """One row per packet of the logged flow."""
        return self._table("packets")

    def series(self) -> dict[str, _native.Column]:
        """One row per sample of a quantity."""
        return self._table("series")

    def _table(self, name: str) -> dict[str, _native.Column]:
        return cast("dict[str, _native.Column]", self._state[name])


class Saved(Stored):
    """A run in a folder. Each table is read when it is first used."""

    def __init__(self, folder: Path) -> None:
        """Reads `run.json`.

        Raises:
            SavedResultsError: the file is missing, is malformed, or was written by another version.
        """
        content = about(folder)
        facts = {name: content.get(name) for name in ("digest", "seed", "version", "scenario", "totals")}
        # The saved warnings include those of the scenario. Older versions call them notices.
        saved = content.get("warnings", content.get("notices", []))
        rest = {"warnings": [], "traces": [], "saved_warnings": saved}
        super().__init__({**facts, **rest, "is_interrupted": bool(content.get("interrupted"))})
        self._folder, self._types = folder, content.get("tables")
        #: The folder that paths in the scenario start from.
        self.base = Path(str(content.get("folder", folder)))

    def _table(self, name: str) -> dict[str, _native.Column]:
        from sparelane.common.frames import to_columns

        return to_columns(_read(self._folder, name, self._types))


def state_of(results: _native.Results | Stored) -> dict[str, Any]:
    """The complete state of a result, in types that can be pickled."""
    facts = {name: getattr(results, name) for name in FACTS}
    tables = {name: getattr(results, name)() for name in TABLES}
    return {**facts, **tables, "saved_warnings": getattr(results, "saved_warnings", None)}


def about(folder: Path) -> dict[str, Any]:
    """Reads `run.json`, the facts about a saved run.

    Raises:
        SavedResultsError: the file is missing, is malformed, or was written by another version.
    """
    from sparelane.results import manifest

    path = folder / FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = str(content["version"])
        float(content["totals"]["end_s"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SavedResultsError(f'"{path}" does not describe a run in the form of this version: {error}') from error
    manifest.refuse_other_version(folder, version)
    return content


def table(folder: Path, name: str) -> pl.DataFrame:
    """Reads a table of a saved run from any available format, with its original types.

    Args:
        folder: the folder of the run.
        name: one of `TABLES`.

    Raises:
        SavedResultsError: the table is missing, is malformed, or was written by another version.
    """
    return _read(folder, name, about(folder).get("tables"))


def _read(folder: Path, name: str, types: object) -> pl.DataFrame:
    from sparelane.common import frames

    for suffix, reader in frames.READERS.items():
        path = folder / f"{name}.{suffix}"
        if path.exists():
            return _checked(reader, path, _types_of(name, types))
    raise SavedResultsError(f'"{folder}" does not have the table "{name}" in any format')


def _types_of(name: str, types: object) -> Mapping[str, str] | None:
    """The types of a table's columns, by name; `None` if `run.json` does not state them."""
    found = types.get(name) if isinstance(types, dict) else None
    return found if isinstance(found, dict) else None


def _checked(
    read: Callable[[Path, Mapping[str, str] | None], pl.DataFrame], path: Path, types: Mapping[str, str] | None
) -> pl.DataFrame:
    import polars as pl

    try:
        return read(path, types)
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error
