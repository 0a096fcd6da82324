"""Beyond the papers: RC3's low-priority segments handed to the sender's interface at once, or when it is idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import AVERAGES, FAST_NEAR, RC3, REDUCTION, SLOW_NEAR, Setting
from sparelane.reports import plots

BASES = (SLOW_NEAR, FAST_NEAR)
FEEDS: Mapping[str, tuple[str, ...]] = {"pushed": (), "pulled": ("scheme.rc3.feed=pull",)}


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


METRICS = named(GAIN)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
