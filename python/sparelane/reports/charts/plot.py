"""Figures for notebooks and scripts, and the selection of panels by name."""

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
# The requirements of panels that not every result has.
NEEDS = {
    **dict.fromkeys(("window", "rtt", "throughput-time"), "`[sample]` with `flows`"),
    "queue": "`[sample]` with `queues`",
    "links": "`[sample]` with `links`",
    "rates": "`[sample]` with `links` whose rate changes or follows a trace",
    "queue-delay": "`[sample]` with `queues` and `links` whose rate changes or follows a trace",
    "throughput-delay-p95": "`[measure]` with `delays = true`",
    **dict.fromkeys(("completion", "slowdown", "cdf", "cdf-slowdown"), "flows that finish"),
    "throughput": "flows without end",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure of some panels.

    Attributes:
        figure: the Matplotlib figure, which may be changed.
        names: the names of the panels.
    """

    figure: Figure
    names: tuple[str, ...]

    def save(self, path: str | Path) -> None:
        """Writes the figure as PNG, SVG or PDF, according to the suffix of the path.

        Raises:
            OutputError: the suffix is another one.
            OSError: the file cannot be written.
        """
        draw.save(self.figure, Path(path))

    def _repr_png_(self) -> bytes:
        """The figure as PNG, for notebooks."""
        content = io.BytesIO()
        self.figure.savefig(content, format="png", dpi=110)
        return content.getvalue()


def of_result(result: Result, names: Sequence[str]) -> Plot:
    """Draws the panels with these names, or all, of a run.

    Raises:
        UnknownNameError: no panel has this name.
        SavedResultsError: there is nothing to draw.
    """
    chosen = choose(of_run.panels([of_run.of_result(result)]), names)
    return Plot(draw.figure(chosen), tuple(dict.fromkeys(panel.name for panel in chosen)))


def choose(panels: Sequence[Panel], names: Sequence[str]) -> list[Panel]:
    """Selects the panels with these names, or all, and sets the style of each line.

    Raises:
        UnknownNameError: no panel has this name.
        SavedResultsError: there is no panel, or the results lack the samples for the panel.
    """
    if not panels:
        raise SavedResultsError(NOTHING)
    # Several runs or links can have panels of one name.
    known = list(dict.fromkeys(panel.name for panel in panels))
    unknown = next((name for name in names if name not in known), None)
    if unknown in NEEDS:
        raise SavedResultsError(
            f'there is no panel "{unknown}" of these results: it needs {NEEDS[unknown]} in the scenario; '
            f"allowed: {', '.join(known)}"
        )
    if unknown is not None:
        raise UnknownNameError("panel", unknown, known)
    return [panel for panel in with_looks(panels) if not names or panel.name in names]
