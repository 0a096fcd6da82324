"""What the simulator says of a transfer, beside the time that it takes between network namespaces of this machine.

The scenario is that of the test in virtual time (crates/net/tests/prediction.toml): the same packets, controller and
bytes. The wire has its hosts, sockets, encryption and the kernel's queues besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from wire_transfers import EXAMPLE, Times, say

from sparelane._native import WireError
from sparelane.emulation.namespaces import hosts
from sparelane.simulation import simulate as api

SCENARIO = Path(__file__).parent.parent / "crates/net/tests/prediction.toml"

# A queue has room for so many packets of each class, so that nothing is lost.
PACKETS = 5000

# Rate in Mb/s, round trip in milliseconds, bytes.
PATHS = ((100, 40, 1_700_000), (100, 40, 8_000_000), (50, 20, 3_000_000))

# The scenario's name of a scheme, and that of the wire.
SCHEMES = {"cubic": "cubic", "newreno": "newreno", "rc3": "rc3", "rc3-newreno": "rc3/newreno"}

# By so much the wire's time may differ from the simulator's.
MOST_APART = 0.2


@dataclass(frozen=True, slots=True)
class Predicted:
    """A transfer, by the simulator and on the wire.

    Attributes:
        scheme: the scenario's name of it.
        mbps, round_trip_ms, size_bytes: the path and the transfer.
        simulated_s: from the open connection to the last byte received.
        wire: the same on the wire, of each round.
    """

    scheme: str
    mbps: int
    round_trip_ms: int
    size_bytes: int
    simulated_s: float
    wire: Times

    @property
    def apart(self) -> float:
        """By which share of the simulator's time the wire's median differs from it; beyond all bounds without any."""
        return median(self.wire.seconds) / self.simulated_s - 1 if self.wire.seconds else math.inf


def simulated_s(scheme: str, mbps: int, round_trip_ms: int, size_bytes: int) -> float:
    """Seconds that the simulator says, without the round trip of TCP's handshake."""
    settings = [
        f"topology.access_rate={mbps}Mbps",
        f"topology.access_delay={round_trip_ms * 250}us",
        f"queue.limit={PACKETS}packets",
        f"workload.scheme={scheme}",
        f"workload.size={size_bytes}B",
    ]
    return float(api.run(SCENARIO, set=settings).flows["completion_s"][0]) - round_trip_ms * 1e-3


def measure(rounds: int) -> list[Predicted]:
    """Measures and prints all settings.

    Raises:
        WireError: the example is not compiled, or there can be no such path.
    """
    if not EXAMPLE.exists():
        raise WireError("the transfers need `cargo build --release -p sparelane-net --example wire`")
    say(f"\nWhat the simulator says, beside namespaces (median of {rounds}, least to most); milliseconds")
    found = []
    for mbps, round_trip_ms, size_bytes in PATHS:
        with hosts(mbps, priorities=True, packets=PACKETS, round_trip_s=round_trip_ms * 1e-3) as ends:
            for scheme, on_the_wire in SCHEMES.items():
                times = Times(on_the_wire)
                for _ in range(rounds):
                    times.add(ends, size_bytes)
                simulated = simulated_s(scheme, mbps, round_trip_ms, size_bytes)
                row = Predicted(scheme, mbps, round_trip_ms, size_bytes, simulated, times)
                say(line(row))
                found.append(row)
    near = sum(abs(row.apart) <= MOST_APART for row in found)
    verdict = "met" if near == len(found) else "MISSED"
    say(f"{near} of {len(found)} within {MOST_APART:.0%} of the simulator: {verdict}")
    return found


def line(row: Predicted) -> str:
    """A setting, as it is printed."""
    told = f"{row.scheme:>12} {row.mbps:4} Mb/s {row.round_trip_ms:3} ms {row.size_bytes / 1e6:4.1f} MB: "
    told += f"simulator {1e3 * row.simulated_s:.0f}, wire {row.wire.cell()}"
    return f"{told}, {row.apart:+.1%}{row.wire.failed()}"
