"""RTCP's experiments with one client and its servers on a testbed of 1 Gb/s: Figs. 4 to 7.

A file of this kind lists settings, schemes and what is measured. The paper prints no numbers for these figures; its
text states the order of schemes. Such an order becomes a row with a ratio, which is below 100 % if the order holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import polars as pl

from sparelane.papers.engine import claims, panels
from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import NOT_EXPLAINED, Evaluation, Key, Metric, Row, joined
from sparelane.papers.engine.sections import Section
from sparelane.papers.engine.statistics import jackknife

SCENARIO = "rtcp-testbed"

# The schemes by their names in the paper, with their names in the scenario.
SCHEMES: Mapping[str, str] = {"Cubic": "cubic", "DCTCP": "dctcp", "PCC": "pcc", "BBR": "bbr", "RTCP": "rtcp"}
CLASSES = ("urgent", "high-volume")
SIZES: Mapping[str, str] = {"web search": "web-search", "data mining": "data-mining"}

# The share of the requests' time before flows count.
WARM_UP_SHARE = 0.1
# The length of a run in multiples of the requests' time, so that flows can finish.
LONG_RUN = 3

# The servers and the client run Linux with its default network settings, offload included (section V-A1). A chunk
# takes up to 44 segments, 64 KB. The receiver passes it on after 50 us, the interval of interrupts of the paper's
# interfaces at 20,000 a second, and acknowledges it at once. Propagation takes the rest of the paper's 200 us.
OFFLOAD = 'send_batch = 44, receive_batch = 44, receive_batch_timeout = "50us"'
LINUX = '{ preset = "linux", delayed_ack = false, receive_window = "3MiB"'
OF_THE_HOSTS = (f"transport={LINUX}, {OFFLOAD} }}", "topology.delay=37.5us", "scheme.rtcp.min_window=2")
WITHOUT_OFFLOAD = (f"transport={LINUX} }}", "topology.delay=50us")

# What the paper leaves open: variants of RTCP, and variants of the hosts and the network with all schemes.
OF_RTCP: Mapping[str, tuple[str, ...]] = {
    "x_max of the line rate": ("scheme.rtcp.x_max=1",),
    "x_max of 8 line rates": ("scheme.rtcp.x_max=8",),
    "windows from 1 segment": ("scheme.rtcp.min_window=1",),
    "windows from 10 segments": ("scheme.rtcp.min_window=10",),
    "round-trip times by 1 ms": ('scheme.rtcp.transport={ rtt_granularity = "1ms" }',),
    "the wait at the own interface in Q and not in D": ('scheme.rtcp.interface="apart"',),
    "alpha = 0": ("scheme.rtcp.alpha=0",),
}
OF_THE_NETWORK: Mapping[str, tuple[str, ...]] = {
    "interfaces without bound": ("nic.limit=2.048GB",),
    "receive windows of 256 KiB": ("transport.receive_window=256KiB",),
    "a connection for each flow": ("workload.connections=new",),
    "windows kept while idle": ("transport.restart_after_idle=no",),
    "without offload": WITHOUT_OFFLOAD,
    "without offload, a connection for each flow": (*WITHOUT_OFFLOAD, "workload.connections=new"),
    "interrupts after up to 250 us": ("transport.receive_batch_timeout=250us",),
    "single segments acknowledged after 40 ms": ('transport.delayed_ack={ every = 2, timeout = "40ms" }',),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """The requests of a client, and the network.

    Attributes:
        name: the setting in the keys of rows.
        sizes: the workload, a key of `SIZES`.
        load: the load of the client's link, from 0 to 1.
        alpha: RTCP's alpha.
        overrides: overrides of the scenario, each `key=value`.
        schemes: the compared schemes, keys of `SCHEMES`.
        variant: what differs from the paper, in the keys of rows.
    """

    name: str
    sizes: str
    load: float
    alpha: float
    overrides: tuple[str, ...]
    schemes: tuple[str, ...]
    variant: str = ""

    def varied(self, variant: str, *overrides: str) -> Setting:
        """Returns the setting with further overrides."""
        return replace(self, variant=variant, overrides=(*self.overrides, *overrides))

    def requests(self, scheme: str, end_s: float, long_run: int) -> tuple[str, ...]:
        """Returns the overrides for requests until `end_s`, in a run of `long_run` times that."""
        return (
            f"workload.sizes.kind={SIZES[self.sizes]}",
            f"workload.load={self.load:g}",
            f"workload.scheme={SCHEMES[scheme]}",
            f"workload.end={end_s:g}s",
            f"duration={long_run * end_s:g}s",
        )

    def alphas(self, scheme: str) -> tuple[str, ...]:
        """Returns the override of RTCP's alpha; none for other schemes."""
        return (f"scheme.rtcp.alpha={self.alpha:g}",) if scheme == "RTCP" else ()

    def cell(self, scheme: str, effort: Effort) -> Cell:
        """Returns what is simulated for a scheme at an effort."""
        requests = self.requests(scheme, effort.stop_s, LONG_RUN)
        return Cell(
            SCENARIO,
            (*OF_THE_HOSTS, *self.alphas(scheme), *requests, *self.overrides),
            cost=0.03 * self.load * effort.stop_s,
            keep_flows=True,
            setting=self.name,
            scheme=scheme,
            variant=self.variant,
        )


def settings(rest: Section) -> list[Setting]:
    """Returns the settings that a file lists.

    Raises:
        DeclarationError: a key is wrong.
    """
    schemes = rest.texts("schemes")
    found = []
    for part in templates(rest, "settings"):
        found.append(
            Setting(
                name=part.text("name"),
                sizes=part.text("sizes"),
                load=part.number("load"),
                alpha=part.number("alpha"),
                overrides=part.texts("overrides"),
                schemes=part.texts("schemes") or schemes,
            )
        )
        part.finish()
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of one run.

    Attributes:
        values: one number per flow or request, by the name of a statistic.
        unfinished: the number of flows that should count and did not finish.
    """

    values: Mapping[str, np.ndarray]
    unfinished: int


def sample(outcome: Outcome, effort: Effort) -> Sample:
    """Returns completion times in milliseconds and goodputs in Mb/s, of the flows and requests that count."""
    flows = outcome.flows.filter(pl.col("start_s") >= WARM_UP_SHARE * effort.stop_s)
    done = flows.drop_nulls("completion_s")
    requests = flows.group_by("request", maintain_order=True).agg(
        (pl.col("completion_s").max() * 1e3).alias("ms"),
        pl.col("completion_s").is_not_null().all().alias("is_over"),
        (pl.col("traffic_class") == "urgent").all().alias("is_urgent"),
    )
    values = {"goodput": (done["size_bytes"] * 8 / done["completion_s"] / 1e6).to_numpy()}
    for name in CLASSES:
        of_class = done.filter(pl.col("traffic_class") == name)
        values[f"{name} FCT"] = (of_class["completion_s"] * 1e3).to_numpy()
        over = requests.filter(pl.col("is_over"), pl.col("is_urgent") == (name == "urgent"))
        values[f"{name} RCT"] = over["ms"].to_numpy()
    return Sample(values, flows.height - done.height)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number computed from the flows or requests of several runs together.

    Attributes:
        metric: the measured quantity.
        traffic: the traffic class of the flows or requests; empty for all.
        percent: the percentile; `None` for the mean.
    """

    metric: Metric
    traffic: str = ""
    percent: int | None = None

    @property
    def average(self) -> str:
        """The percentile in the keys of rows; empty for the mean."""
        return "" if self.percent is None else f"{self.percent}th percentile"

    @property
    def name(self) -> str:
        """The name of its values in a `Sample`."""
        return joined(self.traffic, self.metric.name, by=" ")

    def key(self, setting: Setting, scheme: str) -> Key:
        """Returns the key of the row of a scheme in a setting."""
        return Key(setting.name, self.metric, scheme, self.average, self.traffic, setting.variant)

    def of(self, samples: Iterable[Sample]) -> float:
        """Returns the number for all runs together; not a number without flows."""
        values = [one.values[self.name] for one in samples]
        together = np.concatenate(values) if values else np.empty(0)
        if not together.size:
            return math.nan
        return float(together.mean() if self.percent is None else np.percentile(together, self.percent))


FCT, RCT = Metric("FCT", "ms"), Metric("RCT", "ms")
GOODPUT = Statistic(Metric("goodput", "Mb/s"))
STATISTICS: Mapping[str, Statistic] = {
    one.name: one for one in (*(Statistic(metric, name, 99) for metric in (FCT, RCT) for name in CLASSES), GOODPUT)
}

# Computes a statistic for a scheme in a setting.
Ask = Callable[[Setting, str], float]
ENDS: Mapping[str, Callable[[Sequence[float]], float]] = {"least": min, "largest": max, "mean": fmean}


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a ratio.

    Attributes:
        end: the number that counts among those of several schemes, a key of `ENDS`.
        schemes: the schemes.
    """

    end: str
    schemes: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Side:
        """Reads a scheme, or "least of", "largest of" or "mean of" and several schemes."""
        end, names = re.fullmatch(r"(?:(least|largest|mean) of )?(.+)", text).groups()  # type: ignore[union-attr]
        return cls(end or "largest", tuple(names.split(", ")))

    def number(self, value: Callable[[str], float]) -> float:
        """Returns the number that counts."""
        return ENDS[self.end]([value(scheme) for scheme in self.schemes])


@dataclass(frozen=True, slots=True)
class Ratio:
    """A statement of the text about the order of schemes, as a ratio.

    Attributes:
        key: the key of its row, in percent.
        statistic: the compared number.
        settings: the setting; or two, for the number in the first relative to the second.
        sides: the numerator and the denominator; without the latter, the numerator itself is the ratio.
    """

    key: Key
    statistic: Statistic
    settings: Sequence[Setting]
    sides: Sequence[Side]

    def percent(self, ask: Ask) -> float:
        """Returns the ratio in percent."""

        def value(scheme: str) -> float:
            first, *others = (ask(setting, scheme) for setting in self.settings)
            return first / others[0] if others else first

        upper, *lower = (side.number(value) for side in self.sides)
        return 100 * (upper / lower[0] if lower else upper)


@dataclass(frozen=True, slots=True)
class Clients:
    """An experiment of this kind.

    Attributes:
        settings: the settings without a variant.
        runs: settings with their variants, each with a scheme.
        statistics: what is measured of each run.
        ratios: the text's orders.
        orders: keys of ratios that state an order, and not that two numbers are equal.
        notes: further notes.
    """

    settings: Sequence[Setting]
    runs: Sequence[tuple[Setting, str]]
    statistics: Sequence[Statistic]
    ratios: Sequence[Ratio]
    orders: frozenset[Key]
    notes: tuple[str, ...]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields all runs."""
        return (setting.cell(scheme, effort) for setting, scheme in self.runs)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns each statistic of each run, the text's ratios, and the number of orders that hold."""
        samples = {
            (setting, scheme): [sample(one, runs.effort) for one in runs.of(setting.cell(scheme, runs.effort))]
            for setting, scheme in self.runs
        }
        count = runs.effort.seeds

        def row(key: Key, statistic: Statistic, number: Callable[[Ask], float]) -> Row:
            def over(seeds: Sequence[int]) -> float:
                return number(lambda *run: statistic.of(samples[run][at] for at in seeds))

            whole = over(range(count))
            return Row(key, None, whole, jackknife(over, count)) if math.isfinite(whole) else Row(key, None, None)

        rows = [
            row(statistic.key(*run), statistic, lambda ask, run=run: ask(*run))  # type: ignore[misc]
            for run in self.runs
            for statistic in self.statistics
        ]
        judged = [row(ratio.key, ratio.statistic, ratio.percent) for ratio in self.ratios]
        notes = (self._tally(judged), *self.notes, _unfinished(samples))
        return Evaluation((*rows, *judged), notes)

    def _tally(self, judged: Sequence[Row]) -> str:
        orders = [row for row in judged if row.key in self.orders and row.value is not None]
        below = sum((row.value or 0.0) + (row.interval or 0.0) < 100 for row in orders)
        above = sum((row.value or 0.0) - (row.interval or 0.0) > 100 for row in orders)
        return (
            f"Of {len(orders)} statements of the text about order, {below} hold here and {above} do not; the interval "
            f"of {len(orders) - above - below} includes a tie."
        )


def _unfinished(samples: Mapping[tuple[Setting, str], Sequence[Sample]]) -> str:
    left = {run: sum(one.unfinished for one in found) for run, found in samples.items()}
    listed = "; ".join(
        f"{joined(setting.name, setting.variant)}: {scheme} {count}"
        for (setting, scheme), count in left.items()
        if count
    )
    return f"Flows that had not finished when a run ended, over all seeds: {listed or 'none'}."


METRICS = named(FCT, RCT, GOODPUT.metric)
# The band of a claim about an order: a ratio in percent, rounded to two digits.
ORDER_HOLDS = (-math.inf, 99.99)


def metrics_of(root: Section) -> Mapping[str, Metric]:
    """Returns the metrics of a file's ratios."""
    return {name: Metric(name, "%") for part in templates(root, "ratios") for _, name, *_ in part.lists("rows")}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    found = settings(rest)
    by_name = {setting.name: setting for setting in found}
    varied = rest.one_of("varied", by_name)
    runs = [(setting, scheme) for setting in found for scheme in setting.schemes]
    runs += [(varied.varied(variant, *overrides), "RTCP") for variant, overrides in OF_RTCP.items()]
    runs += [
        (varied.varied(variant, *overrides), scheme)
        for variant, overrides in OF_THE_NETWORK.items()
        for scheme in varied.schemes
    ]
    runs += [
        (by_name[setting].varied(variant, *overrides), scheme)
        for setting, scheme, variant, overrides in rest.lists("variants", ())
    ]
    ratios: list[Ratio] = []
    orders: list[Key] = []
    for part in templates(rest, "ratios"):
        is_order = bool(part.text("order", ""))
        for setting, metric, statistic, places, *sides in part.lists("rows"):
            key = Key(setting, Metric(metric, "%"))
            compared = [by_name[name] for name in places]
            ratios.append(Ratio(key, STATISTICS[statistic], compared, [Side.read(side) for side in sides]))
            orders += [key] * is_order
        part.finish()
    study = Clients(found, runs, rest.some_of("statistics", STATISTICS), ratios, frozenset(orders), rest.texts("notes"))
    return panels.study(_with_orders(declared, orders), study.cells, study.evaluate)


def _with_orders(declared: Declaration, orders: Sequence[Key]) -> Declaration:
    """Returns the declaration with a statement of the paper, and a claim, for each order."""
    ours = claims.values("ours", [orders])
    return replace(
        declared,
        stated={**declared.stated, **dict.fromkeys(orders, (-math.inf, 100.0))},
        claims=(
            *(
                Claim(
                    f"{key.setting}, {key.metric.name}, in percent",
                    value,
                    ORDER_HOLDS,
                    reason=declared.reasons.get(key, NOT_EXPLAINED),
                )
                for key, value in ours
            ),
            *declared.claims,
        ),
    )
