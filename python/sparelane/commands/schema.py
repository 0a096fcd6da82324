"""`sparelane schema`: what a scenario may say, for editors."""

from __future__ import annotations

from pathlib import Path

import click

from sparelane import folders, schema
from sparelane.commands.plugin_option import plugin_option


@click.command("schema")
@click.option(
    "is_sweep", "--sweep", is_flag=True, help="Of sweep files, where lists and ranges stand in place of values."
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
    """Print the JSON Schema of scenarios, by which editors complete and check them while one writes.

    It is made of what the program declares, plugins included. docs/editors.md says how editors take it.
    """
    text = schema.text(is_sweep=is_sweep)
    if file is None:
        click.echo(text)
        return
    folders.ready_file(file)
    file.write_text(f"{text}\n", encoding="utf-8")
