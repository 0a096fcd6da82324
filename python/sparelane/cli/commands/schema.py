"""`sparelane schema`: prints the JSON Schema of scenarios for editors."""

from __future__ import annotations

from pathlib import Path

import click

from sparelane.cli.commands.plugin_option import plugin_option
from sparelane.common import folders
from sparelane.scenario import schema


@click.command("schema")
@click.option(
    "is_sweep",
    "--sweep",
    is_flag=True,
    help="Print the schema of sweep files, where values may be lists and ranges.",
)
@click.option(
    "file",
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the schema.  [default: standard output]",
)
@plugin_option
def command(is_sweep: bool, file: Path | None) -> None:
    """Print the JSON Schema of scenarios, which editors use to complete and check them.

    The schema includes plugins. docs/editors.md describes how to configure editors.
    """
    text = schema.text(is_sweep=is_sweep)
    if file is None:
        click.echo(text)
        return
    folders.ready_file(file)
    file.write_text(f"{text}\n", encoding="utf-8")
