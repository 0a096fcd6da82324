"""What the commands that talk to other hosts have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sparelane import _native
from sparelane.cli import completion
from sparelane.cli.commands.options import with_options
from sparelane.wire.transfer import DEFAULT_DSCP, Options

Command = TypeVar("Command", bound=Callable[..., Any])


def _settings(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f'"{text}" is no setting: key=value is one')
        if key in settings:
            raise click.BadParameter(f'"{key}" is set twice')
        settings[key] = value
    return settings


def _dscp(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f'"{text}" is no list of numbers such as 0,3,11,19') from None


_OPTIONS = (
    click.option("--keys", required=True, metavar="D", help="The folder of this host's key."),
    click.option("--trust", multiple=True, metavar="FINGERPRINT", help="Trust this peer, too; repeatable."),
    click.option(
        "--cc",
        default="rc3",
        show_default=True,
        metavar="NAME",
        shell_complete=completion.controllers,
        help="The congestion controller.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="KEY=VALUE",
        help="A parameter of the controller.",
    ),
    click.option("--tail-rate", metavar="RATE", help="Highest rate of the tail, such as 100Mbps.  [default: measured]"),
    click.option("--tail-rate-cap", metavar="RATE", help="Upper bound of the measured rate of the tail."),
    click.option(
        "--unmarked",
        type=click.Choice(["none", "scavenger", "ignore"]),
        default="none",
        show_default=True,
        help="The tail if the path clears the marks of classes: send none, yield to queues, or send it anyway.",
    ),
    click.option(
        "--mtu",
        type=click.IntRange(1280, 9048),
        help="Largest IP packet, bytes.  [default: 1500, or less if the path carries less]",
    ),
    click.option("--window", metavar="SIZE", help="Most memory that a flow uses, such as 32MB."),
    click.option(
        "--dscp",
        default=",".join(map(str, DEFAULT_DSCP)),
        show_default=True,
        callback=_dscp,
        metavar="LIST",
        help="DSCP of each class, the highest first; a single value turns the lower classes off.",
    ),
    click.option(
        "--trust-on-first-contact",
        "first_contact",
        is_flag=True,
        help="If no peer is trusted yet, trust the first one and remember it.",
    ),
    click.option("--line-rate", metavar="RATE", help="Rate of this host's line.  [default: the interface's]"),
    click.option(
        "--busy-wait", is_flag=True, help="Wait for RAPID's gaps in a busy loop: exact, but it occupies a core."
    ),
    click.option("--no-offload", is_flag=True, help="Send and receive each datagram with a system call of its own."),
    click.option(
        "--gso",
        type=click.Choice(["auto", "require", "off"]),
        default="auto",
        show_default=True,
        help="Send batches: if kernel and interface can, or fail if they cannot, or never.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line."),
)


CONNECT_TIMEOUT = click.option(
    "--connect-timeout",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up after this many seconds without an answer.",
)

IDLE_TIMEOUT = click.option(
    "--idle-timeout",
    type=click.FloatRange(1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Disconnect a peer after this many seconds of silence.",
)

STALL_TIMEOUT = click.option(
    "--stall-timeout",
    type=click.FloatRange(1, 86_400),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Disconnect a peer that makes no progress for this many seconds.",
)


def common(command: Command) -> Command:
    """Adds the options that all of them have."""
    return with_options(command, _OPTIONS)


_TELEMETRY = (
    click.option(
        "--telemetry",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write time series of all flows as Parquet, with the simulator's columns.",
    ),
    click.option(
        "--sample-interval",
        type=click.FloatRange(1e-4, 3600),
        default=0.01,
        show_default=True,
        metavar="SECONDS",
        help="The time between samples of --telemetry.",
    ),
    click.option(
        "--qlog",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the events of all flows as qlog.",
    ),
    click.option(
        "--qlog-events",
        type=click.IntRange(1, 1_000_000_000),
        default=1_000_000,
        show_default=True,
        metavar="COUNT",
        help="Most events that --qlog writes.",
    ),
    click.option(
        "--metrics",
        metavar="[ADDR:]PORT",
        help="Serve /metrics for Prometheus here; a port alone serves this host only.",
    ),
)


def telemetry(command: Command) -> Command:
    """Adds the options of commands that tell of themselves."""
    return with_options(command, _TELEMETRY)


def options_of(given: dict[str, Any]) -> Options:
    """The options from what the command line gave."""
    return Options(
        controller=given["cc"],
        settings=given["settings"],
        tail_rate=given["tail_rate"],
        tail_rate_cap=given["tail_rate_cap"],
        unmarked=given["unmarked"],
        mtu=given["mtu"],
        window=given["window"],
        dscp=given["dscp"],
        busy_wait=given["busy_wait"],
        line_rate=given["line_rate"],
        offload=not given["no_offload"],
        gso=given["gso"],
        connect_timeout_s=given.get("connect_timeout", 10.0),
        idle_timeout_s=given.get("idle_timeout", 30.0),
        stall_timeout_s=given.get("stall_timeout", 300.0),
        first_contact=given["first_contact"],
        telemetry=given.get("telemetry"),
        sample_interval_s=given.get("sample_interval", 0.01),
        qlog=given.get("qlog"),
        qlog_events=given.get("qlog_events", 1_000_000),
        metrics=given.get("metrics"),
    )


class FirstContact:
    """Remembers the peer that is met first, where that is asked for and nobody is trusted yet."""

    def __init__(self, keys: str, trust: tuple[str, ...], asked_for: bool) -> None:
        self._keys = keys
        self._awaits = asked_for and not trust and not _native.show_keys(keys)[1]

    def meet(self, peer: str) -> None:
        """A peer is there."""
        if self._awaits:
            self._awaits = False
            _native.trust(self._keys, peer, "first contact")
            click.echo(
                f"sparelane: first contact: the peer's key is {peer}, which is trusted from now on; "
                f"compare it with what `sparelane keys show` prints there",
                err=True,
            )
