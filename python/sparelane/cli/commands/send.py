"""`sparelane send`: sends files to another host."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparelane import _native
from sparelane.cli.commands.stopping import terminated_as_interrupted
from sparelane.cli.commands.wire_options import FirstContact, options_of, telemetry, wire_options
from sparelane.cli.main import Incomplete
from sparelane.terminal.streams import STREAMS
from sparelane.terminal.transfer_line import State, transfer_line
from sparelane.wire import addresses, transfer
from sparelane.wire.controller import Remarks

# The name of standard input at the receiver, unless --name gives another one.
STDIN_NAME = "stdin"


def _standard_input(files: Sequence[str], name: str | None) -> tuple[tuple[str, ...], str | None]:
    """Splits the arguments into files and the name for standard input; `None` if it is not sent.

    Raises:
        UsageError: the arguments contradict each other.
    """
    paths = tuple(file for file in files if file != "-")
    if len(files) - len(paths) > 1:
        raise click.UsageError("the file - (standard input) can be sent once")
    if len(paths) == len(files):
        if name is not None:
            raise click.UsageError("--name is the name of standard input: add the file -")
        return paths, None
    if name is not None and Path(name).name != name:
        raise click.UsageError(f'--name "{name}"; allowed: a file name without folders')
    return paths, name or STDIN_NAME


@click.command("send")
@wire_options("send")
@telemetry
@click.option("--name", help="Name of standard input (-) at the receiver.  [default: stdin]")
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Send only files that match, such as *.log or tree/sub; repeatable.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out files and folders that match, such as build or tree/**/*.o; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="List what would be sent, without a connection.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.argument("to", metavar="HOST[:PORT]")
def command(
    files: tuple[str, ...],
    to: str,
    keys: str,
    trust: tuple[str, ...],
    as_json: bool,
    name: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    **given: Any,
) -> None:
    """Send files and folders to the receiver at HOST, which is an address or an alias of hosts.toml.

    A lost connection is restored, and the transfer continues (--retry). To resume an interrupted transfer, repeat the
    command. Files that the receiver already has, with equal content, count as sent. Files in a folder that cannot be
    sent are reported, and the others are sent.

    The file - is standard input, which is sent as it comes. It cannot be resumed: if the connection is lost, the
    command fails, and the receiver keeps no part of it.

    To mirror a folder, send it with --compare time to a receiver with --force: files of equal size and time count as
    sent, changed ones replace the receiver's, and nothing is deleted there.
    """
    peer = addresses.peer(to)
    options = options_of(given, peer)
    first_contact = FirstContact(keys, trust, given["first_contact"], peer)
    files, stdin = _standard_input(files, name)
    if dry_run:
        if stdin is not None:
            raise click.UsageError("--dry-run cannot list standard input")
        _list(files, include, exclude, as_json=as_json)
        return
    with ExitStack() as stack:
        # A stopped terminal must not stall the transfer.
        stack.enter_context(STREAMS.in_background())
        # Ctrl-C and SIGTERM both close the connection, so that the peer does not wait for a timeout.
        stack.enter_context(terminated_as_interrupted())
        line = stack.enter_context(transfer_line())

        line = stack.enter_context(transfer_line())

        def remark(text: str) -> None:
            line.clear()
            _warn(text)

        remarks = Remarks(remark)
        connection = Connection(remark)

        def show(progress: transfer.Progress) -> None:
            remarks(progress.remarks)
            connection.note(progress)
            state = State(
                progress.bytes,
                # The size of standard input is known at its end.
                progress.total_bytes if stdin is None else None,
                progress.files,
                progress.total_files,
                None,
                progress.current,
                waiting_for(progress),
            )
            line(state, progress.resumed_bytes)

        report = transfer.send(
            files,
            peer.address,
            keys=keys,
            trust=trust,
            peer=peer.fingerprint,
            include=include,
            exclude=exclude,
            options=options,
            progress=show,
            stdin=stdin,
        )
    first_contact.meet(report.peer)
    progress = report.progress
    failed = [item for item in report.items if item.error is not None]
    counts = _counts(report.items)
    STREAMS.saved(f"{counts}")
    # Bytes that the receiver had before do not count for the rate.
    sent = sum(item.bytes - item.resumed_bytes for item in report.items if item.error is None)
    if as_json:
        items = [asdict(item) for item in report.items]
        summary = {
            "items": items,
            "seconds": progress.elapsed_s,
            "sent_bytes": sent,
            "segments_by_class": progress.sent,
            "marks": progress.marks,
            "tail_bps": believed_tail_bps(progress),
            "udp_payload_bytes": progress.udp_payload_bytes,
            "gaps": progress.gaps and asdict(progress.gaps),
            "line_rate_bps": progress.line_rate_bps,
            "line_rate_source": progress.line_rate_source,
        }
        click.echo(json.dumps(summary))
    else:
        lost = [str(at) for at, mark in enumerate(progress.marks) if mark == "changed"]
        if lost:
            click.echo(f"the path changes the DSCP of class {', '.join(lost)}", err=True)
        click.echo(f"{counts}, {progress.elapsed_s:.3f} s{_rate(sent, progress.elapsed_s)}")
        if progress.gaps is not None:
            click.echo(str(progress.gaps))
    _fail([f"{item.name}: {item.error}" for item in failed], len(report.items))


def _fail(failures: Sequence[str], count: int) -> None:
    """Names all failures, and raises `Incomplete` if there are any among `count` items."""
    if len(failures) == 1:
        raise Incomplete(failures[0])
    for failure in failures:
        _warn(failure)
    if failures:
        raise Incomplete(f"{len(failures)} of {count} items were not sent")


def _warn(text: str) -> None:
    click.echo(f"sparelane: {text}", err=True)


class Connection:
    """Reports the loss of the connection, and its restoration."""

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._losses = 0
        self._is_lost = False

    def note(self, progress: transfer.Progress) -> None:
        """Called with the progress now and then."""
        if progress.losses > self._losses:
            self._losses, self._is_lost = progress.losses, True
            self._warn(f"the connection was lost: {progress.last_loss}; connecting again")
        if self._is_lost and not progress.is_lost:
            self._is_lost = False
            self._warn("connected again")


def waiting_for(progress: transfer.Progress) -> str | None:
    """What a transfer without progress waits for, in place of the remaining time; `None` if it advances."""
    if progress.is_lost:
        return "connecting again"
    if progress.silence_s is not None:
        return f"no answer for {progress.silence_s:.0f} s"
    return None


def _counts(items: Sequence[transfer.Item]) -> str:
    """The numbers of files by outcome. Folders count only if they failed."""
    stored = [item for item in items if item.error is None and not item.folder]
    unchanged = sum(item.unchanged for item in stored)
    failed = sum(item.error is not None for item in items)
    rest = f", {failed} failed" if failed else ""
    return f"{len(stored) - unchanged} new, {unchanged} unchanged{rest}"


def _list(files: Sequence[str], include: Sequence[str], exclude: Sequence[str], *, as_json: bool) -> None:
    """Prints what would be sent.

    Raises:
        Incomplete: some of it cannot be sent.
    """
    transfer.check_paths(files)
    items, left_out = _native.list_sources(list(files), list(include), list(exclude))
    sizes = [size for _, size in items if size is not None]
    if as_json:
        listed = [{"name": name, "bytes": size} for name, size in items]
        refused = [{"path": path, "error": reason} for path, reason in left_out]
        click.echo(json.dumps({"items": listed, "left_out": refused, "total_bytes": sum(sizes)}))
    else:
        for name, size in items:
            click.echo(f"{name}/" if size is None else f"{name}: {size:,} bytes")
        noun = "file" if len(sizes) == 1 else "files"
        click.echo(f"{len(sizes)} {noun}, {sum(sizes):,} bytes; nothing was sent")
    _fail([f"{path}: {reason}" for path, reason in left_out], len(items) + len(left_out))


def _rate(sent_bytes: int, elapsed_s: float) -> str:
    """The throughput as text; empty if nothing was sent or the time is too short for a rate."""
    return f", {sent_bytes * 8e-6 / elapsed_s:.0f} Mb/s" if sent_bytes > 0 and elapsed_s >= 1e-3 else ""


def believed_tail_bps(progress: transfer.Progress) -> int | None:
    """The rate of the packet train that set the tail's rate, or `None` if it exceeds the rate of this host's interface.

    A train that was delayed and delivered at once measures such a rate, which is not that of the path.
    """
    is_known = progress.line_rate_source.startswith("interface")
    if progress.tail_bps is None or (is_known and progress.tail_bps > progress.line_rate_bps):
        return None
    return progress.tail_bps
