"""`sparelane kernel`: loads controllers into the running Linux kernel, and watches them."""

from __future__ import annotations

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
from sparelane.terminal import console
from sparelane.terminal.streams import STREAMS

if TYPE_CHECKING:
    from sparelane._native import KernelSample, LoadedController

# Interval at which signals, the command and the controller are checked, seconds.
POLL_S = 0.1

# Signals that are forwarded to the command. SIGINT from Ctrl-C reaches it anyway: it is in the same process group.
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) if sys.platform == "linux" else ()

# A command that still runs this many seconds after a forwarded signal is killed. Otherwise the sender of the signal may
# kill this process first, which would leave routes changed.
KILLED_AFTER_S = 10.0

# Interval at which `watch` prints the state of connections, seconds.
SHOW_EVERY_S = 1.0


class OnLinux(click.Command):
    """A command that needs Linux. Its arguments are parsed first, so that `--help` and usage errors work anywhere."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command.

        Raises:
            Mistake: the system is not Linux.
        """
        if sys.platform != "linux":
            raise Mistake("controllers inside the kernel need Linux")
        return super().invoke(ctx)


class KernelCommands(Group):
    """The commands of this module."""

    command_class = OnLinux


@click.group("kernel", cls=KernelCommands)
def command() -> None:
    """Run controllers inside the running Linux kernel."""


def _pairs(_: click.Context, __: click.Parameter, settings: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise Mistake(f'--set "{setting}"; allowed: KEY=VALUE')
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
    help="Set a parameter; `sparelane kernel list` shows all. Repeatable.",
)
@click.option("--name", help="Register the controller under this name, next to another version of it.")
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="PREFIX",
    help="Use the controller for connections over this route: a prefix, `default` for IPv4 or ::/0 for IPv6.",
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
@click.option(
    "--default", "is_default", is_flag=True, help="Use the controller for connections that do not choose one."
)
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

    The controller stays loaded until `unload`, or until Ctrl-C with --foreground, or until COMMAND ends. Unloading
    restores all routes and interfaces.
    """
    from sparelane.bpf import kernel

    if process and shutil.which(process[0]) is None:
        if Path(process[0]).is_file():
            raise Mistake(f'cannot run "{process[0]}": permission denied')
        raise Mistake(f'there is no command "{process[0]}"')
    # A pinned program stays loaded after this command exits.
    is_pinned = not (foreground or process)
    request = kernel.Load(program, name or program, settings, routes, interfaces, cgroups, is_default, is_pinned)
    with kernel.stop_signals() as stop_signal:
        holding = kernel.load(request)
        remarks, code = holding.warnings(), 0
        if is_pinned:
            holding.keep()
            _remark(remarks)
            click.echo(f"{request.name} is loaded; `sparelane kernel unload {request.name}` removes it")
            return
        # If this command is killed, the routes, interfaces and the default are restored nevertheless.
        with kernel.janitor([sys.executable, "-m", "sparelane", "kernel", "unload", request.name]):
            try:
                _remark(remarks)
                if process:
                    code = _run_command(process, holding, request.name, stop_signal)
                else:
                    _wait(holding, request.name, stop_signal)
            finally:
                remarks = holding.unload()
        _remark(remarks)
    if code:
        raise SystemExit(code)


def _remark(remarks: Iterable[str]) -> None:
    for remark in remarks:
        click.echo(f"sparelane: {remark}", err=True)


def _wait(holding: LoadedController, name: str, stop_signal: Callable[[], signal.Signals | None]) -> None:
    """Waits until a signal asks to stop, or another process has unloaded the controller."""
    click.echo(f"{name} is loaded, until Ctrl-C", err=True)
    while not stop_signal():
        if not holding.is_registered():
            _remark([f"{name} was unloaded by another process"])
            return
        time.sleep(POLL_S)


def _run_command(
    process: Sequence[str], holding: LoadedController, name: str, stop_signal: Callable[[], signal.Signals | None]
) -> int:
    """Runs a command until it ends, and forwards signals to it. Returns its exit code as shells report it."""
    stopped = stop_signal()
    if stopped:
        return 128 + stopped
    try:
        child = subprocess.Popen(process)
    except OSError as error:
        raise Mistake(f'cannot run "{process[0]}": {(error.strerror or str(error)).lower()}') from None
    is_loaded, killed_s = True, None
    while True:
        try:
            code = child.wait(POLL_S)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            pass
        stopped = stop_signal()
        if stopped and stopped in FORWARDED and killed_s is None:
            child.send_signal(stopped)
            killed_s = time.monotonic() + KILLED_AFTER_S
        elif killed_s is not None and time.monotonic() >= killed_s:
            child.kill()
        if is_loaded and not holding.is_registered():
            is_loaded = False
            _remark([f"{name} was unloaded by another process; the command continues without it"])


@command.command("unload")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def unload(names: tuple[str, ...]) -> None:
    """Remove controllers from the kernel, and restore the routes and interfaces that were changed for them."""
    from sparelane.bpf import kernel

    for name in names:
        _remark(kernel.unload(name))
        click.echo(f"{name} is unloaded")


@command.command("list")
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """Show all programs with their settings, and the loaded ones."""
    from sparelane import _native
    from sparelane.bpf import kernel

    programs = _native.linux_programs()
    try:
        loaded = kernel.loaded()
    except _native.LinuxError as error:
        # Without the rights to see loaded programs, the available ones are still listed.
        loaded = []
        click.echo(f"sparelane: cannot see loaded programs: {error}", err=True)
    if as_json:
        keys = ("name", "default", "allowed", "meaning")
        described = [
            {"name": name, "summary": summary, "settings": [dict(zip(keys, row, strict=True)) for row in settings]}
            for name, summary, settings in programs
        ]
        click.echo(json.dumps({"programs": described, "loaded": [asdict(one) for one in loaded]}, indent=2))
        return
    for name, summary, settings in programs:
        headings = ("setting", "default", "allowed", "meaning")
        console.show_table(f"{name}: {summary}", headings, headings, settings)
    rows = []
    for one in loaded:
        # A pinned program has no process; the process of another one may be unknown.
        how = "pinned" if one.is_pinned else f"by process {one.process}" if one.process else "by a process"
        how = how if one.is_registered else "gone; unload restores what was changed"
        ns = sum(ns for ns, _ in one.cost.values())
        calls = sum(calls for _, calls in one.cost.values())
        cost = f"{ns / calls:.0f}" if calls else ""
        rows.append((one.name, one.program or "(not from sparelane)", how, ", ".join(one.changed), cost))
    if rows:
        columns = ("name", "program", "held", "changed", "ns per call")
        console.show_table("loaded", columns, columns[:-1], rows)
    else:
        click.echo("nothing is loaded")


@command.command("doctor")
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Print what this kernel and its settings lack, and the commands that fix it."""
    from sparelane.bpf import kernel

    findings = kernel.examine()
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        headings = ("", "requirement", "state", "remedy")
        rows = [
            ("ok" if one.is_well else "LACKS" if one.is_needed else "-", one.what, one.state, one.remedy)
            for one in findings
        ]
        console.show_table("Linux", headings, headings, rows)
    lacking = [one.what for one in findings if one.is_needed and not one.is_well]
    if lacking:
        raise Incomplete(f"controllers cannot be loaded here: {', '.join(lacking)}")


def _samples_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Checks that the file for samples can be written, before hours of samples are collected."""
    if path is None:
        return None
    if path.suffix not in (".parquet", ".csv"):
        raise Mistake(f'"{path}"; allowed: a name that ends in .parquet or .csv')
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
    help="File for the samples: .parquet or .csv.",
)
def watch(name: str | None, seconds: float | None, output: Path | None) -> None:
    """Show the window, round-trip time, counter and gaps of each connection as they change.

    With -o, all samples are saved in the columns of the simulator's series.
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
    # The last value of each quantity of each connection since the last output.
    latest: dict[int, dict[str, float]] = {}

    def print_latest() -> None:
        nonlocal shown_s
        for connection, quantities in sorted(latest.items()):
            values = ", ".join(f"{quantity} {value:.6g}" for quantity, value in quantities.items())
            click.echo(f"flow {connection}: {values}")
        latest.clear()
        shown_s = time.monotonic()

    def show(samples: Sequence[KernelSample]) -> bool:
        for sample in samples:
            quantities = latest.setdefault(sample[1], {})
            quantities.update(sample[8], cwnd_segments=float(sample[6]))
            if sample[7] is not None:
                quantities["rtt_ms"] = sample[7] / 1e3
        if latest and time.monotonic() - shown_s >= SHOW_EVERY_S:
            print_latest()
        # Without a file, a closed standard output ends the command.
        return output is not None or not STREAMS.is_unread

    # A stalled reader of standard output must not cost samples.
    with STREAMS.in_background():
        samples = kernel.watch(name, seconds, show)
        if output is not None:
            frame = kernel.to_frame(samples)
            writers[output.suffix](frame, output)
            STREAMS.saved(f"{len(samples)} samples are saved in {output}")
            click.echo(f"{len(samples)} samples in {output}", err=True)
        print_latest()
