"""`sparelane linux`: builds the kernel that runs scenarios in virtual time, for `run --on linux`."""

from __future__ import annotations

import os
from typing import Any

import click

from sparelane._native import LinuxError
from sparelane.cli.commands import kernel as running_kernel
from sparelane.cli.commands.help import Group
from sparelane.terminal import console


class FormerName(running_kernel.OnLinux):
    """A command of `sparelane kernel` under the name that it had in this group."""

    def invoke(self, ctx: click.Context) -> Any:
        """Prints the new name, and runs the command."""
        click.echo(f"sparelane: `sparelane linux {self.name}` is now `sparelane kernel {self.name}`", err=True)
        return super().invoke(ctx)


class LinuxCommands(Group):
    """The commands of this module. The former names of `sparelane kernel`'s commands work, but are not listed."""

    command_class = running_kernel.OnLinux

    def load(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of this name or former name."""
        found = super().load(ctx, cmd_name) or running_kernel.command.get_command(ctx, cmd_name)
        if found is None or cmd_name in self.commands:
            return found
        return FormerName(
            cmd_name,
            context_settings=found.context_settings,
            callback=found.callback,
            params=found.params,
            help=found.help,
            epilog=found.epilog,
            hidden=True,
        )


@click.group("linux", cls=LinuxCommands)
def command() -> None:
    """Build the Linux kernel that runs scenarios in virtual time."""


@command.command("build")
@click.option(
    "jobs",
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    help="Number of parallel compilers.  [default: one per core]",
)
@click.option("rc3", "--rc3", is_flag=True, help="Build the kernel with RC3, for schemes with that controller.")
def build(jobs: int, rc3: bool) -> None:
    r"""Build the kernel for `run --on linux` if it is missing, and test it.

    The build takes about eight minutes of CPU time. Each call ends with a test run of one simulated second.

    \b
    Example:
      sparelane linux build && sparelane run dumbbell-cubic --on linux
    """
    from sparelane.uml import kernel, running

    wanted: kernel.Rc3 = "on" if rc3 else "none"
    built = kernel.find(wanted)
    if built is None:
        with console.progress("the kernel") as meter:
            built = kernel.build(meter, jobs, wanted)
    console.output().print(f"kernel in {built.binary.parent}", soft_wrap=True)
    try:
        tried = running.trial(built)
    except LinuxError as error:
        raise LinuxError(f"the kernel is built, but does not run on this host: {error}") from error
    console.output().print(
        f"one simulated second with {tried.packets} packets took {tried.seconds:.1f} s", soft_wrap=True
    )
