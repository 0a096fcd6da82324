"""`sparelane linux build`: builds the kernel for `run --on linux`."""

from __future__ import annotations

import os

import click

from sparelane._native import LinuxError
from sparelane.cli.commands.linux import OnLinux
from sparelane.terminal import console
from sparelane.uml import kernel, running


@click.command("build", cls=OnLinux)
@click.option(
    "jobs",
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    help="Number of parallel compilers.  [default: one per core]",
)
@click.option("rc3", "--rc3", is_flag=True, help="Build the kernel with RC3, for schemes with that controller.")
def command(jobs: int, rc3: bool) -> None:
    r"""Build the kernel for `run --on linux` if it is missing, and test it.

    The build takes about eight minutes of CPU time. Each call ends with a test run of one simulated second.

    \b
    Example:
      sparelane linux build && sparelane run dumbbell-cubic --on linux
    """
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
