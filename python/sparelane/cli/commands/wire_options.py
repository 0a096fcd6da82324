"""Options of the commands that communicate with other hosts."""

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
            raise click.BadParameter(f'"{text}" is not a setting; allowed: key=value')
        if key in settings:
            raise click.BadParameter(f'"{key}" is set twice')
        settings[key] = value
    return settings


def _dscp(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f'"{text}" is not a list of numbers such as 0,3,11,19') from None


_OPTIONS = (
    click.option("--keys", required=True, metavar="D", help="Folder of this host's key."),
    click.option("--trust", multiple=True, metavar="FINGERPRINT", help="Also trust this peer; repeatable."),
    click.option(
        "--cc",
        default="rc3",
        show_default=True,
        metavar="NAME",
        shell_complete=completion.controllers,
        help="Congestion controller.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="KEY=VALUE",
        help="Set a parameter of the controller; repeatable.",
    ),
    click.option("--tail-rate", metavar="RATE", help="Highest rate of the tail, such as 100Mbps.  [default: measured]"),
    click.option("--tail-rate-cap", metavar="RATE", help="Upper bound of the measured rate of the tail."),
    click.option(
        "--unmarked",
        type=click.Choice(["none", "scavenger", "ignore"]),
        default="none",
        show_default=True,
        help="Tail if the path clears the DSCP of lower classes: send none, back off when queues grow, or send anyway.",
    ),
    click.option(
        "--mtu",
        type=click.IntRange(1280, 9048),
        help="Largest IP packet, bytes.  [default: 1500, or less if the path carries less]",
    ),
    click.option("--window", metavar="SIZE", help="Largest memory of a flow, such as 32MB."),
    click.option(
        "--dscp",
        default=",".join(map(str, DEFAULT_DSCP)),
        show_default=True,
        callback=_dscp,
        metavar="LIST",
        help="DSCP of each class, highest class first; a single value turns the lower classes off.",
    ),
    click.option(
        "--trust-on-first-contact",
        "first_contact",
        is_flag=True,
        help="If no peer is trusted yet, trust the first one and save its key.",
    ),
    click.option("--line-rate", metavar="RATE", help="Line rate of this host.  [default: the interface's speed]"),
    click.option(
        "--busy-wait", is_flag=True, help="Time RAPID's gaps with a busy loop, which is exact but occupies a core."
    ),
    click.option("--no-offload", is_flag=True, help="Use one system call per datagram."),
    click.option(
        "--gso",
        type=click.Choice(["auto", "require", "off"]),
        default="auto",
        show_default=True,
        help="Send batches (GSO): if kernel and interface support it, or fail if they do not, or never.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line."),
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
    """Adds the options that all these commands share."""
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
        help="Time between samples of --telemetry.",
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
        help="Maximum number of events that --qlog writes.",
    ),
    click.option(
        "--metrics",
        metavar="[ADDR:]PORT",
        help="Serve /metrics for Prometheus at this address; a port alone means localhost.",
    ),
)


def telemetry(command: Command) -> Command:
    """Adds the options for telemetry, qlog and metrics."""
    return with_options(command, _TELEMETRY)


def options_of(given: dict[str, Any]) -> Options:
    """The transfer options from the options of the command line."""
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
    """Trusts the first peer and saves its key, if `--trust-on-first-contact` is set and no peer is trusted yet."""

    def __init__(self, keys: str, trust: tuple[str, ...], asked_for: bool) -> None:
        self._keys = keys
        self._awaits = asked_for and not trust and not _native.show_keys(keys)[1]

    def meet(self, peer: str) -> None:
        """Called when a peer has connected."""
        if self._awaits:
            self._awaits = False
            _native.trust(self._keys, peer, "first contact")
            click.echo(
                f"sparelane: first contact: the peer's key is {peer}, which is trusted from now on; "
                f"compare it with the output of `sparelane keys show` on that host",
                err=True,
            )
