"""`sparelane compare`: schemes beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import completion, terminal
from sparelane.commands import sweep as sweep_command
from sparelane.commands.options import jobs_option, json_file_option, output_option, seeds_option
from sparelane.commands.plugin_option import plugin_option

if TYPE_CHECKING:
    from sparelane.sweeps.differences import Comparison
    from sparelane.sweeps.plan import Plan


@click.command("compare")
@click.argument("what", metavar="WHAT...", nargs=-1, required=True, shell_complete=completion.scenario_files)
@click.option(
    "baseline", "--baseline", metavar="SCHEME", help="What the others are compared with.  [default: the first]"
)
@click.option(
    "schemes", "--scheme", metavar="SCHEME", multiple=True, help="Compare this one; repeatable.  [default: all]"
)
@seeds_option("Seeds of each scenario file; of no matter to folders.", default=5)
@jobs_option("Worker processes, for scenario files.")
@output_option("Folder for the runs of scenario files.  [default: out/compare/NAMES]")
@json_file_option("Write all numbers there.")
@plugin_option
def command(
    what: tuple[str, ...],
    baseline: str | None,
    schemes: tuple[str, ...],
    seeds: int,
    jobs: int,
    folder: Path | None,
    json_file: Path | None,
) -> None:
    """Say how schemes differ, setting by setting and in words, with 95 % intervals.

    WHAT is the folder of a sweep, whose schemes are compared; or several such folders; or several scenario files (or
    names), which are run with the same seeds. Differences are paired by seed; intervals are by bootstrap over seeds.
    """
    from sparelane import folders
    from sparelane.frames import write_json_value
    from sparelane.sweeps import against

    if json_file is not None:
        folders.ready_file(json_file)
    if all(Path(one).is_dir() for one in what):
        subject = against.of_folders([Path(one) for one in what])
    else:
        subject = against.of_files(what, seeds, folder, lambda plan, place: _run(plan, place, jobs))
    found = subject.compare(baseline, schemes)
    for comparisons in found:
        show(comparisons)
    for note in subject.notes:
        sweep_command.print_line(note)
    if json_file is not None:
        write_json_value([against.to_json(one) for comparisons in found for one in comparisons], json_file)


def _run(plan: Plan, place: Path, jobs: int) -> None:
    from sparelane.sweeps import sweep as sweeps

    progress = sweep_command.run(plan, place, sweeps.local(jobs), is_quiet=True)
    if progress is None or progress.unreached:
        raise KeyboardInterrupt
    sweep_command.refuse_failures(plan, progress)


def show(comparisons: Sequence[Comparison]) -> None:
    """Prints the differences of the headline setting by setting, and what all questions amount to."""
    from sparelane.sweeps import against, verdict

    first = comparisons[0]
    headings = ("setting", first.baseline, first.other, "change", "verdict")
    terminal.show_table(
        f"{first.other} beside {first.baseline}: {verdict.name(first)}",
        headings,
        ("setting", "verdict"),
        against.table(first),
    )
    for sentence in verdict.sentences(comparisons):
        sweep_command.print_line(sentence)
    sweep_command.print_line("")
