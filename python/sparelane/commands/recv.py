"""`sparelane recv`: files from other hosts."""

from __future__ import annotations

import json
import signal
from types import FrameType
from typing import Any

import click

from sparelane import _native, wire
from sparelane.cli import Incomplete
from sparelane.commands.wire_options import common, options_of


@click.command("recv")
@common
@click.option("--listen", required=True, metavar="ADDR:PORT", help="Where to listen; port 0 is any free one.")
@click.option("-o", "--output", "folder", required=True, metavar="FOLDER", help="Where files are put.")
@click.option("--once", is_flag=True, help="End after the first transfer.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def command(
    keys: str, trust: tuple[str, ...], listen: str, folder: str, once: bool, force: bool, as_json: bool, **given: Any
) -> None:
    """Receive files from trusted hosts.

    A file has its name only when all of it is here, and right. SIGTERM ends the command; SIGHUP reads the trusted
    peers anew.
    """
    wanted: set[int] = set()

    def note(number: int, _: FrameType | None) -> None:
        wanted.add(number)

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGHUP, note)
    error: str | None = None
    with wire.Receiver(listen, folder, keys=keys, trust=trust, force=force, options=options_of(given)) as receiver:
        _say(as_json, {"event": "listening", "address": receiver.address})
        is_over = False
        while not is_over and signal.SIGTERM not in wanted:
            if signal.SIGHUP in wanted:
                wanted.discard(signal.SIGHUP)
                receiver.set_trusted([*_native.show_keys(keys)[1], *trust])
            for event in receiver.step():
                _say(as_json, event)
                error = event.get("error") or error
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
