"""`sparelane schema`: what a scenario may say, for editors."""

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
    help="Print the schema of sweep files, in which lists and ranges stand in place of values.",
)
@click.option(
    "file",
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it to this file.  [default: standard output]",
)
@plugin_option
def command(is_sweep: bool, file: Path | None) -> None:
    """Print the JSON Schema of scenarios, with which editors complete and check them.

    It includes plugins. docs/editors.md describes the settings of editors.
    """
    text = schema.text(is_sweep=is_sweep)
    if file is None:
        click.echo(text)
        return
    folders.ready_file(file)
    file.write_text(f"{text}\n", encoding="utf-8")
