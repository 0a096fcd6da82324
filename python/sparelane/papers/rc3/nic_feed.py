"""Compares two ways of passing RC3's low-priority segments to the sender's interface: at once, or when it is idle.

It is not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparelane.papers.engine.base import Effort
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3 import internet2
from sparelane.papers.rc3.internet2 import AVERAGES, NAMED, RC3, REDUCTION

GAIN = Metric("gain of pulling, points", "%")
METRICS = named(GAIN, REDUCTION)
FEEDS = {"pushed": (), "pulled": ("scheme.rc3.feed=pull",)}
# Each network with each feed; TCP's runs are the same for both.
SETTINGS = {
    base.name: {feed: replace(base, rc3_overrides=overrides) for feed, overrides in FEEDS.items()}
    for base in (NAMED["slow near"], NAMED["fast near"])
}


def cells(effort: Effort) -> Iterable[Cell]:
    """Yields TCP, and RC3 with both feeds."""
    return (cell for feeds in SETTINGS.values() for one in feeds.values() for cell in internet2.both(one, effort))


def evaluate(runs: Runs) -> Evaluation:
    """Returns the reductions with both feeds, and the gain of pulling."""
    rows: list[Row] = []
    for name, feeds in SETTINGS.items():
        frames = {feed: internet2.pairs(runs, setting) for feed, setting in feeds.items()}
        for average in AVERAGES:
            cuts = {feed: internet2.reductions(found, average) for feed, found in frames.items()}
            rows += [
                measured(Key(f"{name}, {feed}", REDUCTION, RC3, average), None, values) for feed, values in cuts.items()
            ]
            gains = [pulled - pushed for pushed, pulled in zip(cuts["pushed"], cuts["pulled"], strict=True)]
            rows.append(measured(Key(name, GAIN, RC3, average), None, gains))
    return Evaluation(tuple(rows), internet2.notes(runs.effort))
