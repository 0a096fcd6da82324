"""Experiments with one transfer under many schemes or variants of RAPID: Tables II to VIII (sections V and VI).

A file of this kind lists points and transfers. A point is a setting of the testbed: other traffic, random loss or a
round trip. A transfer is one scheme, or several, with overrides. Every transfer runs at every point. The traffic of the
point determines the rows: throughput of the transfer, its loss, its use of the remaining capacity, and durations of web
flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Metric, Row, joined, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rapid import notes, testbed
from sparelane.papers.rapid.testbed import LINK_USE, LOSS, MEDIAN, THROUGHPUT, WEB_FLOW
from sparelane.scenario.settings import toml_value

RANGE = Metric("5-95 % range at 1 ms", "Gb/s")

# The traffic of points with web users, who sit behind ten pairs of hosts.
WEB = "web users"
PAIRS = range(2, 12)
# The hosts of the measured transfer.
PAIR = ("left0", "right0")
USERS = 500
# The quantiles of the durations of web flows.
QUANTILES = {
    MEDIAN: 0.5,
    "10th percentile": 0.1,
    "90th percentile": 0.9,
    "5th percentile": 0.05,
    "95th percentile": 0.95,
}

# The unmeasured start of a run, as a share of the run.
UNCOUNTED = {"a tenth": 0.1, "a third": 1 / 3}
# The length of runs that measure the burstiness of cross traffic, and the beginning that is not measured, seconds.
BURSTINESS_S = 20.0
BURSTINESS_FROM_S = 0.1


@dataclass(frozen=True, slots=True)
class Run:
    """A transfer at a point. Its cell depends on the effort, which determines the length of runs.

    Attributes:
        setting: the point, as the setting in the keys of rows.
        label: the scheme in the keys of rows.
        scheme: the scheme in the scenario; empty for web users alone.
        variant: what differs from the paper, in the keys of rows.
        traffic: the other traffic: a key of `testbed.CROSS_TRAFFIC`, `WEB`, or empty for none.
        overrides: overrides of the scenario; without a transfer, only those of a variant matter.
        uncounted: the share of a run before the measurement.
        start_up_s: the longest time in seconds that RAPID's start-up takes.
        is_quick: whether quick efforts include the run.
        earlier: the earlier transfer between the same hosts; `None` for the first transfer between them.
        users: overrides that apply if there are web users, also without a transfer.
    """

    setting: str
    label: str
    scheme: str
    variant: str = ""
    traffic: str = ""
    overrides: tuple[str, ...] = ()
    uncounted: float = UNCOUNTED["a tenth"]
    start_up_s: float = testbed.START_UP_S
    is_quick: bool = True
    earlier: testbed.Earlier | None = None
    users: tuple[str, ...] = ()

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort. Short runs have no earlier transfer."""
        stop_s, from_s = testbed.span(self.scheme, effort, self.uncounted, self.start_up_s)
        # RAPID has no slow-start threshold.
        has_earlier = testbed.is_long(effort) and self.scheme not in ("", "rapid")
        earlier = self.earlier if has_earlier else None
        start_s = earlier.seconds if earlier else 0.0
        stop_s, from_s = stop_s + start_s, from_s + start_s
        head = () if self.traffic == WEB else testbed.transfer(self.scheme, stop_s, self.traffic)
        if self.traffic == WEB or earlier:
            head = (*head, f"workload={workload(self.scheme, earlier, self.traffic == WEB)}")
        if self.traffic == WEB:
            head = (*head, "nic.limit=1000packets", "nic.full=wait", f"duration={stop_s:g}s", *self.users)
        if earlier:
            head = (*head, *earlier.overrides([PAIR]))
        return Cell(
            testbed.SCENARIO,
            (
                *head,
                f"measure.from={from_s:g}s",
                *testbed.start(effort),
                *(self.overrides if self.scheme or self.variant else ()),
            ),
            cost=3 * stop_s if self.traffic == WEB else stop_s,
            setting=self.setting,
            scheme=self.label,
            variant=self.variant,
            from_s=from_s,
            stop_s=stop_s,
        )


def workload(scheme: str, earlier: testbed.Earlier | None, has_users: bool) -> str:
    """Returns the value of `workload`: a transfer under `scheme` unless that is empty, and perhaps web users."""
    servers, clients = (toml_value([f"{side}{number}" for number in PAIRS]) for side in ("left", "right"))
    users = (
        f'{{kind="web-users", scheme="web", users={USERS}, largest_file="100MB", servers={servers}, clients={clients}}}'
    )
    start = f', start="{earlier.seconds:g}s"' if earlier else ""
    transfer = f'{{kind="bulk", scheme="{scheme}", pairs={toml_value([list(PAIR)])}, size="unlimited"{start}}}'
    parts = [
        *([earlier.workload(scheme, [PAIR])] if earlier else []),
        *([transfer] if scheme else []),
        *([users] if has_users else []),
    ]
    return f"[{', '.join(parts)}]"


def transfer(outcome: Outcome) -> pl.DataFrame:
    """Returns the row of the measured transfer, which is the last flow from left0."""
    return outcome.flows.filter(pl.col("src") == "left0").sort("id").tail(1)


def gbps(outcome: Outcome, cell: Cell) -> float:
    """Returns the payload that the transfer's receiver got during the measurement, in Gb/s."""
    return float(transfer(outcome)["measured_bytes"].item()) * 8 / (cell.stop_s - cell.from_s) / 1e9


def loss_percent(outcome: Outcome) -> float:
    """Returns the lost packets of the transfer in percent of its sent packets."""
    row = transfer(outcome)
    return 100 * float(row["lost_packets"].item()) / float(row["sent_packets_0"].item())


def durations_ms(outcome: Outcome, cell: Cell) -> pl.Series:
    """Returns the durations of finished web flows that started during the measurement, in milliseconds."""
    flows = outcome.flows.filter((pl.col("scheme") == "web") & (pl.col("start_s") >= cell.from_s))
    return flows["completion_s"].drop_nulls() * 1e3


def distribution(durations: pl.Series) -> pl.DataFrame:
    """Returns the cumulative distribution in 200 steps: `duration_ms` and `share`."""
    shares = [step / 200 for step in range(1, 200)]
    return pl.DataFrame({"duration_ms": [durations.quantile(share) for share in shares], "share": shares})


def cross_rates_gbps(outcome: Outcome) -> pl.Series:
    """Returns the rate of the cross traffic in each measured millisecond, in Gb/s."""
    is_sent = (pl.col("quantity") == "sent_bytes") & (pl.col("time_s") > BURSTINESS_FROM_S)
    return outcome.series.filter(is_sent)["value"] * 8 / 1e-3 / 1e9


def free_gbps(outcome: Outcome) -> float:
    """Returns the capacity that the cross traffic leaves, in Gb/s."""
    return testbed.CAPACITY_BPS / 1e9 - float(cross_rates_gbps(outcome).mean() or 0)  # type: ignore[arg-type]


def range_gbps(outcome: Outcome) -> float:
    """Returns the range from the 5th to the 95th percentile of the cross traffic's rate (section V-C), in Gb/s."""
    rates = cross_rates_gbps(outcome)
    return float(rates.quantile(0.95) or 0) - float(rates.quantile(0.05) or 0)


@dataclass(frozen=True, slots=True)
class CrossTraffic:
    """Cross traffic without a transfer, to measure its burstiness and the capacity that it leaves.

    Attributes:
        setting: the setting in the keys of rows.
        kind: a key of `testbed.CROSS_TRAFFIC`.
        variant: what differs from the paper, in the keys of rows; quick efforts leave variants out.
        overrides: overrides of the scenario.
    """

    setting: str
    kind: str
    variant: str
    overrides: tuple[str, ...]

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        sample = ("sample.interval=1ms", 'sample.links=[["west", "east"]]')
        stop_s = min(effort.stop_s, BURSTINESS_S)
        cell = testbed.cross_traffic_alone(self.kind, "newreno", stop_s, *sample, *self.overrides)
        return replace(cell, setting=self.setting, scheme="cross traffic", variant=self.variant)


@dataclass(frozen=True, slots=True)
class Transfers:
    """An experiment of this kind.

    Attributes:
        declared: the experiment's file.
        runs: all transfers at all points, in the order of the rows.
        cross_traffic: the cross traffic whose burstiness is measured.
        averages: the quantiles of web flows that are rows, keys of `QUANTILES`.
        has_curves: whether the distributions of the durations of web flows are curves.
        notes: the notes on the rows.
    """

    declared: Declaration
    runs: Sequence[Run]
    cross_traffic: Sequence[CrossTraffic]
    averages: Sequence[str]
    has_curves: bool
    notes: Sequence[notes.Note]

    def chosen(self, effort: Effort) -> tuple[list[CrossTraffic], list[Run]]:
        """Returns the cross traffic and the transfers of an effort."""
        is_full = effort.name == "full"
        return (
            [one for one in self.cross_traffic if is_full or not one.variant],
            [run for run in self.runs if is_full or run.is_quick],
        )

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields all cells of an effort."""
        return (one.cell(effort) for found in self.chosen(effort) for one in found)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns the burstiness of the cross traffic, the numbers of all transfers, and distributions of web flows."""
        alone, transfers = self.chosen(runs.effort)
        cells = [one.cell(runs.effort) for one in alone]
        rows = [measured(cell.key(RANGE), None, runs.values(range_gbps, cell)) for cell in cells]
        curves = {}
        for run in transfers:
            cell = run.cell(runs.effort)
            rows += self._rows(run, cell, runs)
            if self.has_curves:
                curves[joined(run.label, run.variant)] = distribution(durations_ms(runs.of(cell)[0], cell))
        return Evaluation(tuple(rows), curves=curves)

    def _rows(self, run: Run, cell: Cell, runs: Runs) -> Iterator[Row]:
        if run.scheme:
            rates = runs.values(lambda outcome: gbps(outcome, cell), cell)
            yield self._row(cell, THROUGHPUT, rates)
            if run.traffic in testbed.CROSS_TRAFFIC:
                alone = next(one for one in self.cross_traffic if one.kind == run.traffic)
                free = runs.values(free_gbps, alone.cell(runs.effort))
                yield self._row(cell, LINK_USE, [100 * rate / left for rate, left in zip(rates, free, strict=True)])
            if run.traffic:
                yield self._row(cell, LOSS, runs.values(loss_percent, cell))
        if run.traffic == WEB:
            durations = [durations_ms(outcome, cell) for outcome in runs.of(cell)]
            for average in self.averages:
                found = [series.quantile(QUANTILES[average]) for series in durations]
                yield self._row(cell, WEB_FLOW, [value for value in found if value is not None], average)

    def _row(self, cell: Cell, metric: Metric, values: Sequence[float], average: str = "") -> Row:
        """Returns a row. A variant without printed numbers is compared with the numbers of the row that it varies."""
        key, printed = cell.key(metric, average), self.declared.printed
        is_printed = any(one.variant == key.variant for one in printed)
        return measured(key, printed.get(key) if is_printed else self.declared.paper(key), values)

    def restate(self, found: Evaluation) -> Evaluation:
        """Returns the evaluation with the notes on its rows."""
        try:
            return replace(found, notes=tuple(line for note in self.notes for line in note(found)))
        except (LookupError, ValueError):
            # Saved results of an earlier plan may lack rows.
            return found


METRICS = named(THROUGHPUT, LOSS, LINK_USE, WEB_FLOW, RANGE)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    study = Transfers(
        declared,
        list(read_runs(rest)),
        [_cross_traffic(part) for part in templates(rest, "cross_traffic")],
        rest.texts("averages") or tuple(QUANTILES),
        rest.flag("distributions"),
        rest.some_of("notes", notes.NOTES),
    )
    draw = panels.read(declared)
    rest.finish()
    return declared.study(study.cells, study.evaluate, draw, restate=study.restate)


def read_runs(rest: Section) -> Iterator[Run]:
    """Yields every transfer of a file at its points.

    The file's `overrides` apply to all transfers, its `overrides_of_others` to those of other schemes than RAPID, and
    its `overrides_of_users` to all runs with web users.
    Quick efforts leave out variants without the key `quick`, and schemes that `quick_schemes` does not list.

    Raises:
        DeclarationError: a key is wrong.
    """
    uncounted = rest.one_of("uncounted", UNCOUNTED, "a tenth")
    common, quick = rest.texts("overrides"), rest.texts("quick_schemes")
    before, others = read_earlier(rest), rest.texts("overrides_of_others")
    users = rest.texts("overrides_of_users")
    points: dict[str, tuple[str, tuple[str, ...]]] = {}
    for part in templates(rest, "point"):
        points[part.text("setting")] = part.text("traffic", ""), part.texts("overrides")
        part.finish()
    for part in templates(rest, "transfer"):
        name, variant, own = part.text("name", ""), part.text("variant", ""), part.texts("overrides")
        schemes, at = part.texts("scheme") or ("RAPID",), part.some_of("at", {name: name for name in points})
        start_up_s, is_quick = part.number("start_up_s", testbed.START_UP_S), part.flag("quick") or not variant
        own_earlier = read_earlier(part)
        earlier = None if part.flag("first") else own_earlier or before
        part.finish()
        for scheme in schemes:
            for setting in at or points:
                traffic, overrides = points[setting]
                yield Run(
                    setting,
                    name or scheme,
                    testbed.scheme(scheme),
                    variant,
                    traffic,
                    (*common, *(others if scheme != notes.RAPID else ()), *overrides, *own),
                    uncounted,
                    start_up_s,
                    is_quick and (not quick or scheme in quick),
                    earlier,
                    users,
                )


def read_earlier(part: Section) -> testbed.Earlier | None:
    """Returns the earlier transfer that a table declares, if it does.

    Raises:
        DeclarationError: a key is wrong.
    """
    if "earlier" not in part:
        return None
    table = part.section("earlier")
    found = testbed.Earlier(table.whole("packets"), table.whole("lost_every"), table.number("seconds"))
    table.finish()
    return found


def _cross_traffic(part: Section) -> CrossTraffic:
    kinds = {kind: kind for kind in testbed.CROSS_TRAFFIC}
    found = CrossTraffic(
        part.text("setting"), part.one_of("kind", kinds), part.text("variant", ""), part.texts("overrides")
    )
    part.finish()
    return found
