"""Options of comparisons: the main metric, the keys to keep separate, and the thresholds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands.options import Function, with_options

if TYPE_CHECKING:
    from sparelane.sweeps.differences import Thresholds

THRESHOLD = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(%|points?|perflow|per flow)\s*")
FORMS = "2% (of the baseline's number), 0.5points (percentage points) or 0.01perflow"


def comparison_options(function: Function) -> Function:
    """Adds `--metric`, `--by` and `--threshold` to a command."""
    return with_options(
        function,
        [
            click.option(
                "metric",
                "--metric",
                metavar="NAME",
                help="The main metric, such as completion, p99-completion, goodput or queueing.  [default: completion]",
            ),
            click.option(
                "by",
                "--by",
                metavar="KEY",
                multiple=True,
                help="Aggregate over all keys but this one, such as queue or queue.kind; size separates flow sizes; "
                "repeatable.  [default: every setting]",
            ),
            click.option(
                "thresholds",
                "--threshold",
                metavar="SIZE",
                multiple=True,
                help=f"Smaller changes are negligible: {FORMS}; repeatable.  [default: 1%, 0.1points, 0.01perflow]",
            ),
        ],
    )


def thresholds_of(texts: tuple[str, ...]) -> Thresholds:
    """The thresholds from `--threshold`, with defaults for those that are not set.

    Raises:
        click.BadParameter: a text is not the size of a change.
    """
    from sparelane.sweeps.differences import Thresholds

    found: dict[str, float] = {}
    for text in texts:
        match = THRESHOLD.fullmatch(text)
        if match is None:
            raise click.BadParameter(f"{text!r} is not a size; allowed: {FORMS}", param_hint="--threshold")
        number = float(match[1])
        if match[2] == "%":
            found["relative"] = number / 100
        else:
            found["points" if match[2].startswith("point") else "per_flow"] = number
    return Thresholds(**found)
