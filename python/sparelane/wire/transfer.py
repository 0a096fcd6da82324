"""Files between real hosts, encrypted, under any of the controllers.

Hosts know each other by keys (`sparelane keys`).
"""

from __future__ import annotations

import os
import socket
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
from sparelane.wire.controller import Gaps
from sparelane.wire.telemetry import Watch

__all__ = ["Item", "Options", "Progress", "Receiver", "Report", "Tunnel", "WireError", "send"]

# How long the interpreter is away at most, seconds: so late are signals heard.
STEP_S = 0.1

# DSCPs of class 0 and of the lower classes: best effort, and three that Linux's own queue serves last.
DEFAULT_DSCP = (0, 3, 11, 19)


@dataclass(frozen=True, slots=True)
class Options:
    """What either side can set.

    Attributes:
        controller: the congestion controller of what is sent.
        settings: its parameters, and with `inner.` before them those of the controller inside, as texts.
        tail_rate: the most that the tail is sent at, such as `100Mbps`, while it follows what arrives; without, that is
            measured by a train of packets when the connection begins.
        tail_rate_cap: a measured rate counts as no more.
        unmarked: what is done with the tail where the path does not keep marks: `none` has none, `scavenger` has one
            that yields where a queue grows, `ignore` sends it as if they were kept.
        mtu: bytes of the largest IP packet that is sent.
        window: the receive window of a flow, such as `32MB`: so much memory a flow takes at most.
        dscp: the code point of each class of priority.
        busy_wait: whether a processor is kept busy while something is due within half a millisecond, so that gaps of
            RAPID are exact to some microseconds.
        line_rate: the rate of this host's line, such as `100Mbps`, for controllers that ask for it (RTCP, RAPID);
            without, what its interface says.
        offload: whether the kernel sends and receives batches.
        gso: whether it sends them: `auto` where kernel and interface can, `require`, or `off`.
        connect_timeout_s: when a sender gives up whom nobody answers.
        idle_timeout_s: when a peer counts as gone of whom nothing comes.
        stall_timeout_s: when a transfer is ended of which nothing moves, although the peer is there.
        first_contact: where no peer is trusted, trust the first one that comes, from then on.
        telemetry: a Parquet file for time series, in the simulator's columns.
        sample_interval_s: the time between their samples.
        qlog: a file for what all flows do, as qlog.
        qlog_events: events that it has at most.
        metrics: `PORT` or `ADDR:PORT` where a Prometheus server finds `/metrics`; a port alone is for this host only.
    """

    controller: str = "rc3"
    settings: Mapping[str, str] = field(default_factory=dict)
    tail_rate: str | None = None
    tail_rate_cap: str | None = None
    unmarked: str = "none"
    mtu: int | None = None
    window: str | None = None
    dscp: Sequence[int] = DEFAULT_DSCP
    busy_wait: bool = False
    line_rate: str | None = None
    offload: bool = True
    gso: str = "auto"
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 30.0
    stall_timeout_s: float = 300.0
    first_contact: bool = False
    telemetry: Path | str | None = None
    sample_interval_s: float = 0.01
    qlog: Path | str | None = None
    qlog_events: int = 1_000_000
    metrics: str | None = None

    def native(self, keys: Path | str, trust: Sequence[str]) -> _native.WireSettings:
        """The settings as Rust takes them, checked before any name is resolved or any port is opened.

        Raises:
            WireError: a setting is wrong, a key cannot be read, or no peer is trusted.
        """
        settings = self._unchecked(keys, trust)
        _native.check_wire(settings, has_keys=True)
        return settings

    def check(self) -> None:
        """Checks the settings without keys.

        Raises:
            WireError: one is wrong.
        """
        _native.check_wire(self._unchecked("", ()), has_keys=False)

    def _unchecked(self, keys: Path | str, trust: Sequence[str]) -> _native.WireSettings:
        if any(not 0 <= dscp <= 255 for dscp in self.dscp):
            raise WireError(f"DSCPs are from 0 to 63, not {', '.join(map(str, self.dscp))}")
        if not 1e-4 <= self.sample_interval_s <= 3600:
            raise WireError(f"the time between samples is from 0.0001 to 3600 s, not {self.sample_interval_s}")
        return {
            "keys": str(keys),
            "trust": list(trust),
            "controller": self.controller,
            "set": list(self.settings.items()),
            "tail_rate": self.tail_rate,
            "tail_rate_cap": self.tail_rate_cap,
            "unmarked": self.unmarked,
            "mtu": self.mtu,
            "window": self.window,
            "dscp": list(self.dscp),
            "busy_wait": self.busy_wait,
            "line_rate": self.line_rate,
            "offload": self.offload,
            "gso": self.gso,
            "connect_timeout_s": self.connect_timeout_s,
            "idle_timeout_s": self.idle_timeout_s,
            "stall_timeout_s": self.stall_timeout_s,
            "first_contact": self.first_contact,
            "sample_s": None if self.telemetry is None else self.sample_interval_s,
            "qlog": None if self.qlog is None else str(self.qlog),
            "qlog_events": self.qlog_events,
        }


@dataclass(frozen=True, slots=True)
class Item:
    """What became of a file or folder.

    Attributes:
        name: what it is called at the receiver.
        bytes: its size.
        resumed_bytes: of these, what an earlier attempt had left there.
        error: why it is not there, if it is not.
    """

    name: str
    bytes: int
    resumed_bytes: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sender is.

    Attributes:
        connected: whether the peer is there.
        bytes: what the receiver has.
        total_bytes: what all files have.
        elapsed_s: since the connection is open.
        sent: segments sent, by class of priority.
        marks: what became of the code point of each class on the path: `kept`, `changed` or `unknown`.
        tail_bps: the rate at which the tail begins, if it was measured.
        udp_payload_bytes: the UDP payload of full packets; less than was set where the path carries less.
        gaps: how exact the gaps between segments were, where the controller sets them (RAPID).
        remarks: what is remarkable about the controller on this path.
        line_rate_bps: the rate of this host's line, as controllers are told.
        line_rate_source: from where it is known: `set`, `interface NAME` or `assumed`.
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


@dataclass(frozen=True, slots=True)
class Report:
    """A transfer that is over.

    Attributes:
        items: what became of each file and folder.
        progress: how far it came, and how fast.
        peer: the fingerprint of the receiver.
    """

    items: tuple[Item, ...]
    progress: Progress
    peer: str


def check_address(address: str) -> tuple[str, int]:
    """The name and the port of `HOST:PORT`; nothing is resolved.

    Raises:
        WireError: it has another form.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise WireError(f'"{address}" is no address: HOST:PORT is one, with a port up to 65535')
    return host, int(port)


def resolve_all(address: str) -> list[str]:
    """The numeric addresses of `HOST:PORT`, in the order in which the system would try them.

    An IPv6 address stands in brackets, with the number of its interface where it is of one link alone.

    Raises:
        WireError: it is none, or nobody has the name.
    """
    host, port = check_address(address)
    name = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise WireError(f'"{host}": {getattr(error, "strerror", None) or error}') from error
    return list(dict.fromkeys(_text(family, tuple(at)) for family, _, _, _, at in found))


def _text(family: int, at: tuple[Any, ...]) -> str:
    if family != socket.AF_INET6:
        return f"{at[0]}:{at[1]}"
    numeric = str(at[0]).partition("%")[0]
    return f"[{numeric}%{at[3]}]:{at[1]}" if at[3] else f"[{numeric}]:{at[1]}"


def resolve(address: str) -> str:
    """The first numeric address of `HOST:PORT`; an IPv6 address stands in brackets.

    Raises:
        WireError: it is none, or nobody has the name.
    """
    return resolve_all(address)[0]


def send(
    paths: Sequence[Path | str],
    to: str,
    *,
    keys: Path | str,
    trust: Sequence[str] = (),
    options: Options | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Report:
    """Sends files and folders to the receiver at `to`, `HOST:PORT`.

    Where the name has several addresses, they are tried one after another.
    What lies in a folder and cannot be sent (a link, a device, a name that receivers refuse) is among the items, with
    the reason; everything else is sent.

    `progress` is called about ten times a second; where it returns False, the transfer stops, and the next attempt goes
    on from there.

    Raises:
        WireError: there is no connection, one host does not trust the other, or something cannot be read.
    """
    options = options or Options()
    native = options.native(keys, trust)
    check_address(to)
    for path in paths:
        try:
            os.lstat(path)
        except OSError as error:
            raise WireError(f"{path}: {error.strerror or error}") from error
    watch = Watch(options.telemetry, options.metrics)
    try:
        sender = _native.FileSender(native, [str(path) for path in paths], resolve_all(to))
    except BaseException:
        watch.close(None)
        raise
    try:
        report = _carry(sender, watch, progress)
    except BaseException:
        with suppress(WireError):
            sender.close("the sender was stopped")
        with suppress(WireError):
            watch.close(sender)
        raise
    watch.close(sender)
    return report


def _carry(sender: _native.FileSender, watch: Watch, progress: Callable[[Progress], object] | None) -> Report:
    """Sends all that there is."""
    items = [Item(path, 0, 0, reason) for path, reason in sender.left_out]
    while True:
        items += [Item(*item) for item in sender.step(STEP_S)]
        watch.tend(sender)
        told = sender.progress()
        now = Progress(
            told["connected"],
            told["bytes"],
            told["total_bytes"],
            told["elapsed_s"],
            tuple(told["sent"]),
            tuple(told["marks"]),
            told["tail_bps"],
            told["udp_payload_bytes"],
            Gaps.of(told["gaps"]),
            tuple(told["remarks"]),
            told["line_rate_bps"],
            told["line_rate_source"],
        )
        if progress is not None and progress(now) is False:
            raise WireError("stopped")
        if told["done"]:
            return Report(tuple(items), now, sender.peer or "")


Native = TypeVar("Native", _native.FileReceiver, _native.Tunnel)


class LongLived(ABC, Generic[Native]):
    """What runs until it is stopped: a receiver, or one site of a tunnel.

    Nothing happens but within `step` and `events`.
    """

    _native: Native
    _watch: Watch
    _is_closed = False

    @property
    def metrics_address(self) -> str | None:
        """Where metrics are, if they are asked for."""
        return self._watch.metrics_address

    @property
    def address(self) -> str:
        """Where its UDP socket is."""
        return self._native.address

    @property
    def running(self) -> int:
        """How many peers of a receiver have something under way, or how many connections a tunnel has."""
        return self._native.running

    def take_stranger(self) -> str | None:
        """The fingerprint of a stranger who was refused since, once."""
        return self._native.take_stranger()

    def step(self, seconds: float = STEP_S) -> list[dict[str, Any]]:
        """What has happened in so many seconds at most, by `event`.

        Of a receiver: `connected`, `item` or `disconnected`, with how many items were `offered`, and whether another
        connection of the peer has `replaced` this one. Of a tunnel: `connected` or `disconnected`
        (the other site), or `opened`, `closed` or `failed` (a connection).
        """
        told = self._native.step(seconds)
        self._watch.tend(self._native)
        return told

    def events(self, for_s: float | None = None) -> Iterator[dict[str, Any]]:
        """What happens, for ever or for so many seconds."""
        until = None if for_s is None else time.monotonic() + for_s
        while until is None or time.monotonic() < until:
            yield from self.step()

    def stop(self) -> None:
        """Takes no more transfers or connections; those that run go on."""
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
            self._watch.close(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Receiver(LongLived[_native.FileReceiver]):
    """Receives files from any number of trusted hosts into one folder.

    `progress` is called with `received_bytes` about ten times a second while somebody waits for what happens.
    """

    def __init__(
        self,
        listen: str,
        folder: Path | str,
        *,
        keys: Path | str,
        trust: Sequence[str] = (),
        force: bool = False,
        options: Options | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        options = options or Options()
        native = options.native(keys, trust)
        self._keys, self._trust, self._progress = str(keys), list(trust), progress
        self._native = _native.FileReceiver(native, resolve(listen), str(folder), force)
        self._watch = Watch(options.telemetry, options.metrics)

    @property
    def received_bytes(self) -> int:
        """What has come in transfers that are under way."""
        return self._native.received_bytes

    def step(self, seconds: float = STEP_S) -> list[dict[str, Any]]:
        """What has happened in so many seconds at most, by `event`: `connected`, `item` or `disconnected`."""
        told = super().step(seconds)
        if self._progress is not None:
            self._progress(self.received_bytes)
        return told

    def reload(self) -> tuple[str, int]:
        """Reads the key and the trusted peers of the folder anew; connections that are open stay.

        Returns the fingerprint of the key, and how many peers are trusted.

        Raises:
            WireError: the folder has no key that can be read; nothing has changed then.
        """
        return self._native.reload(self._keys, self._trust)

    def close(self, reason: str = "the receiver was stopped") -> None:
        """Ends all transfers; what is here of them stays for the next attempt."""
        self._end(reason)


@dataclass(frozen=True, slots=True)
class TunnelOptions:
    """What can be set about a tunnel.

    Attributes:
        max_connections: the most connections at a time, 1 to 4096; each takes the memory of its windows at most.
        waits: whether those who connect while the other site is away wait for it; otherwise they are reset.
        longest_pause_s: the longest pause before the other site is tried again.
    """

    max_connections: int = 256
    waits: bool = True
    longest_pause_s: float = 10.0

    def native(self) -> _native.TunnelSettings:
        """As Rust takes them."""
        if not 1 <= self.max_connections <= 4096:
            raise WireError(f"a tunnel has 1 to 4096 connections, not {self.max_connections}")
        return {
            "max_connections": self.max_connections,
            "waits": self.waits,
            "longest_pause_s": self.longest_pause_s,
        }


class Tunnel(LongLived[_native.Tunnel]):
    """One site of a tunnel, which carries TCP connections to the targets of the other.

    Made by `Tunnel.serve` or `Tunnel.dial`; nothing happens but within `step` and `events`.
    """

    def __init__(
        self, native: _native.Tunnel, watch: Watch, keys: Path | str, trust: Sequence[str], allow: Sequence[str]
    ) -> None:
        self._native, self._watch = native, watch
        self._keys, self._trust, self._allow = str(keys), list(trust), list(allow)

    @classmethod
    def serve(
        cls,
        listen: str,
        allow: Sequence[str],
        *,
        keys: Path | str,
        trust: Sequence[str] = (),
        options: Options | None = None,
        tunnel: TunnelOptions | None = None,
    ) -> Tunnel:
        """The site that listens for others at `listen`, and connects them to the targets of `allow`, each `HOST:PORT`.

        Raises:
            WireError: the port is taken, a key cannot be read, or nobody has the name of a target.
        """
        options = options or Options()
        native = options.native(keys, trust)
        settings, allowed = (tunnel or TunnelOptions()).native(), [(target, resolve(target)) for target in allow]
        made = _native.Tunnel.serve(native, settings, resolve(listen), allowed)
        return cls(made, Watch(options.telemetry, options.metrics), keys, trust, allow)

    @classmethod
    def dial(
        cls,
        to: str,
        forwards: Sequence[tuple[str, str]],
        *,
        keys: Path | str,
        trust: Sequence[str] = (),
        options: Options | None = None,
        tunnel: TunnelOptions | None = None,
    ) -> Tunnel:
        """The site that connects to another at `to`, and takes TCP connections.

        `forwards` has pairs of an address here and a target there, as the other site lists it.

        Raises:
            WireError: a port is taken, or a key cannot be read.
        """
        options = options or Options()
        native = options.native(keys, trust)
        settings, pairs = (tunnel or TunnelOptions()).native(), [(resolve(at), target) for at, target in forwards]
        made = _native.Tunnel.dial(native, settings, resolve_all(to), pairs)
        return cls(made, Watch(options.telemetry, options.metrics), keys, trust, ())

    @property
    def forwarded(self) -> list[str]:
        """Where it takes TCP connections, in the order in which they were given."""
        return self._native.forwarded

    def reload(self) -> tuple[str, int]:
        """Reads the key and the trusted peers of the folder anew, and the addresses of the targets.

        Returns the fingerprint of the key, and how many peers are trusted.

        Raises:
            WireError: one of them cannot be read; what was read before it counts.
        """
        told = self._native.reload(self._keys, self._trust)
        self._native.set_allowed([(target, resolve(target)) for target in self._allow])
        return told

    def close(self, reason: str = "the tunnel was stopped") -> None:
        """Ends all connections."""
        self._end(reason)
