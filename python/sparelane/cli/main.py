"""The command line. Each command is a module of `sparelane.cli.commands`, loaded when it is asked for."""

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
from sparelane.sweeps.crew import CrewError
from sparelane.terminal.streams import STREAMS

COMMANDS = (
    "list",
    "new",
    "check",
    "run",
    "sweep",
    "compare",
    "plot",
    "report",
    "schema",
    "reproduce",
    "bench",
    "keys",
    "recv",
    "send",
    "tunnel",
    "path",
    "linux",
    "harm",
    "emulate",
)


# Shells set this when they ask for completions.
COMPLETING = "_SPARELANE_COMPLETE"


class Failure(click.ClickException):
    """What went wrong, told on standard error; `exit_code` says of what kind it is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def show(self, file: Any = None) -> None:
        """Prints the message to standard error."""
        click.echo(f"sparelane: {self.format_message()}", file=file, err=file is None)


class Mistake(Failure):
    """The user asked for something that cannot be done."""

    exit_code = 2


class Defect(Failure):
    """The program is wrong."""

    exit_code = 1


class Incomplete(Failure):
    """Some of what was asked for is not done; what is wrong is told."""

    exit_code = 3


class Interruption(Failure):
    """The user stopped the program."""

    exit_code = 130


class LimitReachedError(Failure):
    """A limit that the user set has ended the work; the exit code is that of timeout(1)."""

    exit_code = 124


class Commands(click.Group):
    """Loads commands late, so that each pays only for what it uses, and turns exceptions into messages."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Runs the program, whatever its standard streams are, and says what became of them."""
        STREAMS.guard()
        if COMPLETING in os.environ:
            # It teaches click what bash does with equals signs.
            importlib.import_module("sparelane.cli.completion")
        try:
            return super().main(*args, **extra)
        except SystemExit as ended:
            ended.code = STREAMS.finish(ended.code)
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, without loading them for their summaries."""
        names = [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return names if incomplete[:1].isalpha() or not incomplete else super().shell_complete(ctx, incomplete)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which people meet them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the first sentence of each command's help, in full."""
        write_commands(self, ctx, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded.

        Raises:
            Mistake: there is none, but one of a name like it.
        """
        if cmd_name not in COMMANDS:
            if near(cmd_name, COMMANDS) and not ctx.resilient_parsing:
                raise Mistake(str(UnknownNameError("command", cmd_name, COMMANDS)))
            return None
        command = importlib.import_module(f"sparelane.cli.commands.{cmd_name}").command
        return with_examples(command, cmd_name) if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; a mistake of the user exits with 2, a defect with 1, Ctrl-C with 130."""
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
            CrewError,
            MissingExtraError,
        ) as error:
            raise Mistake(str(error)) from error
        except PhysicsError as error:
            raise Defect(f"the simulation broke a law of its own, which is a defect: {error}") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f' "{error.filename}"' if error.filename else ""
            raise Mistake(f"cannot write{where}: {(error.strerror or str(error)).lower()}") from error
        except KeyboardInterrupt:
            raise Interruption("interrupted") from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sparelane")
def main() -> None:
    """Simulate congestion control, packet by packet, and redo the papers that propose it."""


with_examples(main, "")
