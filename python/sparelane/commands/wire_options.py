"""What the commands that talk to other hosts have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sparelane import _native, completion
from sparelane.commands.options import with_options
from sparelane.wire import DEFAULT_DSCP, Options

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
    click.option("--trust", multiple=True, metavar="FINGERPRINT", help="A peer to trust, beside those of the folder."),
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
    click.option(
        "--tail-rate", metavar="RATE", help="The most that the tail is sent at, such as 100Mbps; measured without."
    ),
    click.option("--tail-rate-cap", metavar="RATE", help="A measured rate of the tail counts as no more."),
    click.option(
        "--unmarked",
        type=click.Choice(["none", "scavenger", "ignore"]),
        default="none",
        show_default=True,
        help="The tail where the path does not keep marks: none, one that yields to queues, or as if they were kept.",
    ),
    click.option(
        "--mtu",
        type=click.IntRange(1280, 9048),
        help="Bytes of the largest IP packet that is sent; 1500 without, and less where the path carries less.",
    ),
    click.option("--window", metavar="SIZE", help="Memory that a flow takes at most, such as 32MB."),
    click.option(
        "--dscp",
        default=",".join(map(str, DEFAULT_DSCP)),
        show_default=True,
        callback=_dscp,
        metavar="LIST",
        help="The code point of each class; a single one has no lower classes.",
    ),
    click.option(
        "--trust-on-first-contact",
        "first_contact",
        is_flag=True,
        help="Where no peer is trusted yet, trust the first one, and remember it.",
    ),
    click.option("--line-rate", metavar="RATE", help="The rate of this host's line; what the interface says without."),
    click.option("--busy-wait", is_flag=True, help="Wait for RAPID's gaps without sleep: exact, and costly."),
    click.option("--no-offload", is_flag=True, help="Send and receive each datagram by itself."),
    click.option(
        "--gso",
        type=click.Choice(["auto", "require", "off"]),
        default="auto",
        show_default=True,
        help="Whether batches are sent: where kernel and interface can, or it is an error if not, or never.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line."),
)


CONNECT_TIMEOUT = click.option(
    "--connect-timeout",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up whom nobody answers.",
)

IDLE_TIMEOUT = click.option(
    "--idle-timeout",
    type=click.FloatRange(1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="A peer of whom nothing comes for so long is gone.",
)

STALL_TIMEOUT = click.option(
    "--stall-timeout",
    type=click.FloatRange(1, 86_400),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="A peer that is there, and does nothing for so long, is cut off.",
)


def common(command: Command) -> Command:
    """Adds the options that all of them have."""
    return with_options(command, _OPTIONS)


_TELEMETRY = (
    click.option(
        "--telemetry",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Time series of all flows, in the simulator's columns, as Parquet.",
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
        help="What all flows do, as qlog.",
    ),
    click.option(
        "--qlog-events",
        type=click.IntRange(1, 1_000_000_000),
        default=1_000_000,
        show_default=True,
        metavar="COUNT",
        help="Events that --qlog writes at most.",
    ),
    click.option(
        "--metrics",
        metavar="[ADDR:]PORT",
        help="Where a Prometheus server finds /metrics; a port alone is for this host only.",
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
