"""Sends and receives files between real hosts, and tunnels TCP connections.

Connections are encrypted and use any of the controllers. Hosts identify each other by keys (`sparelane keys`).
"""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from sparelane import _native
from sparelane._native import WireError
from sparelane.wire.addresses import keys_folder, listening, resolve, resolve_all, split
from sparelane.wire.controller import Gaps
from sparelane.wire.declared import Declared
from sparelane.wire.settings import as_texts, docstring_section
from sparelane.wire.telemetry import Telemetry

__all__ = ["Item", "Options", "Progress", "Receiver", "Report", "Tunnel", "WireError", "send"]

# The longest native call, seconds. Python handles signals only between native calls.
STEP_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Options(Declared):
    """Settings of a host in transfers and tunnels.

    Attributes:
        controller: the congestion controller of sent data.
        settings: parameters of the controller as texts; those of an inner controller have the prefix `inner.`.
        telemetry: a Parquet file for time series, with the simulator's columns.
        qlog: a file for the events of all flows as qlog.
        metrics: `PORT` or `ADDR:PORT` of `/metrics` for Prometheus; a port alone means localhost.
    """

    controller: str = "rc3"
    settings: Mapping[str, str] = field(default_factory=dict)
    telemetry: Path | str | None = None
    qlog: Path | str | None = None
    metrics: str | None = None

    def native(self, keys: Path | str | None, trust: Sequence[str], peer: str | None = None) -> _native.WireSettings:
        """Checks the settings and converts them to the native form. Resolves no name and opens no port.

        Args:
            keys: the folder of keys; `None` for that of the user's configuration.
            trust: fingerprints of trusted peers, in addition to those of the folder.
            peer: the fingerprint of the only peer that is trusted, apart from those in `trust`.

        Raises:
            WireError: a setting is invalid, a key cannot be read, or no peer is trusted.
        """
        settings = self._unchecked(keys_folder() if keys is None else keys, trust, peer)
        _native.check_wire(settings, has_keys=True)
        return settings

    def check(self) -> None:
        """Checks the settings without keys.

        Raises:
            WireError: a setting is invalid.
        """
        _native.check_wire(self._unchecked("", (), None), has_keys=False)

    def _unchecked(self, keys: Path | str, trust: Sequence[str], peer: str | None) -> _native.WireSettings:
        return {
            "keys": str(keys),
            "trust": list(trust),
            "peer": peer,
            "controller": self.controller,
            "set": list(self.settings.items()),
            "declared": as_texts(self),
            "has_series": self.telemetry is not None,
            "qlog": None if self.qlog is None else str(self.qlog),
        }


if Options.__doc__ is not None:  # `python -OO` removes docstrings.
    Options.__doc__ = f"{inspect.cleandoc(Options.__doc__)}\n{docstring_section()}"


@dataclass(frozen=True, slots=True)
class Item:
    """The outcome of a file or folder.

    Attributes:
        name: the name at the receiver.
        bytes: the size.
        resumed_bytes: the bytes that the receiver had from an earlier attempt.
        unchanged: true if the receiver had an equal file of the same name.
        folder: true for a folder.
        error: the reason if it was not transferred; otherwise `None`.
    """

    name: str
    bytes: int
    resumed_bytes: int
    unchanged: bool
    folder: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a sender.

    Attributes:
        connected: true if the peer is connected.
        bytes: the bytes that the receiver has.
        total_bytes: the size of all files.
        elapsed_s: the time since the connection opened, seconds.
        sent: the number of sent segments in each class.
        marks: the fate of each class's DSCP on the path: `kept`, `changed` or `unknown`.
        tail_bps: the measured initial rate of the tail; `None` if it was not measured.
        udp_payload_bytes: the UDP payload of full packets, which is smaller than the setting if the path requires it.
        gaps: the accuracy of the gaps between segments, if the controller sets them (RAPID).
        remarks: remarks about the controller on this path.
        line_rate_bps: the line rate of this host that controllers use.
        line_rate_source: the source of the line rate: `set`, `interface NAME` or `assumed`.
        files: the number of files that have a result.
        total_files: the number of all files.
        current: the name of a file that is being sent or compared.
        resumed_bytes: the bytes that the receiver had and that were not sent.
        silence_s: the time for which the receiver has not answered, seconds; `None` if no answer is missing.
        losses: the number of connections that were lost.
        last_loss: the reason of the latest loss.
        is_lost: true while a lost connection is not restored.
    """

    connected: bool
    bytes: int
    total_bytes: int
    elapsed_s: float
    sent: tuple[int, ...]
    marks: tuple[str, ...]
    tail_bps: int | None
    udp_payload_bytes: int
    gaps: Gaps | None
    remarks: tuple[str, ...]
    line_rate_bps: int
    line_rate_source: str
    files: int = 0
    total_files: int = 0
    current: str | None = None
    resumed_bytes: int = 0
    silence_s: float | None = None
    losses: int = 0
    last_loss: str | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a finished transfer.

    Attributes:
        items: the outcome of each file and folder.
        progress: the final progress.
        peer: the fingerprint of the receiver.
    """

    items: tuple[Item, ...]
    progress: Progress
    peer: str


def check_paths(paths: Sequence[Path | str]) -> None:
    """Checks that files and folders exist.

    Raises:
        WireError: some do not; the error names all of them.
    """
    missing = []
    for path in paths:
        try:
            os.lstat(path)
        except OSError as error:
            missing.append(f"{path}: {error.strerror or error}")
    if missing:
        raise WireError("\n".join(missing))


def send(
    paths: Sequence[Path | str],
    to: str,
    *,
    keys: Path | str | None = None,
    trust: Sequence[str] = (),
    peer: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    options: Options | None = None,
    progress: Callable[[Progress], object] | None = None,
    discards: bool = False,
    stdin: str | None = None,
) -> Report:
    """Sends files and folders to the receiver at `to`, `HOST:PORT`.

    `keys` is the folder of keys; the default is that of the user's configuration. With `peer`, a fingerprint, only the
    receiver with this key is accepted, whichever peers the folder trusts. With `discards`, it stores nothing.

    With `stdin`, a file name, standard input is sent as it comes, too, and `paths` may be empty. It cannot continue in
    another connection, and the receiver keeps no part of it.

    If the name has several addresses, they are tried one after another. A lost connection is restored within
    `options.retry_s`, and the transfer continues. Entries of a folder that cannot be sent (links, devices, names that
    receivers reject) are listed in the report with the reason; everything else is sent.

    With `include`, only files are sent that match one of these patterns, such as `*.log` or `tree/sub`. Files and
    folders that match a pattern of `exclude` are left out.

    `progress` is called about ten times a second. If it returns `False`, the transfer stops; the next attempt resumes
    it.

    Raises:
        WireError: there is no connection, one host does not trust the other, or a file cannot be read.
    """
    options = options or Options()
    native = options.native(keys, trust, peer)
    split(to)
    check_paths(paths)
    telemetry = Telemetry(options.telemetry, options.metrics)
    try:
        sender = _native.FileSender(
            native, [str(path) for path in paths], resolve_all(to), list(include), list(exclude), discards, stdin
        )
    except BaseException:
        telemetry.close(None)
        raise
    try:
        report = _transfer(sender, telemetry, progress)
    except BaseException:
        with suppress(WireError):
            sender.close("the sender was stopped")
        with suppress(WireError):
            telemetry.close(sender)
        raise
    telemetry.close(sender)
    return report


def _transfer(
    sender: _native.FileSender, telemetry: Telemetry, progress: Callable[[Progress], object] | None
) -> Report:
    """Sends all files, and reports progress until they have arrived."""
    items = [Item(path, 0, 0, False, False, reason) for path, reason in sender.left_out]
    while True:
        # Short native calls, so that Ctrl-C is handled in between.
        items += [Item(*item) for item in sender.step(STEP_S)]
        telemetry.collect(sender)
        native = sender.progress()
        now = Progress(
            native["connected"],
            native["bytes"],
            native["total_bytes"],
            native["elapsed_s"],
            tuple(native["sent"]),
            tuple(native["marks"]),
            native["tail_bps"],
            native["udp_payload_bytes"],
            Gaps.of(native["gaps"]),
            tuple(native["remarks"]),
            native["line_rate_bps"],
            native["line_rate_source"],
            native["files"],
            native["total_files"],
            native["current"],
            native["resumed_bytes"],
            native["silence_s"],
            native["losses"],
            native["last_loss"],
            native["is_lost"],
        )
        if progress is not None and progress(now) is False:
            raise WireError("stopped")
        if native["done"]:
            return Report(tuple(items), now, sender.peer or "")


Native = TypeVar("Native", _native.FileReceiver, _native.Tunnel)


class Service(ABC, Generic[Native]):
    """A service that runs until it is stopped: a receiver, or one site of a tunnel.

    All work is done inside `step` and `events`.
    """

    _native: Native
    _telemetry: Telemetry
    _is_closed = False

    @property
    def metrics_address(self) -> str | None:
        """The address of the metrics; `None` if they are off."""
        return self._telemetry.metrics_address

    @property
    def address(self) -> str:
        """The address of the UDP socket."""
        return self._native.address

    @property
    def running(self) -> int:
        """The number of peers with running transfers, or of connections in a tunnel."""
        return self._native.running

    def take_stranger(self) -> str | None:
        """Returns the fingerprint of an untrusted peer that was refused since the last call; otherwise `None`."""
        return self._native.take_stranger()

    def step(self, seconds: float = STEP_S) -> list[dict[str, Any]]:
        """Works for at most `seconds`, and returns the events of that time as dictionaries with the key `event`.

        Events of a receiver are `connected`, `item`, `disconnected` and `cleaned`. `disconnected` has the number of
        `offered` items, and `replaced` is true if another connection of the peer replaced this one. `cleaned` has the
        names of incomplete files that were removed because of their age. Events of a tunnel are `connected`
        and `disconnected` for the other site, and `opened`, `closed` and `failed` for a connection.
        """
        events = self._native.step(seconds)
        self._telemetry.collect(self._native)
        return events

    def events(self, for_s: float | None = None) -> Iterator[dict[str, Any]]:
        """Yields events for `for_s` seconds, or until the caller stops."""
        until = None if for_s is None else time.monotonic() + for_s
        while until is None or time.monotonic() < until:
            yield from self.step()

    def stop(self) -> None:
        """Accepts no more transfers or connections. Running ones continue."""
        self._native.stop()

    @abstractmethod
    def close(self) -> None:
        """Ends all transfers or connections."""

    def _end(self, reason: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._native.close(reason)
        finally:
            self._telemetry.close(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Receiver(Service[_native.FileReceiver]):
    """Receives files from any number of trusted hosts into one folder.

    Files keep the sender's permissions except those that the umask removes. With `file_mode`, such as `0o640`, all
    files get these permissions, and folders can be searched by all who can read the files.

    Without a folder, the files of one transfer at a time are written to standard output, as they arrive.

    `progress` is called with `received_bytes` about ten times a second during `step` and `events`.
    """

    def __init__(
        self,
        listen: str,
        folder: Path | str | None,
        *,
        keys: Path | str | None = None,
        trust: Sequence[str] = (),
        force: bool = False,
        file_mode: int | None = None,
        options: Options | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        if file_mode is not None and not 0 <= file_mode <= 0o777:
            raise WireError(f"permissions are from 0 to 0o777, not {file_mode:#o}")
        options = options or Options()
        native = options.native(keys, trust)
        self._settings, self._progress = native, progress
        into = None if folder is None else str(folder)
        self._native = _native.FileReceiver(native, resolve(listening(listen)), into, force, file_mode)
        self._telemetry = Telemetry(options.telemetry, options.metrics)

    @property
    def received_bytes(self) -> int:
        """The bytes received in running transfers."""
        return self._native.received_bytes

    def step(self, seconds: float = STEP_S) -> list[dict[str, Any]]:
        """Works for at most `seconds`, and returns the events `connected`, `item` and `disconnected` of that time."""
        events = super().step(seconds)
        if self._progress is not None:
            self._progress(self.received_bytes)
        return events

    def reload(self) -> tuple[str, int]:
        """Reloads the key and the trusted peers from the folder. Open connections are kept.

        Returns:
            The fingerprint of the key, and the number of trusted peers.

        Raises:
            WireError: the key cannot be read. Nothing changes in this case.
        """
        return self._native.reload(self._settings)

    def close(self, reason: str = "the receiver was stopped") -> None:
        """Ends all transfers. Partial files are kept for the next attempt."""
        self._end(reason)


@dataclass(frozen=True, slots=True)
class TunnelOptions:
    """Settings of a tunnel.

    Attributes:
        max_connections: the maximum number of simultaneous connections, 1 to 4096.
        waits: hold new connections while the other site is unreachable; if false, they are reset.
        longest_pause_s: the longest pause between attempts to reach the other site, seconds.
    """

    max_connections: int = 256
    waits: bool = True
    longest_pause_s: float = 10.0

    def native(self) -> _native.TunnelSettings:
        """Checks the settings and converts them to the native form.

        Raises:
            WireError: a setting is out of range.
        """
        if not 1 <= self.max_connections <= 4096:
            raise WireError(f"a tunnel has 1 to 4096 connections, not {self.max_connections}")
        return {
            "max_connections": self.max_connections,
            "waits": self.waits,
            "longest_pause_s": self.longest_pause_s,
        }


class Tunnel(Service[_native.Tunnel]):
    """One site of a tunnel, which carries TCP connections to the targets of the other site.

    `Tunnel.serve` and `Tunnel.dial` create tunnels.
    """

    def __init__(
        self,
        native: _native.Tunnel,
        telemetry: Telemetry,
        settings: _native.WireSettings,
        allow: Sequence[str],
    ) -> None:
        self._native, self._telemetry = native, telemetry
        self._settings, self._allow = settings, list(allow)

    @classmethod
    def serve(
        cls,
        listen: str,
        allow: Sequence[str],
        *,
        keys: Path | str | None = None,
        trust: Sequence[str] = (),
        options: Options | None = None,
        tunnel: TunnelOptions | None = None,
    ) -> Tunnel:
        """Creates the site that listens at `listen`, and connects others to the targets in `allow`, each `HOST:PORT`.

        Raises:
            WireError: the port is in use, a key cannot be read, or the name of a target cannot be resolved.
        """
        options = options or Options()
        native = options.native(keys, trust)
        settings, allowed = (tunnel or TunnelOptions()).native(), [(target, resolve(target)) for target in allow]
        made = _native.Tunnel.serve(native, settings, resolve(listening(listen)), allowed)
        return cls(made, Telemetry(options.telemetry, options.metrics), native, allow)

    @classmethod
    def dial(
        cls,
        to: str,
        forwards: Sequence[tuple[str, str]],
        *,
        keys: Path | str | None = None,
        trust: Sequence[str] = (),
        peer: str | None = None,
        options: Options | None = None,
        tunnel: TunnelOptions | None = None,
    ) -> Tunnel:
        """Creates the site that connects to another site at `to`, and accepts TCP connections.

        `forwards` has pairs of a local address and a target, written as in the other site's `allow`. With `peer`, a
        fingerprint, only the site with this key is accepted.

        Raises:
            WireError: a port is in use, or a key cannot be read.
        """
        options = options or Options()
        native = options.native(keys, trust, peer)
        settings, pairs = (tunnel or TunnelOptions()).native(), [(resolve(at), target) for at, target in forwards]
        made = _native.Tunnel.dial(native, settings, resolve_all(to), pairs)
        return cls(made, Telemetry(options.telemetry, options.metrics), native, ())

    @property
    def forwarded(self) -> list[str]:
        """The local addresses that accept TCP connections, in the order of `forwards`."""
        return self._native.forwarded

    def reload(self) -> tuple[str, int]:
        """Reloads the key and the trusted peers from the folder, and resolves the targets again.

        Returns:
            The fingerprint of the key, and the number of trusted peers.

        Raises:
            WireError: the key cannot be read or a target cannot be resolved. Reloaded keys stay in effect.
        """
        identity = self._native.reload(self._settings)
        self._native.set_allowed([(target, resolve(target)) for target in self._allow])
        return identity

    def close(self, reason: str = "the tunnel was stopped") -> None:
        """Ends all connections."""
        self._end(reason)
