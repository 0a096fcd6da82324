"""Checks that options, Python attributes and types of the wire's settings follow from their declaration."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import sparelane as sl
from sparelane.cli.commands import harm, path, recv, send, tunnel
from sparelane.wire import declared, settings

COMMANDS = {one.command.name: one.command for one in (send, recv, tunnel, path, harm)}


def test_the_stub_is_current() -> None:
    stub = Path(declared.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert stub == settings.stub(), "run `make stubs`"


def test_options_in_python_have_all_settings_with_their_defaults() -> None:
    options = sl.wire.Options()
    for setting in settings.SETTINGS:
        assert getattr(options, setting.name) == setting.default, setting.name
        assert f"\n    {setting.name}: " in (sl.wire.Options.__doc__ or ""), setting.name
    own = {"controller", "settings", "telemetry", "qlog", "metrics"}
    assert {field.name for field in fields(options)} == {one.name for one in settings.SETTINGS} | own


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda setting: setting.name)
def test_the_declared_commands_have_the_option(setting: settings.Setting) -> None:
    for name, command in COMMANDS.items():
        # `harm --rate` is the rate of a local path, and not this setting.
        found = [one for one in command.params if one.name == setting.name]
        assert bool(found) == (name in setting.commands), name
        for option in found:
            assert isinstance(option, click.Option)
            assert option.opts == [setting.option]
            assert (option.help or "").startswith(setting.meaning)


def test_values_are_checked_against_the_declaration() -> None:
    wrong: dict[str, tuple[Any, str]] = {
        "idle_timeout_s": (0.5, 'idle_timeout_s = "0.5"; allowed: a number from 1 to 3600 seconds'),
        "gso": ("maybe", 'gso = "maybe"; allowed: one of auto, require, off'),
        "window": ("much", 'window = "much"; allowed: a size such as "64KB", from 20000 to 1073741824 bytes'),
        "qlog_events": (0, 'qlog_events = "0"; allowed: a whole number from 1 to 1000000000 events'),
        "dscp": ((0, 300), "the code point 255; 0 to 63 are allowed"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(sl.wire.WireError) as raised:
            sl.wire.Options(**{name: value}).check()
        assert str(raised.value) == message
    sl.wire.Options(
        offload=False, dscp=(0,), mtu=1280, window="1MB", tail_rate="50Mbps", sample_interval_s=1e-4
    ).check()
