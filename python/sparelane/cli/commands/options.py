"""Options and arguments that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

from sparelane.cli import completion

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """A decorator that adds an option or argument to a command."""

    def __call__(self, function: Function, /) -> Function:
        """Returns the function with the option added."""


def with_options(function: Function, options: Sequence[Decorator]) -> Function:
    """Adds options to a command; its help lists them in this order."""
    for option in reversed(options):
        function = option(function)
    return function


MAX_SEEDS = 10_000


def scenario_argument(name: str) -> Decorator:
    """Returns the scenario argument: a file, the name of a ready-made scenario, or `-` for standard input."""
    return click.argument(name, metavar="FILE", shell_complete=completion.scenario_files)


settings_option = click.option(
    "settings",
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.settings,
    help="Replace a value of the scenario; repeatable.",
)


def seeds_option(text: str, *, fewest: int = 1, default: int | None = None) -> Decorator:
    """Returns the option for the number of seeds."""
    return click.option(
        "seeds",
        "--seeds",
        type=click.IntRange(fewest, MAX_SEEDS),
        default=default,
        show_default=default is not None,
        help=text,
    )


def jobs_option(text: str) -> Decorator:
    """Returns the option for the number of worker processes."""
    return click.option(
        "jobs",
        "--jobs",
        type=click.IntRange(min=1),
        default=lambda: os.cpu_count() or 1,
        help=f"{text}  [default: one per core]",
    )


def output_option(text: str, default: Path | None = None) -> Decorator:
    """Returns the option for the folder of results."""
    return click.option(
        "folder",
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        default=default,
        show_default=default is not None,
        help=text,
    )


def json_file_option(text: str) -> Decorator:
    """Returns the option for a JSON file of all numbers."""
    return click.option("json_file", "--json", type=click.Path(path_type=Path, dir_okay=False), help=text)
