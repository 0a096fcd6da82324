"""Signals and logs of commands that run until they are stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
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
        help="Lowest severity that is logged to standard error.",
    ),
    click.option(
        "--grace",
        type=click.FloatRange(0, 86_400),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Time for running transfers to finish after SIGTERM.",
    ),
)


def long_lived(command: Command) -> Command:
    """Adds `--log-level` and `--grace` to a command."""
    return with_options(command, _OPTIONS)


class Log:
    """A log on standard error that drops lines below a level."""

    def __init__(self, level: str) -> None:
        self._least = LEVELS.index(level)

    def __call__(self, level: str, text: str) -> None:
        """Logs a line."""
        if LEVELS.index(level) >= self._least:
            click.echo(f"sparelane: {level}: {text}", err=True)


class Notifier:
    """Reports the state of the service to systemd, as sd_notify(3). Does nothing unless systemd asks for it.

    With `Type=notify`, systemd starts dependent units when the service is ready. With `WatchdogSec=`, it restarts a
    service that has stopped reporting.
    """

    def __init__(self) -> None:
        self._place = os.environ.get("NOTIFY_SOCKET", "")
        watchdog_us = os.environ.get("WATCHDOG_USEC", "")
        is_own = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        # Three reports in each interval.
        self._every_s = int(watchdog_us) / 3e6 if watchdog_us.isdecimal() and is_own else None
        self._reported_s = time.monotonic()

    def __call__(self, *states: str) -> None:
        """Sends states such as `READY=1`."""
        if not self._place:
            return
        # A name in the abstract namespace begins with a zero byte, which variables cannot have.
        place = f"\0{self._place[1:]}" if self._place.startswith("@") else self._place
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto("\n".join(states).encode(), place)

    def is_alive(self) -> None:
        """Reports to the watchdog, if it is due."""
        if self._every_s is not None and time.monotonic() - self._reported_s >= self._every_s:
            self._reported_s = time.monotonic()
            self("WATCHDOG=1")


class Service(Protocol):
    """A service that runs until it is stopped, such as a receiver or a tunnel."""

    @property
    def running(self) -> int:
        """The number of running transfers or connections."""

    def reload(self) -> tuple[str, int]:
        """Reloads the key and the trusted peers. Returns the key's fingerprint and the number of peers."""

    def stop(self) -> None:
        """Stops accepting new work."""


class Signals:
    """Reacts to signals. SIGHUP reloads keys. SIGTERM gives running work `grace_s` to finish; a second one ends it."""

    def __init__(self, log: Log, grace_s: float) -> None:
        self._log = log
        self._grace_s = grace_s
        self._notify = Notifier()
        self._is_ready = False
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
        """Reacts to signals since the last call, and returns `True` if the command should end."""
        if not self._is_ready:
            # The first call comes when the service listens.
            self._is_ready = True
            self._notify("READY=1")
        self._notify.is_alive()
        if self._hups:
            self._hups = 0
            self._notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
            try:
                key, peers = service.reload()
                self._log("info", f"keys reloaded: this host is {key}, and trusts {peers} peers")
            except Exception as error:
                self._log("error", f"keys not reloaded: {error}")
            self._notify("READY=1")
        if self._terms and self._until is None:
            self._until = time.monotonic() + self._grace_s
            self._notify("STOPPING=1")
            service.stop()
            if service.running:
                self._log("info", f"stopping; {service.running} still running, with {self._grace_s:g} s to finish")
        if self._until is None:
            return False
        if service.running and self._terms < 2 and time.monotonic() < self._until:
            return False
        if service.running:
            self._log("warning", f"stopped with {service.running} still running")
        return True
