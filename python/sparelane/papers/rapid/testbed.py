"""What RAPID's experiments share: its testbed, the cross traffic on it, and what is assumed about both."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sparelane.papers.engine.base import Effort, Simulation
from sparelane.scenario import library

SCENARIO = "rapid-testbed"

# The rate of the path, and of the interfaces at its ends, bits per second; its round trip without queues, seconds.
CAPACITY_BPS = 10e9
RTT_S = 0.030

# A full segment with and without its 40 bytes of headers.
MSS_BYTES = 8948
WIRE_BYTES = MSS_BYTES + 40

# The paper's cross traffic that answers to nothing, and the scenarios that have it.
CROSS_TRAFFIC: Mapping[str, str] = {"CBR": "rapid-cbr", "SCT": "rapid-sct", "BCT": "rapid-bct"}

# The mean by which software timers in the kernel are late, exponentially: a figure of ours, as the paper prints none.
TIMER_ERROR = "2us"

# RAPID starts from 100 kb/s, where its first p-stream of 64 packets takes 46 s: so long runs of RAPID go on before
# they count, seconds.
START_UP_S = 60.0

# Short runs, and those that look at single p-streams, start from here instead.
QUICK_START = "scheme.rapid.initial_rate=1Gbps"

# RAPID's answers to losses that the paper leaves open, each as it could be, too.
LOSSY_STREAMS_SKIPPED = 'scheme.rapid.lossy_streams="skipped"'
LOSSY_STREAMS = {
    "lossy p-streams say nothing": LOSSY_STREAMS_SKIPPED,
    "p-streams with any losses are judged": "scheme.rapid.most_missing=65536",
}
START_AFTER_TIMEOUTS = 'scheme.rapid.after_timeout="start"'

# The noise of hosts turned off.
QUIET_HOSTS = "host_at=[]"

ASSUMPTIONS = (
    "Two switches with 10 Gb/s between them; the pairs of hosts that are measured have 10 Gb/s, those of the cross "
    "traffic 1 Gb/s. The round trip of 30 ms is propagation at the hosts that are measured; the paper delays their "
    "acknowledgments.",
    'The switches hold 400 packets behind each port, drop-tail. The paper says "fairly shallow-buffered".',
    "Segments of 8948 bytes (jumbo frames), which is what makes Table III's New Reno follow its response function. The "
    "simulator's packets have 40 bytes of headers, and none of Ethernet's 38.",
    "Delayed acknowledgments, one for two segments; timeouts of at least 200 ms; initial windows of 2 segments; "
    "windows grow by acknowledgments and not by bytes, as in Linux 2.6.32. RAPID by its defaults: N = 64, tau = 10 ms, "
    "eta = 3, gamma = 3, a window of 16,000 segments, of which the buffers of the hosts, 39 MB for every protocol, let "
    "4358 be outstanding. A p-stream with one lost packet is judged when all of its acknowledgments have returned, as "
    "section II says of any p-stream, and counts as slow as that; one with more says nothing; losses, timeouts and "
    "marks change nothing else. TCP finds lost retransmissions by what was sent later, as Linux 2.6.32 with FACK.",
    "RAPID's start from 100 kb/s takes some 47 s, in which nothing counts: its full runs are longer by a minute "
    "than those of "
    "the others. Quick runs start from 1 Gb/s.",
    "Hosts at 10 Gb/s interrupt after 50 us or 16 packets, whichever is first. The paper names the interface (Intel "
    "82599) and not its setting, which is dynamic by default: 100,000 interrupts a second at most for few bytes, "
    "20,000 for more, 8000 for bulk traffic. Receive times are in whole microseconds and taken after the interrupt; "
    "an acknowledgment takes 4 us of the receiver's processor on average, exponentially and one after another, so "
    "that the latest leave some 60 us after their data (Fig. 5). Received packets take 1 us each. PAUSE frames make "
    "exact gaps.",
    "Cross traffic has the paper's mean of 2.5 Gb/s and its burstiness at 1 ms, which is all that the paper gives: the "
    "scenarios rapid-cbr, rapid-sct and rapid-bct say how.",
)


FITTED = (
    "The switches' 400 packets were chosen among 170 to 2000 packets, 500 KB to 3 MB, and memories of cells or shared "
    "by all ports (benches/rapid_buffers.md), over all tables with cross traffic at once: the others come nearest to "
    "the paper with some 300, and RAPID beside BCT and web users with 400 and more.",
    "The hosts' buffers of 39 MB are from New Reno's 9.75 Gb/s without loss (Table III); RAPID's throughput at a loss "
    "of 1e-3 hangs on them (rows of Table III).",
    "What RAPID makes of p-streams with losses and of timeouts is open in the paper. That those with one lost packet "
    "are judged and those with more say nothing, how long the former have lasted, and that it goes on after timeouts "
    "was chosen by its throughput under random loss of 1e-4 and 1e-3 (Table III) and beside BCT (Table V); rows of "
    "Tables II, III and V have the other choices.",
    "RAPID's spike_factor, excursion_share and excursion_persistence are open in the paper, and were chosen by RAPID's "
    "throughput and losses; rows of rapid/fig8-timescales vary each.",
)


def _starts_slowly(effort: Effort) -> bool:
    """Whether RAPID starts from the paper's 100 kb/s: where runs are not much shorter than that takes."""
    return effort.stop_s >= START_UP_S / 2


def span(scheme: str | None, effort: Effort, share: float, start_up_s: float = START_UP_S) -> tuple[float, float]:
    """When a run of `scheme` ends and from when on it counts, seconds.

    Args:
        scheme: of the transfer; `None` without one.
        effort: runs of RAPID with its own start are longer by that, and count after it.
        share: of other runs, which does not count.
        start_up_s: what RAPID's start takes at most.
    """
    if scheme == "rapid" and _starts_slowly(effort):
        return effort.stop_s + start_up_s, start_up_s
    return effort.stop_s, share * effort.stop_s


def start(effort: Effort) -> tuple[str, ...]:
    """Settings for RAPID's start."""
    return () if _starts_slowly(effort) else (QUICK_START,)


def simulation(
    scheme: str,
    seed: int,
    duration_s: float,
    *,
    label: str,
    cross_traffic: str | None = None,
    settings: Sequence[str] = (),
) -> Simulation:
    """One run of a transfer from left0 to right0.

    Args:
        scheme: of the scenario.
        seed: of every random draw.
        duration_s: simulated seconds.
        label: for people and for file names.
        cross_traffic: a key of `CROSS_TRAFFIC`; none without it.
        settings: further overrides, `key=value` each.
    """
    beside = () if cross_traffic is None else (f"cross_traffic={inline(sources(cross_traffic))}",)
    return Simulation(
        scenario=SCENARIO,
        settings=(f"workload.scheme={scheme}", f"duration={duration_s:g}s", *beside, *settings),
        seed=seed,
        label=f"{label} seed {seed}",
        cost=duration_s,
    )


def sources(cross_traffic: str) -> list[dict[str, Any]]:
    """The `[[cross_traffic]]` of the scenario that has this kind."""
    text = library.find(CROSS_TRAFFIC[cross_traffic]).read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["cross_traffic"]
    return found


def inline(value: Any) -> str:
    """A value as overrides take it: TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(inner) for inner in value) + "]"
    return json.dumps(value)
