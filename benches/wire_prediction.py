"""Compare simulated transfer times with those between network namespaces of this machine.

The scenario is that of the test in virtual time (crates/net/tests/prediction.toml), with the same packets, controller
and bytes. Transfers between namespaces also include the hosts, sockets, encryption and the kernel's queues.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from wire_transfers import EXAMPLE, Times, say

from sparelane._native import WireError
from sparelane.emulation.namespaces import hosts
from sparelane.simulation import simulate

SCENARIO = Path(__file__).parent.parent / "crates/net/tests/prediction.toml"

# The queue limit in packets per class, large enough to avoid losses.
PACKETS = 5000

# Rate in Mb/s, round trip in ms, transfer size in bytes.
PATHS = ((100, 40, 1_700_000), (100, 40, 8_000_000), (50, 20, 3_000_000))

# The name of each scheme in the scenario, and its name on the wire.
SCHEMES = {"cubic": "cubic", "newreno": "newreno", "rc3": "rc3", "rc3-newreno": "rc3/newreno"}

# The target for the relative difference of transfer times.
MAX_DIFFERENCE = 0.2


@dataclass(frozen=True, slots=True)
class Predicted:
    """A transfer in the simulator and on the wire.

    Attributes:
        scheme: The name of the scheme in the scenario.
        mbps, round_trip_ms, size_bytes: The path and the transfer.
        simulated_s: The simulated time from the open connection to the last byte received.
        wire: The times of each round on the wire.
    """

    scheme: str
    mbps: int
    round_trip_ms: int
    size_bytes: int
    simulated_s: float
    wire: Times

    @property
    def difference(self) -> float:
        """Return the relative difference of the wire's median from the simulation; infinite if all transfers failed."""
        return median(self.wire.seconds) / self.simulated_s - 1 if self.wire.seconds else math.inf


def simulated_s(scheme: str, mbps: int, round_trip_ms: int, size_bytes: int) -> float:
    """Return the simulated time in seconds, without the round trip of TCP's handshake."""
    settings = [
        f"topology.access_rate={mbps}Mbps",
        f"topology.access_delay={round_trip_ms * 250}us",
        f"queue.limit={PACKETS}packets",
        f"workload.scheme={scheme}",
        f"workload.size={size_bytes}B",
    ]
    return float(simulate.run(SCENARIO, set=settings).flows["completion_s"][0]) - round_trip_ms * 1e-3


def measure(rounds: int) -> list[Predicted]:
    """Measure and print all settings.

    Raises:
        WireError: The example is not compiled, or the path cannot be created.
    """
    if not EXAMPLE.exists():
        raise WireError("the transfers need `cargo build --release -p sparelane-net --example wire`")
    say(f"\nSimulation and namespaces in ms: median of {rounds} (minimum to maximum)")
    found = []
    for mbps, round_trip_ms, size_bytes in PATHS:
        with hosts(mbps, priorities=True, packets=PACKETS, round_trip_s=round_trip_ms * 1e-3) as ends:
            for scheme, wire_name in SCHEMES.items():
                times = Times(wire_name)
                for _ in range(rounds):
                    times.add(ends, size_bytes)
                simulated = simulated_s(scheme, mbps, round_trip_ms, size_bytes)
                row = Predicted(scheme, mbps, round_trip_ms, size_bytes, simulated, times)
                say(line(row))
                found.append(row)
    near = sum(abs(row.difference) <= MAX_DIFFERENCE for row in found)
    verdict = "met" if near == len(found) else "MISSED"
    say(f"{near} of {len(found)} within {MAX_DIFFERENCE:.0%} of the simulator: {verdict}")
    return found


def line(row: Predicted) -> str:
    """Format a setting as a line of text."""
    text = f"{row.scheme:>12} {row.mbps:4} Mb/s {row.round_trip_ms:3} ms {row.size_bytes / 1e6:4.1f} MB: "
    text += f"simulator {1e3 * row.simulated_s:.0f}, wire {row.wire.cell()}"
    return f"{text}, {row.difference:+.1%}{row.wire.failed()}"
