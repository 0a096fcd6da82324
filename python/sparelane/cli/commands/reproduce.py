"""`sparelane reproduce`: the papers' numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane._native import LinuxError
from sparelane.cli import completion
from sparelane.cli.commands.options import jobs_option, json_file_option, output_option, seeds_option
from sparelane.cli.commands.stopping import terminated_as_interrupted
from sparelane.cli.commands.verdicts import FAILED, show_claims, show_unneeded
from sparelane.common import experiment_index, extras, folders
from sparelane.common.names import UnknownNameError, below
from sparelane.scenario import library
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sparelane.papers.engine.base import Effort, Experiment
    from sparelane.papers.engine.runner import Finished, Task

DEFAULT_FOLDER = Path("out") / "reproduce"
UNWRITTEN = 2
INTERRUPTED = 130


@click.command("reproduce")
@click.argument("names", metavar="[ID]...", nargs=-1, shell_complete=completion.experiments)
@click.option("quick", "--quick", is_flag=True, help="A small version of each experiment, in seconds.")
@seeds_option("Repetitions.  [default: each experiment's own number]")
@jobs_option("Simulations at the same time; the results do not depend on it.")
@click.option("dask", "--dask", metavar="ADDRESS", help="Send the simulations to a Dask cluster.")
@output_option("Folder for data, figures and the report.", DEFAULT_FOLDER)
@json_file_option("Write all rows to this file.")
@click.option(
    "check",
    "--check",
    is_flag=True,
    help="Print the papers' claims with our numbers and their bands; exit with 1 if one fails.",
)
def command(
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    jobs: int,
    dask: str | None,
    folder: Path,
    json_file: Path | None,
    check: bool,
) -> None:
    """Redo experiments of the papers and print their numbers beside ours.

    ID is an experiment or the beginning of several, as in rc3; without one, all are done (see `sparelane list`).

    Those that run on the Linux kernel with RC3 are left out, with a word, where it is not built; a full ID insists.

    Exits with 1 if --check finds a claim that fails, with 2 if something could not be written (what else there is to
    do is done first), and with 130 if interrupted: experiments that are finished by then are kept, and named.
    """
    ids = experiment_ids(names)
    if json_file is not None:
        folders.ready_file(json_file)
    folders.check_folder(folder)
    if dask is not None:
        from sparelane.sweeps import cluster

        cluster.check_address(dask)
    extras.require("papers")
    from sparelane.papers import select

    chosen = [experiment for experiment in select(ids) if is_ready(experiment, names)]
    folders.ready_folder(folder)
    tasks = [_task(experiment, quick=quick, seeds=seeds) for experiment in chosen]
    problems: list[str] = []
    executor = None if dask is None else cluster.executor(dask)
    finished = _work_through(tasks, jobs, executor, folder, problems)
    kept = [done.task.experiment.id for done in finished]
    missing = [task.experiment.id for task in tasks if task.experiment.id not in kept]
    _write_reports(finished, missing, folder, json_file, problems)
    show_unneeded((done.task.experiment.id, done.unneeded_reasons) for done in finished)
    holds = show_claims([(done.task.experiment.id, done.verdicts) for done in finished]) if check else True
    if missing:
        names_done = f'Finished, and kept in "{folder}": {", ".join(kept)}' if kept else "Finished: none"
        click.echo(f"sparelane: interrupted. {names_done}. Not finished: {', '.join(missing)}", err=True)
    if problems:
        click.echo("\n".join(f"sparelane: {problem}" for problem in problems), err=True)
    if missing or problems or not holds:
        raise SystemExit(INTERRUPTED if missing else UNWRITTEN if problems else FAILED)


def experiment_ids(names: Sequence[str]) -> list[str]:
    """The ids that names mean, before anything is loaded.

    Raises:
        UnknownNameError: a name means none, or one of several.
    """
    known = experiment_index.ids()
    found: list[str] = []
    for name in names:
        meant = below(name, known)
        if not meant:
            is_ready = name.removesuffix(".toml") in library.names()
            elsewhere = f", but a ready-made scenario: `sparelane run {name}`" if is_ready else ""
            raise UnknownNameError("experiment", name, known, elsewhere)
        found += meant
    return found


def is_ready(experiment: Experiment, names: Sequence[str]) -> bool:
    """Whether this machine can do an experiment; it is an error where the user has named just this one."""
    if not (lacks := experiment.lacks):
        return True
    if experiment.id in names:
        raise LinuxError(lacks)
    click.echo(f"sparelane: left out: {lacks}", err=True)
    return False


def _task(experiment: Experiment, *, quick: bool, seeds: int | None) -> Task:
    from dataclasses import replace

    from sparelane.papers.engine.runner import Task

    effort: Effort = experiment.quick if quick else experiment.full
    return Task(experiment, effort if seeds is None else replace(effort, seeds=seeds))


def _work_through(
    tasks: Sequence[Task], jobs: int, executor: Executor | None, folder: Path, problems: list[str]
) -> list[Finished]:
    """Does the tasks, prints and saves each when it is done; fewer than all if the user stopped it.

    What cannot be saved is added to the problems, and the work goes on.
    """
    from sparelane.papers.engine import runner
    from sparelane.papers.pages import report

    finished: list[Finished] = []
    try:
        with terminal.progress("simulating") as meter, terminated_as_interrupted():
            for done in runner.reproduce(tasks, jobs, meter, executor):
                with _noting(problems, f"the results of {done.task.experiment.id}"):
                    report.save_experiment(done, folder)
                finished.append(done.without_tables())
                with meter.aside():
                    show(done)
    except KeyboardInterrupt:
        pass
    return finished


def _write_reports(
    finished: Sequence[Finished], missing: Sequence[str], folder: Path, json_file: Path | None, problems: list[str]
) -> None:
    """Writes the report over all results in the folder, and the rows of these experiments where they are wanted."""
    from sparelane.common.frames import write_json_value
    from sparelane.papers.pages import report

    with _noting(problems, "the report"):
        report.save_report(folder, missing)
    if json_file is not None:
        with _noting(problems, f'"{json_file}"'):
            write_json_value(report.rows_json(finished), json_file)
    terminal.saved(f"pages from {folder / 'README.md'} on", f"the results are saved in {folder}")


@contextmanager
def _noting(problems: list[str], what: str) -> Iterator[None]:
    """Notes what could not be written instead of failing, so that hours of other work are not lost."""
    try:
        yield
    except (OSError, folders.SavedResultsError) as error:
        problems.append(f"cannot write {what}: {error}")


def show(done: Finished) -> None:
    """Prints one experiment's comparison."""
    from sparelane.papers.pages.text import LEFT, effort_words, heading, table

    experiment, effort = done.task.experiment, done.task.effort
    shown = table(done.evaluation.rows, done.task.experiment.witness)
    title = heading(experiment, effort)
    terminal.show_table(title, shown.headings, LEFT, shown.lines)
    console = terminal.output()
    words = effort_words(experiment, effort)
    details = ", ".join(part for part in (experiment.source, words, f"{done.elapsed_s:.1f} s since the start") if part)
    fitted = (f"Fitted: {sentence}" for sentence in experiment.fitted)
    console.print("\n".join([*shown.footnotes, details, *fitted, *done.evaluation.notes]), markup=False)
    console.print()
