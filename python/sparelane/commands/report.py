"""`sparelane report`: saved results as pages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import folders, terminal
from sparelane.commands.reproduce import DEFAULT_FOLDER
from sparelane.commands.verdicts import FAILED, show_claims, show_unneeded

if TYPE_CHECKING:
    from sparelane.experiments.saved import Saved


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path), default=DEFAULT_FOLDER)
@click.option("see", "--see", type=click.Path(path_type=Path), help="Another page, to be named at the beginning.")
@click.option("redraw", "--redraw", is_flag=True, help="Draw the figures again, too.")
@click.option("check", "--check", is_flag=True, help="Exit with 1 if a claim of an experiment fails.")
def command(folder: Path, see: Path | None, redraw: bool, check: bool) -> None:
    """Write pages of all results in FOLDER, which `sparelane reproduce -o FOLDER` saved, in any number of runs.

    Numbers are the saved ones, and figures unless they are drawn again; reasons, claims and assumptions are those of
    the experiments as they are now.
    """
    from sparelane.experiments import registry, report, saved

    results, unknown = saved.read_all(folder, registry())
    if not results:
        raise folders.SavedResultsError(
            f'no results in the folder "{folder}": `sparelane reproduce -o "{folder}"` saves some'
        )
    if redraw:
        report.redraw(results)
    beside = None if see is None else Path(os.path.relpath(see, folder)).as_posix()
    target = report.save_pages(results, folders.ready_folder(folder), see=beside)
    _say(results, unknown, target)
    if not show_claims([(one.experiment.id, one.verdicts) for one in results]) and check:
        raise SystemExit(FAILED)


def _say(results: Sequence[Saved], unknown: Sequence[str], target: Path) -> None:
    """Prints what the reader of the page should know, and what is to be done before the next one."""
    from sparelane.experiments import registry
    from sparelane.experiments.page import SUMMARY_HEADINGS, summary

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
            terminal.output().print(f"{words}: {', '.join(ids)}", markup=False)
    show_unneeded((one.experiment.id, one.unneeded_reasons) for one in results)
    terminal.output().print(f"pages from {target} on", soft_wrap=True, markup=False)
