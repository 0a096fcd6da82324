"""`sparelane recv`: files from other hosts."""

from __future__ import annotations

import json
from typing import Any

import click

from sparelane import wire
from sparelane.cli import Incomplete
from sparelane.commands.long_lived import Log, Signals, long_lived
from sparelane.commands.wire_options import IDLE_TIMEOUT, common, options_of


@click.command("recv")
@common
@IDLE_TIMEOUT
@long_lived
@click.option("--listen", required=True, metavar="ADDR:PORT", help="Where to listen; port 0 is any free one.")
@click.option("-o", "--output", "folder", required=True, metavar="FOLDER", help="Where files are put.")
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
    log = Log(log_level)
    signals = Signals(log, grace)
    error: str | None = None
    with wire.Receiver(listen, folder, keys=keys, trust=trust, force=force, options=options_of(given)) as receiver:
        _say(as_json, {"event": "listening", "address": receiver.address})
        is_over = False
        while not is_over and not signals.is_over(receiver):
            for event in receiver.step():
                _say(as_json, event)
                if event.get("error"):
                    error = event["error"]
                    log("warning", f"{event.get('name', event['peer'][:16])}: {error}")
                is_over |= once and event["event"] == "disconnected"
    if once and error is not None:
        raise Incomplete(error)


def _say(as_json: bool, event: dict[str, Any]) -> None:
    if as_json:
        text = json.dumps(event)
    elif event["event"] == "listening":
        text = f"listening at {event['address']}"
    elif event["event"] == "item":
        text = f"{event['name']}: {event['error'] or format(event['bytes'], ',') + ' bytes'}"
    else:
        end = f": {event['error']}" if event.get("error") else ""
        text = f"{event['event']} {event['peer'][:16]}{end}"
    click.echo(text)
