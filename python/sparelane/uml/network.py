"""The network that the kernel lays out: its nodes, cables, queues and flows."""

from __future__ import annotations

from dataclasses import dataclass

# Payload of a full segment, and the segment with its header of IP and TCP, bytes.
MSS = 1460
PACKET = 1500
# The most packets that the kernel sends, or joins, as one: 64 kB.
MOST_BATCH = 44
# The kernel counts the header of Ethernet, which scenarios have none of, bytes.
ETHERNET = 14


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow: `size_bytes` is none where it has no end; `level` is its priority, 0 the highest.

    With RC3 its tail has `rc3_levels` levels of low priority. Of a request of a client it has the number, and the name
    of its class.
    """

    scheme: str
    controller: str
    source: str
    target: str
    size_bytes: int | None
    start_ns: int
    level: int = 0
    rc3_levels: int = 0
    request: int | None = None
    traffic_class: str | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """A flow, by number, and the segment with the byte `byte` of it, which is lost `copies` times before the queue."""

    flow: int
    byte: int
    copies: int


@dataclass(frozen=True, slots=True)
class Queue:
    """The output queue of a cable between routers: `words` are its parameters as `tc` takes them."""

    kind: str
    limit_packets: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A host at its router, the `number`th there; what leaves it is late by `delay_ns`, what comes by `back_ns`."""

    name: str
    router: int
    number: int
    delay_ns: int
    back_ns: int


@dataclass(frozen=True, slots=True)
class Cable:
    """The cable from one router of the row to the next, with a delay in nanoseconds one way, and losses at random."""

    rate_bps: int
    delay_ns: int
    loss: float


@dataclass(frozen=True, slots=True)
class Offload:
    """What hosts leave to their network cards: batches of packets both ways.

    Attributes:
        send_packets: how many at most leave TCP as one segment, which the card splits (TSO); 1 is off.
        joins: whether the card joins what arrives (GRO), up to 64 kB.
        join_ns: for how long after a packet it waits for the next one.
    """

    send_packets: int = 1
    joins: bool = False
    join_ns: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """Routers in a row with hosts at each; rates in bits per second, delays in nanoseconds, one way.

    Attributes:
        routers: their names, in the order of the row.
        cables: one fewer than there are routers.
        parameters: of the kernel's modules, as its command line takes them.
        timestamps: whether segments carry them.
        sampled: flows of which there are time series.
        offload: of all hosts.
        is_ipv6: whether addresses are those of IPv6, not of IPv4.
        losses: those that are planned.
        acks_each: whether hosts acknowledge each segment at once, and not as they see fit.
        queues: pairs of neighbouring routers, of whose output queue there are time series.
        links: the same, of what the cable carries.
    """

    routers: tuple[str, ...]
    hosts: tuple[Host, ...]
    cables: tuple[Cable, ...]
    access_bps: int
    queue: Queue
    timestamps: bool
    ecn: bool
    flows: tuple[Flow, ...]
    parameters: tuple[str, ...]
    duration_ns: int
    sample_ns: int | None
    sampled: tuple[int, ...]
    queues: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    offload: Offload = Offload()
    is_ipv6: bool = False
    losses: tuple[Loss, ...] = ()
    acks_each: bool = False

    @property
    def has_rc3(self) -> bool:
        """Whether a flow is one of RC3."""
        return any(flow.rc3_levels for flow in self.flows)

    @property
    def needs_rc3_kernel(self) -> bool:
        """Whether it takes the kernel with RC3, which is also the one with IPv6."""
        return self.has_rc3 or self.is_ipv6

    @property
    def is_late_on_arrival(self) -> bool:
        """Whether hosts have queues of their own, so that the delay of a path is behind them all."""
        return self.has_rc3 or self.offload.send_packets > 1

    def loses_from(self, host: str) -> bool:
        """Whether a segment of this host is lost on purpose."""
        return any(self.flows[loss.flow].source == host for loss in self.losses)

    def ports(self) -> list[tuple[str, str, Cable]]:
        """Each direction of each cable between routers: from, to, and the cable."""
        steps = zip(self.routers, self.routers[1:], self.cables, strict=False)
        return [port for near, far, cable in steps for port in ((near, far, cable), (far, near, cable))]

    def followed(self) -> list[tuple[str, str]]:
        """The ports that are sampled, as the guest numbers them."""
        return list(dict.fromkeys((*self.queues, *self.links)))
