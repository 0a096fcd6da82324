"""The rows and the figure of `windows.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers_show import within
from windows_notes import WindowNote, note_of
from windows_run import Windows
from windows_scripts import Script

QUARTERS = 4
HEADINGS = (
    "script",
    "windows at each quarter",
    "ns-3",
    "mean difference",
    "largest at a quarter",
    "within bounds",
    "reason",
)


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One script in both simulators; windows in segments."""

    script: Script
    ours: Windows
    ns3: Windows

    @property
    def differences(self) -> list[float]:
        """Our window minus ns-3's in each sample, as a share of ns-3's."""
        # ns-3 takes no sample at the very end.
        return [ours / ns3 - 1 for ours, ns3 in zip(self.ours, self.ns3, strict=False)]

    @property
    def mean_difference(self) -> float:
        """The mean of the absolute differences."""
        return sum(map(abs, self.differences)) / len(self.differences)

    @property
    def quarters(self) -> list[int]:
        """The indices of the samples at the end of each quarter of the run."""
        samples = len(self.differences)
        return [samples * quarter // QUARTERS - 1 for quarter in range(1, QUARTERS + 1)]

    @property
    def difference_at_a_quarter(self) -> float:
        """The largest difference at the end of a quarter."""
        return max((self.differences[sample] for sample in self.quarters), key=abs)

    @property
    def note(self) -> WindowNote:
        """The allowed difference and its reason."""
        return note_of(self.script.name)

    @property
    def holds(self) -> bool:
        """True if both differences are within their bounds."""
        return within(self.mean_difference, self.note.mean) and within(self.difference_at_a_quarter, self.note.quarters)

    def cells(self) -> tuple[str, ...]:
        """The cells of the table, in the order of `HEADINGS`."""
        return (
            self.script.name,
            *(", ".join(f"{windows[sample]:.0f}" for sample in self.quarters) for windows in (self.ours, self.ns3)),
            f"{self.mean_difference:.1%}",
            f"{self.difference_at_a_quarter:+.1%}",
            ("explained" if self.note.reason else "yes") if self.holds else "no",
            self.note.reason,
        )


def figure(rows: Sequence[WindowRow], path: Path) -> None:
    """Draws the windows over time, one panel per script."""
    from matplotlib import pyplot

    columns = 4
    lines = -(-len(rows) // columns)
    drawing, panels = pyplot.subplots(lines, columns, figsize=(4 * columns, 2.4 * lines), layout="constrained")
    for row, panel in zip(rows, panels.flat, strict=False):
        for windows, name, style in ((row.ours, "sparelane", "-"), (row.ns3, "ns-3", "--")):
            times_s = [(sample + 1) * row.script.every_ms / 1000 for sample in range(len(windows))]
            panel.plot(times_s, windows, style, label=name)
        panel.set_title(row.script.name, fontsize=9)
        panel.set_ylim(0)
    for panel in panels.flat[len(rows) :]:
        panel.axis("off")
    panels.flat[0].legend(fontsize=8)
    drawing.supxlabel("time (s)")
    drawing.supylabel("congestion window (segments)")
    drawing.savefig(path, dpi=80)
