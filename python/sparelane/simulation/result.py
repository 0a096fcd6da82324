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
from typing import TYPE_CHECKING, cast

from sparelane import _native
from sparelane.simulation import columns, stored
from sparelane.simulation.columns import documented

if TYPE_CHECKING:
    import polars as pl

    from sparelane.reports.charts.plot import Plot
    from sparelane.simulation.inputs import Kept
    from sparelane.simulation.summary import Summary

FORMATS = ("parquet", "csv", "json")
DEFAULT_FORMATS = ("parquet", "csv")


class Result:
    """The results of a run: tables as Polars data frames, and facts about the run.

    Each table is built when it is first used. The docstring of its attribute lists its columns with type and unit, as
    `help(sparelane.Result.flows)` shows. Times are in seconds, sizes in bytes and rates in bits per second, and a
    missing value is null.
    """

    def __init__(self, native: _native.Results | stored.Stored, folder: Path | None = None) -> None:
        """The results of a run, and the folder that paths in its scenario start from."""
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

        A request is a group of flows that a client asked for together. It ends when its last flow does.
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
        """A fingerprint of all results: equal digests mean equal runs. The scenario's text is not part of it."""
        return self._native.digest

    @property
    def scenario(self) -> str:
        """The scenario that ran, as TOML, overrides and seed included.

        Keys at their defaults are left out. The same version of sparelane repeats the run from this text.
        """
        return self._native.scenario

    @property
    def seed(self) -> int:
        """The seed of the random draws."""
        return self._native.seed

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the run, one sentence each: keys without effect, flows that means leave out, artefacts."""
        from sparelane.simulation import warnings as run_warnings

        told = self._native.told if isinstance(self._native, stored.Stored) else None
        return [warning.text for warning in run_warnings.of_results(self._native)] if told is None else told

    @property
    def early_warnings(self) -> list[str]:
        """The warnings that also hold for a longer run of which this one is the beginning."""
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
        """Writes every table in each format, and `run.json` with the facts that are needed to repeat the run.

        Files that the scenario names, and plugin files, are copied into the folder, so that it can be moved.
        `sparelane.load` reads the folder.

        Args:
            folder: The folder, which is made if it does not exist.
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
        # If the disk is full, what an earlier run left in the folder stays whole.
        with TemporaryDirectory(prefix=".partial-", dir=place) as scratch:
            for suffix, (name, table) in product(order[:1], tables.items()):
                frames.WRITERS[suffix](table, Path(scratch, name))
            facts = self._facts(inputs.keep(self.scenario, self._folder, place))
            (place / stored.FILE).unlink(missing_ok=True)
            for suffix, name in product(FORMATS, tables):
                path = place / f"{name}.{suffix}"
                if suffix in order[:1]:
                    replaced(path, partial(shutil.move, Path(scratch, name)))
                else:
                    path.unlink(missing_ok=True)
        facts["tables"] = {name: frames.types_of(table) for name, table in tables.items()}
        replaced(place / stored.FILE, partial(frames.write_json_value, facts))
        # From here on the folder holds the run; another format that cannot be written takes nothing from it.
        for suffix, (name, table) in product(order[1:], tables.items()):
            replaced(place / f"{name}.{suffix}", partial(frames.WRITERS[suffix], table))

    def _facts(self, kept: Kept) -> dict[str, object]:
        """The content of `run.json`, without the types of columns."""
        content: dict[str, object] = {
            "version": self.version,
            "seed": self.seed,
            "digest": self.digest,
            "totals": self.totals,
            "warnings": self.warnings,
            "scenario": kept.scenario,
        }
        if self.is_interrupted:
            content["interrupted"] = True
        if not kept.is_whole and self._folder is not None:
            content["folder"] = str(self._folder.resolve())
        if kept.files:
            content["files"] = kept.files
        if kept.plugins:
            content["plugins"] = kept.plugins
        return content

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Reads the run that `save` or `sparelane run` left in a folder, in any format.

        Each table is read when it is first used.

        Raises:
            SavedResultsError: The folder holds no run, or another version wrote it. A table that is missing or
                malformed raises this error when it is used.
        """
        saved = stored.Saved(Path(folder))
        return cls(saved, saved.base)

    def plot(self, *panels: str) -> Plot:
        """The run as a figure: time series, completion times, distributions, and throughput against delay.

        Args:
            panels: The names of the panels, such as `window`, `throughput-time` or `cdf`; all panels if none is given.

        Returns:
            A plot, which notebooks show; `save` writes it as PNG, SVG or PDF.

        Raises:
            UnknownNameError: No panel has this name.
            SavedResultsError: There is nothing to draw.
        """
        from sparelane.reports.charts.plot import of_result

        return of_result(self, panels)

    def _repr_html_(self) -> str:
        """The summary and the warnings, for notebooks."""
        notes = "".join(f"<p>warning: {html.escape(text)}</p>" for text in self.warnings)
        return f"<p><code>{html.escape(repr(self))}</code></p>{self.summary()._repr_html_()}{notes}"

    def __getstate__(self) -> dict[str, object]:
        """All tables, so that results can be pickled."""
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
