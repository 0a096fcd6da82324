"""What the experiments on the kernel with RC3 share: runs of one flow, offload of segments, and what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sparelane.papers.engine.base import Outcome, Simulation

SCENARIO = "rc3-kernel"
RATES: Mapping[str, str] = {"10 Gb/s": "10Gbps", "1 Gb/s": "1Gbps"}
# Packets of 1460 bytes, as in Fig. 15.
SIZES = (1, 5, 10, 50, 100, 500, 1000)
INNER: Mapping[str, str] = {"New Reno": "newreno", "CUBIC": "cubic"}
# How many packets the host may send as one, and whether it joins what comes: TSO and GRO.
OFFLOADS: Mapping[str, tuple[str, ...]] = {
    "no offload": (),
    "TSO": ("transport.send_batch=44",),
    "GRO": ("transport.receive_batch=44",),
    "TSO and GRO": ("transport.send_batch=44", "transport.receive_batch=44"),
}
# A card that joins packets waits for the next one for so long, as one that holds back its interrupts.
WAIT = "transport.receive_batch_timeout=20us"


@dataclass(frozen=True, slots=True)
class Run:
    """One flow alone on the path.

    Attributes:
        rate: of all links, as `RATES` names it.
        inner: the controller, as `INNER` names it.
        offload: as `OFFLOADS` names it.
        scheme: of the scenario.
        packets: the size of the flow.
        on: what runs it.
    """

    rate: str
    inner: str
    offload: str
    scheme: Literal["tcp", "rc3"]
    packets: int
    on: Literal["simulator", "linux"] = "linux"

    def under(self, scheme: Literal["tcp", "rc3"]) -> Run:
        """The same under another scheme."""
        return replace(self, scheme=scheme)

    def simulation(self) -> Simulation:
        """The run as experiments ask for it."""
        offload = OFFLOADS[self.offload]
        return Simulation(
            scenario=SCENARIO,
            settings=(
                *offload,
                *((WAIT,) if offload else ()),
                f"topology.access_rate={RATES[self.rate]}",
                f"topology.bottleneck_rate={RATES[self.rate]}",
                f"scheme.tcp.controller={INNER[self.inner]}",
                f"scheme.rc3.inner={INNER[self.inner]}",
                f"workload.scheme={self.scheme}",
                f"workload.size={self.packets}packets",
            ),
            seed=1,
            on=self.on,
            label=f"{self.rate} {self.inner} {self.offload} {self.scheme} {self.packets} packets on {self.on}",
            cost=1.0 if self.on == "linux" else 0.001,
        )


def flow(packets: int) -> str:
    """A flow of so many packets, in words."""
    return f"{packets} packet{'s' if packets > 1 else ''}"


def sent_together(outcome: Outcome) -> float:
    """How many packets left the sender's TCP as one, on average, with the few that carry no data."""
    counted = outcome.counters["left0"]
    return counted["Tcp.OutSegs"] / counted["Ip.OutRequests"]


def handed_over(outcome: Outcome) -> int:
    """How many packets, joined or not, the receiver's TCP was handed."""
    return outcome.counters["right0"]["Ip.InReceives"]
