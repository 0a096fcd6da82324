"""Runs, loads and compares sweeps from Python: `sparelane.sweep`, `load` and `compare`."""

from __future__ import annotations

import html
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from sparelane import _native, plugins
from sparelane.common import folders
from sparelane.common.folders import OutputError, SavedResultsError
from sparelane.scenario.settings import DICTIONARY, Settings, override_texts
from sparelane.simulation import columns, simulate
from sparelane.simulation import warnings as run_warnings
from sparelane.simulation.columns import documented
from sparelane.simulation.result import Result
from sparelane.simulation.simulate import Scenario, checked_seed
from sparelane.sweeps import comparison, pool, worker
from sparelane.sweeps import folder as sweep_folder
from sparelane.sweeps import sweep as sweeps
from sparelane.sweeps.comparison import Answer
from sparelane.sweeps.differences import Thresholds
from sparelane.sweeps.executor import RunExecutor, RunOutcome
from sparelane.sweeps.folder import SavedSweep
from sparelane.sweeps.plan import Plan

if TYPE_CHECKING:
    from sparelane.reports.charts.plot import Plot

# A sweep, or the folder of one.
Saved: TypeAlias = "Sweep | str | os.PathLike[str]"
Progress = Callable[[float], object]

# The name of a sweep whose scenario is not in a file.
UNNAMED = "sweep"
# The number of seeds of scenario files that `compare` simulates.
COMPARED_SEEDS = 5
# The largest number of errors of failed runs in a warning.
LISTED = 3


class Sweep:
    """The results of a sweep: one scenario in many settings, under several schemes and seeds.

    `sparelane.sweep` returns one, and `sparelane.load` reads a saved one.
    """

    def __init__(self, saved: SavedSweep, owner: tempfile.TemporaryDirectory[str] | None = None) -> None:
        """Wraps a saved sweep. If its temporary folder is given as `owner`, the folder is removed with this object."""
        self._saved = saved
        self._owner = owner

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Sweep:
        """Reads a sweep that `sparelane.sweep` or the command line wrote.

        Raises:
            SavedResultsError: The folder holds no sweep, or another version wrote it.
        """
        return cls(sweep_folder.read(Path(folder)))

    @property
    @documented(columns.SWEEP_ROWS)
    def rows(self) -> pl.DataFrame:
        """One row per setting, scheme and metric: the mean over the seeds, with its 95 % interval.

        These columns are followed by one for each key that varies, named as in `set`.
        """
        return self._saved.rows

    @property
    @documented(columns.SWEEP_ROWS)
    def runs(self) -> pl.DataFrame:
        """One row per run and metric: the columns of `rows`, with one seed each and no interval."""
        return self._saved.runs

    @property
    @documented(columns.SWEEP_CURVES)
    def curves(self) -> pl.DataFrame:
        """Quantiles of completion times and slowdowns over the flows of a setting, for distributions."""
        return self._saved.curves

    @cached_property
    @documented(columns.SWEEP_FAILED)
    def failed(self) -> pl.DataFrame:
        """The failed runs with their errors. The other tables do not include them."""
        found = self._saved.manifest.details.get("failed", [])
        schema = {column.name: getattr(pl, column.dtype) for column in columns.SWEEP_FAILED}
        return pl.DataFrame(found, schema=schema)

    @property
    def axes(self) -> list[str]:
        """The keys that vary, as in `set`."""
        return self._saved.axes

    @property
    def schemes(self) -> list[str]:
        """The names of the schemes, in the order of the sweep."""
        return [name for name in self._saved.schemes if name]

    @property
    def seeds(self) -> list[int]:
        """The seeds of each setting."""
        return list(self._saved.manifest.seeds)

    @property
    def digest(self) -> str:
        """A fingerprint of all results: equal digests mean equal runs."""
        return self._saved.manifest.digest

    @property
    def folder(self) -> Path:
        """The folder with the results; a temporary one if `sparelane.sweep` got no `output`."""
        return self._saved.place

    @property
    def warnings(self) -> list[str]:
        """The warnings about the runs, each with its number of runs."""
        found = self._saved.manifest
        return run_warnings.sentences(found.details.get("warnings", found.details.get("notices", [])), found.runs)

    def compare(
        self,
        *,
        metric: str | None = None,
        by: str | Iterable[str] | None = None,
        baseline: str | None = None,
        schemes: str | Iterable[str] | None = None,
        threshold: float | None = None,
    ) -> Answer:
        """Compares the schemes of this sweep. Arguments and errors are those of `sparelane.compare`."""
        return compare(self, metric=metric, by=by, baseline=baseline, schemes=schemes, threshold=threshold)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        metric: str | None = None,
        by: str | Iterable[str] | None = None,
        threshold: float | None = None,
    ) -> Path:
        """Writes the sweep as one HTML file for offline use, with question, answer, figures and commands.

        Args:
            path: The file.
            metric: As for `sparelane.compare`.
            by: As for `sparelane.compare`.
            threshold: As for `sparelane.compare`.

        Returns:
            The path.

        Raises:
            OutputError: The file cannot be written.
            UnknownNameError: No metric or key has this name.
        """
        from sparelane.reports.pages import of_sweep

        place = folders.ready_file(Path(path))
        text = of_sweep.page(self._saved, metric=metric, by=_listed(by), thresholds=_thresholds(threshold))
        folders.replaced(place, lambda part: part.write_text(text, encoding="utf-8"))
        return place

    def plot(self, *panels: str, x: str | None = None) -> Plot:
        """Draws the sweep: metrics along a key with intervals, metrics by flow size, and distributions.

        Args:
            panels: The names of the panels; all panels by default.
            x: The key on the horizontal axis; by default the key with the most values.

        Returns:
            A plot, which notebooks display; its `save` writes PNG, SVG or PDF.

        Raises:
            MissingExtraError: Matplotlib is not installed.
            UnknownNameError: No panel or key has this name.
            SavedResultsError: There is nothing to draw.
        """
        from sparelane.common import extras
        from sparelane.reports.charts import draw, of_sweep
        from sparelane.reports.charts.plot import Plot, choose

        extras.require("figures")
        chosen = choose(of_sweep.panels(self._saved, x), panels)
        return Plot(draw.figure(chosen), tuple(panel.name for panel in chosen))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Copies the results to a folder for `sparelane.load` and the command line.

        Args:
            folder: An empty folder, or the path of a new one.

        Returns:
            The folder.

        Raises:
            OutputError: The folder is not empty, or cannot be written.
        """
        place = folders.ready_folder(Path(folder))
        if next(place.iterdir(), None) is not None:
            raise OutputError(f'the folder "{place}" is not empty; allowed: an empty or a new one')
        shutil.copytree(self.folder, place, dirs_exist_ok=True)
        return place

    def __repr__(self) -> str:
        found = self._saved.manifest
        varied = f" over {', '.join(self.axes)}" if self.axes else ""
        schemes = f", scheme{_s(self.schemes)} {', '.join(self.schemes)}" if self.schemes else ""
        missing = f", {found.missing} missing" if found.missing else ""
        runs, seeds = f"{found.runs} run{'' if found.runs == 1 else 's'}", f"{len(found.seeds)} seed{_s(found.seeds)}"
        return f"<Sweep {found.digest[:12]}: {runs}{varied}{schemes}, {seeds}{missing}>"

    def __getstate__(self) -> SavedSweep:
        """The tables, for pickling. A copy does not keep a temporary folder alive."""
        return self._saved

    def __setstate__(self, saved: SavedSweep) -> None:
        self._saved, self._owner = saved, None

    def _repr_html_(self) -> str:
        """A summary of the sweep and the conclusions about its schemes, for notebooks."""
        try:
            answer = self.compare()
        except SavedResultsError:
            answer = None
        conclusions = "" if answer is None else "".join(f"<p>{html.escape(line)}</p>" for line in answer.headlines)
        notes = "".join(f"<p>warning: {html.escape(text)}</p>" for text in self.warnings)
        return f"<p><code>{html.escape(repr(self))}</code></p>{conclusions}{notes}"


def sweep(
    scenario: Scenario,
    *,
    seeds: int | Iterable[int] | None = None,
    set: Settings | None = None,
    workers: int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
) -> Sweep:
    """Simulates a scenario in many settings.

    Values may be lists, or ranges such as `{"from": 0.1, "to": 0.9, "step": 0.2}`. Every combination of values runs
    with each scheme and seed. See docs/sweeps.md for all forms.

    Worker processes do the runs; scripts need no `if __name__ == "__main__"` for them. Workers know plugin files that
    were loaded with `sparelane.plugins.load`. If the scenario uses a controller, workload or distribution that is
    defined in this session, this process does all runs itself, one after another.

    Args:
        scenario: As for `run`.
        seeds: The number of seeds of each setting, counted from the scenario's seed, or a list of seeds; `None` takes
            those of the scenario.
        set: Values that replace the scenario's, as for `run`. Lists and ranges vary:
            `{"queue.kind": ["fifo", "codel"]}`.
        workers: The number of worker processes; `None` for one per core. The results do not depend on it.
        output: The folder for the results. If it has results of the same sweep, only missing runs are simulated. `None`
            for a temporary folder, which is removed with the returned object; `Sweep.save` keeps a copy.
        progress: `True` shows progress on standard error, `False` does not, and `None` does if standard error is a
            terminal. A function is called with the share of finished runs; returning `False` cancels the sweep.

    Returns:
        The results. Failed runs are listed in `Sweep.failed`, and cause a warning.

    Raises:
        ScenarioError: The scenario is not valid, or no run of it succeeds.
        TypeError: The scenario, or a value in it, has a type that is not supported.
        FileNotFoundError: The file does not exist.
        UnknownNameError: No ready-made scenario has that name.
        PluginError: Python code of a plugin failed.
        OutputError: The folder cannot be written, or holds other results.
        SavedResultsError: The folder holds results of another version.
        Cancelled: `progress` returned `False`. Finished runs are in `output`.
        KeyboardInterrupt: The user pressed Ctrl-C. Finished runs are in `output`.
    """
    if not (isinstance(progress, bool | None) or callable(progress)):
        raise TypeError(f"progress is {progress!r}; allowed: True, False, None or a function")
    plan = plan_of(scenario, seeds, set)
    owner = tempfile.TemporaryDirectory(prefix="sparelane-sweep-") if output is None else None
    place = Path(owner.name) if owner is not None else Path(os.fspath(output or ""))
    _simulate(plan, place, _executor(plan, workers), progress)
    return Sweep(sweep_folder.read(place), owner)


def load(folder: str | os.PathLike[str]) -> Result | Sweep:
    """Reads a saved run or sweep, in any format.

    Args:
        folder: A folder of `Result.save`, `sweep` or the command line.

    Returns:
        A `Result` for a run, and a `Sweep` for a sweep.

    Raises:
        SavedResultsError: The folder does not exist, has no such results, is damaged, or is of another version.
    """
    from sparelane.results.kinds import Kind, kind_of

    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder is {folder!r}; allowed: the path of a folder")
    place = Path(folder)
    match kind_of(place):
        case Kind.RUN:
            return Result.load(place)
        case Kind.SWEEP:
            return Sweep.load(place)
    raise SavedResultsError(f'"{place}" holds experiments; allowed: a run or a sweep (`sparelane report` reads it)')


def compare(
    what: Saved | Sequence[Saved],
    *,
    metric: str | None = None,
    by: str | Iterable[str] | None = None,
    baseline: str | None = None,
    schemes: str | Iterable[str] | None = None,
    threshold: float | None = None,
    seeds: int = COMPARED_SEEDS,
) -> Answer:
    """Compares the schemes of a sweep, several sweeps, or several scenarios, with 95 % intervals over the seeds.

    Args:
        what: A sweep or its folder; several sweeps or folders, each of which counts as a scheme; or several scenario
            files or names, which are simulated with the same seeds.
        metric: The main metric, such as `"p99-completion"` or `"goodput"`; `None` for the mean completion time, if
            flows finish.
        by: Keys that define groups of settings, such as `"queue"` or `"queue.kind"`; `"size"` separates ranges of flow
            sizes. Without keys, each setting is a group of its own.
        baseline: The scheme that the others are compared with; `None` for the first.
        schemes: The schemes to compare; `None` for all.
        threshold: Changes below this fraction of the baseline's number are negligible; `None` for 0.01.
        seeds: The number of seeds for scenario files.

    Returns:
        An answer. Printing it shows the conclusions in sentences; `frame()` has all numbers, `ranking` the order of the
        schemes, and `comparisons` the details.

    Raises:
        UnknownNameError: No scheme, metric, key or ready-made scenario has this name.
        SavedResultsError: There is nothing to compare.
        TypeError: `what` has another type, such as a single `Result`, which has no repetitions.
    """
    if not isinstance(metric, str | None):
        raise TypeError(f"metric is {metric!r}; allowed: a name such as 'p99-completion', or None")
    thresholds = _thresholds(threshold)
    chosen, keys = _listed(schemes), _listed(by)
    if isinstance(what, Sweep | str | os.PathLike):
        saved = _saved(what)
        return comparison.compare(
            saved, baseline=baseline, schemes=chosen, metric=metric, by=keys, thresholds=thresholds
        )
    parts = _parts(what)
    if all(isinstance(one, Sweep) or Path(one).is_dir() for one in parts):
        subject = comparison.of_folders([one.folder if isinstance(one, Sweep) else Path(one) for one in parts])
    else:
        mixed = next((one for one in parts if isinstance(one, Sweep) or Path(one).is_dir()), None)
        if mixed is not None:
            raise TypeError("compare takes sweeps or scenario files, not both together")
        with tempfile.TemporaryDirectory(prefix="sparelane-compare-") as place:
            files = [os.fspath(one) for one in parts if not isinstance(one, Sweep)]
            subject = comparison.of_files(files, seeds, Path(place), _run_plan)
            # The temporary folder is about to be removed, so the note about it is dropped.
            subject = replace(subject, notes=tuple(note for note in subject.notes if place not in note))
    return subject.compare(baseline, chosen, metric=metric, by=keys, thresholds=thresholds)


def plan_of(scenario: Scenario, seeds: int | Iterable[int] | None, set: Settings | None) -> Plan:
    """The plan of a sweep from the arguments of `sweep`.

    Raises:
        ScenarioError: The scenario or a seed is not valid.
    """
    text, name, folder = simulate.read(scenario)
    settings = override_texts(set)
    count: int | None = None
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        settings.append(f"seed={[checked_seed(seed) for seed in seeds]}")
    elif seeds is not None:
        count = checked_seed(seeds)
        if count < 1:
            raise _native.ScenarioError(f"seeds = {seeds}; allowed: a number from 1 on, or a list of seeds")
    plan = Plan(text, name, folder, seeds=count, settings=settings, needs_variation=False)
    if name in (simulate.TEXT_NAME, DICTIONARY):
        plan.name = UNNAMED
    return plan


def _simulate(plan: Plan, place: Path, executor: RunExecutor, progress: bool | Progress | None) -> None:
    """Simulates a plan, and warns about failed runs."""
    state: sweeps.Progress | None = None
    # If an exception such as KeyboardInterrupt ends the loop, closing the generator writes the finished runs.
    with closing(sweeps.sweep(plan, place, executor)) as steps, closing(_shown(plan.name, progress)) as show:
        next(show)
        for state in steps:
            show.send(state.share)
    if state is not None and state.failed:
        reasons = list(dict.fromkeys(state.failed.values()))
        listed = "; ".join(reasons[:LISTED]) + ("; ..." if len(reasons) > LISTED else "")
        if state.done == 0:
            raise _native.ScenarioError(f"every run failed: {listed}")
        warnings.warn(
            f"{len(state.failed)} of {state.wanted} runs failed, and are listed in Sweep.failed: {listed}",
            stacklevel=3,
        )


def _shown(name: str, progress: bool | Progress | None) -> Generator[None, float]:
    """A generator that shows the progress. The caller sends the share of finished runs."""
    if callable(progress):
        share = yield
        while True:
            if progress(share) is False:
                raise _native.Cancelled("the sweep was cancelled")
            share = yield
    if progress is False or (progress is None and not _is_terminal()):
        while True:
            yield
    from sparelane.terminal import console

    with console.progress(name) as meter:
        while True:
            meter((yield))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _executor(plan: Plan, workers: int | None) -> RunExecutor:
    """The executor: worker processes, or this process if the plan uses a plugin that workers do not know."""
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise ValueError(f"workers is {workers!r}; allowed: a whole number from 1 on, or None for one per core")
    if plugins.of_this_session("\n".join((plan.text, *plan.fixed))):
        return _in_this_process
    count = workers or os.cpu_count() or 1
    return lambda job, requests: pool.work(job, requests, count)


def _in_this_process(job: worker.Job, requests: Iterable[worker.RunRequest]) -> Iterator[RunOutcome | None]:
    """An executor that does the runs in this process."""
    for number, overrides, seed in requests:
        yield number, worker.simulate(job, overrides, seed)


def _parts(what: object) -> list[Sweep | str | os.PathLike[str]]:
    """The sweeps, folders or files in an argument of `compare`.

    Raises:
        TypeError: The sequence is empty, or has elements of other types.
    """
    parts = list(what) if isinstance(what, Sequence) else [what]
    found = [one for one in parts if isinstance(one, Sweep | str | os.PathLike)]
    if len(found) < max(len(parts), 1):
        wrong = next((type(one).__name__ for one in parts if not isinstance(one, Sweep | str | os.PathLike)), "[]")
        raise TypeError(
            f"compare takes sweeps, their folders, or scenario files, not {wrong}; sweep(scenario, seeds=5) simulates "
            "a scenario with several seeds"
        )
    return found


def _run_plan(plan: Plan, place: Path) -> None:
    _simulate(plan, place, _executor(plan, None), None)


def _saved(what: Saved) -> SavedSweep:
    """The saved form of a sweep, which may be in a folder.

    Raises:
        SavedResultsError: The folder does not hold a sweep.
    """
    if isinstance(what, Sweep):
        return what._saved
    found = load(what)
    if isinstance(found, Sweep):
        return found._saved
    raise SavedResultsError(f'"{os.fspath(what)}" holds a single run; compare takes sweeps, or scenario files')


def _listed(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """A tuple of names, from one name, several or none."""
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _s(things: Sequence[object]) -> str:
    """The suffix of a plural."""
    return "" if len(things) == 1 else "s"


def _thresholds(threshold: float | None) -> Thresholds:
    if threshold is None:
        return Thresholds()
    if not isinstance(threshold, int | float) or not 0 <= threshold < 1:
        raise ValueError(f"threshold is {threshold!r}; allowed: a share from 0 to 1, such as 0.02 for 2 %")
    return Thresholds(relative=threshold)
