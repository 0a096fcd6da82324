"""Experiments with all schemes beside web users, for one round trip: a file each, of this kind; and Fig. 11."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration
from sparelane.papers.engine.rows import Evaluation, Key, Row, joined
from sparelane.papers.engine.sections import Section
from sparelane.papers.rapid import transfers, web
from sparelane.papers.rapid.transfers import THROUGHPUT
from sparelane.papers.rapid.web import MEDIAN, METRICS, WEB_FLOW, Run
from sparelane.reports import plots

__all__ = ["METRICS", "experiment"]

NONE = "no transfer"


@dataclass(frozen=True, slots=True)
class WebTable:
    """One of the tables.

    Attributes:
        setting: how rows call the round trip.
        round_trip_ms: of the transfer.
        paper: the paper's number for a row; a varied row has that of the row that it varies.
        varied: what a full run has besides: a scheme, what differs and how.
    """

    setting: str
    round_trip_ms: float
    paper: Callable[[Key], float | None]
    varied: Sequence[tuple[str, str, tuple[str, ...]]]

    def runs(self, effort: Effort) -> list[Run]:
        """The users alone, and every scheme beside them; a quick run has a few."""
        chosen = transfers.SCHEMES if effort.name == "full" else transfers.SHOWN
        varied = self.varied if effort.name == "full" else ()
        alone = Run(None, (), self.setting, NONE)
        return [alone, *map(self.run, chosen), *(self.run(*one) for one in varied)]

    def run(self, scheme: str, variant: str = "", settings: tuple[str, ...] = ()) -> Run:
        """A transfer under `scheme`."""
        gentle = web.GENTLE if scheme == "rapid" else ()
        own = (*web.round_trip(self.round_trip_ms), *gentle, *settings)
        return Run(scheme, own, self.setting, transfers.SCHEMES[scheme], variant)

    def plan(self, effort: Effort) -> Sequence[Simulation]:
        """Every scheme with every seed."""
        return web.plan(self.runs(effort), effort)

    def evaluate(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """Throughput and loss of the transfers, durations of the web flows beside them."""
        rows: list[Row] = []
        curves = {}
        for run in self.runs(effort):
            rows += run.rows(effort, outcomes, paper=self.paper)
            curves[joined(run.called, run.variant)] = run.distribution(outcomes[run.simulation(1, effort)], effort)
        found = Evaluation(tuple(rows), curves=curves)
        schemes = [run for run in self.runs(effort) if run.scheme is not None and not run.variant]
        return replace(found, notes=(best_note(found, schemes),))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Throughput of every transfer; and Fig. 11, the distributions of the durations of web flows."""
        drawing, [table, spread] = plots.figure(2, width_inches=plots.PAGE_INCHES)
        shown = [scheme for scheme, label in transfers.SCHEMES.items() if label in evaluation.curves]
        rates = [evaluation.find(self.run(scheme).key(THROUGHPUT)) for scheme in shown]
        labels = [transfers.SCHEMES[scheme] for scheme in shown]
        plots.grouped_bars(table, labels, [plots.Bars.of_rows("ours", plots.RC3, rates)])
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


def best_note(evaluation: Evaluation, runs: Sequence[Run]) -> str:
    """RAPID's throughput against that of the others whose web flows have no longer a median than beside RAPID."""
    rates = {run.called: evaluation.find(run.key(THROUGHPUT)).value or 0.0 for run in runs}
    medians = {run.called: evaluation.find(run.key(WEB_FLOW, MEDIAN)).value or 0.0 for run in runs}
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


def experiment(declared: Declaration) -> Experiment:
    """The experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    varied = [one for part in rest.sections("varied") for one in _varied(part)]
    table = WebTable(rest.text("setting"), rest.number("round_trip_ms"), declared.paper, varied)
    rest.finish()
    return declared.experiment(table.plan, table.evaluate, table.draw)


def _varied(part: Section) -> list[tuple[str, str, tuple[str, ...]]]:
    schemes = {label: scheme for scheme, label in transfers.SCHEMES.items()}
    found = part.some_of("schemes", schemes), part.text("what"), part.texts("settings")
    part.finish()
    chosen, what, settings = found
    return [(scheme, what, settings) for scheme in chosen]
