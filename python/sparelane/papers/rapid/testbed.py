"""RAPID's testbed (section V-A): its path, the cross traffic on it, and the times of runs.

The experiments of this paper run on the scenario `rapid-testbed` and differ in the schemes, the traffic and a few
overrides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparelane import _native
from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell
from sparelane.papers.engine.rows import Metric
from sparelane.scenario import library
from sparelane.scenario.settings import Value, toml_value

SCENARIO = "rapid-testbed"

# The rate of the path and of the interfaces at its ends in bits per second, and its round trip without queues.
CAPACITY_BPS = 10e9
RTT_S = 0.030

# The size of a full packet: a segment of 8948 bytes and 40 bytes of headers.
WIRE_BYTES = 8948 + 40

# The kinds of unresponsive cross traffic in the paper, with the scenarios that contain them.
CROSS_TRAFFIC: Mapping[str, str] = {"CBR": "rapid-cbr", "SCT": "rapid-sct", "BCT": "rapid-bct"}

# RAPID starts at 100 kb/s, where its first p-stream of 64 packets takes 46 s. In long runs of RAPID, this start-up
# comes before the measurement; short runs start at a higher rate.
START_UP_S = 60.0
QUICK_START = "scheme.rapid.initial_rate=1Gbps"

# The metrics of transfers, and of web flows next to them.
THROUGHPUT = Metric("throughput", "Gb/s")
LOSS = Metric("loss", "%", is_loss_rate=True)
LINK_USE = Metric("use of what the cross traffic leaves", "%")
WEB_FLOW = Metric("web flow", "ms")
MEDIAN = "median"


@dataclass(frozen=True, slots=True)
class Earlier:
    """A transfer under the same scheme between the same hosts, which ends before the measured one starts.

    The hosts keep its slow-start threshold for later transfers, as Linux 2.6.32 does.

    Attributes:
        packets: its size in segments.
        lost_every: the number of segments of which the switch's cable loses one.
        seconds: the start of the measured transfer in seconds; the earlier one starts at 0.
    """

    packets: int
    lost_every: int
    seconds: float

    def overrides(self, pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """Returns the overrides that lose its segments and keep its threshold, for one such transfer for each pair.

        These transfers must be the first flows of the run.
        """
        lost: list[Value] = list(range(self.lost_every - 1, self.packets, self.lost_every))
        drops: list[Value] = [
            {"from": source, "to": "west", "flow": flow, "segments": lost} for flow, (source, _) in enumerate(pairs)
        ]
        return (f"drop={toml_value(drops)}", "transport.cached_ssthresh=true")

    def workload(self, scheme: str, pairs: Sequence[tuple[str, str]]) -> str:
        """Returns the workload with one such transfer for each pair."""
        listed = toml_value([list(pair) for pair in pairs])
        return f'{{kind="bulk", scheme="{scheme}", pairs={listed}, size="{self.packets}packets"}}'


# The schemes of the scenario whose names are not those of the paper in lower case.
SCHEMES: Mapping[str, str] = {"New Reno": "newreno", "no transfer": ""}


def scheme(name: str) -> str:
    """Returns the name in the scenario of a scheme of the paper; empty for no transfer."""
    return SCHEMES.get(name, name.lower())


def is_long(effort: Effort) -> bool:
    """Returns true if runs are long enough to start RAPID at the paper's 100 kb/s, and others after an earlier one."""
    return effort.stop_s >= START_UP_S / 2


def span(scheme: str, effort: Effort, uncounted: float, start_up_s: float = START_UP_S) -> tuple[float, float]:
    """Returns the end of a run and the time from which on it is measured, both in seconds.

    Args:
        scheme: the scheme of the transfer in the scenario; empty without a transfer.
        effort: the effort. Runs of RAPID that start slowly are longer by the start-up, and measured after it.
        uncounted: the share of all other runs before the measurement.
        start_up_s: the longest time that RAPID's start-up takes.
    """
    if scheme == "rapid" and is_long(effort):
        return effort.stop_s + start_up_s, start_up_s
    return effort.stop_s, uncounted * effort.stop_s


def start(effort: Effort) -> tuple[str, ...]:
    """Returns the overrides for RAPID's initial rate."""
    return () if is_long(effort) else (QUICK_START,)


def transfer(scheme: str, stop_s: float, kind: str = "") -> tuple[str, ...]:
    """Returns the overrides for a transfer from left0 to right0.

    Args:
        scheme: the scheme in the scenario.
        stop_s: the length of the run in seconds.
        kind: the kind of cross traffic; empty for none.
    """
    head = (f"workload.scheme={scheme}", f"duration={stop_s:g}s")
    if not kind:
        return head
    sources = _native.tables(library.find(CROSS_TRAFFIC[kind]).read_text("utf-8"), kind)["cross_traffic"]
    return (*head, f"cross_traffic={toml_value(sources)}")


def cross_traffic_alone(kind: str, scheme: str, stop_s: float, *settings: str) -> Cell:
    """Returns the cell of cross traffic next to a transfer of a single packet."""
    return Cell(SCENARIO, (*transfer(scheme, stop_s, kind), "workload.size=1packets", *settings), cost=stop_s)
