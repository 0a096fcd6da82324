"""The option `--plugin FILE.py` of commands that read scenarios, and the options that limit the time of its code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sparelane.plugins.watch import Limits

Command = TypeVar("Command", bound=Callable[..., Any])

# The largest time limit, seconds.
MAX_LIMIT_S = 1e6


def load(_context: click.Context, _option: click.Parameter, paths: tuple[Path, ...]) -> None:
    """Loads the plugin files before the command runs."""
    from sparelane.plugins import loading

    for path in paths:
        loading.load(path)


def limits_of(call_s: float, run_s: float) -> Limits:
    """The limits that `--call-limit` and `--run-limit` set; 0 means no limit."""
    from sparelane.plugins.watch import Limits

    return Limits(call_s or None, run_s or None)


def limit_options(command: Command) -> Command:
    """Adds the options that limit the time of a call into a plugin and of a run."""
    call = click.option(
        "call_limit_s",
        "--call-limit",
        metavar="SECONDS",
        type=click.FloatRange(0, MAX_LIMIT_S),
        default=60.0,
        show_default=True,
        help="Fail the run if a call into a plugin takes longer than this; 0 for no limit.",
    )
    run = click.option(
        "run_limit_s",
        "--run-limit",
        metavar="SECONDS",
        type=click.FloatRange(0, MAX_LIMIT_S),
        default=0.0,
        help="End a run after this much real time, and keep its results so far.  [default: no limit]",
    )
    return call(run(command))


def report_slow_call(text: str) -> None:
    """Reports a slow call on standard error. A progress bar is redrawn below the line."""
    print(f"sparelane: {text}", file=sys.stderr, flush=True)


def plugin_option(command: Command) -> Command:
    """Adds the option to a command, whose function gets no argument for it."""
    option = click.option(
        "--plugin",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE.py",
        expose_value=False,
        is_eager=True,
        callback=load,
        help="Load your own controllers, workloads and flow sizes from this file; repeatable.",
    )
    return option(command)
