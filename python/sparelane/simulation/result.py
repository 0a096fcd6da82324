"""The results of a run, as tables."""

from __future__ import annotations

import html
import shutil
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, cast

from sparelane import _native
from sparelane.common import lazy
from sparelane.simulation import columns, stored
from sparelane.simulation.columns import documented

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sparelane.simulation.inputs import Inputs
    from sparelane.simulation.summary import Summary

FORMATS = ("parquet", "csv", "json")
DEFAULT_FORMATS = ("parquet", "csv")


class Plot(Protocol):
    """A figure of a run. `sparelane.reports` draws it."""

    @property
    def figure(self) -> Figure:
        """The Matplotlib figure, which may be changed."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its panels."""

    def save(self, path: str | Path) -> None:
        """Writes the figure as PNG, SVG or PDF, according to the suffix of the path."""

    def _repr_png_(self) -> bytes:
        """The figure as PNG, for notebooks."""


class Result:
    """The results of a run: tables as Polars data frames, and facts about the run.

    Each table is built when it is first used. Its docstring lists the columns with type and unit; try
    `help(sparelane.Result.flows)`. Times are in seconds, sizes in bytes and rates in bits per second. Missing values
    are null.
    """

    def __init__(self, native: _native.Results | stored.Stored, folder: Path | None = None) -> None:
        """Wraps native or stored results. `folder` is the folder that relative paths in the scenario start from."""
        self._native = native
        self._folder = folder

    @property
    def is_interrupted(self) -> bool:
        """True if the run was stopped early; the results then end at `totals["end_s"]`."""
        return self._native.is_interrupted

    @cached_property
    @documented(columns.FLOWS)
    def flows(self) -> pl.DataFrame:
        """One row per flow, in order of start."""
        return _frame(self._native.flows())

    @cached_property
    @documented(columns.REQUESTS)
    def requests(self) -> pl.DataFrame:
        """One row per request, in order of start; empty unless a workload makes requests.

        A request is a group of flows that a client requested together, or one round of an all-reduce or all-to-all. It
        finishes with its last flow.
        """
        from sparelane.simulation.requests import request_table

        return request_table(self.flows)

    @cached_property
    @documented(columns.LINKS)
    def links(self) -> pl.DataFrame:
        """One row per direction of a cable."""
        return _frame(self._native.links())

    @cached_property
    @documented(columns.DROPS)
    def drops(self) -> pl.DataFrame:
        """Arrivals and drops at queues, one row per direction of a cable and priority of packets.

        A priority at which no packet arrived has no row.
        """
        return _frame(self._native.drops())

    @cached_property
    @documented(columns.CROSS_TRAFFIC)
    def cross_traffic(self) -> pl.DataFrame:
        """One row per source of cross traffic, in the order of the scenario; empty without any."""
        return _frame(self._native.cross_traffic())

    @cached_property
    @documented(columns.DELAYS)
    def delays(self) -> pl.DataFrame:
        """A histogram of the one-way delays of data packets; empty without `[measure] delays = true`.

        One row per scheme, class of traffic and bin that is not empty.
        """
        return _frame(self._native.delays())

    @cached_property
    @documented(columns.PACKETS)
    def packets(self) -> pl.DataFrame:
        """The data packets of one flow, one row per transmission in order of sending; empty without `[packets]`."""
        return _frame(self._native.packets())

    @cached_property
    @documented(columns.SERIES)
    def series(self) -> pl.DataFrame:
        """Time series in long form, one row per time, probe and quantity; empty without `[sample]`.

        The wide form, for one probe:
        `series.filter(pl.col("probe") == "flow 0").pivot("quantity", index="time_s", values="value")`.
        """
        return _frame(self._native.series())

    @property
    def totals(self) -> _native.Totals:
        """Totals of the run, a dictionary.

        `events` that the engine handled, `packet_hops` (packets times links crossed), `flows` that started,
        `finished_flows`, `end_s` (the simulated time at the end, seconds) and `peak_open_flows`.
        """
        return self._native.totals

    @property
    def traces(self) -> list[tuple[Path, int, OSError | None]]:
        """The trace files of the run: path, number of packets or events, and the error that ended it, if any."""
        return self._native.traces

    @property
    def digest(self) -> str:
        """A fingerprint of all results: equal digests mean equal runs. It does not cover the text of the scenario."""
        return self._native.digest

    @property
    def scenario(self) -> str:
        """The scenario that ran, as TOML, including overrides and the seed.

        Keys with default values are omitted. The same version of sparelane repeats the run from this text.
        """
        return self._native.scenario

    @property
    def seed(self) -> int:
        """The seed of the random draws."""
        return self._native.seed

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the run, one sentence each: keys without effect, flows missing in means, artefacts."""
        from sparelane.simulation import warnings as run_warnings

        saved = self._native.saved_warnings if isinstance(self._native, stored.Stored) else None
        return [warning.text for warning in run_warnings.of_results(self._native)] if saved is None else saved

    @property
    def early_warnings(self) -> list[str]:
        """The warnings that would also hold if the run had continued."""
        from sparelane.simulation import warnings as run_warnings

        return [warning.text for warning in run_warnings.of_results(self._native) if warning.holds_early]

    @property
    def notices(self) -> list[str]:
        """Deprecated: the former name of `warnings`."""
        warnings.warn("Result.notices is now Result.warnings", DeprecationWarning, stacklevel=2)
        return self.warnings

    @property
    def version(self) -> str:
        """The version of sparelane that simulated the run."""
        return self._native.version

    def summary(self) -> Summary:
        """The run in four small tables: schemes, service, links and drops."""
        from sparelane.simulation.summary import summarise

        return summarise(self)

    def save(self, folder: str | Path, formats: str | Sequence[str] = DEFAULT_FORMATS) -> None:
        """Writes every table in each format, and `run.json`, from which the run can be repeated.

        Files that the scenario refers to and plugin files are copied into the folder, so that it can be moved.
        `sparelane.load` reads the folder.

        Args:
            folder: The folder, which is created if it does not exist.
            formats: One or more of `parquet`, `csv` and `json`.

        Raises:
            ValueError: A format is unknown.
            OSError: The folder cannot be written.
        """
        from sparelane.common import frames
        from sparelane.common.folders import replaced
        from sparelane.simulation import inputs

        formats = [formats] if isinstance(formats, str) else list(formats)
        unknown = [name for name in formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"there is no format {unknown[0]!r}; there are: {', '.join(FORMATS)}")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        tables: dict[str, pl.DataFrame] = {name: getattr(self, name) for name in stored.TABLES}
        order = [name for name in FORMATS if name in formats]
        # The first format is written to a scratch folder, so that a full disk does not damage an earlier run.
        with TemporaryDirectory(prefix=".partial-", dir=place) as scratch:
            for suffix, (name, table) in product(order[:1], tables.items()):
                frames.WRITERS[suffix](table, Path(scratch, name))
            facts = self._facts(inputs.copy(self.scenario, self._folder, place))
            (place / stored.FILE).unlink(missing_ok=True)
            for suffix, name in product(FORMATS, tables):
                path = place / f"{name}.{suffix}"
                if suffix in order[:1]:
                    replaced(path, partial(shutil.move, Path(scratch, name)))
                else:
                    path.unlink(missing_ok=True)
        facts["tables"] = {name: frames.types_of(table) for name, table in tables.items()}
        replaced(place / stored.FILE, partial(frames.write_json_value, facts))
        # The folder holds a complete run now. A failure to write further formats does not change that.
        for suffix, (name, table) in product(order[1:], tables.items()):
            replaced(place / f"{name}.{suffix}", partial(frames.WRITERS[suffix], table))

    def _facts(self, copied: Inputs) -> dict[str, object]:
        """The content of `run.json` without the types of columns."""
        content: dict[str, object] = {
            "version": self.version,
            "seed": self.seed,
            "digest": self.digest,
            "totals": self.totals,
            "warnings": self.warnings,
            "scenario": copied.scenario,
        }
        if self.is_interrupted:
            content["interrupted"] = True
        if not copied.is_whole and self._folder is not None:
            content["folder"] = str(self._folder.resolve())
        if copied.files:
            content["files"] = copied.files
        if copied.plugins:
            content["plugins"] = copied.plugins
        return content

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Reads a run that `save` or `sparelane run` wrote, in any format.

        Each table is read when it is first used.

        Raises:
            SavedResultsError: The folder holds no run, or another version wrote it. Missing or malformed tables raise
                this error when they are used.
        """
        saved = stored.Saved(Path(folder))
        return cls(saved, saved.base)

    def plot(self, *panels: str) -> Plot:
        """Draws the run: time series, completion times, distributions, and throughput against delay.

        Args:
            panels: The names of the panels, such as `window`, `throughput-time` or `cdf`; all panels by default.

        Returns:
            A plot, which notebooks display; its `save` writes PNG, SVG or PDF.

        Raises:
            UnknownNameError: No panel has this name.
            SavedResultsError: There is nothing to draw.
        """
        plot: Plot = lazy.provided("plot of a run")(self, panels)
        return plot

    def _repr_html_(self) -> str:
        """The summary and the warnings, for notebooks."""
        notes = "".join(f"<p>warning: {html.escape(text)}</p>" for text in self.warnings)
        return f"<p><code>{html.escape(repr(self))}</code></p>{self.summary()._repr_html_()}{notes}"

    def __getstate__(self) -> dict[str, object]:
        """All tables and facts, for pickling."""
        return stored.state_of(self._native) | {"folder": self._folder}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restores pickled results."""
        self._native = stored.Stored(state)
        self._folder = cast("Path | None", state["folder"])

    def __repr__(self) -> str:
        flows, finished = self.totals["flows"], self.totals["finished_flows"]
        count = len(self.warnings)
        notes = f", {count} warning{'s' if count > 1 else ''}: see warnings" if count else ""
        return f"<Result {self.digest[:12]}: {finished} of {flows} flows finished{notes}>"


def _frame(columns: dict[str, _native.Column]) -> pl.DataFrame:
    from sparelane.common.frames import to_frame

    return to_frame(columns)
