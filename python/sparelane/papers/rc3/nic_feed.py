"""Beyond the papers: RC3's low-priority segments handed to the sender's interface at once, or when it is idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, ours
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import AVERAGES, FAST_NEAR, FLOWS, RC3, REDUCTION, SLOW_NEAR, Setting
from sparelane.reports import plots

BASES = (SLOW_NEAR, FAST_NEAR)
FEEDS: Mapping[str, tuple[str, ...]] = {"pushed": (), "pulled": ("scheme.rc3.feed=pull",)}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    "Pushed: the interface is handed all low-priority segments when the flow starts, as the authors' code does, and "
    "sends them even when they have become needless. Pulled: it is handed one whenever it has nothing else to send, "
    "and only such as TCP has not overtaken.",
)


GAIN = Metric("gain of pulling, points", "%")


def key(base: Setting, feed: str, average: str) -> Key:
    """The reduction with a feed."""
    return Key(f"{base.name}, {feed}", REDUCTION, RC3, average)


def settings() -> list[Setting]:
    """Each base with each feed; TCP's runs are the same for both."""
    return [replace(base, rc3_overrides=overrides) for base in BASES for overrides in FEEDS.values()]


def plan(effort: Effort) -> Sequence[Simulation]:
    """TCP, and RC3 with both feeds."""
    return internet2.plan(settings(), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Reductions with both feeds, and what pulling gains."""
    rows = (row for base in BASES for row in _rows(base, effort, outcomes))
    return Evaluation(tuple(rows), internet2.notes(effort))


def _rows(base: Setting, effort: Effort, outcomes: Outcomes) -> Iterable[Row]:
    for average in AVERAGES:
        cuts = {
            feed: _reductions(replace(base, rc3_overrides=overrides), average, effort, outcomes)
            for feed, overrides in FEEDS.items()
        }
        for feed, values in cuts.items():
            yield measured(key(base, feed, average), None, values)
        gains = [pulled - pushed for pushed, pulled in zip(cuts["pushed"], cuts["pulled"], strict=True)]
        yield measured(Key(base.name, GAIN, RC3, average), None, gains)


def _reductions(setting: Setting, average: str, effort: Effort, outcomes: Outcomes) -> list[float]:
    pairs = internet2.all_pairs(setting, effort, outcomes)
    return [reduction(*times) for times in internet2.all_mean_times(pairs, average)]


def draw(evaluation: Evaluation) -> Figure:
    """Reductions with both feeds."""
    drawing, [axes] = plots.figure()
    groups = [(base, average) for base in BASES for average in AVERAGES]
    bars = [
        plots.Bars.of_rows(feed, look, [evaluation.find(key(base, feed, average)) for base, average in groups])
        for feed, look in zip(FEEDS, (plots.TCP, plots.RC3), strict=True)
    ]
    names = [(base.name.removesuffix(" 40 ms"), average.removeprefix("mean ")) for base, average in groups]
    plots.grouped_bars(axes, ["\n".join(name) for name in names], bars)
    axes.set_xlabel("bottleneck and average")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 2)
    return drawing


CLAIMS = (
    Claim(
        "Pulling is no worse than pushing, and better where the hosts' links are slow (ours)",
        ours(Key(SLOW_NEAR.name, GAIN, RC3, FLOWS)),
        full=at_least(0.0),
        quick=at_least(-1.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/nic-feed",
    title="Low-priority segments pushed to the interface at once, or pulled when it is idle",
    source="sparelane; NSDI 2014, section 2.1, says only that they wait for TCP's",
    method="Internet2 topology, 30 % load, 40 ms, at 100 Mb/s and 1 Gb/s; each flow under TCP and under RC3 with both "
    "feeds.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
