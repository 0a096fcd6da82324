"""What RAPID's experiments share: its testbed, the cross traffic on it, and what is assumed about both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparelane import _native
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
    found: list[dict[str, Any]] = _native.tables(text, cross_traffic)["cross_traffic"]
    return found


def inline(value: Any) -> str:
    """A value as overrides take it: TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(inner) for inner in value) + "]"
    return json.dumps(value)
