"""Tests of help texts: every command has examples that are valid command lines, and no summary is cut."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sparelane.cli.commands.help import EXAMPLES
from sparelane.cli.main import main


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, info_name=" ".join(path) or "sparelane")
    yield path, group
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(main))


def words_of(line: str) -> list[str]:
    """Returns the arguments of an example, without a pipe in front of it and without sudo."""
    words = shlex.split(line.split("|")[-1])
    return words[words.index("sparelane") + 1 :]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_examples_at_the_end_of_its_help(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*path, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    _, found, after = done.stdout.partition("\nExamples:\n" if "  Examples:" not in done.stdout else "  Examples:\n")
    assert found
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    assert lines == list(EXAMPLES[" ".join(path)])


def test_every_example_belongs_to_a_command() -> None:
    assert set(EXAMPLES) == {" ".join(path) for path in COMMANDS}


@pytest.mark.parametrize(
    ("path", "line"), [(path, line) for path, lines in EXAMPLES.items() for line in lines], ids=str
)
def test_every_example_is_a_command_line_of_its_command(
    path: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some commands check immediately whether they can write their output.
    monkeypatch.chdir(tmp_path)
    words = words_of(line)
    assert words[: len(path.split())] == path.split()
    command: click.Group = main
    context = click.Context(command, info_name="sparelane", help_option_names=["-h", "--help"])
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        if isinstance(found, click.Group):
            context, command, words = click.Context(found, parent=context, info_name=words[0]), found, words[1:]
            continue
        # Fails for unknown options, missing arguments and invalid values.
        found.make_context(words[0], words[1:], parent=context)
        return


@pytest.mark.parametrize("path", [path for path, one in COMMANDS.items() if isinstance(one, click.Group)], ids=" ".join)
def test_no_summary_is_cut(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*path, "--help"], terminal_width=80)
    assert "..." not in done.stdout.partition("Commands:")[2].partition("Examples:")[0]
    listed = " ".join(done.stdout.partition("Commands:")[2].split())
    for inner, command in COMMANDS.items():
        if len(inner) == len(path) + 1 and inner[: len(path)] == path:
            assert command.get_short_help_str(10_000).rstrip(".") in listed, inner
