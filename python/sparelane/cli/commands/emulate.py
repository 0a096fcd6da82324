"""`sparelane emulate`: runs real programs over a simulated network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from sparelane import emulation
from sparelane._native import EmulationError
from sparelane.cli import completion
from sparelane.cli.commands import scenario_input
from sparelane.cli.commands.emulate_output import HostCommand, print_outcome, print_ready
from sparelane.cli.commands.options import settings_option
from sparelane.cli.main import Incomplete, Interruption
from sparelane.emulation.emulator import DEFAULT_PREFIX
from sparelane.emulation.hosts import program_exists
from sparelane.simulation import simulate
from sparelane.terminal.streams import STREAMS

if TYPE_CHECKING:
    from sparelane.emulation.emulator import Network

HOST = "--host"
# Interval at which commands and signals are checked, seconds.
POLL_S = 0.02

# After the last command ends, the others have `GRACE_S` to end by themselves, as servers do when their client leaves.
# Then they get SIGTERM and, `TERMINATE_S` later, SIGKILL.
GRACE_S = 0.3
TERMINATE_S = 2.0


class EmulateCommand(click.Command):
    """A command whose arguments end with `--host NAME -- COMMAND ...`, any number of times."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments from the first `--host` on, and leaves those before it to click."""
        first = args.index(HOST) if HOST in args else len(args)
        ctx.obj = commands_in(args[first:])
        return super().parse_args(ctx, args[:first])


def commands_in(args: Sequence[str]) -> list[HostCommand]:
    """Parses `--host NAME -- COMMAND ... --host NAME -- COMMAND ...`.

    Raises:
        UsageError: the arguments do not have this form.
    """
    if not args:
        return []
    starts = [at for at in range(len(args)) if args[at] == HOST and list(args[at + 2 : at + 3]) == ["--"]]
    if not starts or starts[0] != 0:
        raise click.UsageError(
            "--host is incomplete; allowed: --host NAME -- COMMAND ..., any number of times, as the last arguments"
        )
    ends = [*starts[1:], len(args)]
    found = [HostCommand(args[at + 1], tuple(args[at + 3 : end])) for at, end in zip(starts, ends, strict=True)]
    for one in found:
        if not one.arguments:
            raise click.UsageError(f"--host {one.host} -- without a command; allowed: --host NAME -- COMMAND ...")
    return found


@click.command(
    "emulate",
    cls=EmulateCommand,
    options_metavar="[OPTIONS]",
    epilog="At the end: --host NAME -- COMMAND ... runs a command at a host, any number of times.",
)
@click.argument("scenario", metavar="FILE [--host NAME -- COMMAND ...]...", shell_complete=completion.scenario_files)
@settings_option
@click.option(
    "--seed", type=click.IntRange(0, simulate.MAX_SEED), help="Seed of every random draw.  [default: the scenario's]"
)
@click.option(
    "for_s",
    "--for",
    type=click.FloatRange(0.1, 1e6),
    metavar="SECONDS",
    help="End after this much time, even if commands still run.",
)
@click.option(
    "stagger_s",
    "--stagger",
    type=click.FloatRange(0, 3600),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="Time between the starts of commands, so that servers listen before clients connect.",
)
@click.option(
    "--prefix",
    default=DEFAULT_PREFIX,
    show_default=True,
    help="Prefix of the names of network namespaces.",
)
@click.option(
    "as_json", "--json", is_flag=True, help="Print events as JSON lines; the output of commands goes to standard error."
)
@click.pass_obj
def command(
    commands: list[HostCommand],
    scenario: str,
    settings: tuple[str, ...],
    seed: int | None,
    for_s: float | None,
    stagger_s: float,
    prefix: str,
    as_json: bool,
) -> None:
    """Run real programs over the network of a scenario, in real time.

    Each host becomes a network namespace, whose packets cross the simulator's queues and links. Commands start one
    after another, and the network ends with the last one. Without commands, it stays until Ctrl-C. In a command,
    {NAME} is the address of the host NAME. A self-test measures the rate and timing that this machine can sustain;
    scenarios that need more are rejected. Needs root.
    """
    source = scenario_input.read(scenario)
    network = emulation.network(source.scenario, seed=seed, set=settings, prefix=prefix)
    addresses = {f"{{{host.name}}}": host.address for host in network.hosts}
    for one in commands:
        network.find(one.host)
        program_exists(one.arguments)
    signals = Signals()
    with signals.handled():
        try:
            with STREAMS.in_background(as_json=as_json), network:
                print_ready(network, commands, as_json=as_json)
                # Commands print to the same streams, so buffered lines are written first.
                STREAMS.settle()
                codes = _run(network, commands, addresses, signals, for_s, stagger_s, as_json=as_json)
        except EmulationError:
            # Ctrl-C also reaches the helper processes of the network, which then fail.
            if signals.came:
                raise Interruption("interrupted") from None
            raise
    print_outcome(network.outcome(), commands, codes, as_json=as_json)
    if signals.came and commands:
        raise Interruption("interrupted")
    if commands and codes[-1] and not (for_s is not None and codes[-1] < 0):
        raise Incomplete(
            f'the command at host "{commands[-1].host}" ended with {codes[-1]}: {" ".join(commands[-1].arguments)}'
        )


class Signals:
    """Notes SIGINT, SIGTERM and SIGHUP, so that the emulation ends in order. Repeated signals change nothing."""

    def __init__(self) -> None:
        self.came = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handles the signals inside the `with` block."""
        names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(name, self._note) for name in names]
        try:
            yield
        finally:
            for name, handler in zip(names, before, strict=True):
                signal.signal(name, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True


def _run(
    network: Network,
    commands: Sequence[HostCommand],
    addresses: dict[str, str],
    signals: Signals,
    for_s: float | None,
    stagger_s: float,
    *,
    as_json: bool,
) -> list[int]:
    """Runs the commands until the last one ends, the time is over, or a signal arrives. Returns their exit codes."""
    end = float("inf") if for_s is None else time.monotonic() + for_s
    started: list[subprocess.Popen[Any]] = []
    next_start = time.monotonic()
    while not signals.came and time.monotonic() < end:
        network.check()
        if len(started) < len(commands):
            if time.monotonic() >= next_start:
                started.append(
                    _start(
                        network,
                        commands[len(started)],
                        addresses,
                        is_last=len(started) == len(commands) - 1,
                        as_json=as_json,
                    )
                )
                next_start = time.monotonic() + stagger_s
        elif started and started[-1].poll() is not None:
            break
        time.sleep(POLL_S)
    return [_exit_code(program, GRACE_S if at == 0 else 0.0) for at, program in enumerate(started)]


def _exit_code(program: subprocess.Popen[Any], grace_s: float) -> int:
    """Waits `grace_s` for a command, then ends it with SIGTERM and at last SIGKILL. Returns its exit code."""
    for end, within_s in ((None, grace_s), (program.terminate, TERMINATE_S), (program.kill, None)):
        try:
            if end is not None and program.poll() is None:
                end()
            return program.wait(within_s)
        except subprocess.TimeoutExpired:
            continue
    return program.wait()


def _start(
    network: Network, command: HostCommand, addresses: dict[str, str], *, is_last: bool, as_json: bool
) -> subprocess.Popen[Any]:
    """Starts a command at a host. The last command gets standard input."""
    arguments = []
    # `{NAME}` stands for the address of a host.
    for argument in command.arguments:
        for name, address in addresses.items():
            argument = argument.replace(name, address)
        arguments.append(argument)
    return network.start(
        command.host,
        arguments,
        stdin=None if is_last else subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if as_json else None,
        env={**os.environ, "SPARELANE_HOST": command.host, "SPARELANE_ADDRESS": network.address(command.host)},
    )
