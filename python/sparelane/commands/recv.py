"""`sparelane recv`: files from other hosts."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from sparelane import wire
from sparelane.cli import Incomplete
from sparelane.commands.long_lived import Log, Signals, long_lived
from sparelane.commands.wire_options import IDLE_TIMEOUT, FirstContact, common, options_of, telemetry


@click.command("recv")
@common
@telemetry
@IDLE_TIMEOUT
@long_lived
@click.option("--listen", required=True, metavar="ADDR:PORT", help="Where to listen; port 0 is any free one.")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="FOLDER",
    help="Where files are put; - is standard output, with --once, once a file is whole and right.",
)
@click.option("--once", is_flag=True, help="End after the first transfer.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def command(
    keys: str,
    trust: tuple[str, ...],
    listen: str,
    folder: str,
    once: bool,
    force: bool,
    as_json: bool,
    log_level: str,
    grace: float,
    **given: Any,
) -> None:
    """Receive files from trusted hosts.

    A file has its name only when all of it is here, and right. SIGTERM finishes the transfers that run, a second one
    ends at once, and SIGHUP reads the key and the trusted peers anew.
    """
    to_output = folder == "-"
    if to_output and not once:
        raise click.UsageError("-o - is for one transfer: --once is missing")
    log = Log(log_level)
    signals = Signals(log, grace)
    first_contact = FirstContact(keys, trust, given["first_contact"])
    error: str | None = None
    stored: list[str] = []
    with ExitStack() as stack:
        into = stack.enter_context(TemporaryDirectory(prefix="sparelane-")) if to_output else folder
        options = options_of(given)
        made = wire.Receiver(listen, into, keys=keys, trust=trust, force=force, options=options)
        receiver = stack.enter_context(made)
        listening = {"event": "listening", "address": receiver.address}
        if receiver.metrics_address is not None:
            listening["metrics"] = receiver.metrics_address
            log("info", f"metrics at http://{receiver.metrics_address}/metrics")
        _say(as_json, to_output, listening)
        is_over = False
        while not is_over and not signals.is_over(receiver):
            if (stranger := receiver.take_stranger()) is not None:
                log("warning", f"a stranger was refused, whose key is {stranger}")
            for event in receiver.step():
                _say(as_json, to_output, event)
                if event["event"] == "connected":
                    first_contact.meet(event["peer"])
                if event["event"] == "item" and event["error"] is None:
                    stored.append(event["name"])
                if event.get("error"):
                    error = event["error"]
                    log("warning", f"{event.get('name', event['peer'][:16])}: {error}")
                is_over |= once and event["event"] == "disconnected"
        # The sender does not wait for whoever reads this.
        if to_output:
            receiver.close()
            for name in stored:
                _put_out(Path(into, name))
    if once and error is not None:
        raise Incomplete(error)


def _put_out(path: Path) -> None:
    """Writes a file to standard output; of a folder there is nothing to write."""
    if path.is_file():
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


def _say(as_json: bool, to_output: bool, event: dict[str, Any]) -> None:
    if as_json:
        text = json.dumps(event)
    elif event["event"] == "listening":
        text = f"listening at {event['address']}"
    elif event["event"] == "item":
        text = f"{event['name']}: {event['error'] or format(event['bytes'], ',') + ' bytes'}"
    else:
        end = f": {event['error']}" if event.get("error") else ""
        text = f"{event['event']} {event['peer'][:16]}{end}"
    click.echo(text, err=to_output)
