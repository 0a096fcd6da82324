"""`--plugin FILE.py`, for every command that reads scenarios, and how long its code may take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sparelane.plugins.watch import Limits

Command = TypeVar("Command", bound=Callable[..., Any])

# A million seconds.
MAX_LIMIT_S = 1e6


def load(_context: click.Context, _option: click.Parameter, paths: tuple[Path, ...]) -> None:
    """Loads the files before the command runs."""
    from sparelane.plugins import loading

    for path in paths:
        loading.load(path)


def limits_of(call_s: float, run_s: float) -> Limits:
    """What `--call-limit` and `--run-limit` say, of which 0 is no limit."""
    from sparelane.plugins.watch import Limits

    return Limits(call_s or None, run_s or None)


def limit_options(command: Command) -> Command:
    """Gives a command the options of how long somebody's own code, and a run, may take."""
    call = click.option(
        "call_limit_s",
        "--call-limit",
        metavar="SECONDS",
        type=click.FloatRange(0, MAX_LIMIT_S),
        default=60.0,
        show_default=True,
        help="How long one call into a plugin may take, before the run fails; 0 for any time.",
    )
    run = click.option(
        "run_limit_s",
        "--run-limit",
        metavar="SECONDS",
        type=click.FloatRange(0, MAX_LIMIT_S),
        default=0.0,
        help="Seconds that a run may take; what it did until then is kept.  [default: any time]",
    )
    return call(run(command))


def tell(words: str) -> None:
    """Says, on standard error, which call takes long; where a bar is shown, it makes room."""
    print(f"sparelane: {words}", file=sys.stderr, flush=True)


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
