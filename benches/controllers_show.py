"""The rows and tables that `controllers.py` prints."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from controllers_notes import Note, note_of
from controllers_run import Measured
from controllers_scenarios import Scenario
from rich import box
from rich.console import Console
from rich.table import Table

LEFT = ("scenario", "script", "reason")
HEADINGS = (
    "scenario",
    "utilisation",
    "ns-3",
    "difference",
    "mean queue",
    "ns-3",
    "difference",
    "within bounds",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario in both simulators."""

    scenario: Scenario
    ours: Measured
    ns3: Measured

    @property
    def link_use_difference(self) -> float:
        """Our utilisation minus ns-3's, as a share of ns-3's."""
        return self.ours.link_use / self.ns3.link_use - 1

    @property
    def queue_difference(self) -> float:
        """Our mean queue minus ns-3's, as a share of ns-3's; in packets if ns-3's is below one packet."""
        return (self.ours.queue_packets - self.ns3.queue_packets) / max(self.ns3.queue_packets, 1.0)

    @property
    def note(self) -> Note:
        """The allowed difference and its reason."""
        return note_of(self.scenario.name)

    @property
    def holds(self) -> bool:
        """True if both differences are within their bounds."""
        return within(self.link_use_difference, self.note.link_use) and within(self.queue_difference, self.note.queue)

    def cells(self) -> tuple[str, ...]:
        """The cells of the table, in the order of `HEADINGS`."""
        in_packets = self.ns3.queue_packets < 1
        return (
            self.scenario.name,
            f"{self.ours.link_use:.1%}",
            f"{self.ns3.link_use:.1%}",
            f"{self.link_use_difference:+.1%}",
            f"{self.ours.queue_packets:.1f}",
            f"{self.ns3.queue_packets:.1f}",
            f"{self.queue_difference:+.1f} packets" if in_packets else f"{self.queue_difference:+.1%}",
            ("explained" if self.note.reason else "yes") if self.holds else "no",
            self.note.reason,
        )


def show(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Prints a table."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in LEFT else "right")
    for line in lines:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Returns the table as Markdown."""
    with_headings = [headings, ["---"] * len(headings), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in with_headings)


def within(difference: float, bounds: tuple[float, float]) -> bool:
    """Returns whether a difference is within the bounds, including them."""
    return bounds[0] <= difference <= bounds[1]
