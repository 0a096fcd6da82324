"""What commands that run until they are stopped have in common: signals, and levelled logs on standard error."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeVar

import click

from sparelane.cli.commands.options import with_options

Command = TypeVar("Command", bound=Callable[..., Any])

LEVELS = ("debug", "info", "warning", "error")

_OPTIONS = (
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="Least severe messages to log on standard error.",
    ),
    click.option(
        "--grace",
        type=click.FloatRange(0, 86_400),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Seconds that running transfers may take to finish after SIGTERM.",
    ),
)


def long_lived(command: Command) -> Command:
    """Adds the options of such commands."""
    return with_options(command, _OPTIONS)


class Log:
    """Lines on standard error, of one level and above."""

    def __init__(self, level: str) -> None:
        self._least = LEVELS.index(level)

    def __call__(self, level: str, text: str) -> None:
        """Logs a line."""
        if LEVELS.index(level) >= self._least:
            click.echo(f"sparelane: {level}: {text}", err=True)


class Service(Protocol):
    """What runs until it is stopped."""

    @property
    def running(self) -> int:
        """How much is under way."""

    def reload(self) -> tuple[str, int]:
        """Reads keys and trusted peers anew."""

    def stop(self) -> None:
        """Begins nothing new."""


class Signals:
    """SIGTERM finishes what runs, in so many seconds at most; a second one ends at once. SIGHUP reads keys anew."""

    def __init__(self, log: Log, grace_s: float) -> None:
        self._log = log
        self._grace_s = grace_s
        self._terms = 0
        self._hups = 0
        self._until: float | None = None
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGHUP, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self._terms += 1
        else:
            self._hups += 1

    def is_over(self, service: Service) -> bool:
        """Whether the command is to end; does what the signals ask for until then."""
        if self._hups:
            self._hups = 0
            try:
                key, peers = service.reload()
                self._log("info", f"keys are read anew: this host is {key}, and trusts {peers} peers")
            except Exception as error:
                self._log("error", f"keys are not read anew: {error}")
        if self._terms and self._until is None:
            self._until = time.monotonic() + self._grace_s
            service.stop()
            if service.running:
                self._log("info", f"stopping; {service.running} under way, which have {self._grace_s:g} s to finish")
        if self._until is None:
            return False
        if service.running and self._terms < 2 and time.monotonic() < self._until:
            return False
        if service.running:
            self._log("warning", f"stopped with {service.running} under way")
        return True
