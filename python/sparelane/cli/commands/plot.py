"""`sparelane plot`: draws figures of runs and sweeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane.common import extras, folders
from sparelane.terminal import console

if TYPE_CHECKING:
    from sparelane.reports.charts.panel import Panel

NAME = "plot.png"


@click.command("plot")
@click.argument("what", metavar="WHAT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "target",
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File for the figure: .png, .svg or .pdf.  [default: {NAME} in the first folder]",
)
@click.option(
    "only", "--only", metavar="PANEL", multiple=True, help="Draw only this panel; repeatable.  [default: all]"
)
@click.option(
    "key", "--x", metavar="KEY", help="Key on the x axis of a sweep.  [default: the key with the most values]"
)
@click.option(
    "where",
    "--where",
    metavar="KEY=VALUE",
    multiple=True,
    help="For a sweep, draw only this value of a key, or scheme=NAME; repeatable.",
)
def command(
    what: tuple[Path, ...], target: Path | None, only: tuple[str, ...], key: str | None, where: tuple[str, ...]
) -> None:
    """Draw runs or sweeps.

    WHAT is the folder of a sweep, or one or more folders of `sparelane run`, which are drawn together. Panels of a run
    are: windows, round-trip times, throughputs, queue lengths and link utilisation over time, if the scenario samples
    them; rates and queueing delays of links that change or follow a trace; completion times and slowdowns by flow
    size; distributions; and throughput against delay. Panels of a sweep show its metrics along a key.
    """
    from sparelane.reports.charts import draw
    from sparelane.reports.charts.plot import choose

    target = target or what[0] / NAME
    draw.refuse_other_formats(target)
    panels = choose(_panels(what, key, where), only)
    folders.ready_file(target)
    extras.require("figures")
    draw.save(draw.figure(panels), target)
    names = ", ".join(dict.fromkeys(panel.name for panel in panels))
    console.saved(f"{names} in {target}", f"the figure is saved in {target}")


def _names(what: Sequence[Path]) -> list[str]:
    """The shortest names that distinguish the folders; an empty name for a single folder."""
    if len(what) < 2:
        return [""]
    full = [place.resolve() for place in what]
    common = os.path.commonpath(full)
    names = [os.path.relpath(place, common) for place in full]
    return [str(place) if name == "." else name for name, place in zip(names, what, strict=True)]


def _panels(what: Sequence[Path], key: str | None, where: Sequence[str]) -> list[Panel]:
    from sparelane.common.folders import SavedResultsError
    from sparelane.reports.charts import of_run, of_sweep
    from sparelane.results.kinds import Kind, kind_of
    from sparelane.sweeps import folder as sweeps

    kinds = [kind_of(place) for place in what]
    if all(kind is Kind.RUN for kind in kinds):
        if key is not None or where:
            option = "--where" if key is None else "--x"
            raise SavedResultsError(f"{option} is for sweeps: a run has no key that varies")
        names = _names(what)
        found = of_run.panels([of_run.read(place, name) for place, name in zip(what, names, strict=True)])
    elif kinds == [Kind.SWEEP]:
        found = of_sweep.panels(sweeps.read(what[0]), key, where)
    elif Kind.REPRODUCTION in kinds:
        raise SavedResultsError(
            f'"{what[kinds.index(Kind.REPRODUCTION)]}" holds experiments, which have figures already'
        )
    else:
        raise SavedResultsError("a figure shows one sweep, or any number of runs")
    return found
