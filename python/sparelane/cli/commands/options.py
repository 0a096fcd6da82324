"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from sparelane.cli import completion

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """Gives a command an option."""

    def __call__(self, function: Function, /) -> Function:
        """The function, with the option."""


def with_options(function: Function, options: Sequence[Decorator]) -> Function:
    """The command with these options, which its help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function


MAX_SEEDS = 10_000


def scenario_argument(name: str) -> Decorator:
    """A scenario: a file, a ready-made one's name, or `-` for standard input."""
    return click.argument(name, metavar="FILE", shell_complete=completion.scenario_files)


settings_option = click.option(
    "settings",
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.settings,
    help="Replace a value of the scenario; repeatable.",
)


def seeds_option(words: str, *, fewest: int = 1, default: int | None = None) -> Decorator:
    """How many seeds."""
    return click.option(
        "seeds",
        "--seeds",
        type=click.IntRange(fewest, MAX_SEEDS),
        default=default,
        show_default=default is not None,
        help=words,
    )


def jobs_option(words: str) -> Decorator:
    """How many processes."""
    return click.option(
        "jobs",
        "--jobs",
        type=click.IntRange(min=1),
        default=lambda: os.cpu_count() or 1,
        help=f"{words}  [default: one a core]",
    )


def output_option(words: str, default: Path | None = None) -> Decorator:
    """The folder for results."""
    return click.option(
        "folder",
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        default=default,
        show_default=default is not None,
        help=words,
    )


def json_file_option(words: str) -> Decorator:
    """A file for the numbers."""
    return click.option("json_file", "--json", type=click.Path(path_type=Path, dir_okay=False), help=words)
