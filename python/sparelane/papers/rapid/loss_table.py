"""Experiments with random loss, for all schemes: Tables III and IV, a file each, of this kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration
from sparelane.papers.engine.rows import Evaluation, Key, Row, measured
from sparelane.papers.engine.sections import Section
from sparelane.papers.rapid import testbed, transfers
from sparelane.papers.rapid.transfers import THROUGHPUT
from sparelane.reports import plots

# The share of a run after which throughput counts.
WARM_UP_SHARE = 1 / 3
LOSS_RATES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
METRICS = {THROUGHPUT.name: THROUGHPUT}
QUICK_SCHEMES = ("rapid", "newreno", "cubic", "scalable")


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of the table.

    Attributes:
        scheme: of the transfer.
        loss: the loss rate.
        what: differs from the table's setting, if anything.
        settings: overrides of the scenario that make it differ.
    """

    scheme: str
    loss: float
    what: str = ""
    settings: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Which number it is."""
        return Key(setting(self.loss), THROUGHPUT, transfers.SCHEMES[self.scheme], variant=self.what)

    def span(self, effort: Effort) -> tuple[float, float]:
        """When a run ends and from when on it counts, seconds."""
        return testbed.span(self.scheme, effort, WARM_UP_SHARE)


def setting(loss: float) -> str:
    """How rows call a loss rate."""
    return f"loss {loss:g}" if loss else "no loss"


@dataclass(frozen=True, slots=True)
class LossTable:
    """One of the two tables.

    Attributes:
        paper: the paper's number for a row; a varied row has that of the row that it varies.
        settings: overrides of the scenario, besides the loss.
        lossy_settings: further ones, where there is loss.
        varied: what a full run has besides.
    """

    paper: Callable[[Key], float | None]
    settings: tuple[str, ...]
    lossy_settings: tuple[str, ...]
    varied: Sequence[Cell]

    def schemes(self, effort: Effort) -> list[str]:
        """All, or a few in a quick run."""
        return list(transfers.SCHEMES if effort.name == "full" else QUICK_SCHEMES)

    def cells(self, effort: Effort) -> list[Cell]:
        """Every scheme at every loss rate, and in a full run what is varied."""
        usual = [Cell(scheme, loss) for scheme in self.schemes(effort) for loss in LOSS_RATES]
        return [*usual, *(self.varied if effort.name == "full" else ())]

    def simulation(self, cell: Cell, seed: int, effort: Effort) -> Simulation:
        """One run."""
        stop_s, from_s = cell.span(effort)
        loss = (f"link.0.loss={cell.loss:g}", "link.0.loss_from=left0", "link.0.loss_of=data", *self.lossy_settings)
        return testbed.simulation(
            cell.scheme,
            seed,
            stop_s,
            label=f"{cell.scheme} loss {cell.loss:g} {cell.what}".rstrip(),
            settings=(
                f"measure.from={from_s:g}s",
                *testbed.start(effort),
                *self.settings,
                *(loss if cell.loss else ()),
                *cell.settings,
            ),
        )

    def plan(self, effort: Effort) -> list[Simulation]:
        """Every cell with every seed."""
        return [self.simulation(cell, seed, effort) for cell in self.cells(effort) for seed in effort.seed_numbers()]

    def evaluate(self, effort: Effort, outcomes: Outcomes) -> Evaluation:
        """A row for each cell, and the order of schemes at 1e-5."""
        rows = []
        for cell in self.cells(effort):
            stop_s, from_s = cell.span(effort)
            runs = [outcomes[self.simulation(cell, seed, effort)] for seed in effort.seed_numbers()]
            rows.append(
                measured(cell.key, self.paper(cell.key), [transfers.gbps(run, stop_s - from_s) for run in runs])
            )
        found = Evaluation(tuple(rows))
        return replace(found, notes=self.notes(found, self.schemes(effort)))

    def notes(self, evaluation: Evaluation, schemes: Sequence[str]) -> tuple[str, ...]:
        """How the numbers stand to the paper's, all in all."""
        return (order_note(evaluation, schemes), *factor_notes(evaluation, schemes))


def order_note(evaluation: Evaluation, schemes: Sequence[str], loss: float = 1e-5) -> str:
    """The schemes by throughput at one loss rate, ours and the paper's."""
    rows = {scheme: evaluation.find(Cell(scheme, loss).key) for scheme in schemes}
    ours = sorted(rows, key=lambda scheme: -(rows[scheme].value or 0))
    paper = sorted(rows, key=lambda scheme: -(rows[scheme].paper or 0))
    text = ", ".join(transfers.SCHEMES[scheme] for scheme in ours)
    theirs = ", ".join(transfers.SCHEMES[scheme] for scheme in paper)
    return f"By throughput at a loss of {loss:g}, ours: {text}. The paper's: {theirs}."


def factor_notes(evaluation: Evaluation, schemes: Sequence[str]) -> list[str]:
    """Which rows up to a loss of 1e-3 are more than a factor of 1.5 off, and how far RAPID's are."""

    def factor(row: Row) -> float:
        return max(row.value / row.paper, row.paper / row.value) if row.value and row.paper else float("inf")

    rows = [evaluation.find(Cell(scheme, loss).key) for scheme in schemes for loss in LOSS_RATES if loss < 2e-3]
    far = [f"{row.key.scheme}, {row.key.setting} ({factor(row):.2f})" for row in rows if factor(row) > 1.5]
    rapid = [f"{100 * (row.difference or 0) / (row.paper or 1):+.1f} %" for row in rows if row.key.scheme == "RAPID"]
    return [
        f"RAPID is off by {', '.join(rapid)}, from no loss to 1e-3.",
        f"{len(rows) - len(far)} of {len(rows)} rows up to 1e-3 are within a factor of 1.5; "
        f"the others: {', '.join(far) or 'none'}.",
    ]


def draw(evaluation: Evaluation) -> Figure:
    """Throughput over the loss rate, of a few schemes, with the paper's numbers hollow."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    places = [1e-9, *LOSS_RATES[1:]]
    values: list[float] = []
    for scheme, look in transfers.SHOWN.items():
        rows = [evaluation.find(Cell(scheme, loss).key) for loss in LOSS_RATES]
        plots.filled_points(axes, transfers.SCHEMES[scheme], look, places, rows)
        values += [value for row in rows for value in (row.value, row.paper) if value]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(min(values) / 1.5, 1.5 * max(values))
    axes.set_xticks(places, ["none", *(f"$10^{{{exponent}}}$" for exponent in range(-8, -1))])
    axes.set_xlabel("probability of loss; hollow: the paper")
    axes.set_ylabel("throughput (Gb/s)")
    plots.legend_above(axes, 4)
    return drawing


def experiment(declared: Declaration) -> Experiment:
    """The experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    varied = [cell for part in rest.sections("varied") for cell in _varied(part)]
    table = LossTable(declared.paper, rest.texts("settings"), rest.texts("lossy_settings"), varied)
    missing = next((cell.key for cell in table.cells(declared.full) if declared.paper(cell.key) is None), None)
    if missing is not None:
        raise rest.fail("printed", f'has nothing for "{missing.words}"')
    rest.finish()
    return declared.experiment(table.plan, table.evaluate, draw)


def _varied(part: Section) -> list[Cell]:
    """What differs, for every scheme and loss rate that the file names."""
    schemes = part.some_of("schemes", {label: scheme for scheme, label in transfers.SCHEMES.items()})
    losses, what, settings = part.numbers("losses"), part.text("what"), part.texts("settings")
    part.finish()
    return [Cell(scheme, loss, what, settings) for scheme in schemes for loss in losses]
