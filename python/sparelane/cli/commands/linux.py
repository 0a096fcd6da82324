"""`sparelane linux`: controllers inside the Linux kernel."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparelane.cli.commands.help import Group
from sparelane.cli.main import Incomplete, Mistake
from sparelane.terminal import console as terminal
from sparelane.terminal.streams import STREAMS

if TYPE_CHECKING:
    from sparelane._native import KernelSample, LoadedController

# Commands of this group that are modules of their own.
MODULES = {"build": "sparelane.cli.commands.linux_build"}

# How long between two looks at signals, the command and the controller, seconds.
LOOK_EVERY_S = 0.1

# Signals that are passed on to the command. That of Ctrl-C reaches it anyway, and what it does about it is its own
# affair: it may be a shell.
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) if sys.platform == "linux" else ()

# A command that goes on for so long after such a signal is killed, seconds: whoever sent it may kill this process next,
# which would leave routes changed.
KILLED_AFTER_S = 10.0

# How often `watch` shows where connections stand, seconds.
SHOW_EVERY_S = 1.0


class OnLinux(click.Command):
    """A command that needs Linux. Its arguments are parsed first, so that `--help` and usage errors work anywhere."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command.

        Raises:
            Mistake: this is another system.
        """
        if sys.platform != "linux":
            raise Mistake("controllers inside the kernel need Linux")
        return super().invoke(ctx)


class LinuxCommands(Group):
    """The commands of this file, and those of the modules that are there."""

    command_class = OnLinux

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them."""
        there = [name for name, module in MODULES.items() if importlib.util.find_spec(module)]
        return [*super().list_commands(ctx), *there]

    def load(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded."""
        module = MODULES.get(cmd_name)
        if module is None or not importlib.util.find_spec(module):
            return super().load(ctx, cmd_name)
        command = importlib.import_module(module).command
        return command if isinstance(command, click.Command) else None


@click.group("linux", cls=LinuxCommands)
def command() -> None:
    """Run controllers inside the Linux kernel."""


def _pairs(_: click.Context, __: click.Parameter, settings: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise Mistake(f'--set "{setting}": allowed is KEY=VALUE')
        pairs.append((key, text))
    return pairs


@command.command("load", context_settings={"ignore_unknown_options": False})
@click.argument("program")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="Set a parameter; `sparelane linux list` shows all. Repeatable.",
)
@click.option("--name", help="Register the controller under this name, beside another version of it.")
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="PREFIX",
    help="Use the controller for connections over this route; `default` is IPv4's, ::/0 IPv6's.",
)
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    metavar="DEV",
    help="Prepare this interface for the controller; repeatable.",
)
@click.option(
    "--cgroup",
    "cgroups",
    multiple=True,
    metavar="PATH",
    help="Use the controller for connections of this cgroup; repeatable.",
)
@click.option("--default", "is_default", is_flag=True, help="Use the controller for connections that request none.")
@click.option("--foreground", is_flag=True, help="Unload the program when this command exits.")
@click.argument("process", nargs=-1, metavar="[-- COMMAND...]")
def load(
    program: str,
    settings: list[tuple[str, str]],
    name: str | None,
    routes: tuple[str, ...],
    interfaces: tuple[str, ...],
    cgroups: tuple[str, ...],
    is_default: bool,
    foreground: bool,
    process: tuple[str, ...],
) -> None:
    """Load the controller PROGRAM into the kernel.

    It stays until `unload`; with --foreground until Ctrl-C, and with a COMMAND until that ends. Everything that was
    changed on a route or interface is then as it was.
    """
    from sparelane.bpf import kernel

    if process and shutil.which(process[0]) is None:
        if Path(process[0]).is_file():
            raise Mistake(f'cannot run "{process[0]}": permission denied')
        raise Mistake(f'there is no command "{process[0]}"')
    is_pinned = not (foreground or process)
    asked = kernel.Load(program, name or program, settings, routes, interfaces, cgroups, is_default, is_pinned)
    with kernel.stops() as asked_to_stop:
        holding = kernel.load(asked)
        remarks, code = holding.warnings(), 0
        if is_pinned:
            holding.keep()
            _remark(remarks)
            click.echo(f"{asked.name} is loaded; `sparelane linux unload {asked.name}` removes it")
            return
        try:
            _remark(remarks)
            if process:
                code = _accompany(process, holding, asked.name, asked_to_stop)
            else:
                _stay(holding, asked.name, asked_to_stop)
        finally:
            remarks = holding.unload()
        _remark(remarks)
    if code:
        raise SystemExit(code)


def _remark(remarks: Iterable[str]) -> None:
    for remark in remarks:
        click.echo(f"sparelane: {remark}", err=True)


def _stay(holding: LoadedController, name: str, asked_to_stop: Callable[[], signal.Signals | None]) -> None:
    """Waits until a signal asks to stop, or another process has unloaded the controller."""
    click.echo(f"{name} is loaded, until Ctrl-C", err=True)
    while not asked_to_stop():
        if not holding.is_registered():
            _remark([f"{name} was unloaded by another process"])
            return
        time.sleep(LOOK_EVERY_S)


def _accompany(
    process: Sequence[str], holding: LoadedController, name: str, asked_to_stop: Callable[[], signal.Signals | None]
) -> int:
    """Runs a command to its end, to which signals bring it, and returns its exit code, as shells have it."""
    stopped = asked_to_stop()
    if stopped:
        return 128 + stopped
    try:
        child = subprocess.Popen(process)
    except OSError as error:
        raise Mistake(f'cannot run "{process[0]}": {(error.strerror or str(error)).lower()}') from None
    is_there, killed_s = True, None
    while True:
        try:
            code = child.wait(LOOK_EVERY_S)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            pass
        stopped = asked_to_stop()
        if stopped and stopped in PASSED_ON and killed_s is None:
            child.send_signal(stopped)
            killed_s = time.monotonic() + KILLED_AFTER_S
        elif killed_s is not None and time.monotonic() >= killed_s:
            child.kill()
        if is_there and not holding.is_registered():
            is_there = False
            _remark([f"{name} was unloaded by another process; the command goes on without it"])


@command.command("unload")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def unload(names: tuple[str, ...]) -> None:
    """Remove controllers from the kernel, and put back what was changed for them."""
    from sparelane.bpf import kernel

    for name in names:
        _remark(kernel.unload(name))
        click.echo(f"{name} is unloaded")


@command.command("list")
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """Show the programs that there are, their settings, and what is loaded."""
    from sparelane import _native
    from sparelane.bpf import kernel

    programs = _native.linux_programs()
    try:
        loaded = kernel.loaded()
    except _native.LinuxError as error:
        # Programs can be listed without the rights to see which are loaded.
        loaded = []
        click.echo(f"sparelane: what is loaded cannot be seen: {error}", err=True)
    if as_json:
        keys = ("name", "default", "allowed", "meaning")
        told = [
            {"name": name, "summary": summary, "settings": [dict(zip(keys, row, strict=True)) for row in settings]}
            for name, summary, settings in programs
        ]
        click.echo(json.dumps({"programs": told, "loaded": [asdict(one) for one in loaded]}, indent=2))
        return
    for name, summary, settings in programs:
        headings = ("setting", "default", "allowed", "meaning")
        terminal.show_table(f"{name}: {summary}", headings, headings, settings)
    rows = []
    for one in loaded:
        how = "pinned" if one.is_pinned else f"by process {one.process}" if one.process else "by a process"
        how = how if one.is_registered else "gone; unload puts back what was changed"
        ns = sum(ns for ns, _ in one.cost.values())
        calls = sum(calls for _, calls in one.cost.values())
        cost = f"{ns / calls:.0f}" if calls else ""
        rows.append((one.name, one.program or "of somebody else", how, ", ".join(one.changed), cost))
    if rows:
        columns = ("name", "program", "held", "changed", "ns a call")
        terminal.show_table("loaded", columns, columns[:-1], rows)
    else:
        click.echo("nothing is loaded")


@command.command("doctor")
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what this kernel and its settings lack, and the command that mends it."""
    from sparelane.bpf import kernel

    findings = kernel.examine()
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        headings = ("", "what", "how it is", "what mends it")
        rows = [
            ("ok" if one.is_well else "LACKS" if one.is_needed else "-", one.what, one.state, one.remedy)
            for one in findings
        ]
        terminal.show_table("Linux", headings, headings, rows)
    lacking = [one.what for one in findings if one.is_needed and not one.is_well]
    if lacking:
        raise Incomplete(f"controllers cannot be loaded here: {', '.join(lacking)}")


def _samples_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """The file for samples, tried before hours of them are gathered."""
    if path is None:
        return None
    if path.suffix not in (".parquet", ".csv"):
        raise Mistake(f'"{path}": allowed is a name that ends in .parquet or .csv')
    from sparelane.common import folders

    return folders.ready_file(path)


@command.command("watch")
@click.argument("name", required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Stop after this many seconds.  [default: at Ctrl-C]",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    callback=_samples_file,
    help="Save the samples: .parquet or .csv.",
)
def watch(name: str | None, seconds: float | None, output: Path | None) -> None:
    """Show each connection's window, round trip, counter and gaps as they change.

    With -o, everything is saved in the columns of the simulator's series.
    """
    from sparelane.bpf import kernel
    from sparelane.common import frames

    writers = {".parquet": frames.write_parquet, ".csv": frames.write_csv}
    if name is None:
        ours = [one.name for one in kernel.loaded() if one.program and one.is_registered]
        if len(ours) != 1:
            raise Mistake(f"name the controller to watch; loaded: {', '.join(ours) or 'none'}")
        name = ours[0]
    shown_s = time.monotonic()
    latest: dict[int, dict[str, float]] = {}

    def tell() -> None:
        nonlocal shown_s
        for connection, quantities in sorted(latest.items()):
            told = ", ".join(f"{quantity} {value:.6g}" for quantity, value in quantities.items())
            click.echo(f"flow {connection}: {told}")
        latest.clear()
        shown_s = time.monotonic()

    def show(samples: Sequence[KernelSample]) -> bool:
        for sample in samples:
            quantities = latest.setdefault(sample[1], {})
            quantities.update(sample[8], cwnd_segments=float(sample[6]))
            if sample[7] is not None:
                quantities["rtt_ms"] = sample[7] / 1e3
        if latest and time.monotonic() - shown_s >= SHOW_EVERY_S:
            tell()
        return output is not None or not STREAMS.is_unread

    # A reader who stalls must not cost samples.
    with STREAMS.in_background():
        samples = kernel.watch(name, seconds, show)
        if output is not None:
            frame = kernel.to_frame(samples)
            writers[output.suffix](frame, output)
            STREAMS.saved(f"{len(samples)} samples are saved in {output}")
            click.echo(f"{len(samples)} samples in {output}", err=True)
        tell()
