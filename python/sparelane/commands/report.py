"""`sparelane report`: saved results as one page."""

from __future__ import annotations

import os
import shutil
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
@click.option(
    "page",
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The Markdown file to write.  [default: report.md in FOLDER]",
)
@click.option(
    "figures",
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Copy the figures below this folder, for the page to show.  [default: those in FOLDER]",
)
@click.option("see", "--see", type=click.Path(path_type=Path), help="Another page, to be named at the beginning.")
@click.option("check", "--check", is_flag=True, help="Exit with 1 if a claim of an experiment fails.")
def command(folder: Path, page: Path | None, figures: Path | None, see: Path | None, check: bool) -> None:
    """Write one page of all results in FOLDER, which `sparelane reproduce -o FOLDER` saved, in any number of runs.

    Numbers are the saved ones; reasons, claims and assumptions are those of the experiments as they are now.
    """
    from sparelane.experiments import page as pages
    from sparelane.experiments import registry, saved

    results, unknown = saved.read_all(folder, registry())
    if not results:
        raise folders.SavedResultsError(
            f'no results in the folder "{folder}": `sparelane reproduce -o "{folder}"` saves some'
        )
    target = folders.ready_file(page or folder / "report.md")
    place = folder if figures is None else folders.ready_folder(figures)
    shown = _figures(results, place, is_copied=figures is not None)
    paths = {id: Path(os.path.relpath(path, target.parent)).as_posix() for id, path in shown.items()}
    beside = None if see is None else Path(os.path.relpath(see, target.parent)).as_posix()
    text = pages.markdown(results, lambda one: paths[one.experiment.id], see=beside)
    target.write_text(text, encoding="utf-8")
    _say(results, unknown, target)
    if not show_claims([(one.experiment.id, one.verdicts) for one in results]) and check:
        raise SystemExit(FAILED)


def _figures(results: Sequence[Saved], place: Path, *, is_copied: bool) -> dict[str, Path]:
    """Where each experiment's figure is, by id; copied there if so wanted."""
    if not is_copied:
        return {one.experiment.id: one.figure for one in results}
    copies = {one.experiment.id: place / f"{one.experiment.id}.png" for one in results}
    for one in results:
        copy = copies[one.experiment.id]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one.figure, copy)
    return copies


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
    terminal.output().print(f"page in {target}", soft_wrap=True, markup=False)
