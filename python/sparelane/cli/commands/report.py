"""`sparelane report`: saved results as one HTML file, and as pages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands.compare_options import comparison_options, thresholds_of
from sparelane.cli.commands.reproduce import DEFAULT_FOLDER
from sparelane.cli.commands.verdicts import FAILED, show_claims, show_unneeded
from sparelane.common import extras, folders
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    from sparelane.papers.engine.saved import Saved


PAGE = "report.html"
# Experiments that are listed one by one; of more, the number is told.
LISTED = 12


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path), default=DEFAULT_FOLDER)
@click.option(
    "target",
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The HTML file.  [default: {PAGE} in FOLDER]",
)
@click.option("see", "--see", type=click.Path(path_type=Path), help="Another page, to be named in the Markdown pages.")
@click.option("redraw", "--redraw", is_flag=True, help="Draw the figures of experiments again, too.")
@click.option("check", "--check", is_flag=True, help="Exit with 1 if a claim of an experiment fails.")
@comparison_options
def command(
    folder: Path,
    target: Path | None,
    see: Path | None,
    redraw: bool,
    check: bool,
    metric: str | None,
    by: tuple[str, ...],
    thresholds: tuple[str, ...],
) -> None:
    """Write what FOLDER holds as one HTML file, which opens offline: question, answer, figures, how to repeat it.

    FOLDER is what `sparelane sweep`, `run` or `reproduce` left. Of experiments that `sparelane reproduce` saved, in any
    number of runs, Markdown pages are written too, into FOLDER, unless -o says where the report goes. Their numbers are
    the saved ones, and figures unless they are drawn again; reasons, claims and assumptions are those of the
    experiments as they are now. --metric, --by and --threshold are for sweeps.
    """
    from sparelane.results.kinds import Kind, kind_of

    kind = kind_of(folder)
    place = target or folder / PAGE
    if kind is not Kind.SWEEP and (metric is not None or by or thresholds):
        raise click.UsageError(f'--metric, --by and --threshold are for sweeps, and "{folder}" holds other results')
    if kind is Kind.REPRODUCTION:
        if see is not None and target is not None:
            raise click.UsageError("--see goes into the Markdown pages; allowed: without -o, which leaves them alone")
        _report_experiments(folder, place, see, has_pages=target is None, redraw=redraw, check=check)
        return
    if kind is Kind.SWEEP:
        from sparelane.reports.pages import of_sweep
        from sparelane.sweeps import folder as sweeps

        text = of_sweep.page(sweeps.read(folder), metric=metric, by=by, thresholds=thresholds_of(thresholds))
    else:
        from sparelane.reports.pages import of_run

        text = of_run.page(folder)
    _write(text, place)


def _write(text: str, target: Path) -> None:
    """Writes the HTML file, whole or not at all."""
    folders.replaced(folders.ready_file(target), lambda path: path.write_text(text, encoding="utf-8"))
    terminal.saved(f"report in {target}", f"the report is saved in {target}")


def _report_experiments(
    folder: Path, target: Path, see: Path | None, *, has_pages: bool, redraw: bool, check: bool
) -> None:
    folders.ready_file(target)
    extras.require("papers")
    from sparelane.papers import registry
    from sparelane.papers.engine import saved
    from sparelane.papers.pages import of_experiments, report
    from sparelane.results import manifest

    results, unknown = saved.read_all(folder, registry())
    if not results:
        raise folders.SavedResultsError(
            f'no results in the folder "{folder}": `sparelane reproduce -o "{folder}"` saves some'
        )
    if redraw:
        report.redraw(results)
    unfinished = report.unfinished(folder, results)
    folders.replaced(target, lambda path: path.write_text(of_experiments.page(results, unfinished), encoding="utf-8"))
    # Pages link to each other from the folder of all results on.
    if has_pages and next(folder.glob(f"*/*/{manifest.FILE}"), None):
        beside = None if see is None else Path(os.path.relpath(see, folder)).as_posix()
        pages = report.save_pages(results, folders.ready_folder(folder), see=beside, unfinished=unfinished)
        _say(results, unknown, pages)
    terminal.saved(f"report in {target}", f"the report is saved in {target}")
    if not show_claims([(one.experiment.id, one.verdicts) for one in results]) and check:
        raise SystemExit(FAILED)


def _say(results: Sequence[Saved], unknown: Sequence[str], target: Path) -> None:
    """Prints what the reader of the page should know, and what is to be done before the next one."""
    from sparelane.papers import registry
    from sparelane.papers.pages.page import SUMMARY_HEADINGS, summary

    terminal.show_table("how they stand", SUMMARY_HEADINGS, SUMMARY_HEADINGS[:2], summary(results))
    found = {one.experiment.id for one in results}
    lists = {
        "not the full effort": [one.experiment.id for one in results if not one.is_full],
        "outdated, to be run again": [one.experiment.id for one in results if one.is_outdated],
        "without results": [id for id in registry() if id not in found],
        "results of experiments that are no more": unknown,
    }
    for words, ids in lists.items():
        if ids:
            told = ", ".join(ids) if len(ids) <= LISTED else f"{len(ids)} experiments"
            terminal.output().print(f"{words}: {told}", soft_wrap=True, markup=False)
    show_unneeded((one.experiment.id, one.unneeded_reasons) for one in results)
    terminal.saved(f"pages from {target} on", f"the pages are saved from {target} on")
