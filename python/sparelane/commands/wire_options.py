"""What the commands that talk to other hosts have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

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
    click.option("--cc", default="rc3", show_default=True, metavar="NAME", help="The congestion controller."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="KEY=VALUE",
        help="A parameter of the controller.",
    ),
    click.option("--tail-rate", metavar="RATE", help="The most that the tail is sent at, such as 100Mbps."),
    click.option("--window", metavar="SIZE", help="Memory that a flow takes at most, such as 32MB."),
    click.option(
        "--dscp",
        default=",".join(map(str, DEFAULT_DSCP)),
        show_default=True,
        callback=_dscp,
        metavar="LIST",
        help="The code point of each class; a single one has no lower classes.",
    ),
    click.option("--no-offload", is_flag=True, help="Send and receive each datagram by itself."),
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


def common(command: Command) -> Command:
    """Adds the options that all of them have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_of(given: dict[str, Any]) -> Options:
    """The options from what the command line gave."""
    return Options(
        controller=given["cc"],
        settings=given["settings"],
        tail_rate=given["tail_rate"],
        window=given["window"],
        dscp=given["dscp"],
        offload=not given["no_offload"],
        connect_timeout_s=given.get("connect_timeout", 10.0),
        idle_timeout_s=given.get("idle_timeout", 30.0),
    )
