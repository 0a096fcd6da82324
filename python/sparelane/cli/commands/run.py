"""`sparelane run`: simulate one scenario."""

from __future__ import annotations

import shlex
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparelane._native import Cancelled, ScenarioError
from sparelane.cli.commands import given
from sparelane.cli.commands.options import jobs_option, output_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import limit_options, limits_of, plugin_option, tell
from sparelane.cli.commands.stopping import heard
from sparelane.cli.main import Incomplete, Interruption, LimitReachedError
from sparelane.common import folders
from sparelane.plugins import failure
from sparelane.plugins.registry import REGISTRY
from sparelane.plugins.watch import Limits, plugin_call, watched
from sparelane.simulation import simulate as api
from sparelane.simulation import traces
from sparelane.simulation.result import DEFAULT_FORMATS, FORMATS
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    import polars as pl

    from sparelane.simulation.result import Result
    from sparelane.uml.running import Outcome

# The number of means over seeds that are printed.
MOST_ROWS = 15


@click.command("run")
@scenario_argument("scenario")
@settings_option
@click.option(
    "--seed", type=click.IntRange(0, api.MAX_SEED), help="Seed of every random draw.  [default: the scenario's]"
)
@seeds_option(
    "Run with so many seeds, from --seed on, and print means with intervals: a sweep of seeds alone.", fewest=2
)
@jobs_option("Worker processes, with --seeds.")
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
    help="Write traces of packets into the folder, as in flow=3,port=west:east: pcapng, and qlog of flows.",
)
@click.option(
    "on",
    "--on",
    type=click.Choice(["simulator", "linux"]),
    default="simulator",
    show_default=True,
    help="What runs it: the simulator, or the real TCP of Linux in virtual time.",
)
@click.option("is_all", "--all", is_flag=True, help=f"With --seeds, print every mean, and not {MOST_ROWS} alone.")
@plugin_option
@limit_options
def command(
    scenario: str,
    settings: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    jobs: int,
    folder: Path | None,
    formats: tuple[str, ...],
    trace: str | None,
    on: str,
    is_all: bool,
    call_limit_s: float,
    run_limit_s: float,
) -> None:
    """Simulate a scenario, print a summary, and save the results.

    FILE is a scenario file, the name of a ready-made scenario (see `sparelane list`), or - for standard input;
    the `run.json` of a run repeats it.

    Exits with 124 if --run-limit ended the run, and with 130 if it was interrupted. The results until then are saved.
    """
    limits = limits_of(call_limit_s, run_limit_s)
    found = given.read(scenario)
    # What is repeated may be written over.
    before = api.saved_run(Path(found.file)) if found.is_saved else {}
    if on == "linux":
        if seeds is not None or trace is not None:
            raise click.UsageError("--on linux takes neither --seeds nor --trace; allowed: one seed, no trace")
        if limits.run_s is not None:
            raise click.UsageError("--run-limit ends runs in the simulator; allowed: --on linux without it")
        run_on_linux(found, settings, seed, folder or Path("out") / found.name, formats)
        return
    if seeds is not None:
        if trace is not None:
            raise click.UsageError("--trace follows one run; allowed: with one seed")
        several(
            found, [*settings, *([] if seed is None else [f"seed={seed}"])], seeds, jobs, folder, limits, is_all=is_all
        )
        return
    place = folder or Path("out") / found.name
    if trace is not None:
        traces.parse(trace)
        folders.ready_folder(place)
    try:
        result, is_over_limit = simulate(found, seed, settings, trace, place, limits)
    except ScenarioError as error:
        raise with_hint(error, found, settings, before) from error
    except failure.PluginError as error:
        if isinstance(error.__cause__, failure.RunOverLimitError):
            raise LimitReachedError(f"{error}; nothing is saved") from error
        raise
    except KeyboardInterrupt as error:
        raise Interruption(f"interrupted{failure.where(error)}; nothing is saved") from None
    try:
        result.save(place, formats)
    finally:
        # If the disk is full, the summary is all that is left of the run.
        show(result)
        terminal.output().print(f"seed {result.seed}, digest {result.digest}", soft_wrap=True)
    if found.is_saved and not result.is_interrupted:
        show_repetition(result, before)
    terminal.saved(f"results in {place}", f"the results are saved in {place}")
    show_traces(result)
    if result.is_interrupted:
        refuse_part(result, limits, place, is_over_limit=is_over_limit)


def refuse_part(result: Result, limits: Limits, place: Path, *, is_over_limit: bool) -> None:
    """Ends a command whose run was stopped before its time.

    Raises:
        LimitReachedError: the run was over its limit.
        Interruption: the user stopped it.
    """
    reached = f"{result.totals['end_s']:.6g} s of {tomllib.loads(result.scenario)['duration']} were simulated"
    kept = f"{reached}, and the results until then are in {place}"
    if is_over_limit:
        raise LimitReachedError(f"the run reached its limit, --run-limit {limits.run_s:g} (seconds): {kept}")
    raise Interruption(f"interrupted: {kept}")


def simulate(
    found: given.Given, seed: int | None, settings: Sequence[str], trace: str | None, place: Path, limits: Limits
) -> tuple[Result, bool]:
    """Builds the network and runs the scenario. Shows progress and slow calls into plugins meanwhile.

    Returns:
        The result, and whether the limit of the run ended it.

    Raises:
        ScenarioError: the scenario cannot be run.
        LimitReachedError: the limit ended the building of the network.
        PluginError: plugin code failed, or took longer than a limit.
    """
    began_s = time.monotonic()

    def is_over_limit() -> bool:
        return limits.run_s is not None and time.monotonic() - began_s >= limits.run_s

    with watched(limits, tell):
        with terminal.waiting("building the network") as waiting:

            def wait(seconds: float) -> None:
                waiting(seconds)
                if is_over_limit():
                    raise Cancelled

            try:
                prepared = api.prepare(
                    found.scenario, seed=seed, set=settings, waiting=wait, trace=trace, trace_folder=place
                )
            except Cancelled:
                raise LimitReachedError(
                    f"the run reached its limit, --run-limit {limits.run_s:g} (seconds), while its network was built: "
                    "nothing was simulated"
                ) from None
        folders.ready_folder(place)
        # A call into a plugin may never return to the simulator, which notices the wish only there.
        call = None if REGISTRY.catalogue() is None else plugin_call
        with terminal.progress(found.name) as meter, heard(call) as wish:
            was_over_limit = False

            def go_on(fraction: float) -> bool:
                nonlocal was_over_limit
                meter(fraction)
                was_over_limit = is_over_limit()
                return not wish.is_to_stop and not was_over_limit

            return prepared.run(go_on, keep=True), was_over_limit


def with_hint(
    error: ScenarioError, found: given.Given, settings: Sequence[str], before: Mapping[str, object]
) -> ScenarioError:
    """The error, with what would help: `sparelane sweep`, or the plugins that a run was made with."""
    from sparelane.plugins.loading import LOADED
    from sparelane.sweeps.plan import Plan

    kept = before.get("plugins")
    missing = (
        [one for one in kept if one["sha256"] not in {plugin.sha256 for plugin in LOADED.values()}]
        if isinstance(kept, list)
        else []
    )
    if missing:
        options = " ".join(f"--plugin {shlex.quote(str(Path(found.file).parent / one['file']))}" for one in missing)
        return ScenarioError(f"{error}; this run was made with {options}")
    try:
        plan = Plan(found.text, found.file, found.folder, settings=settings, needs_variation=False)
    except ScenarioError:
        return error
    varied = [axis.key for axis in plan.axes]
    if not varied:
        return error
    return ScenarioError(
        f"{error}; {', '.join(varied)} {'has' if len(varied) == 1 else 'have'} several values: `sparelane sweep "
        f"{found.file}` runs them all"
    )


def run_on_linux(
    found: given.Given, settings: Sequence[str], seed: int | None, place: Path, formats: tuple[str, ...]
) -> None:
    """Runs the scenario on the kernel, prints what became of its flows, and saves it."""
    from sparelane.uml import running

    folders.check_folder(place)
    with terminal.waiting("running on Linux") as waiting:
        outcome = running.run(found.scenario, seed=seed, set=settings, waiting=waiting)
    result = outcome.result
    try:
        result.save(place, formats)
    finally:
        show_linux(result, outcome)
    terminal.saved(f"results in {place}", f"the results are saved in {place}")


def show_linux(result: Result, outcome: Outcome) -> None:
    """Prints what a run on Linux amounts to."""
    summary = result.summary()
    print_completions(summary.schemes.drop(SLOWDOWNS))
    for remark in summary.remarks:
        terminal.output().print(f"note: {remark}", soft_wrap=True, markup=False)
    terminal.warn(result.warnings)
    terminal.output().print(f"{outcome.packets} packets, their digest {outcome.packet_digest}", soft_wrap=True)
    terminal.output().print(f"seed {result.seed}, digest {result.digest}", soft_wrap=True)


def show_repetition(result: Result, before: Mapping[str, object]) -> None:
    """Prints whether a repeated run went as it did before."""
    if result.digest == before.get("digest"):
        words = "the same digest as before"
    elif result.version != before.get("version"):
        words = f"another digest than before, by sparelane {before.get('version')}: this is {result.version}"
    else:
        words = "another digest than before: the seed, a setting or a file that the scenario names has changed"
    terminal.output().print(words, soft_wrap=True, markup=False)


def show_traces(result: Result) -> None:
    """Prints where traces are, and what is wrong with them.

    Raises:
        Incomplete: one could not be written to its end.
    """
    for path, count, error in result.traces:
        if error is not None:
            raise Incomplete(f'the trace "{path}" ends after {count} packets: {error}')
        what = f"{count:,} records" if count else "nothing: the flow never started, or nothing passed the port"
        terminal.output().print(f"trace in {path}: {what}", soft_wrap=True)


def several(
    found: given.Given,
    settings: Sequence[str],
    seeds: int,
    jobs: int,
    folder: Path | None,
    limits: Limits,
    *,
    is_all: bool,
) -> None:
    """Simulates a scenario with several seeds, prints the means, and leaves the folder of a sweep."""
    from sparelane.cli.commands import sweep
    from sparelane.common.units import quantity
    from sparelane.sweeps import comparison
    from sparelane.sweeps import folder as saved
    from sparelane.sweeps.differences import undrawn
    from sparelane.sweeps.plan import Plan
    from sparelane.sweeps.sweep import local

    plan = Plan(found.text, found.file, found.folder, seeds=seeds, settings=settings, needs_variation=False)
    place = folder or Path("out") / f"{found.name}-seeds"
    sweep.finish(plan, place, sweep.run(plan, place, local(jobs), limits))
    means = saved.read(place)
    exact = undrawn(means.runs)
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
    kept = [place for place in range(5) if place > 2 or any(line[place] for line in lines)]
    headings = ("setting", "scheme", "traffic", "metric", "average")
    left = [headings[place] for place in kept]
    cells = ((*(line[place] for place in kept), *line[5:]) for line in lines)
    terminal.show_table(f"means over {seeds} seeds", [*left, "mean", "95 % interval"], left, cells)
    if len(shown) < len(rows):
        sweep.print_line(f"{len(rows) - len(shown)} more means: --all prints them, and {place}/rows.parquet has them")


def foremost(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that answer most questions, at most `MOST_ROWS`, in their order."""
    from sparelane.results.rows import ALL
    from sparelane.sweeps.metrics import HEADLINES

    ranks = {(metric.metric, metric.average): rank for rank, metric in enumerate(HEADLINES)}

    def rank(place: int) -> tuple[bool, int, int]:
        row = rows[place]
        return row["traffic"] != ALL, ranks.get((row["metric"], row["average"]), len(ranks)), place

    return [rows[place] for place in sorted(sorted(range(len(rows)), key=rank)[:MOST_ROWS])]


def seconds(value: float) -> str:
    """A time with a tenth of a millisecond."""
    return f"{value:.4f}"


def percent(value: float) -> str:
    """A share of one as a percentage."""
    return f"{100 * value:.2f} %"


def ratio(value: float) -> str:
    """A ratio with two decimals."""
    return f"{value:.2f}"


def share(value: float) -> str:
    """A share of one with three decimals."""
    return f"{value:.3f}"


def rate(value: float) -> str:
    """Bits per second with a prefix."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}b/s"
    return f"{value:.4g} b/s"


def whole(value: float) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def show(result: Result) -> None:
    """Prints what a run amounts to."""
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
        terminal.output().print(f"note: {remark}", soft_wrap=True, markup=False)
    terminal.warn(result.warnings)


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
    """Prints a small table; a column without a format is printed as it is."""
    texts = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    rows = (
        ["–" if value is None else formats.get(name, str)(value) for name, value in row.items()]
        for row in frame.iter_rows(named=True)
    )
    terminal.show_table(title, frame.columns, texts, rows)
