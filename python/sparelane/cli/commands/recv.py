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

from sparelane.cli.commands.long_lived import Log, Signals, long_lived
from sparelane.cli.commands.wire_options import IDLE_TIMEOUT, STALL_TIMEOUT, FirstContact, common, options_of, telemetry
from sparelane.cli.main import Incomplete
from sparelane.terminal.streams import STREAMS
from sparelane.wire import transfer as wire


class Once:
    """The state of the first transfer, and of others that run at the same time.

    Two ends of a connection are not the end of a transfer: a peer that offered no file has measured the path, and a
    connection that its peer has replaced goes on in the new one.
    """

    def __init__(self) -> None:
        self.is_over = False
        # By peer: what went wrong with it, as long as it has not come again.
        self.errors: dict[str, str] = {}

    def note(self, event: dict[str, Any]) -> None:
        """Something has happened."""
        if event.get("error"):
            self.errors[event["peer"]] = event["error"]
        if event["event"] == "disconnected":
            if event["replaced"] or not event["offered"]:
                self.errors.pop(event["peer"], None)
            else:
                self.is_over = True


@click.command("recv")
@common
@telemetry
@IDLE_TIMEOUT
@STALL_TIMEOUT
@long_lived
@click.option("--listen", required=True, metavar="ADDR:PORT", help="Address to listen on; port 0 takes any free one.")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="FOLDER",
    help="Folder for the files, created if its parent exists; with --once, - is standard output, after the check.",
)
@click.option("--once", is_flag=True, help="Exit after the first transfer and those that run beside it.")
@click.option("--force", is_flag=True, help="Replace existing files.")
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
    once_over = Once()
    # Only a receiver that ends keeps names: those for standard output.
    stored: list[str] = []
    with ExitStack() as background, ExitStack() as stack:
        # A reader who stalls must not stall the peers.
        background.enter_context(STREAMS.in_background(as_json=as_json))
        into = stack.enter_context(TemporaryDirectory(prefix="sparelane-")) if to_output else folder
        options = options_of(given)
        made = wire.Receiver(listen, into, keys=keys, trust=trust, force=force, options=options)
        receiver = stack.enter_context(made)
        listening = {"event": "listening", "address": receiver.address}
        if receiver.metrics_address is not None:
            listening["metrics"] = receiver.metrics_address
            log("info", f"metrics at http://{receiver.metrics_address}/metrics")
        _say(as_json, to_output, listening)
        while not (once_over.is_over and receiver.running == 0) and not signals.is_over(receiver):
            if (stranger := receiver.take_stranger()) is not None:
                log("warning", f"a stranger was refused, whose key is {stranger}")
            for event in receiver.step():
                _say(as_json, to_output, event)
                if event["event"] == "connected":
                    first_contact.meet(event["peer"])
                if event.get("error"):
                    log("warning", f"{event.get('name', event['peer'][:16])}: {event['error']}")
                if to_output and event["event"] == "item" and event["error"] is None:
                    stored.append(event["name"])
                if once:
                    once_over.note(event)
                    if once_over.is_over:
                        receiver.stop()
        if to_output:
            receiver.close()
            # The files themselves go out whole, however long their reader takes. No peer waits for it any more.
            background.close()
            for name in stored:
                _put_out(Path(into, name))
    if once_over.errors:
        raise Incomplete(next(iter(once_over.errors.values())))


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
