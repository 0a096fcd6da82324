"""`sparelane partial`: lists and removes incomplete files that transfers have left."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from sparelane import _native
from sparelane.cli.commands.help import Group
from sparelane.terminal import console

DAY_S = 86_400

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("partial", cls=Group)
def command() -> None:
    """List and remove incomplete files in a folder of `recv`."""


@command.command("list")
@click.argument("folder")
@AS_JSON
def list_command(folder: str, as_json: bool) -> None:
    """List the incomplete files in FOLDER and below. The next attempt of their sender continues with them."""
    found = _native.list_partial(folder)
    if as_json:
        _print_json(found)
    elif found:
        rows = [
            (name, f"{size:,}", console.duration(age_s), "a receiver is writing it" if is_in_use else "")
            for name, size, age_s, is_in_use in found
        ]
        console.show_table(folder, ("file", "bytes on disk", "unchanged for", "state"), ("file", "state"), rows)
    else:
        click.echo(f"{folder} has no incomplete files")


@command.command("clean")
@click.option(
    "--partial-age",
    "days",
    type=click.FloatRange(0, 36_500),
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Remove files that have not changed for this many days.",
)
@click.argument("folder")
@AS_JSON
def clean(folder: str, days: float, as_json: bool) -> None:
    """Remove incomplete files in FOLDER and below. Files that a receiver is writing stay."""
    removed = _native.clean_partial(folder, days * DAY_S)
    if as_json:
        _print_json(removed)
    else:
        total = sum(size for _, size, _, _ in removed)
        click.echo(f"{len(removed)} incomplete files removed, {total:,} bytes")


def _print_json(files: Sequence[tuple[str, int, float, bool]]) -> None:
    keys = ("name", "bytes", "age_s", "in_use")
    click.echo(json.dumps([dict(zip(keys, file, strict=True)) for file in files]))
