"""Options of the commands that communicate with other hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sparelane import _native
from sparelane.cli import completion
from sparelane.cli.commands.options import Decorator, with_options
from sparelane.wire.addresses import Peer, keys_folder
from sparelane.wire.settings import SETTINGS, Setting
from sparelane.wire.transfer import Options

Command = TypeVar("Command", bound=Callable[..., Any])


class KeysOption(click.Option):
    """`--keys`. The former name `--dir` still works but is not listed."""

    def __init__(self, *names: str, **extra: Any) -> None:
        super().__init__(["keys", "--keys", "--dir"], **extra)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The line of the help text."""
        record = super().get_help_record(ctx)
        return record and (record[0].replace(", --dir", ""), record[1])


def keys_option(text: str) -> Decorator:
    """Returns the option for the folder of keys, by default that of the user's configuration."""
    return click.option(
        "--keys",
        cls=KeysOption,
        metavar="FOLDER",
        default=lambda: str(keys_folder()),
        help=f"{text}  [default: ~/.config/sparelane/keys]",
    )


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


def _numbers(_: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f'"{text}" is not a list of numbers such as {parameter.default}') from None


def _declared(setting: Setting) -> Decorator:
    """Returns the option of a declared setting."""
    kind: dict[str, Any] = {}
    if setting.kind == "flag":
        # The option reverses the default.
        kind = {"is_flag": True, "callback": lambda _, __, is_given: is_given is not setting.default}
    elif setting.kind == "choice":
        kind = {"type": click.Choice(setting.choices)}
    elif setting.bounds is not None:
        # Whole bounds print without a fraction.
        least, most = (int(bound) if bound == int(bound) else bound for bound in setting.bounds)
        if setting.kind == "whole":
            kind = {"type": click.IntRange(int(least), int(most))}
        else:
            kind = {"type": click.FloatRange(least, most)}
        kind["metavar"] = setting.unit.upper()
    else:
        kind = {"metavar": setting.unit.upper()}
    if setting.kind == "numbers":
        kind["callback"] = _numbers
    text = setting.meaning
    if setting.unset is not None:
        text += f"  [default: {setting.unset}]"
    elif setting.kind != "flag":
        default = setting.default if setting.bounds is not None else setting.default_text
        kind |= {"default": default, "show_default": True}
    return click.option(setting.name, setting.option, help=text, **kind)


_KEYS = (
    keys_option("Folder of this host's key and its trusted peers."),
    click.option("--trust", multiple=True, metavar="FINGERPRINT", help="Also trust this peer; repeatable."),
    click.option(
        "--cc",
        metavar="NAME",
        shell_complete=completion.controllers,
        help="Congestion controller.  [default: that of the alias, or rc3]",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="KEY=VALUE",
        help="Set a parameter of the controller; repeatable.",
    ),
)

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")


def wire_options(name: str) -> Callable[[Command], Command]:
    """Adds the options of the wire that the command of this name has: keys, controller and declared settings."""

    def add(command: Command) -> Command:
        declared = [_declared(setting) for setting in SETTINGS if name in setting.commands]
        return with_options(command, (*_KEYS, *declared, _JSON))

    return add


_TELEMETRY = (
    click.option(
        "--telemetry",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write time series of all flows as Parquet, with the simulator's columns.",
    ),
    click.option(
        "--qlog",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the events of all flows as qlog.",
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


def options_of(given: dict[str, Any], peer: Peer | None = None) -> Options:
    """The transfer options from the options of the command line. Settings that the command lacks have their default.

    Without `--cc`, the controller is that of the alias, if `peer` has one.
    """
    named = {setting.name for setting in SETTINGS} | {"settings", "telemetry", "qlog", "metrics"}
    values: dict[str, Any] = {name: value for name, value in given.items() if name in named}
    chosen = peer.controller if given["cc"] is None and peer is not None else given["cc"]
    if chosen is not None:
        values["controller"] = chosen
    return Options(**values)


class FirstContact:
    """Trusts the first peer and saves its key, if `--trust-on-first-contact` is set and no peer is trusted yet."""

    def __init__(self, keys: str, trust: Sequence[str], asked_for: bool, peer: Peer | None = None) -> None:
        self._keys = keys
        is_known = bool(trust) or (peer is not None and peer.fingerprint is not None)
        self._awaits = asked_for and not is_known and not _native.show_keys(keys)[1]

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
