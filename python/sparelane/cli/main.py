"""The `sparelane` command: its subcommands, exit codes and error messages.

Each subcommand is a module of `sparelane.cli.commands`. It is imported when it is called, so that no command pays for
the imports of another one.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from sparelane._native import EmulationError, LinuxError, PhysicsError, ScenarioError, WireError, __version__
from sparelane.cli.commands.help import with_examples, write_commands
from sparelane.common.extras import MissingExtraError
from sparelane.common.folders import OutputError, SavedResultsError
from sparelane.common.names import UnknownNameError, near
from sparelane.plugins.failure import PluginError
from sparelane.simulation.traces import TraceError
from sparelane.sweeps.executor import ExecutorError
from sparelane.terminal.streams import STREAMS

COMMANDS = (
    "list",
    "new",
    "convert",
    "check",
    "run",
    "play",
    "sweep",
    "compare",
    "plot",
    "report",
    "schema",
    "reproduce",
    "bench",
    "keys",
    "recv",
    "partial",
    "send",
    "tunnel",
    "path",
    "kernel",
    "linux",
    "harm",
    "emulate",
)


# Shells set this variable to request completions.
COMPLETING = "_SPARELANE_COMPLETE"


class Failure(click.ClickException):
    """An error that is printed to standard error and ends the program with `exit_code`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def show(self, file: Any = None) -> None:
        """Prints the message to standard error."""
        click.echo(f"sparelane: {self.format_message()}", file=file, err=file is None)


class Mistake(Failure):
    """The request is invalid or cannot be met."""

    exit_code = 2


class Defect(Failure):
    """A bug in sparelane."""

    exit_code = 1


class Incomplete(Failure):
    """Part of the work failed; the message names the first failure."""

    exit_code = 3


class Interruption(Failure):
    """The user stopped the program."""

    exit_code = 130


class LimitReachedError(Failure):
    """A limit that the user set ended the work. The exit code is that of timeout(1)."""

    exit_code = 124


HELP_OPTIONS = ["-h", "--help"]


class Commands(click.Group):
    """The subcommands. Imports each when it is called, and turns exceptions into messages and exit codes."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Runs the program. Standard streams may be closed or full; the exit code reports output that was lost."""
        STREAMS.guard()
        if COMPLETING in os.environ:
            # Registers a completion class that handles how bash splits words at equals signs.
            importlib.import_module("sparelane.cli.completion")
        try:
            return super().main(*args, **extra)
        except SystemExit as ended:
            ended.code = STREAMS.finish(ended.code)
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the names of commands without importing the commands."""
        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return names if incomplete[:1].isalpha() or not incomplete else super().shell_complete(ctx, incomplete)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help text."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the first sentence of each command's help, without cutting it."""
        write_commands(self, ctx, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command and returns it.

        Raises:
            Mistake: there is no such command, but one with a similar name.
        """
        if cmd_name not in COMMANDS:
            if near(cmd_name, COMMANDS) and not ctx.resilient_parsing:
                raise Mistake(str(UnknownNameError("command", cmd_name, COMMANDS)))
            return None
        command = importlib.import_module(f"sparelane.cli.commands.{cmd_name}").command
        if not isinstance(command, click.Command):
            return None
        # click keeps the help option of a command's first context, which may have no parent to inherit `-h` from.
        command.context_settings.setdefault("help_option_names", HELP_OPTIONS)
        return with_examples(command, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. Exits with 2 for a mistake of the user, 1 for a bug, and 130 for Ctrl-C."""
        try:
            return super().invoke(ctx)
        except (
            ScenarioError,
            UnknownNameError,
            OutputError,
            SavedResultsError,
            FileNotFoundError,
            PluginError,
            TraceError,
            WireError,
            LinuxError,
            EmulationError,
            ExecutorError,
            MissingExtraError,
        ) as error:
            raise Mistake(str(error)) from error
        except PhysicsError as error:
            raise Defect(f"the simulation violated one of its invariants, which is a bug: {error}") from error
        except BrokenPipeError:
            # `STREAMS.finish` handles an output whose reader has gone.
            raise
        except OSError as error:
            # Mostly a full disk, or a folder without write permission.
            where = f' "{error.filename}"' if error.filename else ""
            raise Mistake(f"cannot write{where}: {(error.strerror or str(error)).lower()}") from error
        except KeyboardInterrupt:
            raise Interruption("interrupted") from None


@click.group(cls=Commands, context_settings={"help_option_names": HELP_OPTIONS})
@click.version_option(__version__, prog_name="sparelane")
def main() -> None:
    """Simulate congestion control packet by packet, and reproduce experiments from papers."""


with_examples(main, "")
