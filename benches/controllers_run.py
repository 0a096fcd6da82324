"""Run one scenario of `controllers.py` in either simulator."""

import json
from dataclasses import dataclass
from pathlib import Path

from controllers_scenarios import Peer, Scenario
from workloads import FULL_PACKET_BYTES

SEGMENT_BYTES = 1460

# The same TCP settings as in ns3_network.h.
OURS = """
duration = "{duration_s}s"

[topology]
kind = "file"
path = "{topo}"

[queue]
{queue}

[transport]
mss = "{segment_bytes}B"
sack = true
delayed_ack = false
min_rto = "200ms"
syn_timeout = "1s"
{transport}

[scheme.peer]
controller = "{controller}"
{parameters}

[workload]
kind = "flows"
path = "{flows}"
scheme = "peer"

[sample]
interval = "{interval_ns}ns"
{watched}
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one simulator at the bottleneck.

    Attributes:
        link_use: The utilisation of the bottleneck, from 0 to 1.
        queue_packets: The mean queue length in full packets.
    """

    link_use: float
    queue_packets: float


def ours(scenario: Scenario, folder: Path) -> Measured:
    """Run sparelane. The workload's files are written into `folder`."""
    import polars

    import sparelane

    scenario.write(folder)
    text = ours_text(scenario, folder, 'queues = [["west", "east"]]')
    whole = sparelane.run(text, seed=1)
    # A run that ends at `from_s` gives the bytes sent before the measured period.
    before = sparelane.run(text, seed=1, set={"duration": f"{scenario.from_s}s"})
    sent = [
        run.links.filter((polars.col("from") == "west") & (polars.col("to") == "east"))["sent_bytes"][0]
        for run in (whole, before)
    ]
    capacity_bytes = scenario.dumbbell.rate_bps / 8 * (scenario.duration_s - scenario.from_s)
    waiting_bytes = float(whole.series.filter(polars.col("time_s") >= scenario.from_s)["value"].to_numpy().mean())
    return Measured((sent[0] - sent[1]) / capacity_bytes, waiting_bytes / FULL_PACKET_BYTES)


def ours_text(scenario: Scenario, folder: Path, watched: str) -> str:
    """Return the scenario in sparelane's format; `watched` selects the samples in `[sample]`."""
    peer, dumbbell = scenario.peer, scenario.dumbbell
    parameters = dict(peer.parameters)
    if scenario.ssthresh_packets is not None:
        parameters["initial_ssthresh"] = str(scenario.ssthresh_packets)
    queue = {"kind": '"fifo"'}
    if dumbbell.mark_at:
        queue["limit"] = f'"{dumbbell.buffer_packets}packets"'
        queue["mark_at"] = f'"{dumbbell.mark_at}packets"'
    return OURS.format(
        duration_s=scenario.duration_s,
        topo=folder / f"{scenario.name}.topo",
        flows=folder / f"{scenario.name}.flows",
        queue=_lines(queue),
        segment_bytes=SEGMENT_BYTES,
        transport=_lines(peer.transport),
        controller=peer.ours,
        parameters=_lines(parameters),
        interval_ns=scenario.interval_ns,
        watched=watched,
    )


def _lines(values: dict[str, str]) -> str:
    return "\n".join(f"{key} = {value}" for key, value in values.items())


def ns3_command(scenario: Scenario, program: Path, folder: Path, extra: dict[str, str] | None = None) -> list[str]:
    """Return the command that runs ns-3; `extra` replaces or adds attributes."""
    attributes = {
        "ns3::TcpL4Protocol::SocketType": scenario.peer.ns3,
        "ns3::TcpSocket::InitialCwnd": "10",
        **scenario.peer.attributes,
    }
    if scenario.ssthresh_packets is not None:
        ssthresh_bytes = scenario.ssthresh_packets * ns3_segment_bytes(scenario.peer)
        attributes["ns3::TcpSocket::InitialSlowStartThreshold"] = str(ssthresh_bytes)
    attributes |= extra or {}
    return [
        str(program),
        f"--base={folder / scenario.name}",
        f"--duration={scenario.duration_s}",
        f"--from={scenario.from_s}",
        f"--interval={scenario.interval_ns}",
        f"--mark-at={scenario.dumbbell.mark_at}",
        *(f"--{name}={value}" for name, value in attributes.items()),
    ]


def ns3_segment_bytes(peer: Peer) -> int:
    """Return the payload of a full segment in ns-3, in bytes."""
    return int(peer.attributes.get("ns3::TcpSocket::SegmentSize", str(SEGMENT_BYTES)))


def ns3_measured(text: str) -> Measured:
    """Parse the output of `ns3_controllers`."""
    fields = json.loads(text)
    return Measured(float(fields["link_use"]), float(fields["mean_queue_packets"]))
