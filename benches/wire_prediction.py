"""What the simulator says of a transfer, beside the time that it takes between network namespaces of this machine.

The scenario is that of the test in virtual time (crates/net/tests/prediction.toml): the same packets, controller and
bytes. The wire has its hosts, sockets, encryption and the kernel's queues besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from wire_transfers import EXAMPLE, once, say

from sparelane import api
from sparelane._native import WireError
from sparelane.namespaces import hosts

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
        wire_s: the same on the wire, of each round.
        failures: why other rounds gave no time.
    """

    scheme: str
    mbps: int
    round_trip_ms: int
    size_bytes: int
    simulated_s: float
    wire_s: list[float]
    failures: list[str]

    @property
    def apart(self) -> float:
        """By which share of the simulator's time the wire's median differs from it."""
        return median(self.wire_s) / self.simulated_s - 1


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
                times = [once(ends, on_the_wire, size_bytes) for _ in range(rounds)]
                row = Predicted(
                    scheme,
                    mbps,
                    round_trip_ms,
                    size_bytes,
                    simulated_s(scheme, mbps, round_trip_ms, size_bytes),
                    [seconds for seconds, _ in times if seconds is not None],
                    [why_not for seconds, why_not in times if seconds is None],
                )
                say(line(row))
                found.append(row)
    judged = [row for row in found if row.wire_s]
    near = sum(abs(row.apart) <= MOST_APART for row in judged)
    is_met = near == len(found)
    say(f"{near} of {len(found)} within {MOST_APART:.0%} of the simulator: {'met' if is_met else 'MISSED'}")
    return found


def line(row: Predicted) -> str:
    """A setting, as it is printed."""
    told = f"{row.scheme:>12} {row.mbps:4} Mb/s {row.round_trip_ms:3} ms {row.size_bytes / 1e6:4.1f} MB: "
    if row.wire_s:
        low, middle, high = (1e3 * of(row.wire_s) for of in (min, median, max))
        told += f"simulator {1e3 * row.simulated_s:7.1f}, "
        told += f"wire {middle:7.1f} ({low:.1f} to {high:.1f}), {row.apart:+6.1%}"
    return told + (f"  {len(row.failures)} failed: {row.failures[0]}" if row.failures else "")
