"""NSDI 2014, Figs. 15 and 18: single flows on the authors' testbed of two Linux servers, also with offload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import FCT, RC3, REDUCTION, TCP, Scheme
from sparelane.reports import plots

SCENARIO = "rc3-linux"
SIZES = (1, 5, 10, 50, 100, 500, 1000)
RATES = {"10 Gb/s": "10Gbps", "1 Gb/s": "1Gbps"}
SCHEMES: Mapping[str, Scheme] = {"TCP": "tcp", "RC3": "rc3"}


@dataclass(frozen=True, slots=True)
class Variant:
    """How the ends of a connection behave.

    Attributes:
        name: how rows call it.
        overrides: `key=value` each.
        looks: of the lines that the figure has of it.
    """

    name: str
    overrides: tuple[str, ...]
    looks: Mapping[str, plots.Look]


DELAYED = 'transport.delayed_ack={every=2,timeout="40ms"}'
BY_TWO = tuple(
    f"scheme.{place}.{limit}=2" for place in ("tcp", "rc3.inner") for limit in ("slow_start_limit", "growth_limit")
)

VARIANTS = (
    Variant("an ACK per packet", (), {"TCP": plots.TCP, "RC3": plots.RC3}),
    Variant("delayed ACKs", (DELAYED, *BY_TWO), {"TCP": plots.MODEL}),
    Variant("delayed ACKs, growth by one", (DELAYED,), {"TCP": plots.THIRD}),
)

# Fig. 18: one flow of this many packets at 10 Gb/s, with the hosts' chunks of segments.
OFFLOAD_RATE, OFFLOAD_PACKETS = "10 Gb/s", 1000
HOST = "host.receive_cost=2us"
EACH_CHUNK = "transport.delayed_ack=false"
SENDS, RECEIVES = "transport.send_batch=44", "transport.receive_batch=44"
OFFLOADS = {
    "neither": Variant("no offload", (HOST, DELAYED, *BY_TWO), {}),
    "TSO": Variant("TSO", (HOST, DELAYED, *BY_TWO, SENDS), {}),
    "LRO": Variant("LRO", (HOST, EACH_CHUNK, *BY_TWO, RECEIVES), {}),
    "both": Variant("TSO and LRO", (HOST, EACH_CHUNK, *BY_TWO, SENDS, RECEIVES), {}),
}


def _run(rate: str, variant: Variant, scheme: str, packets: int) -> Simulation:
    return Simulation(
        scenario=SCENARIO,
        settings=(
            *variant.overrides,
            f"topology.access_rate={RATES[rate]}",
            f"workload.scheme={SCHEMES[scheme]}",
            f"workload.size={packets}packets",
        ),
        seed=1,
        label=f"{rate} {variant.name} {scheme} {packets} packets",
        cost=0.001,
    )


def plan(effort: Effort) -> Sequence[Simulation]:
    """Each size at both rates in every variant, under both schemes."""
    del effort
    return [
        _run(rate, variant, scheme, packets)
        for rate in RATES
        for variant in VARIANTS
        for packets in SIZES
        for scheme in SCHEMES
    ] + [_run(OFFLOAD_RATE, variant, scheme, OFFLOAD_PACKETS) for variant in OFFLOADS.values() for scheme in SCHEMES]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times, and what RC3 takes off."""
    del effort
    points = [(rate, variant, packets) for rate in RATES for variant in VARIANTS for packets in SIZES]
    points += [(OFFLOAD_RATE, variant, OFFLOAD_PACKETS) for variant in OFFLOADS.values()]
    return Evaluation(tuple(row for point in points for row in _rows(*point, outcomes)))


def _rows(rate: str, variant: Variant, packets: int, outcomes: Outcomes) -> Iterable[Row]:
    times: dict[str, float | None] = {
        scheme: outcomes[_run(rate, variant, scheme, packets)].flows["completion_s"].item() for scheme in SCHEMES
    }
    for scheme, time_s in times.items():
        yield Row(_key(rate, variant, packets, scheme), None, time_s)
    tcp_s, rc3_s = times[TCP], times[RC3]
    cut = None if tcp_s is None or rc3_s is None else reduction(tcp_s, rc3_s)
    yield Row(_key(rate, variant, packets, RC3, REDUCTION), None, cut)


def _key(rate: str, variant: Variant, packets: int, scheme: str, metric: Metric = FCT) -> Key:
    flow = f"{packets} packet{'s' if packets > 1 else ''}"
    return Key(rate, metric, scheme, traffic=flow, variant=variant.name)


def draw(evaluation: Evaluation) -> Figure:
    """Completion time against size, one panel for each rate; and with offload."""
    drawing, [*panels, offloads] = plots.figure(len(RATES) + 1, width_inches=1.4 * plots.PAGE_INCHES)
    for axes, rate in zip(panels, RATES, strict=True):
        for variant in VARIANTS:
            for scheme, look in variant.looks.items():
                rows = [evaluation.find(_key(rate, variant, packets, scheme)) for packets in SIZES]
                plots.points(axes, f"{scheme}, {variant.name}", look, SIZES, rows)
        axes.set_xscale("log")
        axes.set_ylim(0.0, 0.24)
        axes.set_xlabel(f"flow size at {rate} (packets)")
        axes.set_ylabel("completion time (s)")
        plots.legend_above(axes, 1)
    _draw_offloads(offloads, evaluation)
    return drawing


def _draw_offloads(axes: Axes, evaluation: Evaluation) -> None:
    looks = {TCP: plots.TCP, RC3: plots.RC3}
    bars = [
        plots.Bars.of_rows(scheme, look, [evaluation.find(_offload(name, scheme)) for name in OFFLOADS])
        for scheme, look in looks.items()
    ]
    plots.grouped_bars(axes, list(OFFLOADS), bars)
    axes.set_xlabel(f"offload, {OFFLOAD_PACKETS} packets at {OFFLOAD_RATE}")
    axes.set_ylabel("completion time (s)")
    plots.legend_above(axes, 2)


def _offload(name: str, scheme: str) -> Key:
    return _key(OFFLOAD_RATE, OFFLOADS[name], OFFLOAD_PACKETS, scheme)


METRICS = named(FCT, REDUCTION)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
