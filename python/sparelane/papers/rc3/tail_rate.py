"""Beyond the papers: RC3's tail unbounded, as the papers have it, or bounded by what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.reports import plots

SCENARIO = "two-flows-priority"

# The rates of the hosts' links: as fast as the path, twice, and ten times as fast.
ACCESS = {"host as fast as the path": "100Mbps", "host twice as fast": "200Mbps", "host 10 times as fast": "1Gbps"}
SIZES = {"2 MB": "2MB", "20 MB": "20MB"}
NEIGHBOURS = {"TCP": "tcp", "RC3": "rc3"}


def _bounded(gain: float) -> tuple[str, ...]:
    return ("scheme.rc3.tail_rate=delivered", f"scheme.rc3.tail_gain={gain:g}")


UNBOUNDED = "unbounded"
BOUNDED = "gain 1.25"
BOUNDS: Mapping[str, tuple[str, ...]] = {
    UNBOUNDED: (),
    "gain 1": _bounded(1.0),
    BOUNDED: _bounded(1.25),
    "gain 2": _bounded(2.0),
}
LOOKS = dict(zip(BOUNDS, (plots.TCP, plots.RC3, plots.MODEL, plots.THIRD), strict=True))

COMPLETION = Metric("completion", "s")
DROPPED = Metric("tail packets dropped")
NEIGHBOUR = Metric("neighbour's completion", "s")
Case = tuple[str, str, str]


def simulation(access: str, size: str, neighbour: str, bound: str) -> Simulation:
    """One pair of flows."""
    return Simulation(
        scenario=SCENARIO,
        settings=(
            f"topology.access_rate={ACCESS[access]}",
            f"workload.0.size={SIZES[size]}",
            f"workload.1.scheme={NEIGHBOURS[neighbour]}",
            "duration=8s",
            "sample.interval=100ms",
            *BOUNDS[bound],
        ),
        seed=1,
        label=f"tail rate, {access}, {size} beside {neighbour}, {bound}",
        cost=0.02,
    )


def _cases() -> Iterable[Case]:
    return ((access, size, neighbour) for access in ACCESS for size in SIZES for neighbour in NEIGHBOURS)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every case with every bound."""
    del effort
    return [simulation(*case, bound) for case in _cases() for bound in BOUNDS]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and drops."""
    del effort
    rows = (row for case in _cases() for bound in BOUNDS for row in _rows(case, bound, outcomes))
    return Evaluation(tuple(rows))


def _key(case: Case, metric: Metric, bound: str) -> Key:
    access, size, neighbour = case
    return Key(access, metric, f"tail {bound}", traffic=f"{size} beside {neighbour}")


def _rows(case: Case, bound: str, outcomes: Outcomes) -> Iterable[Row]:
    outcome = outcomes[simulation(*case, bound)]
    own, other = (_completion_s(outcome, flow) for flow in (0, 1))
    low = int(outcome.drops.filter(pl.col("class") > 0)["dropped_packets"].sum())
    yield Row(_key(case, COMPLETION, bound), None, own)
    yield Row(_key(case, DROPPED, bound), None, low)
    yield Row(_key(case, NEIGHBOUR, bound), None, other)


def _completion_s(outcome: Outcome, flow: int) -> float:
    return float(outcome.flows.filter(pl.col("id") == flow)["completion_s"].item())


def draw(evaluation: Evaluation) -> Figure:
    """Completion times and drops of the large file, by the rate of the host's link."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    cases = [(access, "20 MB", "TCP") for access in ACCESS]
    titles = ((COMPLETION, "completion time\nof 20 MB (s)"), (DROPPED, "tail packets\ndropped"))
    for axes, (metric, title) in zip(panels, titles, strict=True):
        bars = [
            plots.Bars.of_rows(bound, LOOKS[bound], [evaluation.find(_key(case, metric, bound)) for case in cases])
            for bound in BOUNDS
        ]
        plots.grouped_bars(axes, ["1", "2", "10"], bars)
        axes.set_xlabel("rate of the host's link over that of the path")
        axes.set_ylabel(title)
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(COMPLETION, NEIGHBOUR, DROPPED)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
