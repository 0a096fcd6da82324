"""The network that the kernel sets up: nodes, cables, queues and flows."""

from __future__ import annotations

from dataclasses import dataclass

# Payload of a full segment, and the segment with its header of IP and TCP, bytes.
MSS = 1460
PACKET = 1500
# The most packets that the kernel sends or merges as one: 64 kB.
MOST_BATCH = 44
# Priority classes that the kernel distinguishes by the type of service.
CLASSES = 4
# The header of Ethernet, which the kernel counts and scenarios do not have, bytes.
ETHERNET = 14


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow.

    Attributes:
        scheme: the name of its scheme.
        controller: the kernel's name of its controller.
        source: the host that sends.
        target: the host that receives.
        size_bytes: the payload; `None` if the flow has no end.
        start_ns: the time of the SYN.
        level: the priority class, 0 the highest.
        rc3_levels: the number of low-priority levels of an RC3 flow, otherwise 0.
        request: the number of the client's request that it is part of, if any.
        traffic_class: the name of its class of traffic, if it has one.
        pool: the pool of connections that it takes an idle one from, from 1; 0 opens a connection.
        priority: the priority that its socket gets at the start (SO_PRIORITY), by which RTCP weighs reused connections;
            0 leaves it unset.
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
    pool: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """A scripted loss: `copies` transmissions of the segment with byte `byte` of flow number `flow` are lost."""

    flow: int
    byte: int
    copies: int


@dataclass(frozen=True, slots=True)
class Queue:
    """The output queue of a cable between routers. `words` are its parameters for `tc`."""

    kind: str
    limit_packets: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A host, the `number`th at its router. Packets from it are delayed by `delay_ns`, packets to it by `back_ns`."""

    name: str
    router: int
    number: int
    delay_ns: int
    back_ns: int


@dataclass(frozen=True, slots=True)
class Cable:
    """The cable from one router of the row to the next, with its one-way delay and its share of random losses."""

    rate_bps: int
    delay_ns: int
    loss: float


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one quantity of one direction of a cable between routers.

    Attributes:
        at_ns: the time of the change.
        near: the router that sends.
        far: the router that receives.
        quantity: `rate_bps`, `delay_ns`, `loss` (a share) or `down` (true or false).
        value: the new value.
    """

    at_ns: int
    near: str
    far: str
    quantity: str
    value: float


@dataclass(frozen=True, slots=True)
class Offload:
    """Segmentation and receive offload of all hosts.

    Attributes:
        send_packets: the most packets that leave TCP as one segment, for the network card to split (TSO); 1 is off.
        joins: whether the network card merges arriving packets (GRO), up to 64 kB.
        join_ns: the time that it waits for the next packet.
    """

    send_packets: int = 1
    joins: bool = False
    join_ns: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """Routers in a row with hosts at each. Rates are in bits per second, one-way delays in nanoseconds.

    Attributes:
        routers: the names of the routers, in the order of the row.
        hosts: the hosts, in the order of the scenario.
        cables: the cables between routers, one fewer than there are routers.
        access_bps: the rate of the cables of hosts.
        queue: the output queue of all cables between routers.
        timestamps: whether segments carry timestamps.
        ecn: whether hosts negotiate ECN.
        flows: the flows, in order of start.
        parameters: the parameters of the kernel's modules, as its command line takes them.
        duration_ns: the end of the run.
        sample_ns: the interval of time series; `None` without time series.
        sampled: the numbers of flows with time series.
        queues: the output queues with time series, as pairs of neighbouring routers.
        links: the links with time series of carried bytes, as pairs of neighbouring routers.
        offload: segmentation and receive offload of hosts.
        is_ipv6: whether the network uses IPv6 instead of IPv4.
        losses: the scripted losses.
        changes: the changes of cables between routers, in order of time.
        acks_each: whether hosts acknowledge each segment at once, instead of by Linux's own rules.
        rc3_packets: the number of packets in each level of RC3 but the last.
        restarts_after_idle: whether a window that was idle is halved per timeout, as Linux does by default.
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
    changes: tuple[Change, ...] = ()
    acks_each: bool = False
    rc3_packets: tuple[int, ...] = ()
    restarts_after_idle: bool = True

    @property
    def has_rc3(self) -> bool:
        """True if any flow uses RC3."""
        return any(flow.rc3_levels for flow in self.flows)

    @property
    def bands(self) -> int:
        """The number of priorities that queues serve: those of classes, or those of RC3's levels and class 0."""
        return max(CLASSES, *(1 + flow.rc3_levels for flow in self.flows))

    @property
    def needs_rc3_kernel(self) -> bool:
        """True if the run needs the kernel with RC3, which is also the one with IPv6."""
        return self.has_rc3 or self.is_ipv6

    @property
    def is_late_on_arrival(self) -> bool:
        """True if hosts have queues of their own, which the delay of a path must follow."""
        return self.has_rc3 or self.offload.send_packets > 1

    def loses_from(self, host: str) -> bool:
        """True if a scripted loss concerns a flow from this host."""
        return any(self.flows[loss.flow].source == host for loss in self.losses)

    def ports(self) -> list[tuple[str, str, Cable]]:
        """Each direction of each cable between routers: the sending router, the receiving router and the cable."""
        steps = zip(self.routers, self.routers[1:], self.cables, strict=False)
        return [port for near, far, cable in steps for port in ((near, far, cable), (far, near, cable))]

    def has_changes(self, near: str, far: str, quantity: str) -> bool:
        """True if this quantity changes in this direction of a cable."""
        return any((one.near, one.far, one.quantity) == (near, far, quantity) for one in self.changes)

    def offered_bits(self, near: str, far: str, rate_bps: int, end_ns: int) -> float:
        """The bits that a direction of a cable, which begins with `rate_bps`, can send from the start to `end_ns`."""
        bits, since_ns = 0.0, 0
        for one in self.changes:
            if (one.near, one.far, one.quantity) == (near, far, "rate_bps") and one.at_ns < end_ns:
                bits += rate_bps * (one.at_ns - since_ns) / 1e9
                rate_bps, since_ns = int(one.value), one.at_ns
        return bits + rate_bps * (end_ns - since_ns) / 1e9

    def followed(self) -> list[tuple[str, str]]:
        """The sampled ports, in the order in which the guest numbers them."""
        return list(dict.fromkeys((*self.queues, *self.links)))
