"""`sparelane plot`: figures of runs and sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import extras, folders, terminal

if TYPE_CHECKING:
    from sparelane.charts.panel import Panel

NAME = "plot.png"


@click.command("plot")
@click.argument("what", metavar="WHAT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "target",
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The figure, ending in .png, .svg or .pdf.  [default: {NAME} in the first folder]",
)
@click.option(
    "only", "--only", metavar="PANEL", multiple=True, help="Draw this panel alone; repeatable.  [default: all]"
)
@click.option("key", "--x", metavar="KEY", help="Draw a sweep along this key.  [default: the one with the most values]")
def command(what: tuple[Path, ...], target: Path | None, only: tuple[str, ...], key: str | None) -> None:
    """Draw runs or sweeps.

    WHAT is a folder of `sparelane run`, or several, which are drawn together; or the folder of a sweep. Of a run are
    drawn windows, round trips, queues and use of links over time, where the scenario samples them, completion times
    and slowdowns by size, and distributions; of a sweep, its numbers along a key, with intervals.
    """
    from sparelane.charts import draw
    from sparelane.charts.plot import choose

    extras.require("figures")
    target = target or what[0] / NAME
    draw.refuse_other_formats(target)
    panels = choose(_panels(what, key), only)
    folders.ready_file(target)
    draw.save(draw.figure(panels), target)
    terminal.output().print(f"{', '.join(panel.name for panel in panels)} in {target}", soft_wrap=True, markup=False)


def _panels(what: Sequence[Path], key: str | None) -> list[Panel]:
    from sparelane.charts import of_run, of_sweep
    from sparelane.folders import SavedResultsError
    from sparelane.results.kinds import Kind, kind_of
    from sparelane.sweeps import folder as sweeps

    kinds = [kind_of(place) for place in what]
    if all(kind is Kind.RUN for kind in kinds):
        if key is not None:
            raise SavedResultsError("--x is for sweeps: a run has no key that varies")
        names = [str(place) if len(what) > 1 else "" for place in what]
        found = of_run.panels([of_run.read(place, name) for place, name in zip(what, names, strict=True)])
    elif kinds == [Kind.SWEEP]:
        found = of_sweep.panels(sweeps.read(what[0]), key)
    elif Kind.REPRODUCTION in kinds:
        raise SavedResultsError(f'"{what[kinds.index(Kind.REPRODUCTION)]}" holds experiments, whose figures are there')
    else:
        raise SavedResultsError("a sweep is drawn alone: name one sweep, or any number of runs")
    return found
