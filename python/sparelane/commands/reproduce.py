"""`sparelane reproduce`: the papers' numbers beside ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import folders, terminal

if TYPE_CHECKING:
    from sparelane.experiments.base import Effort, Experiment
    from sparelane.experiments.runner import Finished, Task

DEFAULT_FOLDER = Path("out") / "reproduce"
INTERRUPTED = 130


@click.command("reproduce")
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("quick", "--quick", is_flag=True, help="A small version of each experiment, in seconds.")
@click.option(
    "seeds", "--seeds", type=click.IntRange(min=1), help="Repetitions.  [default: each experiment's own number]"
)
@click.option(
    "jobs",
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    help="Simulations at the same time; the results do not depend on it.  [default: one a core]",
)
@click.option(
    "folder",
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Folder for data, figures and the report.",
)
@click.option(
    "json_file", "--json", type=click.Path(path_type=Path, dir_okay=False), help="Write all rows to this file."
)
def command(
    names: tuple[str, ...], quick: bool, seeds: int | None, jobs: int, folder: Path, json_file: Path | None
) -> None:
    """Redo experiments of the papers and print their numbers beside ours.

    ID is an experiment or the beginning of several, as in rc3; without one, all are done (see `sparelane list`).
    """
    from sparelane.experiments import select

    chosen = select(names)
    folders.ready_folder(folder)
    if json_file is not None:
        folders.ready_file(json_file)
    tasks = [_task(experiment, quick=quick, seeds=seeds) for experiment in chosen]
    if not _work_through(tasks, jobs, folder, json_file):
        raise SystemExit(INTERRUPTED)


def _task(experiment: Experiment, *, quick: bool, seeds: int | None) -> Task:
    from dataclasses import replace

    from sparelane.experiments.runner import Task

    effort: Effort = experiment.quick if quick else experiment.full
    return Task(experiment, effort if seeds is None else replace(effort, seeds=seeds))


def _work_through(tasks: Sequence[Task], jobs: int, folder: Path, json_file: Path | None) -> bool:
    """Does the tasks, prints and saves each when it is done; false if the user stopped it."""
    from sparelane.experiments import report, runner
    from sparelane.frames import write_json_value

    finished: list[Finished] = []
    completed = True
    try:
        with terminal.progress("simulating") as meter:
            for done in runner.reproduce(tasks, jobs, meter):
                report.save_experiment(done, folder)
                finished.append(done.without_tables())
                with meter.aside():
                    show(done)
    except KeyboardInterrupt:
        completed = False
    missing = [task.experiment.id for task in tasks[len(finished) :]]
    report.save_report(finished, missing, folder)
    if json_file is not None:
        write_json_value(report.rows_json(finished), json_file)
    terminal.output().print(f"report in {folder / 'report.md'}", soft_wrap=True)
    if not completed:
        names = ", ".join(done.task.experiment.id for done in finished) or "none"
        click.echo(f"sparelane: interrupted. Finished: {names}. Not finished: {', '.join(missing)}", err=True)
    return completed


def show(done: Finished) -> None:
    """Prints one experiment's comparison."""
    from sparelane.experiments.text import HEADINGS, cells

    experiment, effort = done.task.experiment, done.task.effort
    rows = (cells(row) for row in done.evaluation.rows)
    terminal.show_table(f"{experiment.id}: {experiment.title}", HEADINGS, ("row", "metric", "reason"), rows)
    console = terminal.output()
    details = f", {effort.seeds} seed{'s' if effort.seeds > 1 else ''}" if done.outcomes else ""
    console.print(f"{experiment.source}{details}, {done.elapsed_s:.1f} s since the start")
    for note in done.evaluation.notes:
        console.print(note)
    console.print()
