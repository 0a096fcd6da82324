"""`--plugin FILE.py`, for every command that reads scenarios."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def load(_context: click.Context, _option: click.Parameter, paths: tuple[Path, ...]) -> None:
    """Loads the files before the command runs."""
    from sparelane.plugins import loading

    for path in paths:
        loading.load(path)


def plugin_option(command: Command) -> Command:
    """Gives a command the option; its function has no argument for it."""
    option = click.option(
        "--plugin",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE.py",
        expose_value=False,
        is_eager=True,
        callback=load,
        help="Load controllers, workloads and flow sizes of your own from this file; repeatable.",
    )
    return option(command)
