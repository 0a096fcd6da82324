"""`sparelane run`: simulate one scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparelane import api, folders, library, terminal
from sparelane.notices import notices
from sparelane.result import DEFAULT_FORMATS, FORMATS

if TYPE_CHECKING:
    import polars as pl

    from sparelane.result import Result


@click.command("run")
@click.argument("scenario", metavar="FILE")
@click.option(
    "settings", "--set", multiple=True, metavar="KEY=VALUE", help="Replace a value of the scenario; repeatable."
)
@click.option(
    "--seed", type=click.IntRange(0, api.MAX_SEED), help="Seed of every random draw.  [default: the scenario's]"
)
@click.option(
    "folder",
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the results.  [default: out/NAME]",
)
@click.option(
    "formats",
    "--format",
    type=click.Choice(FORMATS),
    multiple=True,
    default=DEFAULT_FORMATS,
    show_default=True,
    help="Format of the tables; repeatable.",
)
def command(
    scenario: str, settings: tuple[str, ...], seed: int | None, folder: Path | None, formats: tuple[str, ...]
) -> None:
    """Simulate a scenario, print a summary, and save the results.

    FILE is a scenario file, or the name of a ready-made scenario (see `sparelane list`).
    """
    path = library.resolve(scenario)
    with terminal.waiting("building the network") as waiting:
        prepared = api.prepare(path, seed=seed, set=settings, waiting=waiting)
    place = folders.ready_folder(folder or Path("out") / path.stem)
    with terminal.progress(path.stem) as meter:

        def go_on(fraction: float) -> bool:
            meter(fraction)
            return True

        result = prepared.run(go_on)
    show(result)
    terminal.output().print(f"seed {result.seed}, digest {result.digest}", soft_wrap=True)
    result.save(place, formats)
    terminal.output().print(f"results in {place}", soft_wrap=True)


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
    print_table(
        "Flows and completion times",
        summary.schemes,
        {"mean_s": seconds, "median_s": seconds, "p99_s": seconds, "slowdown": ratio, "p99_slowdown": ratio},
    )
    print_table(
        "Goodput, repair and delay",
        summary.service,
        {"goodput_bps": rate, "retransmitted": percent, "rtt_s": seconds, "queueing_s": seconds, "jain": share},
    )
    print_table("Busiest links", summary.links, {"utilisation": percent, "peak_backlog_bytes": whole})
    print_table("Packets by class, over all queues", summary.drops, {"share": percent})
    for notice in notices(result):
        terminal.output().print(f"note: {notice}", soft_wrap=True, markup=False)


def print_table(title: str, frame: pl.DataFrame, formats: dict[str, Callable[[float], str]]) -> None:
    """Prints a small table; a column without a format is printed as it is."""
    texts = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    rows = (
        ["–" if value is None else formats.get(name, str)(value) for name, value in row.items()]
        for row in frame.iter_rows(named=True)
    )
    terminal.show_table(title, frame.columns, texts, rows)
