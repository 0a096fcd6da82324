"""`sparelane reproduce`: repeats experiments from papers and compares the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import _native
from sparelane._native import LinuxError
from sparelane.cli import completion
from sparelane.cli.commands.options import jobs_option, json_file_option, output_option, seeds_option
from sparelane.cli.commands.stopping import terminated_as_interrupted
from sparelane.cli.commands.verdicts import FAILED, show_claims, show_unneeded
from sparelane.common import experiment_index, extras, folders
from sparelane.common.names import UnknownNameError, below
from sparelane.scenario import library
from sparelane.terminal import console

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from sparelane.papers.engine.base import Effort, Experiment
    from sparelane.papers.engine.runner import Finished, Task
    from sparelane.papers.engine.store import Store

DEFAULT_FOLDER = Path("out") / "reproduce"
UNWRITTEN = 2
INTERRUPTED = 130


def _cache_limit(_: click.Context, __: click.Parameter, text: str) -> int:
    """Parses a size in bytes."""
    amount, unit = _native.quantity(text) or (0.0, "unknown")
    if unit != "B":
        raise click.BadParameter(f"{text!r} is not a size; allowed: a size such as 10GB, or 0B")
    return round(amount)


@click.command("reproduce")
@click.argument("names", metavar="[ID]...", nargs=-1, shell_complete=completion.experiments)
@click.option("quick", "--quick", is_flag=True, help="Run a small version of each experiment, in seconds.")
@seeds_option("Repetitions.  [default: each experiment's own number]")
@jobs_option("Number of parallel simulations; the results do not depend on it.")
@click.option("dask", "--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://10.0.0.1:8786.")
@click.option("fresh", "--fresh", is_flag=True, help="Run all simulations, even if the cache has their outcomes.")
@click.option(
    "cache_limit",
    "--cache-limit",
    metavar="SIZE",
    default="10GB",
    envvar="SPARELANE_CACHE_LIMIT",
    show_default=True,
    show_envvar=True,
    callback=_cache_limit,
    help="Largest size of the cache of outcomes; 0B empties the cache and stores nothing.",
)
@output_option("Folder for data, figures and the report.", DEFAULT_FOLDER)
@json_file_option("Write all rows to this file.")
@click.option(
    "check",
    "--check",
    is_flag=True,
    help="Print the papers' claims with the simulated numbers and their bands; exit with 1 if one fails.",
)
def command(
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    jobs: int,
    dask: str | None,
    fresh: bool,
    cache_limit: int,
    folder: Path,
    json_file: Path | None,
    check: bool,
) -> None:
    """Repeat experiments from papers, and print the papers' numbers next to the simulated ones.

    ID is the id of an experiment, or a prefix such as rc3 that selects several. Without an ID, all experiments run (see
    `sparelane list`).

    Outcomes of simulations are stored in the user's cache. A simulation that has not changed since an earlier call is
    not run again.

    Experiments on the Linux kernel with RC3 are skipped with a message if that kernel is not built. With a full ID,
    that is an error.

    Exits with 1 if --check finds a claim that fails, with 2 if a file could not be written (the other experiments run
    first), and with 130 if interrupted; experiments that finished are saved and listed.
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
    store = _store(cache_limit, is_fresh=fresh)
    # The cluster is contacted last, after all other mistakes are found.
    executor = None if dask is None else cluster.executor(dask)
    finished = _work_through(tasks, jobs, executor, store, folder, problems)
    kept = [done.task.experiment.id for done in finished]
    missing = [task.experiment.id for task in tasks if task.experiment.id not in kept]
    _write_reports(finished, missing, folder, json_file, problems)
    _show_store(finished, store)
    show_unneeded((done.task.experiment.id, done.unneeded_reasons) for done in finished)
    holds = show_claims([(done.task.experiment.id, done.verdicts) for done in finished]) if check else True
    if missing:
        names_done = f'Finished, and saved in "{folder}": {", ".join(kept)}' if kept else "Finished: none"
        click.echo(f"sparelane: interrupted. {names_done}. Not finished: {', '.join(missing)}", err=True)
    if problems:
        click.echo("\n".join(f"sparelane: {problem}" for problem in problems), err=True)
    if missing or problems or not holds:
        raise SystemExit(INTERRUPTED if missing else UNWRITTEN if problems else FAILED)


def experiment_ids(names: Sequence[str]) -> list[str]:
    """The ids of the experiments that names select. Does not import the experiments.

    Raises:
        UnknownNameError: a name selects no experiment.
    """
    known = experiment_index.ids()
    found: list[str] = []
    for name in names:
        meant = below(name, known)
        if not meant:
            is_scenario = name.removesuffix(".toml") in library.names()
            elsewhere = f", but a ready-made scenario: `sparelane run {name}`" if is_scenario else ""
            raise UnknownNameError("experiment", name, known, elsewhere)
        found += meant
    return found


def is_ready(experiment: Experiment, names: Sequence[str]) -> bool:
    """True if this machine can run an experiment; otherwise prints what is missing.

    Raises:
        LinuxError: the machine cannot run it, and the user named it by its full id.
    """
    if not (lacks := experiment.lacks):
        return True
    if experiment.id in names:
        raise LinuxError(lacks)
    click.echo(f"sparelane: skipped: {lacks}", err=True)
    return False


def _task(experiment: Experiment, *, quick: bool, seeds: int | None) -> Task:
    from dataclasses import replace

    from sparelane.papers.engine.runner import Task

    effort: Effort = experiment.quick if quick else experiment.full
    return Task(experiment, effort if seeds is None else replace(effort, seeds=seeds))


def _store(limit_bytes: int, *, is_fresh: bool) -> Store:
    """The store of outcomes, within its limit.

    Raises:
        OutputError: the folder cannot be read or cleaned.
    """
    from sparelane.papers.engine.store import Store

    store = Store(limit_bytes, is_fresh)
    try:
        store.shrink()
    except OSError as error:
        raise folders.OutputError(f'cannot clean the folder "{store.folder}": {error.strerror or error}') from error
    return store


def _show_store(finished: Sequence[Finished], store: Store) -> None:
    """Prints how many outcomes were reused, and each problem with the store once."""
    outcomes = {simulation: outcome for done in finished for simulation, outcome in done.outcomes.items()}
    reused = sum(outcome.is_reused for outcome in outcomes.values())
    if reused:
        click.echo(
            f'sparelane: {reused} of {len(outcomes)} outcomes are from the cache "{store.folder}"; --fresh runs all '
            "simulations",
            err=True,
        )
    for problem in dict.fromkeys(outcome.problem for outcome in outcomes.values() if outcome.problem):
        click.echo(f"sparelane: {problem}", err=True)


def _work_through(
    tasks: Sequence[Task], jobs: int, executor: Executor | None, store: Store, folder: Path, problems: list[str]
) -> list[Finished]:
    """Runs the tasks, and prints and saves each when it is finished.

    Returns the finished tasks, which are fewer than all if the user interrupted. If a result cannot be saved, the error
    is added to `problems`, and the next task runs.
    """
    from sparelane.papers.engine import runner
    from sparelane.papers.pages import report

    finished: list[Finished] = []
    try:
        with console.progress("simulating") as meter, terminated_as_interrupted():
            for done in runner.reproduce(tasks, jobs, meter, executor, store):
                with _collecting(problems, f"the results of {done.task.experiment.id}"):
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
    """Writes the report over all results in the folder and, if `json_file` is given, the rows of these experiments."""
    from sparelane.common.frames import write_json_value
    from sparelane.papers.pages import report

    with _collecting(problems, "the report"):
        report.save_report(folder, missing)
    if json_file is not None:
        with _collecting(problems, f'"{json_file}"'):
            write_json_value(report.rows_json(finished), json_file)
    console.saved(f"pages: start at {folder / 'README.md'}", f"the results are saved in {folder}")


@contextmanager
def _collecting(problems: list[str], what: str) -> Iterator[None]:
    """Adds a failed write to `problems` instead of raising it, so that hours of other work are not lost."""
    try:
        yield
    except (OSError, folders.SavedResultsError) as error:
        problems.append(f"cannot write {what}: {error}")


def show(done: Finished) -> None:
    """Prints the comparison of an experiment with its paper."""
    from sparelane.papers.pages.text import LEFT, effort_words, heading, table

    experiment, effort = done.task.experiment, done.task.effort
    shown = table(done.evaluation.rows, done.task.experiment.witness)
    title = heading(experiment, effort)
    console.show_table(title, shown.headings, LEFT, shown.lines)
    printer = console.output()
    words = effort_words(experiment, effort)
    details = ", ".join(part for part in (experiment.source, words, f"{done.elapsed_s:.1f} s since the start") if part)
    fitted = (f"Fitted: {sentence}" for sentence in experiment.fitted)
    printer.print("\n".join([*shown.footnotes, details, *fitted, *done.evaluation.notes]), markup=False)
    printer.print()
