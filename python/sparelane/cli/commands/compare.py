"""`sparelane compare`: ranks schemes and prints how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane.cli import completion
from sparelane.cli.commands import sweep as sweep_command
from sparelane.cli.commands.compare_options import comparison_options, thresholds_of
from sparelane.cli.commands.options import jobs_option, json_file_option, output_option, seeds_option
from sparelane.cli.commands.plugin_option import plugin_option
from sparelane.terminal import console
from sparelane.terminal.streams import STREAMS

if TYPE_CHECKING:
    from sparelane.sweeps.comparison import Answer
    from sparelane.sweeps.differences import Comparison, Thresholds
    from sparelane.sweeps.plan import Plan


@click.command("compare")
@click.argument("what", metavar="WHAT...", nargs=-1, required=True, shell_complete=completion.scenario_files)
@click.option("baseline", "--baseline", metavar="SCHEME", help="The scheme to compare with.  [default: the first]")
@click.option(
    "schemes", "--scheme", metavar="SCHEME", multiple=True, help="Compare only this scheme; repeatable.  [default: all]"
)
@comparison_options
@click.option(
    "harm", "--harm", is_flag=True, help="For schemes that share runs: also run each alone, and print the harm to it."
)
@seeds_option("Seeds of each scenario file; ignored for folders.", default=5)
@jobs_option("Worker processes, for scenario files.")
@output_option("Folder for the runs of scenario files.  [default: out/compare/NAMES]")
@json_file_option("Write all numbers to this file.")
@plugin_option
def command(
    what: tuple[str, ...],
    baseline: str | None,
    schemes: tuple[str, ...],
    metric: str | None,
    by: tuple[str, ...],
    thresholds: tuple[str, ...],
    harm: bool,
    seeds: int,
    jobs: int,
    folder: Path | None,
    json_file: Path | None,
) -> None:
    """Rank schemes and print how they differ, with 95 % intervals.

    WHAT is the folder of a sweep, several such folders, or several scenario files (or names), which are run with the
    same seeds. Differences are paired by seed; from three seeds on they have Student's t intervals. For schemes that
    share a run, the command prints shares and fairness instead of differences.
    """
    from sparelane.common import folders
    from sparelane.common.frames import write_json_value
    from sparelane.sweeps import coexistence, comparison

    limits = thresholds_of(thresholds)
    if json_file is not None:
        folders.ready_file(json_file)
    if all(Path(one).is_dir() for one in what):
        subject = comparison.of_folders([Path(one) for one in what])
    else:
        subject = comparison.of_files(what, seeds, folder, lambda plan, place: _run(plan, place, jobs))
    answer = subject.compare(baseline, schemes, metric=metric, by=by, thresholds=limits)
    if json_file is not None:
        shares = [coexistence.to_json(one) for _, portions in answer.portions for one in portions]
        write_json_value([*answer.to_json(), *shares], json_file)
        STREAMS.saved(f"all numbers are saved in {json_file}")
    show(answer)
    if harm:
        show_harm(what, answer, jobs)
    elif any(not group.name for group, _ in answer.portions):
        say("--harm also runs each of these schemes alone or with its own kind, and prints the harm to it.")


def show_harm(what: Sequence[str], answer: Answer, jobs: int) -> None:
    """Prints the harm to schemes that share the runs of a folder.

    Raises:
        SavedResultsError: `what` is not the folder of such a sweep, or its schemes cannot run alone.
    """
    from sparelane.common.folders import SavedResultsError
    from sparelane.sweeps import coexistence, harm
    from sparelane.sweeps import folder as sweeps

    if len(what) != 1 or not Path(what[0]).is_dir() or not answer.portions:
        raise SavedResultsError("--harm takes the folder of one sweep in which schemes share runs")
    saved = sweeps.read(Path(what[0]))
    for group, _ in answer.portions:
        found = harm.of_sweep(saved, group, lambda plan, place: _run(plan, place, jobs))
        for title, headings, rows in harm.tables(found):
            console.show_table(title, headings, headings[: headings.index("scheme") + 1], rows)
        for sentence in harm.sentences(found, coexistence.others(group)):
            say(sentence)
        say(f"{harm.MEANING} The runs are in {saved.place / harm.FOLDER}.")


def _run(plan: Plan, place: Path, jobs: int) -> None:
    from sparelane.sweeps import sweep as sweeps

    progress = sweep_command.run(plan, place, sweeps.local(jobs), is_quiet=True)
    if progress is None or progress.unreached:
        raise KeyboardInterrupt
    sweep_command.refuse_failures(plan, progress)


def show(answer: Answer) -> None:
    """Prints the ranking, then the comparison of each scheme, or one table if there are many."""
    from sparelane.sweeps import coexistence, comparison

    for group, portions in answer.portions:
        headings, rows = coexistence.table(portions)
        console.show_table("Shares", headings, headings[: headings.index("goodput")], rows)
        for sentence in coexistence.sentences(group, portions):
            say(sentence)
        say("")
    if answer.ranking is not None and answer.metric is not None:
        headings, rows = answer.ranking.table()
        console.show_table(answer.ranking.title, headings, left_of(headings), rows)
    if len(answer.comparisons) <= comparison.DETAILED:
        for comparisons in answer.comparisons:
            show_pair(comparisons, answer.thresholds)
    elif answer.metric is not None:
        headings, rows = comparison.matrix(answer)
        console.show_table(f"Change of {answer.metric.label} from {answer.baseline}", headings, ("scheme",), rows)
        say(comparison.overview(answer))
        say(
            f"--scheme {answer.comparisons[0][0].other} compares one scheme with {answer.baseline}, with intervals and "
            "all metrics."
        )
    for note in (*answer.methods, *answer.notes):
        say(note)


def left_of(headings: Sequence[str]) -> Sequence[str]:
    """The columns of a ranking that are aligned left."""
    return headings[:2] if headings[0] == "place" else headings[:1]


def say(text: str) -> None:
    """Prints a sentence, wrapped between words if standard output is a terminal."""
    console.output().print(text, soft_wrap=not console.output().is_terminal, markup=False)


def show_pair(comparisons: Sequence[Comparison], thresholds: Thresholds) -> None:
    """Prints the comparison of a scheme: the main metric for each setting, the others over all settings."""
    from sparelane.sweeps import comparison, verdict

    first, *others = comparisons
    title = f"{first.other} compared with {first.baseline}: {first.metric.label}"
    headings, rows = comparison.table(first)
    console.show_table(title, headings, (headings[0], "verdict"), rows)
    say(verdict.headline(first, thresholds))
    if others:
        where = "over all settings" if len(first.differences) > 1 else "change"
        cells = [comparison.overall_cells(one, thresholds) for one in others]
        console.show_table("", ("other metrics", where, "verdict"), ("other metrics", "verdict"), cells)
    for one in others:
        if one.is_split:
            say(verdict.headline(one, thresholds))
    say("")
