"""`sparelane report`: writes saved results as one HTML file and, for experiments, as Markdown pages."""

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
from sparelane.terminal import console

if TYPE_CHECKING:
    from sparelane.papers.engine.saved import Saved


PAGE = "report.html"
# Up to this many experiments are listed by id; beyond it, only their number is printed.
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
@click.option("see", "--see", type=click.Path(path_type=Path), help="Another page that the Markdown pages link to.")
@click.option("redraw", "--redraw", is_flag=True, help="Draw the figures of experiments again.")
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
    """Write the results in FOLDER as one HTML file for offline use, with question, answer, figures and commands.

    FOLDER holds results of `sparelane sweep`, `run` or `reproduce`. For experiments, the command also writes Markdown
    pages into FOLDER, unless -o is given. The pages use saved numbers, and saved figures unless --redraw is given.
    Reasons, claims and assumptions come from the current definitions of the experiments. --metric, --by and --threshold
    are for sweeps.
    """
    from sparelane.results.kinds import Kind, kind_of

    kind = kind_of(folder)
    place = target or folder / PAGE
    if kind is not Kind.SWEEP and (metric is not None or by or thresholds):
        raise click.UsageError(f'--metric, --by and --threshold are for sweeps, and "{folder}" holds other results')
    if kind is Kind.REPRODUCTION:
        if see is not None and target is not None:
            raise click.UsageError("--see changes the Markdown pages, which -o does not write; allowed: one of the two")
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
    """Writes the HTML file atomically."""
    folders.replaced(folders.ready_file(target), lambda path: path.write_text(text, encoding="utf-8"))
    console.saved(f"report in {target}", f"the report is saved in {target}")


def _report_experiments(
    folder: Path, target: Path, see: Path | None, *, has_pages: bool, redraw: bool, check: bool
) -> None:
    folders.ready_file(target)
    extras.require("papers")
    from sparelane.papers import registry
    from sparelane.papers.engine import saved
    from sparelane.papers.pages import html, report
    from sparelane.results import manifest

    results, unknown = saved.read_all(folder, registry())
    if not results:
        raise folders.SavedResultsError(
            f'no results in the folder "{folder}": `sparelane reproduce -o "{folder}"` saves some'
        )
    if redraw:
        report.redraw(results)
    unfinished = report.unfinished(folder, results)
    folders.replaced(target, lambda path: path.write_text(html.page(results, unfinished), encoding="utf-8"))
    # Markdown pages link to each other relative to the folder of all results.
    if has_pages and next(folder.glob(f"*/*/{manifest.FILE}"), None):
        link = None if see is None else Path(os.path.relpath(see, folder)).as_posix()
        pages = report.save_pages(results, folders.ready_folder(folder), see=link, unfinished=unfinished)
        _print_status(results, unknown, pages)
    console.saved(f"report in {target}", f"the report is saved in {target}")
    if not show_claims([(one.experiment.id, one.verdicts) for one in results]) and check:
        raise SystemExit(FAILED)


def _print_status(results: Sequence[Saved], unknown: Sequence[str], target: Path) -> None:
    """Prints the state of the experiments: a summary, and which are partial, outdated, missing or unknown."""
    from sparelane.papers import registry
    from sparelane.papers.pages.markdown import SUMMARY_HEADINGS, summary

    console.show_table("state of the experiments", SUMMARY_HEADINGS, SUMMARY_HEADINGS[:2], summary(results))
    found = {one.experiment.id for one in results}
    lists = {
        "reduced effort": [one.experiment.id for one in results if not one.is_full],
        "outdated, run again": [one.experiment.id for one in results if one.is_outdated],
        "without results": [id for id in registry() if id not in found],
        "results of experiments that no longer exist": unknown,
    }
    for title, ids in lists.items():
        if ids:
            listed = ", ".join(ids) if len(ids) <= LISTED else f"{len(ids)} experiments"
            console.output().print(f"{title}: {listed}", soft_wrap=True, markup=False)
    show_unneeded((one.experiment.id, one.unneeded_reasons) for one in results)
    console.saved(f"pages: start at {target}", f"the pages are saved; start at {target}")
