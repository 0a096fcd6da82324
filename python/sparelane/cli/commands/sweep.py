"""`sparelane sweep`: simulates one scenario in many settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands import scenario_input
from sparelane.cli.commands.options import jobs_option, output_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import limit_options, limits_of, plugin_option
from sparelane.cli.commands.stopping import terminated_as_interrupted
from sparelane.terminal import console

if TYPE_CHECKING:
    from sparelane.plugins.watch import Limits
    from sparelane.sweeps.executor import RunExecutor
    from sparelane.sweeps.plan import Plan
    from sparelane.sweeps.sweep import Progress

# The number of failed runs that are listed.
LISTED = 10
INCOMPLETE = 3
INTERRUPTED = 130


@click.command("sweep")
@scenario_argument("file")
@settings_option
@seeds_option("Seeds of each setting.  [default: the file's]")
@jobs_option("Worker processes; the results do not depend on it.")
@click.option("dask", "--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://10.0.0.1:8786.")
@output_option("Folder for the results.  [default: out/NAME]")
@plugin_option
@limit_options
def command(
    file: str,
    settings: tuple[str, ...],
    seeds: int | None,
    jobs: int,
    dask: str | None,
    folder: Path | None,
    call_limit_s: float,
    run_limit_s: float,
) -> None:
    """Simulate a scenario in many settings.

    FILE is a scenario in which some values are lists, or ranges such as { from = 0.1, to = 0.9, step = 0.2 }. Every
    combination of values runs with each scheme and seed. --set takes lists and ranges, too. FILE may be - for standard
    input. To resume an interrupted sweep, repeat the command with the same folder.

    Exits with 3 if some runs failed (the others finish, and the failed ones are listed), and with 130 if interrupted.
    """
    from sparelane.common import folders
    from sparelane.plugins.watch import watched
    from sparelane.sweeps.plan import Plan

    source = scenario_input.read(file)
    plan = Plan(source.text, source.file, source.folder, seeds=seeds, settings=settings)
    place, limits = folder or Path("out") / source.name, limits_of(call_limit_s, run_limit_s)
    if dask is not None:
        # Mistakes in the scenario are reported before connecting to the cluster.
        folders.check_folder(place)
        with watched(limits):
            plan.check()
    finish(plan, place, run(plan, place, _executor(jobs, dask), limits))


def finish(plan: Plan, place: Path, progress: Progress | None) -> None:
    """Exits with 130 if the user stopped the sweep, and with 3 if runs failed, after a message about missing runs."""
    if progress is None or progress.unreached:
        click.echo(
            f"sparelane: interrupted; finished runs are saved in {place}, and the same command resumes there", err=True
        )
        raise SystemExit(INTERRUPTED)
    refuse_failures(plan, progress)


def _executor(jobs: int, dask: str | None) -> RunExecutor:
    from sparelane.sweeps import sweep as sweeps

    if dask is None:
        return sweeps.local(jobs)
    from sparelane.sweeps import cluster

    return cluster.connect(dask)


def run(
    plan: Plan, place: Path, executor: RunExecutor, limits: Limits | None = None, *, is_quiet: bool = False
) -> Progress | None:
    """Runs the sweep and prints its outcome.

    Returns:
        The progress at the end, which is partial or `None` if the user stopped the sweep.
    """
    from sparelane.results import manifest
    from sparelane.simulation import warnings as run_warnings
    from sparelane.sweeps import sweep as sweeps

    progress: Progress | None = None
    with console.progress(plan.name) as meter, terminated_as_interrupted():
        steps = sweeps.sweep(plan, place, executor, limits or sweeps.USUAL_LIMITS)
        try:
            for progress in steps:
                meter(progress.share)
        except KeyboardInterrupt:
            steps.close()
    if progress is None or is_quiet:
        return progress
    settings = f"{len(plan.settings)} setting{'s' if len(plan.settings) > 1 else ''}"
    found = f" ({progress.found} from an earlier run)" if progress.found else ""
    left = manifest.read(place)
    print_line(f"{progress.done} of {progress.wanted} runs{found}, {settings}, digest {left.digest}")
    console.warn(run_warnings.sentences(left.details["warnings"], left.runs))
    if progress.kept_apart is not None:
        print_line(f"results of other runs that were in the folder are now in {progress.kept_apart}")
    console.saved(
        f"results in {place}/rows.parquet; `sparelane report {place}` writes a page about them",
        f"the results are saved in {place}",
    )
    return progress


def print_line(text: str) -> None:
    """Prints a line on standard output."""
    console.output().print(text, soft_wrap=True, markup=False)


def refuse_failures(plan: Plan, progress: Progress) -> None:
    """Lists the runs that failed and exits with 3, unless all succeeded."""
    if not progress.failed:
        return
    failed = [run for run in plan.runs if run.name in progress.failed]
    lines = [f"sparelane: {len(failed)} of {progress.wanted} runs failed; the others are complete:"]
    for one in failed[:LISTED]:
        setting = plan.settings[one.setting]
        where = ", ".join(text for text in (plan.describe(setting), setting.scheme, f"seed {one.seed}") if text)
        lines.append(f"  {where}: {progress.failed[one.name]}")
    if len(failed) > LISTED:
        lines.append(f"  ... and {len(failed) - LISTED} more, all listed in manifest.json")
    click.echo("\n".join(lines), err=True)
    raise SystemExit(INCOMPLETE)
