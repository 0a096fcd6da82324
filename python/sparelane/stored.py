"""Results outside of the simulator's memory: what a pickled result is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pathlib import Path

    from sparelane import _native

TABLES = ("flows", "links", "drops", "cross_traffic", "delays", "packets", "series")
FACTS = ("digest", "seed", "version", "scenario", "totals", "notices", "traces", "is_interrupted")


class Stored:
    """The columns of a run and the facts about it, with the names that the simulator's results have."""

    def __init__(self, state: dict[str, object]) -> None:
        self._state = state
        self.digest = cast("str", state["digest"])
        self.seed = cast("int", state["seed"])
        self.version = cast("str", state["version"])
        self.scenario = cast("str", state["scenario"])
        self.totals = cast("_native.Totals", state["totals"])
        self.notices = cast("list[str]", state["notices"])
        self.traces = cast("list[tuple[Path, int, OSError | None]]", state["traces"])
        self.is_interrupted = cast("bool", state["is_interrupted"])

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


def state_of(results: _native.Results | Stored) -> dict[str, Any]:
    """Everything that a result is made of, in types that can be pickled."""
    facts = {name: getattr(results, name) for name in FACTS}
    return facts | {name: getattr(results, name)() for name in TABLES}
