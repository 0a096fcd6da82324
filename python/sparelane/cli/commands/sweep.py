"""`sparelane sweep`: one scenario in many settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands import given
from sparelane.cli.commands.options import jobs_option, output_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import limit_options, limits_of, plugin_option
from sparelane.cli.commands.stopping import terminated_as_interrupted
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    from sparelane.plugins.watch import Limits
    from sparelane.sweeps.crew import Crew
    from sparelane.sweeps.plan import Plan
    from sparelane.sweeps.sweep import Progress

# Failed runs that are told one by one.
TOLD = 10
INCOMPLETE = 3
INTERRUPTED = 130


@click.command("sweep")
@scenario_argument("file")
@settings_option
@seeds_option("Seeds of each setting.  [default: the file's]")
@jobs_option("Worker processes; the results do not depend on it.")
@click.option("dask", "--dask", metavar="ADDRESS", help="Send the runs to a Dask cluster, as in tcp://10.0.0.1:8786.")
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

    FILE is a scenario in which a list, or a range such as { from = 0.1, to = 0.9, step = 0.2 }, stands in place of
    values; all combinations are run, under each scheme and seed. --set takes lists and ranges, too. Run again with the
    same folder, it goes on where it stopped. FILE may be - for standard input.

    Exits with 3 if some runs failed (the rest is done, and the failed ones are listed), with 130 if interrupted.
    """
    from sparelane.common import folders
    from sparelane.plugins.watch import watched
    from sparelane.sweeps.plan import Plan

    found = given.read(file)
    plan = Plan(found.text, found.file, found.folder, seeds=seeds, settings=settings)
    place, limits = folder or Path("out") / found.name, limits_of(call_limit_s, run_limit_s)
    if dask is not None:
        # A mistake in the scenario is reported before a cluster is looked for.
        folders.check_folder(place)
        with watched(limits):
            plan.check()
    finish(plan, place, run(plan, place, _crew(jobs, dask), limits))


def finish(plan: Plan, place: Path, progress: Progress | None) -> None:
    """Says what is missing, and exits with 130 where the user stopped the sweep, with 3 where runs failed."""
    if progress is None or progress.unreached:
        click.echo(f"sparelane: interrupted; what is done is kept: the same command goes on in {place}", err=True)
        raise SystemExit(INTERRUPTED)
    refuse_failures(plan, progress)


def _crew(jobs: int, dask: str | None) -> Crew:
    from sparelane.sweeps import sweep as sweeps

    if dask is None:
        return sweeps.local(jobs)
    from sparelane.sweeps import cluster

    return cluster.connect(dask)


def run(
    plan: Plan, place: Path, crew: Crew, limits: Limits | None = None, *, is_quiet: bool = False
) -> Progress | None:
    """Does the sweep and says what came of it; `None` or a part where the user stopped it."""
    from sparelane.results import manifest
    from sparelane.simulation import warnings as run_warnings
    from sparelane.sweeps import sweep as sweeps

    progress: Progress | None = None
    with terminal.progress(plan.name) as meter, terminated_as_interrupted():
        steps = sweeps.sweep(plan, place, crew, limits or sweeps.USUAL_LIMITS)
        try:
            for progress in steps:
                meter(progress.share)
        except KeyboardInterrupt:
            steps.close()
    if progress is None or is_quiet:
        return progress
    settings = f"{len(plan.settings)} setting{'s' if len(plan.settings) > 1 else ''}"
    found = f" ({progress.found} of them from before)" if progress.found else ""
    left = manifest.read(place)
    print_line(f"{progress.done} of {progress.wanted} runs{found}, {settings}, digest {left.digest}")
    terminal.warn(run_warnings.sentences(left.details["warnings"], left.runs))
    if progress.kept_apart is not None:
        print_line(f"other results that were in the folder are in {progress.kept_apart}")
    terminal.saved(
        f"results in {place}: rows.parquet; `sparelane report {place}` makes a page of them",
        f"the results are saved in {place}",
    )
    return progress


def print_line(text: str) -> None:
    """A line on standard output."""
    terminal.output().print(text, soft_wrap=True, markup=False)


def refuse_failures(plan: Plan, progress: Progress) -> None:
    """Lists the runs that failed, and exits with 3 if there are any."""
    if not progress.failed:
        return
    failed = [run for run in plan.runs if run.name in progress.failed]
    lines = [f"sparelane: {len(failed)} of {progress.wanted} runs failed; the others are done:"]
    for one in failed[:TOLD]:
        setting = plan.settings[one.setting]
        where = ", ".join(text for text in (plan.words(setting), setting.scheme, f"seed {one.seed}") if text)
        lines.append(f"  {where}: {progress.failed[one.name]}")
    if len(failed) > TOLD:
        lines.append(f"  ... and {len(failed) - TOLD} more, all listed in manifest.json")
    click.echo("\n".join(lines), err=True)
    raise SystemExit(INCOMPLETE)
