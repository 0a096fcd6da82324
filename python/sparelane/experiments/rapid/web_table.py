"""All schemes beside web users, for one round trip: what Tables VII and VIII share, and Fig. 11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Row, Simulation
from sparelane.experiments.claims import ours, over_paper
from sparelane.experiments.rapid import testbed, transfers, web
from sparelane.experiments.rapid.printed import BesideWeb
from sparelane.experiments.rapid.web import Run

NONE = "no transfer"


@dataclass(frozen=True, slots=True)
class WebTable:
    """One of the two tables.

    Attributes:
        printed: the paper's rows by scheme; "none" is of the users alone.
        round_trip_ms: of the transfer.
        buffers: of the switch, varied in full runs: schemes and what queues hold.
        tried: other settings varied in full runs: a scheme, what differs and how.
    """

    printed: Mapping[str, BesideWeb]
    round_trip_ms: float
    buffers: Sequence[tuple[str, str]] = ()
    tried: Sequence[tuple[str, str, tuple[str, ...]]] = ()

    def runs(self, effort: Effort) -> Mapping[str, Run]:
        """By the name of the row; a quick run has a few."""
        chosen = transfers.SCHEMES if effort.name == "full" else transfers.SHOWN
        runs = {NONE: Run(None, (), "web users alone")}
        runs |= {transfers.SCHEMES[scheme]: self.run(scheme) for scheme in chosen}
        for scheme, limit in self.buffers if effort.name == "full" else ():
            runs[f"{transfers.SCHEMES[scheme]}, queues of {limit}"] = self.run(scheme, limit)
        for scheme, what, settings in self.tried if effort.name == "full" else ():
            usual = self.run(scheme)
            name = f"{usual.name}, {what}"
            runs[f"{transfers.SCHEMES[scheme]}, {what}"] = replace(
                usual, settings=(*usual.settings, *settings), name=name
            )
        return runs

    def run(self, scheme: str, limit: str | None = None) -> Run:
        """A transfer under `scheme`; with queues that hold `limit`, if given."""
        gentle = web.GENTLE if scheme == "rapid" else ()
        queue = () if limit is None else (f"queue.limit={limit}",)
        name = f"{scheme} {self.round_trip_ms:g} ms, web users{'' if limit is None else f', {limit}'}"
        return Run(scheme, (*web.round_trip(self.round_trip_ms), *gentle, *queue), name)

    def plan(self, effort: Effort) -> Sequence[Simulation]:
        """Every scheme with every seed."""
        return web.plan(list(self.runs(effort).values()), effort)

    def evaluate(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """Throughput and loss of the transfers, durations of the web flows beside them."""
        runs = self.runs(effort)
        rows: list[Row] = []
        curves = {}
        for name, run in runs.items():
            rows += run.rows(name, self.printed[run.scheme or "none"], effort, outcomes)
            curves[name] = run.distribution(outcomes[run.simulation(1, effort)], effort)
        found = Evaluation(tuple(rows), curves=curves)
        usual = [name for name in runs if name in (NONE, *transfers.SCHEMES.values())]
        return replace(found, notes=(best_note(found, usual),))


def best_note(evaluation: Evaluation, names: Sequence[str]) -> str:
    """RAPID's throughput against that of the others whose web flows have no longer a median than beside RAPID."""
    rates = {name: evaluation.find(name, web.THROUGHPUT).ours or 0.0 for name in names if name != NONE}
    medians = {name: evaluation.find(name, web.MEDIAN).ours or 0.0 for name in rates}
    rapid = transfers.SCHEMES["rapid"]
    others = [name for name in rates if name != rapid]
    fastest = max(others, key=lambda name: rates[name])
    gentle = [name for name in others if medians[name] <= medians[rapid]]
    best = max(gentle, key=lambda name: rates[name], default=None)
    text = (
        f"RAPID has {rates[rapid] / rates[fastest]:.2f} times the throughput of the fastest other ({fastest}), with "
        f"a median web flow of {medians[rapid]:.2f} ms against {medians[fastest]:.2f} ms"
    )
    if best is None:
        return f"{text}; beside every other scheme web flows take longer."
    if best == fastest:
        return f"{text}."
    return f"{text}; and {rates[rapid] / rates[best]:.2f} times that of {best}, the fastest whose median is no longer."


def claims(table: WebTable) -> tuple[Claim, ...]:
    """What the paper says of RAPID there."""
    rapid, printed = transfers.SCHEMES["rapid"], table.printed["rapid"]
    return (
        Claim(
            f"RAPID has {printed.gbps:g} Gb/s beside web users at {table.round_trip_ms:g} ms",
            over_paper(rapid, web.THROUGHPUT),
            full=(0.9, 1.1),
            quick=(0.8, 1.1),
        ),
        Claim("RAPID loses next to nothing there", ours(rapid, web.LOSS), full=(0.0, 0.003)),
        Claim(
            f"the median web flow takes {printed.median_ms:g} ms beside RAPID",
            over_paper(rapid, web.MEDIAN),
            full=(0.85, 1.15),
            quick=(0.7, 1.3),
        ),
    )


def draw(evaluation: Evaluation) -> Figure:
    """Throughput of every transfer; and Fig. 11, the distributions of the durations of web flows."""
    drawing, [table, spread] = plots.figure(2, width_inches=plots.PAGE_INCHES)
    shown = [label for label in transfers.SCHEMES.values() if label in evaluation.curves]
    rates = [evaluation.find(label, web.THROUGHPUT) for label in shown]
    plots.grouped_bars(table, shown, [plots.Bars.of_rows("ours", plots.RC3, rates)])
    table.tick_params(axis="x", rotation=90)
    table.set_xlabel("protocol")
    table.set_ylabel("throughput (Gb/s)")
    plots.legend_above(table, 2)
    curves = {NONE: plots.MODEL, **{transfers.SCHEMES[scheme]: look for scheme, look in transfers.SHOWN.items()}}
    for label, look in curves.items():
        curve = evaluation.curves[label]
        plots.line(spread, label, look, curve["duration_ms"].to_list(), curve["share"].to_list())
    spread.set_xscale("log")
    spread.set_xlabel("duration of a web flow (ms)")
    spread.set_ylabel("share of flows")
    plots.legend_above(spread, 3)
    return drawing


def experiment(id: str, numeral: str, table: WebTable) -> Experiment:
    """The experiment of one of the two tables, by its number in the paper."""
    return Experiment(
        id=id,
        title=f"Beside web users, {table.round_trip_ms:g} ms",
        source=f"RAPID, section V-D, Fig. 11 and Tables I and {numeral}",
        method=f"One transfer over 10 Gb/s with a round trip of {table.round_trip_ms:g} ms beside emulated users of "
        "the web, with each protocol; RAPID with tau = 50 ms and eta = 4.",
        assumptions=(*testbed.ASSUMPTIONS, *web.ASSUMPTIONS),
        full=Effort("full", seeds=3, stop_s=120.0),
        quick=Effort("quick", seeds=1, stop_s=4.0),
        plan=table.plan,
        evaluate=table.evaluate,
        draw=draw,
        fitted=testbed.FITTED,
        reasons={
            (transfers.SCHEMES["fast"], metric): transfers.FAST_PORT
            for metric in (web.THROUGHPUT, web.LOSS, *web.QUANTILES)
        }
        | {(transfers.SCHEMES[scheme], web.THROUGHPUT): transfers.SHALLOW for scheme in transfers.SLOW_GROWERS}
        | {
            (transfers.SCHEMES[scheme], metric): web.TAIL
            for scheme in transfers.SCHEMES
            if scheme != "fast"
            for metric in ("90th percentile", "95th percentile")
        },
        claims=claims(table),
    )
