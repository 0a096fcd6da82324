"""`sparelane tunnel`: carries TCP connections between sites."""

from __future__ import annotations

import json
from typing import Any

import click

from sparelane.cli.commands.long_lived import Log, Signals, long_lived
from sparelane.cli.commands.wire_options import FirstContact, options_of, telemetry, wire_options
from sparelane.terminal.streams import STREAMS
from sparelane.wire import addresses, transfer


def _forwards(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    forwards: list[tuple[str, str]] = []
    for text in texts:
        at, equals, target = text.partition("=")
        if not equals or not at or not target:
            raise click.BadParameter(f'"{text}" is not a forward; allowed: ADDR:PORT=HOST:PORT')
        if any(at == other for other, _ in forwards) and not at.endswith(":0"):
            raise click.BadParameter(f'"{at}" is forwarded twice')
        forwards.append((at, target))
    return forwards


@click.command("tunnel")
@wire_options("tunnel")
@telemetry
@long_lived
@click.option(
    "--listen", metavar="[ADDR]:PORT", help="Serve: address to listen on for other sites (UDP); all without ADDR."
)
@click.option("--allow", multiple=True, metavar="HOST:PORT", help="Serve: target that other sites may reach (TCP).")
@click.option(
    "--forward",
    "forwards",
    multiple=True,
    callback=_forwards,
    metavar="ADDR:PORT=HOST:PORT",
    help="Dial: accept TCP connections at ADDR:PORT and carry them to the other site's HOST:PORT.",
)
@click.option(
    "--while-down",
    type=click.Choice(["wait", "refuse"]),
    default="wait",
    show_default=True,
    help="Dial: hold new connections, or refuse them, while the other site is unreachable.",
)
@click.option(
    "--retry-pause",
    type=click.FloatRange(0.2, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Dial: longest pause between attempts to reach the other site.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1, 4096),
    default=256,
    show_default=True,
    help="Maximum number of simultaneous connections.",
)
@click.argument("to", required=False, metavar="[HOST[:PORT]]")
def command(
    to: str | None,
    keys: str,
    trust: tuple[str, ...],
    listen: str | None,
    allow: tuple[str, ...],
    forwards: list[tuple[str, str]],
    while_down: str,
    retry_pause: float,
    max_connections: int,
    as_json: bool,
    log_level: str,
    grace: float,
    **given: Any,
) -> None:
    """Carry TCP connections to the site HOST, an address or an alias, or serve other sites with --listen.

    The serving site connects only to the targets that it lists with --allow. On SIGTERM, open connections finish first;
    a second SIGTERM exits at once. SIGHUP reloads the key and the trusted peers.
    """
    serves = listen is not None
    if serves and (to is not None or forwards):
        raise click.UsageError("--listen serves other sites, HOST and --forward dial one; allowed: one of the two")
    if serves and not allow:
        raise click.UsageError("--listen needs at least one target: add --allow")
    if not serves and (to is None or not forwards or allow):
        raise click.UsageError("allowed: either --listen with --allow, or --forward with HOST")
    log = Log(log_level)
    peer = None if to is None else addresses.peer(to)
    first_contact = FirstContact(keys, trust, given["first_contact"], peer)
    signals = Signals(log, grace)
    options = options_of(given, peer)
    settings = transfer.TunnelOptions(max_connections, while_down == "wait", retry_pause)
    # Names are resolved and ports opened here, so that mistakes end the command before it prints anything.
    if peer is None:
        made = transfer.Tunnel.serve(listen or "", allow, keys=keys, trust=trust, options=options, tunnel=settings)
    else:
        made = transfer.Tunnel.dial(
            peer.address,
            forwards,
            keys=keys,
            trust=trust,
            peer=peer.fingerprint,
            options=options,
            tunnel=settings,
        )
    # A stalled reader of standard output must not stall the connections.
    with STREAMS.in_background(as_json=as_json), made as tunnel:
        if tunnel.metrics_address is not None:
            at = f"metrics at http://{tunnel.metrics_address}/metrics"
            _print(as_json, {"event": "metrics", "address": tunnel.metrics_address}, at)
        if serves:
            _print(as_json, {"event": "listening", "address": tunnel.address}, f"listening at {tunnel.address}")
        for at, (_, target) in zip(tunnel.forwarded, forwards, strict=True):
            _print(as_json, {"event": "forwarding", "address": at, "target": target}, f"forwarding {at} to {target}")
        while not signals.is_over(tunnel):
            if (stranger := tunnel.take_stranger()) is not None:
                log("warning", f"refused an untrusted peer with key {stranger}")
            for event in tunnel.step():
                if event["event"] == "connected":
                    first_contact.meet(event["peer"])
                if as_json:
                    click.echo(json.dumps(event))
                log(*_log_line(event))


def _print(as_json: bool, event: dict[str, Any], text: str) -> None:
    click.echo(json.dumps(event) if as_json else text)


def _log_line(event: dict[str, Any]) -> tuple[str, str]:
    """The log level and the log line of an event."""
    kind = event["event"]
    if kind == "connected":
        return "info", f"connected to {event['peer'][:16]} at {event['address']}"
    if kind == "disconnected":
        return "warning", f"disconnected: {event['error']}"
    if kind == "failed":
        return "warning", f"{event['target']}: {event['error']}"
    if kind == "closed":
        return (
            "debug",
            f"{event['target']}: closed; {event['sent_bytes']} bytes sent, {event['received_bytes']} received",
        )
    return "debug", f"{event['target']}: opened"
