"""A figure as notebooks and scripts have it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparelane.common.folders import SavedResultsError
from sparelane.common.names import UnknownNameError
from sparelane.reports.charts import draw, of_run
from sparelane.reports.charts.panel import Panel, with_looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparelane.simulation.result import Result

NOTHING = (
    "there is nothing to draw: no flow has finished, and nothing was sampled over time; `[sample]` in the scenario "
    "records time series"
)
# What a scenario needs for the panels that not every result has.
NEEDS = {
    **dict.fromkeys(("window", "rtt", "throughput-time"), "`[sample]` with `flows`"),
    "queue": "`[sample]` with `queues`",
    "links": "`[sample]` with `links`",
    "throughput-delay-p95": "`[measure]` with `delays = true`",
    **dict.fromkeys(("completion", "slowdown", "cdf", "cdf-slowdown"), "flows that finish"),
    "throughput": "flows without end",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """Some panels, drawn.

    Attributes:
        figure: of Matplotlib, to be changed at will.
        names: the names of the panels.
    """

    figure: Figure
    names: tuple[str, ...]

    def save(self, path: str | Path) -> None:
        """Writes it as PNG, SVG or PDF, by the path's ending.

        Raises:
            OutputError: there is no such format.
            OSError: the file cannot be written.
        """
        draw.save(self.figure, Path(path))

    def _repr_png_(self) -> bytes:
        """The picture, for notebooks."""
        content = io.BytesIO()
        self.figure.savefig(content, format="png", dpi=110)
        return content.getvalue()


def of_result(result: Result, names: Sequence[str]) -> Plot:
    """The panels of these names, or all, of one run.

    Raises:
        UnknownNameError: there is no such panel.
        SavedResultsError: there is nothing to draw.
    """
    chosen = choose(of_run.panels([of_run.of_result(result)]), names)
    return Plot(draw.figure(chosen), tuple(panel.name for panel in chosen))


def choose(panels: Sequence[Panel], names: Sequence[str]) -> list[Panel]:
    """The panels of these names, or all, each line with its look.

    Raises:
        UnknownNameError: there is no such panel.
        SavedResultsError: there is none at all.
    """
    if not panels:
        raise SavedResultsError(NOTHING)
    known = [panel.name for panel in panels]
    unknown = next((name for name in names if name not in known), None)
    if unknown in NEEDS:
        raise SavedResultsError(
            f'there is no panel "{unknown}" of these results: it needs {NEEDS[unknown]} in the scenario; '
            f"allowed: {', '.join(known)}"
        )
    if unknown is not None:
        raise UnknownNameError("panel", unknown, known)
    return [panel for panel in with_looks(panels) if not names or panel.name in names]
