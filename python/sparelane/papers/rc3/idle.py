"""Measures bursts on connections that are idle between them: NSDI 2014, section 4.2.1.

A client's bursts follow each other on a connection that is kept. TCP sends each burst with the window of the last one,
or with a window that restarted after the idle period. RC3's loop of low priority begins anew with each burst.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rc3.analytic import MSS_BYTES, reduction
from sparelane.papers.rc3.internet2 import FCT, RC3, REDUCTION, SCHEMES, TCP, WARM_UP_SHARE, Scheme

# RC3's mean time relative to that of TCP with a window that is kept, if RC3's own window restarts.
OVER_KEPT = Metric("reduction from a kept window", "%")
LOST = Metric("lost packets of bursts", "%")
METRICS = named(FCT, REDUCTION, OVER_KEPT, LOST)

# The window after an idle period, with the values of the key `restart_after_idle`.
KEPT, RESTARTED, HALVED = "kept", "restarted", "halved per timeout"
WINDOWS: Mapping[str, str] = {KEPT: "no", RESTARTED: "rfc5681", HALVED: "linux"}
# On Internet-2, bursts are flows of workload 1.
OTHERS = "other flows"


def windows_of(scheme: Scheme) -> Sequence[str]:
    """Returns the windows after idleness that a scheme is run with."""
    return list(WINDOWS) if scheme == "tcp" else [KEPT, RESTARTED]


def size(packets: int) -> str:
    """Returns the size of a burst in the keys of rows."""
    return f"{packets} packets"


@dataclass(frozen=True, slots=True)
class Path:
    """Bursts alone on a path, one each second.

    Attributes:
        setting: the path in the keys of rows.
        overrides: the path, each `key=value`.
        packets: the size of each burst.
        bursts: the number of bursts; the first opens the connection and does not count.
    """

    setting: str
    overrides: tuple[str, ...]
    packets: int
    bursts: int

    @property
    def traffic(self) -> str:
        """The bursts in the keys of rows."""
        return size(self.packets)

    def cell(self, scheme: Scheme, window: str, effort: Effort) -> Cell:
        """Returns all bursts under a scheme, with a window after idleness."""
        return Cell(
            "rc3-linux",
            (
                *self.overrides,
                f"workload.scheme={scheme}",
                f"workload.size={self.packets}packets",
                f"workload.flows={self.bursts}",
                "workload.gap=1s",
                "workload.connections=reused",
                f"transport.restart_after_idle={WINDOWS[window]}",
                f"duration={self.bursts + 2}s",
            ),
            f"{self.setting}, {self.traffic}, {scheme}, window {window}",
            cost=1e-5 * self.packets * self.bursts,
            most_seeds=1,
            setting=self.setting,
            scheme=SCHEMES[scheme],
            variant=f"window {window}",
        )

    def times(self, outcome: Outcome, effort: Effort) -> Mapping[str, float]:
        """Returns the mean time of the bursts on the open connection, in seconds."""
        flows = outcome.flows.filter(pl.col("id") > 0)
        if flows.filter(pl.col("connection") != 0).height:
            raise ValueError(f"a burst of {self.traffic} at {self.setting} lasts until the next one")
        return {self.traffic: _mean(flows["completion_s"])}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Bursts between pairs of hosts of Internet-2, beside its usual flows.

    Attributes:
        setting: the network in the keys of rows.
        packets: the size of each burst.
    """

    setting: str
    packets: int

    @property
    def traffic(self) -> str:
        """The bursts in the keys of rows."""
        return size(self.packets)

    def cell(self, scheme: Scheme, window: str, effort: Effort) -> Cell:
        """Returns bursts and other flows under a scheme, with a window after idleness."""
        # A hundred hosts, each with a burst a second.
        bursts = (
            f'workload.1={{ kind = "bulk", scheme = "{scheme}", pairs = "permutation", gap = "10ms", '
            f'flows = {round(100 * effort.stop_s)}, size = "{self.packets}packets", connections = "reused" }}'
        )
        return Cell(
            "rc3-video",
            (
                bursts,
                f"workload.0.scheme={scheme}",
                f"transport.restart_after_idle={WINDOWS[window]}",
                f"duration={effort.stop_s:g}s",
            ),
            f"{self.setting}, {scheme}, window {window}",
            cost=0.3 * effort.stop_s,
            setting=self.setting,
            scheme=SCHEMES[scheme],
            variant=f"window {window}",
        )

    def times(self, outcome: Outcome, effort: Effort) -> Mapping[str, float]:
        """Returns the mean times of bursts on open connections and of other flows, in seconds."""
        counted = outcome.flows.filter(pl.col("start_s") >= WARM_UP_SHARE * effort.stop_s)
        bursts = counted.filter(pl.col("size_bytes") == self.packets * MSS_BYTES)
        again = bursts.filter(pl.col("connection") != pl.col("id"))
        others = counted.filter(pl.col("size_bytes") != self.packets * MSS_BYTES)
        return {self.traffic: _mean(again["completion_s"]), OTHERS: _mean(others["completion_s"])}


Place = Path | Loaded


def _mean(times: pl.Series) -> float:
    return float(times.drop_nulls().mean() or float("nan"))  # type: ignore[arg-type]


def _row(key: Key, values: Iterable[float]) -> Row:
    """The row of the seeds that have a number."""
    return measured(key, None, [value for value in values if math.isfinite(value)])


def _lost(outcome: Outcome, packets: int) -> float:
    """Returns the lost packets of bursts in percent of those that were sent."""
    bursts = outcome.flows.filter(pl.col("size_bytes") == packets * MSS_BYTES)
    sent = sum(int(bursts[name].sum()) for name in bursts.columns if name.startswith("sent_packets_"))
    return 100.0 * int(bursts["lost_packets"].sum()) / max(sent, 1)


@dataclass(frozen=True, slots=True)
class Study:
    """The experiment.

    Attributes:
        paths: bursts alone on a path.
        loaded: bursts beside other flows.
    """

    paths: Sequence[Path]
    loaded: Loaded

    def _places(self) -> Sequence[Place]:
        return [*self.paths, self.loaded]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields both schemes at every place, with each window."""
        for place in self._places():
            for scheme in SCHEMES:
                yield from (place.cell(scheme, window, effort) for window in windows_of(scheme))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns times, RC3's reductions of them, and the losses of bursts."""
        return Evaluation(tuple(row for place in self._places() for row in self._rows(place, runs)))

    def _rows(self, place: Place, runs: Runs) -> Iterable[Row]:
        found = {
            (SCHEMES[scheme], window): runs.of(place.cell(scheme, window, runs.effort))
            for scheme in SCHEMES
            for window in windows_of(scheme)
        }
        times = {run: [place.times(one, runs.effort) for one in outcomes] for run, outcomes in found.items()}
        for (scheme, window), by_seed in times.items():
            for traffic in by_seed[0]:
                key = Key(place.setting, FCT, scheme, "mean", traffic, f"window {window}")
                yield _row(key, [one[traffic] for one in by_seed])
                if scheme != RC3:
                    continue
                # Both schemes have the same window after idleness. RC3's restarted one also meets TCP's kept one.
                compared = [(REDUCTION, window)] + ([(OVER_KEPT, KEPT)] if window != KEPT else [])
                for metric, of_tcp in compared:
                    pairs = zip(times[TCP, of_tcp], by_seed, strict=True)
                    cuts = [reduction(tcp[traffic], rc3[traffic]) for tcp, rc3 in pairs]
                    yield _row(replace(key, metric=metric), cuts)
            if isinstance(place, Loaded):
                key = Key(place.setting, LOST, scheme, "", place.traffic, f"window {window}")
                yield _row(key, [_lost(one, place.packets) for one in found[scheme, window]])


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    bursts = rest.whole("bursts")
    paths = []
    for part in templates(rest, "paths"):
        setting, overrides = part.text("setting"), part.texts("overrides")
        paths += [Path(setting, overrides, int(packets), bursts) for packets in part.numbers("packets")]
        part.finish()
    part = rest.section("loaded")
    loaded = Loaded(part.text("setting"), part.whole("packets"))
    part.finish()
    study = Study(paths, loaded)
    return panels.study(declared, study.cells, study.evaluate)
