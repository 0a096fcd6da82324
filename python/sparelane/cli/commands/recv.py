"""`sparelane recv`: receives files from other hosts."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import click

from sparelane.cli.commands.long_lived import Log, Signals, long_lived
from sparelane.cli.commands.wire_options import FirstContact, options_of, telemetry, wire_options
from sparelane.cli.main import Incomplete
from sparelane.terminal.streams import STREAMS
from sparelane.wire import addresses, transfer


class Once:
    """Decides when `--once` is satisfied: after the first transfer, and others that run at the same time.

    A disconnect does not end a transfer in two cases. A peer that offered no file only measured the path, and a
    connection that its peer replaced continues as the new connection.
    """

    def __init__(self) -> None:
        self.is_over = False
        # The last error of each peer; reconnecting clears it.
        self.errors: dict[str, str] = {}

    def note(self, event: dict[str, Any]) -> None:
        """Takes an event of the receiver into account."""
        if event.get("error"):
            self.errors[event["peer"]] = event["error"]
        if event["event"] == "disconnected":
            if event["replaced"] or not event["offered"]:
                self.errors.pop(event["peer"], None)
            else:
                self.is_over = True


def _mode(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    if not 1 <= len(text) <= 4 or any(digit not in "01234567" for digit in text) or int(text, 8) > 0o777:
        raise click.BadParameter(f'"{text}" is not an octal mode; allowed: 0 to 777, such as 640')
    return int(text, 8)


@click.command("recv")
@wire_options("recv")
@telemetry
@long_lived
@click.option(
    "--listen",
    default=f":{addresses.DEFAULT_PORT}",
    show_default=True,
    metavar="[ADDR]:PORT",
    help="Address to listen on; all without ADDR. Port 0 takes any free one.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    metavar="FOLDER",
    help="Folder for the files, created if its parent exists; with --once, - writes them to standard output.",
)
@click.option("--once", is_flag=True, help="Exit after the first transfer, and others running at that time.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--chmod",
    "file_mode",
    metavar="MODE",
    callback=_mode,
    help="Permissions of all files, such as 640.  [default: the sender's, without the bits of the umask]",
)
def command(
    keys: str,
    trust: tuple[str, ...],
    listen: str,
    folder: str,
    once: bool,
    force: bool,
    file_mode: int | None,
    as_json: bool,
    log_level: str,
    grace: float,
    **given: Any,
) -> None:
    """Receive files from trusted hosts.

    A file gets its final name after all of it has arrived and its checksum is correct. On SIGTERM, running transfers
    finish first; a second SIGTERM exits at once. SIGHUP reloads the key and the trusted peers.

    With -o - --once, the files of a transfer are written to standard output one after another, as they arrive.
    """
    to_output = folder == "-"
    if to_output and not once:
        raise click.UsageError("-o - writes a single transfer: add --once")
    log = Log(log_level)
    signals = Signals(log, grace)
    first_contact = FirstContact(keys, trust, given["first_contact"])
    once_over = Once()
    with ExitStack() as stack:
        # A stalled reader of standard output must not stall the peers.
        stack.enter_context(STREAMS.in_background(as_json=as_json))
        into = None if to_output else folder
        options = options_of(given)
        made = transfer.Receiver(
            listen, into, keys=keys, trust=trust, force=force, file_mode=file_mode, options=options
        )
        receiver = stack.enter_context(made)
        listening = {"event": "listening", "address": receiver.address}
        if receiver.metrics_address is not None:
            listening["metrics"] = receiver.metrics_address
            log("info", f"metrics at http://{receiver.metrics_address}/metrics")
        _print_event(as_json, to_output, listening)
        while not (once_over.is_over and receiver.running == 0) and not signals.is_over(receiver):
            if (stranger := receiver.take_stranger()) is not None:
                log("warning", f"refused an untrusted peer with key {stranger}")
            for event in receiver.step():
                _print_event(as_json, to_output, event)
                if event["event"] == "connected":
                    first_contact.meet(event["peer"])
                if event.get("error"):
                    log("warning", f"{event.get('name', event['peer'][:16])}: {event['error']}")
                if once:
                    once_over.note(event)
                    if once_over.is_over:
                        receiver.stop()
    if once_over.errors:
        raise Incomplete(next(iter(once_over.errors.values())))


def _print_event(as_json: bool, to_output: bool, event: dict[str, Any]) -> None:
    if as_json:
        text = json.dumps(event)
    elif event["event"] == "listening":
        text = f"listening at {event['address']}"
    elif event["event"] == "item":
        text = f"{event['name']}: {event['error'] or format(event['bytes'], ',') + ' bytes'}"
    elif event["event"] == "cleaned":
        text = f"{len(event['names'])} old incomplete files were removed, {event['bytes']:,} bytes"
    else:
        end = f": {event['error']}" if event.get("error") else ""
        text = f"{event['event']} {event['peer'][:16]}{end}"
    click.echo(text, err=to_output)
