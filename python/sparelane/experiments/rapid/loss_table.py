"""Throughput under random loss, for all schemes: what Tables III and IV share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Outcomes, Row, Simulation, measured
from sparelane.experiments.rapid import testbed, transfers
from sparelane.experiments.rapid.printed import LOSS_RATES

# The share of a run after which throughput counts.
WARM_UP_SHARE = 1 / 3
METRIC = "throughput"
# From this loss on RAPID has timeouts, each of which costs most of a minute: its full runs count for so many times
# as long.
FREQUENT = 1e-4
LONGER = 5

ASSUMPTIONS = (
    "Data segments are lost at random on the sender's cable, each with the same probability; the paper drops them in "
    "the receiving host (RAPID) or in the sending one (netem). Acknowledgments are not lost.",
    "Throughput is payload, counted in the last two thirds of a run, and of RAPID's after its start-up, for five "
    "times as long "
    "where losses are 1e-4 or more: after a timeout it takes most of a minute to start.",
    "FAST has alpha = 200 packets; the paper tuned its own port, and gives no numbers.",
)

# Why schemes that watch delays differ where losses keep queues empty.
DELAYS = (
    "where losses keep queues empty, the largest delay that a scheme sees is the noise of its hosts, and all delays "
    "seem long: without noise see the varied rows of Table III"
)


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
    def row(self) -> str:
        """The name of its row."""
        usual = name(self.scheme, self.loss)
        return f"{usual}, {self.what}" if self.what else usual

    def span(self, effort: Effort) -> tuple[float, float]:
        """When a run ends and from when on it counts, seconds."""
        stop_s, from_s = testbed.span(self.scheme, effort, WARM_UP_SHARE)
        if self.scheme == "rapid" and effort.name == "full" and self.loss >= FREQUENT:
            return from_s + LONGER * (stop_s - from_s), from_s
        return stop_s, from_s


@dataclass(frozen=True, slots=True)
class LossTable:
    """One of the two tables.

    Attributes:
        printed: the paper's numbers by scheme, for each of `LOSS_RATES`.
        settings: overrides of the scenario, besides the loss.
        lossy_settings: further ones, where there is loss.
        quick_schemes: what a quick run has.
        varied: what a full run has besides.
    """

    printed: Mapping[str, Sequence[float]]
    settings: tuple[str, ...] = ()
    lossy_settings: tuple[str, ...] = ()
    quick_schemes: tuple[str, ...] = ("rapid", "newreno", "cubic", "scalable")
    varied: Sequence[Cell] = ()

    def schemes(self, effort: Effort) -> list[str]:
        """All, or a few in a quick run."""
        return list(transfers.SCHEMES if effort.name == "full" else self.quick_schemes)

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
            paper = self.printed[cell.scheme][LOSS_RATES.index(cell.loss)]
            rows.append(
                measured(cell.row, METRIC, "Gb/s", paper, [transfers.gbps(run, stop_s - from_s) for run in runs])
            )
        found = Evaluation(tuple(rows))
        return replace(found, notes=self.notes(found, self.schemes(effort)))

    def notes(self, evaluation: Evaluation, schemes: Sequence[str]) -> tuple[str, ...]:
        """How the numbers stand to the paper's, all in all."""
        return (order_note(evaluation, schemes), *factor_notes(evaluation, schemes))


def name(scheme: str, loss: float) -> str:
    """The name of a row."""
    return f"{transfers.SCHEMES[scheme]}, {f'loss {loss:g}' if loss else 'no loss'}"


def reasons(reason: str, schemes: Sequence[str], losses: Sequence[float]) -> dict[tuple[str, str], str]:
    """The same reason for each of these rows."""
    return {(name(scheme, loss), METRIC): reason for scheme in schemes for loss in losses}


def order_note(evaluation: Evaluation, schemes: Sequence[str], loss: float = 1e-5) -> str:
    """The schemes by throughput at one loss rate, ours and the paper's."""
    rows = {scheme: evaluation.find(name(scheme, loss), METRIC) for scheme in schemes}
    ours = sorted(rows, key=lambda scheme: -(rows[scheme].ours or 0))
    paper = sorted(rows, key=lambda scheme: -(rows[scheme].paper or 0))
    text = ", ".join(transfers.SCHEMES[scheme] for scheme in ours)
    theirs = ", ".join(transfers.SCHEMES[scheme] for scheme in paper)
    return f"By throughput at a loss of {loss:g}, ours: {text}. The paper's: {theirs}."


def factor_notes(evaluation: Evaluation, schemes: Sequence[str]) -> list[str]:
    """Which rows up to a loss of 1e-3 are more than a factor of 1.5 off, and how far RAPID's are."""

    def factor(row: Row) -> float:
        return max(row.ours / row.paper, row.paper / row.ours) if row.ours and row.paper else float("inf")

    rows = [evaluation.find(name(scheme, loss), METRIC) for scheme in schemes for loss in LOSS_RATES if loss < 2e-3]
    far = [f"{row.row} ({factor(row):.2f})" for row in rows if factor(row) > 1.5]
    rapid = [f"{100 * (row.difference or 0) / (row.paper or 1):+.1f} %" for row in rows if row.row.startswith("RAPID")]
    return [
        f"RAPID is off by {', '.join(rapid)}, from no loss to 1e-3.",
        f"{len(rows) - len(far)} of {len(rows)} rows up to 1e-3 are within a factor of 1.5; "
        f"the others: {', '.join(far) or 'none'}.",
    ]


def draw(evaluation: Evaluation) -> Figure:
    """Throughput over the loss rate, of a few schemes, with the paper's numbers as crosses."""
    drawing, [axes] = plots.figure()
    places = [1e-9, *LOSS_RATES[1:]]
    for index, (scheme, look) in enumerate(transfers.SHOWN.items()):
        rows = [evaluation.find(name(scheme, loss), METRIC) for loss in LOSS_RATES]
        plots.points(axes, transfers.SCHEMES[scheme], look, places, rows)
        plots.crosses(axes, places, rows, label=index == 0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(places, ["none", *(f"$10^{{{exponent}}}$" for exponent in range(-8, -1))])
    axes.set_xlabel("probability of loss")
    axes.set_ylabel("throughput (Gb/s)")
    plots.legend_above(axes, 3)
    return drawing
