"""`sparelane send`: files to another host."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from sparelane import terminal, wire
from sparelane.cli import Incomplete
from sparelane.commands.wire_options import CONNECT_TIMEOUT, common, options_of


@click.command("send")
@common
@CONNECT_TIMEOUT
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.argument("to", metavar="HOST:PORT")
def command(
    files: tuple[str, ...],
    to: str,
    keys: str,
    trust: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Send files and folders to the receiver at HOST:PORT.

    What is cut off goes on where it stopped when the command is given again.
    """
    options = options_of(given)
    with terminal.progress("sending") as meter:

        def show(progress: wire.Progress) -> None:
            meter(progress.bytes / max(progress.total_bytes, 1))

        report = wire.send(files, to, keys=keys, trust=trust, options=options, progress=show)
    progress = report.progress
    failed = [item for item in report.items if item.error is not None]
    if as_json:
        items = [asdict(item) for item in report.items]
        sent = sum(item.bytes - item.resumed_bytes for item in report.items if item.error is None)
        told = {"items": items, "seconds": progress.elapsed_s, "sent_bytes": sent, "segments_by_class": progress.sent}
        click.echo(json.dumps(told))
    else:
        rate = progress.bytes * 8e-6 / max(progress.elapsed_s, 1e-9)
        count = len(report.items)
        click.echo(f"{count - len(failed)} of {count} sent, {progress.elapsed_s:.3f} s, {rate:.0f} Mb/s")
    if failed:
        first = failed[0]
        others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise Incomplete(f"{first.name}: {first.error}{others}")
