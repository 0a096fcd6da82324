"""`sparelane run`: simulates one scenario, prints a summary and saves the results."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparelane import _native
from sparelane._native import Cancelled, ScenarioError
from sparelane.cli.commands import scenario_input
from sparelane.cli.commands.options import jobs_option, output_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import limit_options, limits_of, plugin_option, report_slow_call
from sparelane.cli.commands.scenario_input import ScenarioInput
from sparelane.cli.commands.stopping import stop_on_signal
from sparelane.cli.main import Incomplete, Interruption, LimitReachedError
from sparelane.common import folders
from sparelane.plugins import failure
from sparelane.plugins.registry import REGISTRY
from sparelane.plugins.watch import Limits, plugin_call, watched
from sparelane.simulation import simulate, traces
from sparelane.simulation.result import DEFAULT_FORMATS, FORMATS
from sparelane.terminal import console

if TYPE_CHECKING:
    import polars as pl

    from sparelane.simulation.result import Result
    from sparelane.uml.running import Outcome

# The number of means over seeds that are printed without `--all`.
MOST_ROWS = 15


@click.command("run")
@scenario_argument("scenario")
@settings_option
@click.option(
    "--seed", type=click.IntRange(0, simulate.MAX_SEED), help="Seed of every random draw.  [default: the scenario's]"
)
@seeds_option("Run with this many seeds, counted from --seed, and print means with intervals. Saves a sweep.", fewest=2)
@jobs_option("Worker processes, with --seeds.")
@click.option(
    "--threads",
    type=click.IntRange(1, simulate.MAX_THREADS),
    help="Threads of the run, on which results do not depend.  [default: the scenario's, else all cores if it gains]",
)
@output_option("Folder for the results.  [default: out/NAME]")
@click.option(
    "formats",
    "--format",
    type=click.Choice(FORMATS),
    multiple=True,
    default=DEFAULT_FORMATS,
    show_default=True,
    help="Format of the tables; repeatable.",
)
@click.option(
    "--trace",
    metavar="WHAT",
    help="Save packet traces as pcapng, and qlog for flows. Example: flow=3,port=west:east.",
)
@click.option(
    "on",
    "--on",
    type=click.Choice(["simulator", "linux"]),
    default="simulator",
    show_default=True,
    help="Run in the simulator, or on the TCP of Linux in virtual time.",
)
@click.option("is_all", "--all", is_flag=True, help=f"With --seeds, print all means instead of {MOST_ROWS}.")
@plugin_option
@limit_options
def command(
    scenario: str,
    settings: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    jobs: int,
    threads: int | None,
    folder: Path | None,
    formats: tuple[str, ...],
    trace: str | None,
    on: str,
    is_all: bool,
    call_limit_s: float,
    run_limit_s: float,
) -> None:
    """Simulate a scenario, print a summary, and save the results.

    FILE is a scenario file, the name of a ready-made scenario (see `sparelane list`), or - for standard input. The
    `run.json` of a saved run repeats that run.

    Exits with 124 if --run-limit ended the run, and with 130 if it was interrupted. The results until then are saved.
    """
    limits = limits_of(call_limit_s, run_limit_s)
    source = scenario_input.read(scenario)
    # This file is read now, since repeating a run may overwrite it.
    before = simulate.saved_run(Path(source.file)) if source.is_saved else {}
    if on == "linux":
        if seeds is not None or trace is not None:
            raise click.UsageError("--on linux takes neither --seeds nor --trace; allowed: one seed, no trace")
        if threads is not None:
            raise click.UsageError("--threads is for runs in the simulator; allowed: --on linux without it")
        if limits.run_s is not None:
            raise click.UsageError("--run-limit ends runs in the simulator; allowed: --on linux without it")
        run_on_linux(source, settings, seed, folder or Path("out") / source.name, formats)
        return
    if seeds is not None:
        if trace is not None:
            raise click.UsageError("--trace follows one run; allowed: with one seed")
        if threads is not None:
            raise click.UsageError("--threads is for a single run; with --seeds, --jobs runs one thread per worker")
        several(
            source, [*settings, *([] if seed is None else [f"seed={seed}"])], seeds, jobs, folder, limits, is_all=is_all
        )
        return
    place = folder or Path("out") / source.name
    if trace is not None:
        traces.parse(trace)
        folders.ready_folder(place)
    try:
        result, is_over_limit = simulate_within(limits, source, seed, settings, trace, place, threads)
    except ScenarioError as error:
        raise with_hint(error, source, settings, before) from error
    except failure.PluginError as error:
        if isinstance(error.__cause__, failure.RunOverLimitError):
            raise LimitReachedError(f"{error}; nothing is saved") from error
        raise
    except KeyboardInterrupt as error:
        raise Interruption(f"interrupted{failure.where(error)}; nothing is saved") from None
    try:
        result.save(place, formats)
    finally:
        # If the disk is full, the summary is the only record of the run.
        show(result)
        console.output().print(f"seed {result.seed}, digest {result.digest}", soft_wrap=True)
    if source.is_saved and not result.is_interrupted:
        show_repetition(result, before)
    console.saved(f"results in {place}", f"the results are saved in {place}")
    show_traces(result)
    if result.is_interrupted:
        exit_interrupted(result, limits, place, is_over_limit=is_over_limit)


def exit_interrupted(result: Result, limits: Limits, place: Path, *, is_over_limit: bool) -> None:
    """Ends the command after a run that was stopped early.

    Raises:
        LimitReachedError: the run exceeded its time limit.
        Interruption: the user stopped the run.
    """
    reached = (
        f"{result.totals['end_s']:.6g} s of {_native.tables(result.scenario, 'scenario')['duration']} were simulated"
    )
    kept = f"{reached}, and the results until then are in {place}"
    if is_over_limit:
        raise LimitReachedError(f"the run reached its limit, --run-limit {limits.run_s:g} (seconds): {kept}")
    raise Interruption(f"interrupted: {kept}")


def simulate_within(
    limits: Limits,
    source: ScenarioInput,
    seed: int | None,
    settings: Sequence[str],
    trace: str | None,
    place: Path,
    threads: int | None,
) -> tuple[Result, bool]:
    """Builds the network and runs the scenario, and shows progress and slow calls into plugins.

    Returns:
        The result, and `True` if the time limit ended the run.

    Raises:
        ScenarioError: the scenario cannot be run.
        LimitReachedError: the time limit was reached while the network was built.
        PluginError: plugin code failed, or took longer than a limit.
    """
    # The limit covers building the network and running it.
    began_s = time.monotonic()

    def is_over_limit() -> bool:
        return limits.run_s is not None and time.monotonic() - began_s >= limits.run_s

    with watched(limits, report_slow_call):
        with console.waiting("building the network") as waiting:

            def wait(seconds: float) -> None:
                waiting(seconds)
                if is_over_limit():
                    raise Cancelled

            try:
                prepared = simulate.prepare(
                    source.scenario,
                    seed=seed,
                    set=settings,
                    waiting=wait,
                    trace=trace,
                    trace_folder=place,
                    threads=threads,
                )
            except Cancelled:
                raise LimitReachedError(
                    f"the run reached its limit, --run-limit {limits.run_s:g} (seconds), while its network was built: "
                    "nothing was simulated"
                ) from None
        folders.ready_folder(place)
        show_division(prepared.division())
        # The simulator checks the flag between events, so it cannot stop a plugin call that never returns.
        call = None if REGISTRY.catalogue() is None else plugin_call
        with console.progress(source.name) as meter, stop_on_signal(call) as stop:
            was_over_limit = False

            def go_on(fraction: float) -> bool:
                nonlocal was_over_limit
                meter(fraction)
                was_over_limit = is_over_limit()
                return not stop.is_set and not was_over_limit

            return prepared.run(go_on, keep=True), was_over_limit


def show_division(division: simulate.Division) -> None:
    """Warns if a run was asked to have more threads than it has, or has more than there are cores."""
    cores = os.cpu_count() or 1
    if division.unsuited is not None:
        console.warn([f"the run has one thread: {division.unsuited}"])
    elif division.threads < division.asked:
        fewer = f"{division.threads} threads instead of {division.asked}"
        console.warn([f"the run has {fewer}: its network has no more parts"])
    elif division.threads > cores:
        console.warn([f"{division.threads} threads share {cores} cores and wait for each other; fewer are faster"])


def with_hint(
    error: ScenarioError, source: ScenarioInput, settings: Sequence[str], before: Mapping[str, object]
) -> ScenarioError:
    """The error with a hint: the plugins that a saved run used, or `sparelane sweep` if keys have several values."""
    from sparelane.plugins.loading import LOADED
    from sparelane.sweeps.plan import Plan

    kept = before.get("plugins")
    missing = (
        [one for one in kept if one["sha256"] not in {plugin.sha256 for plugin in LOADED.values()}]
        if isinstance(kept, list)
        else []
    )
    if missing:
        options = " ".join(f"--plugin {shlex.quote(str(Path(source.file).parent / one['file']))}" for one in missing)
        return ScenarioError(f"{error}; this run was made with {options}")
    try:
        plan = Plan(source.text, source.file, source.folder, settings=settings, needs_variation=False)
    except ScenarioError:
        return error
    varied = [axis.key for axis in plan.axes]
    if not varied:
        return error
    return ScenarioError(
        f"{error}; {', '.join(varied)} {'has' if len(varied) == 1 else 'have'} several values: `sparelane sweep "
        f"{source.file}` runs them all"
    )


def run_on_linux(
    source: ScenarioInput, settings: Sequence[str], seed: int | None, place: Path, formats: tuple[str, ...]
) -> None:
    """Runs the scenario on the Linux kernel, prints a summary of its flows, and saves the results."""
    from sparelane.uml import running

    folders.check_folder(place)
    with console.waiting("running on Linux") as waiting:
        outcome = running.run(source.scenario, seed=seed, set=settings, waiting=waiting)
    result = outcome.result
    try:
        result.save(place, formats)
    finally:
        show_linux(result, outcome)
    console.saved(f"results in {place}", f"the results are saved in {place}")


def show_linux(result: Result, outcome: Outcome) -> None:
    """Prints the summary of a run on Linux."""
    summary = result.summary()
    print_completions(summary.schemes.drop(SLOWDOWNS))
    for remark in summary.remarks:
        console.output().print(f"note: {remark}", soft_wrap=True, markup=False)
    console.warn(result.warnings)
    console.output().print(f"{outcome.packets} packets, packet digest {outcome.packet_digest}", soft_wrap=True)
    console.output().print(f"seed {result.seed}, digest {result.digest}", soft_wrap=True)


def show_repetition(result: Result, before: Mapping[str, object]) -> None:
    """Prints whether a repeated run has the same digest as the saved one."""
    if result.digest == before.get("digest"):
        text = "same digest as the saved run"
    elif result.version != before.get("version"):
        versions = f"sparelane {before.get('version')}; this is {result.version}"
        text = f"the digest differs from the saved run, which used {versions}"
    else:
        text = "the digest differs from the saved run: the seed, a setting or a file named in the scenario has changed"
    console.output().print(text, soft_wrap=True, markup=False)


def show_traces(result: Result) -> None:
    """Prints the paths of the traces and their numbers of records.

    Raises:
        Incomplete: a trace could not be written completely.
    """
    for path, count, error in result.traces:
        if error is not None:
            raise Incomplete(f'the trace "{path}" ends after {count} packets: {error}')
        what = f"{count:,} records" if count else "no records: the flow never started, or no packet passed the port"
        console.output().print(f"trace in {path}: {what}", soft_wrap=True)


def several(
    source: ScenarioInput,
    settings: Sequence[str],
    seeds: int,
    jobs: int,
    folder: Path | None,
    limits: Limits,
    *,
    is_all: bool,
) -> None:
    """Simulates a scenario with several seeds, prints the means, and saves a sweep."""
    from sparelane.cli.commands import sweep
    from sparelane.common.units import quantity
    from sparelane.sweeps import comparison
    from sparelane.sweeps import folder as saved
    from sparelane.sweeps.differences import deterministic
    from sparelane.sweeps.plan import Plan
    from sparelane.sweeps.sweep import local

    plan = Plan(source.text, source.file, source.folder, seeds=seeds, settings=settings, needs_variation=False)
    place = folder or Path("out") / f"{source.name}-seeds"
    sweep.finish(plan, place, sweep.run(plan, place, local(jobs), limits))
    means = saved.read(place)
    exact = deterministic(means.runs)
    for doubt in comparison.doubts(means.runs):
        sweep.print_line(f"note: {doubt}")
    rows = [*means.rows.iter_rows(named=True)]
    shown = rows if is_all else foremost(rows)
    lines = [
        (
            *(row[name] for name in ("setting", "scheme", "traffic", "metric", "average")),
            quantity(row["value"], row["unit"]),
            comparison.interval_text(row, exact),
        )
        for row in shown
    ]
    # The columns setting, scheme and traffic are dropped if they are empty.
    kept = [place for place in range(5) if place > 2 or any(line[place] for line in lines)]
    headings = ("setting", "scheme", "traffic", "metric", "average")
    left = [headings[place] for place in kept]
    cells = ((*(line[place] for place in kept), *line[5:]) for line in lines)
    console.show_table(f"means over {seeds} seeds", [*left, "mean", "95 % interval"], left, cells)
    if len(shown) < len(rows):
        sweep.print_line(f"{len(rows) - len(shown)} more means: --all prints them, and {place}/rows.parquet has them")


def foremost(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of the most common metrics, at most `MOST_ROWS`, in their original order."""
    from sparelane.results.rows import ALL
    from sparelane.sweeps.metrics import HEADLINES

    ranks = {(metric.metric, metric.average): rank for rank, metric in enumerate(HEADLINES)}

    def rank(place: int) -> tuple[bool, int, int]:
        row = rows[place]
        return row["traffic"] != ALL, ranks.get((row["metric"], row["average"]), len(ranks)), place

    return [rows[place] for place in sorted(sorted(range(len(rows)), key=rank)[:MOST_ROWS])]


def seconds(value: float) -> str:
    """Formats seconds to a tenth of a millisecond."""
    return f"{value:.4f}"


def percent(value: float) -> str:
    """Formats a fraction as a percentage."""
    return f"{100 * value:.2f} %"


def ratio(value: float) -> str:
    """Formats a ratio with two decimals."""
    return f"{value:.2f}"


def share(value: float) -> str:
    """Formats a fraction with three decimals."""
    return f"{value:.3f}"


def rate(value: float) -> str:
    """Formats bits per second with an SI prefix."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}b/s"
    return f"{value:.4g} b/s"


def whole(value: float) -> str:
    """Formats an integer with thousands separators."""
    return f"{value:,}"


def show(result: Result) -> None:
    """Prints the summary and the warnings of a run."""
    summary = result.summary()
    print_completions(summary.schemes)
    print_table(
        "Goodput, repair and delay",
        summary.service,
        {"goodput_bps": rate, "retransmitted": percent, "rtt_s": seconds, "queueing_s": seconds, "jain": share},
    )
    print_table("Busiest links", summary.links, {"utilisation": percent, "peak_backlog_bytes": whole})
    print_table("Packets by class, over all queues", summary.drops, {"share": percent})
    for remark in summary.remarks:
        console.output().print(f"note: {remark}", soft_wrap=True, markup=False)
    console.warn(result.warnings)


SLOWDOWNS = ("slowdown", "p99_slowdown")
# Percentiles that are printed only if a scheme has enough flows.
RARE = ("p95_s", "p999_s")


def print_completions(schemes: pl.DataFrame) -> None:
    """Prints completion times, and slowdowns if there are any, in tables that fit into 80 columns."""
    times = [name for name in schemes.columns if name.endswith("_s")]
    absent = [name for name in RARE if schemes[name].null_count() == schemes.height]
    print_table(
        "Flows and completion times",
        schemes.drop([*absent, *(name for name in SLOWDOWNS if name in schemes.columns)]),
        dict.fromkeys(times, seconds),
    )
    if "slowdown" in schemes.columns and schemes["slowdown"].count():
        print_table(
            "Slowdown",
            schemes.select("scheme", *SLOWDOWNS),
            dict.fromkeys(SLOWDOWNS, ratio),
        )


def print_table(title: str, frame: pl.DataFrame, formats: dict[str, Callable[[float], str]]) -> None:
    """Prints a small table. Columns without a format are printed with `str`."""
    texts = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    rows = (
        ["–" if value is None else formats.get(name, str)(value) for name, value in row.items()]
        for row in frame.iter_rows(named=True)
    )
    console.show_table(title, frame.columns, texts, rows)
