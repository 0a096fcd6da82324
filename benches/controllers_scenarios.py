"""The scenarios of `controllers.py`: controllers on dumbbells, for sparelane and ns-3."""

from dataclasses import dataclass, field
from pathlib import Path

from workloads import FULL_PACKET_BYTES, GBPS, NS_PER_MS, NS_PER_S, Flow, Link, Workload

MBPS = 1_000_000
ACCESS_TIMES_BOTTLENECK = 10
ACCESS_QUEUE_PACKETS = 20_000

# Start times of the flows in ms, staggered and irregular.
STARTS_MS = (0, 131, 277, 419, 553, 701, 857, 1013, 1129, 1283, 1427, 1571, 1723, 1867, 2011, 2161)


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """A dumbbell with one unlimited flow from each sender to its own receiver.

    Attributes:
        rate_bps: The rate of the bottleneck; access links have ten times this rate.
        round_trip_ns: The propagation delay of a round trip.
        flows: The number of flows.
        buffer_packets: The capacity of the bottleneck's queue in full packets.
        mark_at: The queue length in packets at which the bottleneck marks; 0 disables marking.
        start_together: Whether all flows start at the same time.
    """

    rate_bps: int
    round_trip_ns: int
    flows: int
    buffer_packets: int
    mark_at: int = 0
    start_together: bool = False

    @property
    def bdp_packets(self) -> int:
        """Return the bandwidth-delay product in full packets."""
        return self.rate_bps * self.round_trip_ns // NS_PER_S // (8 * FULL_PACKET_BYTES)

    def workload(self, name: str) -> Workload:
        """Return the network and its flows; the bottleneck is the last link."""
        west, east = 2 * self.flows, 2 * self.flows + 1
        access = (self.rate_bps * ACCESS_TIMES_BOTTLENECK, self.round_trip_ns // 40, ACCESS_QUEUE_PACKETS)
        senders = [Link(flow, west, *access) for flow in range(self.flows)]
        receivers = [Link(east, self.flows + flow, *access) for flow in range(self.flows)]
        bottleneck = Link(west, east, self.rate_bps, self.round_trip_ns * 18 // 40, self.buffer_packets)
        # In proportion to the round trip, so that short data centre runs have staggered starts too.
        scale = 0 if self.start_together else self.round_trip_ns / (40 * NS_PER_MS)
        starts_ns = [int(start_ms * NS_PER_MS * scale) for start_ms in STARTS_MS[: self.flows]]
        flows = [Flow(start_ns, flow, self.flows + flow, 0) for flow, start_ns in enumerate(starts_ns)]
        return Workload(name, 2 * self.flows, ("west", "east"), (*senders, *receivers, bottleneck), tuple(flows))


@dataclass(frozen=True, slots=True)
class Peer:
    """One controller in both simulators.

    Attributes:
        ours: The name in sparelane.
        ns3: The type name in ns-3.
        parameters: Parameters in sparelane that differ from the default.
        attributes: Attributes in ns-3 that differ from the default.
        transport: Required keys of sparelane's `[transport]`.
        own_start: Whether the controller has its own start-up, so that no slow-start threshold is set.
        suffix: A suffix that distinguishes scenarios with different settings.
    """

    ours: str
    ns3: str
    parameters: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transport: dict[str, str] = field(default_factory=dict)
    own_start: bool = False
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One controller on one dumbbell.

    Attributes:
        peer: The controller.
        dumbbell: The network.
        duration_s: The simulated time in seconds.
        from_s: The start of the measured period in seconds.
    """

    peer: Peer
    dumbbell: Dumbbell
    duration_s: float
    from_s: float

    @property
    def name(self) -> str:
        """Return the name of rows and files, such as `newreno-100M-40ms-1x-1.00bdp`."""
        d = self.dumbbell
        rate = f"{d.rate_bps // GBPS}G" if d.rate_bps >= GBPS else f"{d.rate_bps // MBPS}M"
        ms = d.round_trip_ns / NS_PER_MS
        end = f"k{d.mark_at}" if d.mark_at else f"{d.buffer_packets / d.bdp_packets:.2f}bdp"
        return f"{self.peer.ours}{self.peer.suffix}-{rate}-{ms:g}ms-{d.flows}x-{end}"

    def write(self, folder: Path) -> None:
        """Write NAME.topo and NAME.flows into an existing folder."""
        self.dumbbell.workload(self.name).write(folder)

    @property
    def interval_ns(self) -> int:
        """Return the sampling interval of the queue: a fortieth of the round trip, but at most 1 ms."""
        return min(NS_PER_MS, self.dumbbell.round_trip_ns // 40)

    @property
    def ssthresh_packets(self) -> int | None:
        """Return the slow-start threshold of a new flow: three quarters of its fair share of the path."""
        if self.peer.own_start:
            return None
        return max(2, self.dumbbell.bdp_packets * 3 // 4 // self.dumbbell.flows)


NEWRENO = Peer("newreno", "ns3::TcpNewReno")
# sparelane's CUBIC has no HyStart.
CUBIC = Peer("cubic", "ns3::TcpCubic", attributes={"ns3::TcpCubic::HyStart": "false"})


DCTCP = Peer("dctcp", "ns3::TcpDctcp", transport={"ecn": '"dctcp"'})
VEGAS = Peer("vegas", "ns3::TcpVegas")
VEGAS_OF_MORE = Peer(
    "vegas",
    "ns3::TcpVegas",
    parameters={"alpha": "20", "beta": "40"},
    attributes={"ns3::TcpVegas::Alpha": "20", "ns3::TcpVegas::Beta": "40"},
    suffix="20to40",
)
# ns-3's LEDBAT takes one-way delays from timestamps, whose option makes a payload of 1448 bytes a full packet.
LEDBAT_ATTRIBUTES = {
    "ns3::TcpLedbat::SSParam": "no",
    "ns3::TcpSocketBase::Timestamp": "true",
    "ns3::TcpSocket::SegmentSize": "1448",
}
TEN_SEGMENTS = {"initial_window": "10"}
LEDBAT = Peer("ledbat", "ns3::TcpLedbat", TEN_SEGMENTS, LEDBAT_ATTRIBUTES, own_start=True)
# Corrected to allow growth by one segment beyond the data in flight, as in RFC 6817; see ns3_mended.h.
LEDBAT_MENDED = Peer("ledbat", "ns3::TcpLedbatMended", TEN_SEGMENTS, LEDBAT_ATTRIBUTES, own_start=True, suffix="m")
LEDBAT_MENDED_25MS = Peer(
    "ledbat",
    "ns3::TcpLedbatMended",
    TEN_SEGMENTS | {"target": '"25ms"'},
    LEDBAT_ATTRIBUTES | {"ns3::TcpLedbat::TargetDelay": "25ms"},
    own_start=True,
    suffix="m25",
)
BBR = Peer("bbr", "ns3::TcpBbr", own_start=True)


def _wide(flows: int, buffer_bdp: float) -> Dumbbell:
    """Return a dumbbell of 100 Mb/s and 40 ms."""
    return Dumbbell(100 * MBPS, 40 * NS_PER_MS, flows, int(333 * buffer_bdp))


def _fast(flows: int, buffer_bdp: float) -> Dumbbell:
    """Return a dumbbell of 1 Gb/s and 20 ms."""
    return Dumbbell(GBPS, 20 * NS_PER_MS, flows, int(1666 * buffer_bdp))


def _loss_based(peer: Peer) -> list[Scenario]:
    return [
        *(Scenario(peer, _wide(flows, buffer), 60.0, 20.0) for flows in (1, 4) for buffer in (1.0, 0.25)),
        # With many flows, windows are reduced several times even in the few seconds that ns-3 can simulate.
        Scenario(peer, _fast(16, 0.25), 8.0, 3.0),
    ]


def _slow(flows: int) -> Dumbbell:
    """Return a dumbbell of 20 Mb/s and 40 ms, with a queue larger than LEDBAT's target of 100 ms."""
    return Dumbbell(20 * MBPS, 40 * NS_PER_MS, flows, 4 * 66, start_together=True)


def _datacentre(rate_gbps: int, flows: int, mark_at: int) -> Dumbbell:
    return Dumbbell(rate_gbps * GBPS, NS_PER_MS // 5, flows, 500, mark_at)


SCENARIOS: tuple[Scenario, ...] = (
    *_loss_based(NEWRENO),
    *_loss_based(CUBIC),
    *(Scenario(DCTCP, _datacentre(1, flows, 20), 0.5, 0.1) for flows in (1, 4, 8)),
    Scenario(DCTCP, _datacentre(10, 4, 65), 0.1, 0.02),
    Scenario(VEGAS, _wide(1, 1.0), 30.0, 10.0),
    Scenario(VEGAS, _wide(4, 1.0), 30.0, 10.0),
    Scenario(VEGAS, _fast(4, 0.25), 8.0, 4.0),
    Scenario(VEGAS_OF_MORE, _wide(1, 1.0), 30.0, 10.0),
    # LEDBAT's target of 100 ms is a queue of 167 packets at 20 Mb/s, and 25 ms one of 208 at 100 Mb/s.
    Scenario(LEDBAT, _slow(1), 60.0, 30.0),
    Scenario(LEDBAT_MENDED, _slow(1), 60.0, 30.0),
    Scenario(LEDBAT_MENDED, _slow(4), 60.0, 30.0),
    Scenario(LEDBAT_MENDED_25MS, _wide(1, 1.0), 60.0, 40.0),
    *(Scenario(BBR, _wide(flows, buffer), 60.0, 20.0) for flows, buffer in ((1, 1.0), (1, 0.25), (4, 1.0))),
)
