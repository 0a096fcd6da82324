"""The scripts of `windows.py`: one flow on a path that drops only given segments, for sparelane and ns-3."""

from dataclasses import dataclass

from controllers_scenarios import LEDBAT_ATTRIBUTES, MBPS, TEN_SEGMENTS, Dumbbell, Peer, Scenario
from workloads import NS_PER_MS


@dataclass(frozen=True, slots=True)
class Script(Scenario):
    """One controller on one path.

    Attributes:
        kind: The second part of the script's name, after the controller.
        slow_start_ends_at: The slow-start threshold of the flow in segments.
        drops: The data segments whose first transmission is lost, counted from 0.
        every_ms: The sampling interval of the window in ms.
    """

    kind: str
    slow_start_ends_at: int
    drops: tuple[int, ...] = ()
    every_ms: int = 500

    @property
    def name(self) -> str:
        """Return the name of rows and files, such as `bic-drops`."""
        return f"{self.peer.ours}{self.peer.suffix}-{self.kind}"

    @property
    def interval_ns(self) -> int:
        """Return the sampling interval of the window in ns."""
        return self.every_ms * NS_PER_MS

    @property
    def ssthresh_packets(self) -> int:
        """Return the slow-start threshold of the flow in segments."""
        return self.slow_start_ends_at


def _peer(ours: str, ns3: str, suffix: str = "", **parameters: str) -> Peer:
    """Return a controller with an initial window of 10 segments."""
    return Peer(ours, f"ns3::{ns3}", TEN_SEGMENTS | parameters, suffix=suffix)


# `mended` are corrected controllers of ns-3 in ns3_mended.h. Other suffixes name settings that both simulators have.
HYBLA_MENDED = _peer("hybla", "TcpHyblaMended", "-mended", reference_rtt='"50ms"', rounding='"none"')
# ns-3 takes one-way delays from timestamps, in milliseconds.
LP_PARAMETERS = TEN_SEGMENTS | {"like": '"ns-3"', "tick": '"1ms"'}

PEERS = (
    _peer("bic", "TcpBic"),
    Peer(
        "bic",
        "ns3::TcpBic",
        TEN_SEGMENTS | {"smooth_part": "5", "fast_convergence": "false"},
        {"ns3::TcpBic::FastConvergence": "false"},
        suffix="-plain",
    ),
    _peer("highspeed", "TcpHighSpeed"),
    _peer("scalable", "TcpScalable"),
    _peer("h-tcp", "TcpHtcp"),
    Peer(
        "h-tcp",
        "ns3::TcpHtcpMended",
        TEN_SEGMENTS | {"rtt_scaling": "false", "bandwidth_switch": "false"},
        {"ns3::TcpHtcp::ThroughputRatio": "1e9"},
        suffix="-mended",
    ),
    _peer("hybla", "TcpHybla", reference_rtt='"50ms"', rounding='"none"'),
    HYBLA_MENDED,
    _peer("illinois", "TcpIllinois"),
    _peer("illinois", "TcpIllinoisMended", "-mended"),
    _peer("westwood", "TcpWestwoodPlus"),
    _peer("westwood", "TcpWestwoodPlusMended", "-mended"),
    _peer("veno", "TcpVeno"),
    _peer("veno", "TcpVenoMended", "-mended"),
    _peer("yeah", "TcpYeah"),
    Peer("yeah", "ns3::TcpYeahMended", TEN_SEGMENTS | {"phy": "1"}, {"ns3::TcpYeah::Phy": "1"}, suffix="-phy1-mended"),
    Peer("lp", "ns3::TcpLp", LP_PARAMETERS, LEDBAT_ATTRIBUTES),
    Peer("lp", "ns3::TcpLpMended", LP_PARAMETERS, LEDBAT_ATTRIBUTES, suffix="-mended"),
    _peer("vegas", "TcpVegas"),
    _peer("vegas", "TcpVegasMended", "-mended"),
)


def _path(peer: Peer) -> Dumbbell:
    """Return a path without queue drops: 100 Mb/s and 50 ms, which a window of 416 segments fills."""
    if peer.ours == "hybla":
        return Dumbbell(100 * MBPS, 100 * NS_PER_MS, 1, 20_000)  # twice its reference
    if peer.ours == "lp":
        return Dumbbell(20 * MBPS, 50 * NS_PER_MS, 1, 20_000)  # so that it fills the path in time: 83 segments
    return Dumbbell(100 * MBPS, 50 * NS_PER_MS, 1, 20_000)


def _lossless(peer: Peer) -> Script:
    return Script(peer, _path(peer), 12.0, 0.0, "lossless", 20 if peer.ours == "lp" else 250)


def _drops(peer: Peer) -> Script:
    if peer.ours == "lp":
        return Script(peer, _path(peer), 20.0, 0.0, "drops", 20, (2_000, 6_000, 12_000))
    return Script(peer, _path(peer), 20.0, 0.0, "drops", 100, (10_000, 30_000, 60_000))


SCRIPTS: tuple[Script, ...] = (
    *map(_lossless, PEERS),
    *map(_drops, PEERS),
    Script(HYBLA_MENDED, _path(HYBLA_MENDED), 2.1, 0.0, "slow-start", 10_000, every_ms=150),
)
