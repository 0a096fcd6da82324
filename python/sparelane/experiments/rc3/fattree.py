"""NSDI 2014, section 6, and the slides: a fat tree of 100 Gb/s links, the datacentre of the future."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Row, Simulation, measured
from sparelane.experiments.claims import Value, at_least, falling
from sparelane.experiments.rc3 import contexts, internet2
from sparelane.experiments.rc3.analytic import reduction
from sparelane.experiments.rc3.contexts import Context
from sparelane.experiments.rc3.internet2 import AVERAGES, Setting

STOP_S = 0.04

# Propagation delays of every link, microseconds, and for how much of the time to watch.
DELAYS: Mapping[float, float] = {1.0: 0.1, 3.33: 0.1, 10.0: 0.3, 20.0: 0.6, 33.3: 1.0}
LINKS_THERE_AND_BACK = 12


def _context(delay_us: float, part: float) -> Context:
    round_trip_us = LINKS_THERE_AND_BACK * delay_us
    overrides = (f"topology.delay={delay_us:g}us",)
    name = f"round trip {round_trip_us:.0f} µs"
    return Context(Setting(name, overrides, load=0.3, gbps=24.0, scenario="rc3-fat-tree"), part)


CONTEXTS = {LINKS_THERE_AND_BACK * delay_us: _context(delay_us, part) for delay_us, part in DELAYS.items()}

PRINTED = {"over flows": 45.0, "over bytes": 66.0}

ASSUMPTIONS = (
    *internet2.assumptions(STOP_S)[3:],
    "A fat tree of routers with four ports: 16 hosts, all links 100 Gb/s; the paper says only that it is a fat tree of "
    "100 Gb/s links. A flow takes one of the equal paths, by a hash of its number, to a host at another router.",
    "The paper gives no delays, on which the gain depends: five are tried, the same for every link, and the printed "
    "numbers stand beside each. A row's round trip is that between pods, propagation only.",
    "30 % load of the hosts' links, the flow sizes of the wide area, and queues of one delay-bandwidth product.",
    "Runs of 4 ms to 40 ms, in proportion to the delay, of which flows from two fifths on count. Timeouts are those of "
    "the wide area, 200 ms or more, so no flow that has one can count.",
)

REASONS = {
    (f"{context.name} {average}", "reduction"): "the paper gives no delays; the gain grows with them, row by row"
    for context in CONTEXTS.values()
    for average in AVERAGES
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes at every delay."""
    return contexts.plan(list(CONTEXTS.values()), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions by delay."""
    return Evaluation(tuple(row for context in CONTEXTS.values() for row in _rows(context, effort, outcomes)))


def _rows(context: Context, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    own = context.effort(effort)
    frames = [internet2.pairs(context.setting, seed, own, outcomes) for seed in effort.seed_numbers()]
    for average in AVERAGES:
        times = [found for frame in frames if (found := internet2.mean_times(frame, average)) is not None]
        row = f"{context.name} {average}"
        yield measured(row, "TCP FCT", "µs", None, [1e6 * tcp_s for tcp_s, _ in times])
        yield measured(row, "RC3 FCT", "µs", None, [1e6 * rc3_s for _, rc3_s in times])
        yield measured(row, "reduction", "%", PRINTED[average], [reduction(*pair) for pair in times])


def draw(evaluation: Evaluation) -> Figure:
    """The reduction by round-trip time, and the paper's two numbers."""
    drawing, [axes] = plots.figure()
    for average, look in zip(AVERAGES, (plots.TCP, plots.RC3), strict=True):
        rows = [evaluation.find(f"{context.name} {average}", "reduction") for context in CONTEXTS.values()]
        plots.points(axes, average, look, list(CONTEXTS), rows)
        axes.axhline(PRINTED[average], color=look.ink, linestyle=":", linewidth=1.0, label=f"paper, {average}")
    axes.set_xscale("log")
    axes.set_xticks(list(CONTEXTS), [f"{round_trip:.0f}" for round_trip in CONTEXTS])
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set_xlabel("round-trip time between pods (µs)")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 2)
    return drawing


def _reach(average: str) -> Value:
    """How far inside our range of reductions the printed one lies, points; below 0 outside."""

    def inside(evaluation: Evaluation) -> float:
        found = [evaluation.ours(f"{context.name} {average}", "reduction") for context in CONTEXTS.values()]
        return min(max(found) - PRINTED[average], PRINTED[average] - min(found))

    return inside


CLAIMS = (
    Claim(
        "Over flows the printed 45 % lie within what delays of 1 to 33 µs a link give (section 6)",
        _reach("over flows"),
        full=at_least(0.0),
        quick=at_least(0.0),
    ),
    Claim(
        "Over bytes the printed 66 % do, too (section 6)",
        _reach("over bytes"),
        full=at_least(0.0),
        quick=at_least(0.0),
    ),
    Claim(
        "The benefits grow with the delay-bandwidth product (section 6)",
        falling([f"{context.name} over bytes" for context in reversed(CONTEXTS.values())], "reduction"),
        full=at_least(1.0),
        quick=at_least(0.95),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fattree",
    title="A datacentre of 100 Gb/s links",
    source='Mittal et al., NSDI 2014, section 6, "Datacenters and Elsewhere"; RC3 slides, "Future"',
    method="A fat-tree datacentre topology with 100 Gb/s links; each flow under TCP and under RC3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=STOP_S),
    quick=Effort("quick", seeds=1, stop_s=STOP_S),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)
