"""Writes and reads the folder of a sweep: its file, the tables, and the manifest."""

from __future__ import annotations

import hashlib
import itertools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import _native
from sparelane.common.folders import OutputError, SavedResultsError, check_folder, replaced
from sparelane.common.frames import write_parquet
from sparelane.plugins import sources
from sparelane.results import manifest, rows
from sparelane.results.manifest import Manifest
from sparelane.scenario.settings import DICTIONARY
from sparelane.simulation import inputs, simulate
from sparelane.simulation import warnings as run_warnings
from sparelane.sweeps import tables
from sparelane.sweeps.journal import Kept
from sparelane.sweeps.plan import Plan

SWEEP = "sweep.toml"
ROWS = "rows.parquet"
RUNS = "runs.parquet"
CURVES = "curves.parquet"
# Results of earlier forms of the sweep, each in a numbered folder.
EARLIER = "earlier"
# Files that identify folders of other kinds.
OTHERS = ("run.json", "report.json")


@dataclass(frozen=True, slots=True)
class SavedSweep:
    """The saved results of a sweep.

    Attributes:
        place: the folder.
        manifest: the manifest.
        rows: one row for each number of each setting.
        runs: one row for each number of each run.
        curves: quantiles of completion times and slowdowns.
    """

    place: Path
    manifest: Manifest
    rows: pl.DataFrame
    runs: pl.DataFrame
    curves: pl.DataFrame

    @property
    def axes(self) -> list[str]:
        """The keys that vary."""
        return rows.axis_names(self.rows)

    @property
    def schemes(self) -> list[str]:
        """The schemes, in the order of the sweep."""
        return self.rows["scheme"].unique(maintain_order=True).to_list()


def check(folder: Path, plan: Plan) -> None:
    """Checks that the folder could be written, and rejects one with results that do not belong to the sweep.

    Raises:
        OutputError: the folder cannot be written, or holds results of another kind or a sweep of another name.
        SavedResultsError: the folder holds a sweep of another version or build of the simulator.
    """
    check_folder(folder)
    other = next((name for name in OTHERS if (folder / name).exists()), None)
    if other is not None:
        raise OutputError(f'"{folder}" holds other results ("{other}"): use another folder for a sweep')
    if (folder / manifest.FILE).exists():
        found = manifest.read(folder)
        if found.kind != "sweep":
            raise OutputError(f'"{folder}" holds results of an experiment: use another folder for a sweep')
        if found.engine != manifest.engine():
            raise SavedResultsError(
                f'"{folder}" holds results of another build of sparelane {found.version}: use another folder'
            )
        if found.name != plan.name:
            raise OutputError(
                f'"{folder}" holds the sweep "{found.name}", and this is "{plan.name}": use another folder, with -o'
            )


def set_aside(folder: Path, plan: Plan) -> Path | None:
    """Moves the tables of an earlier form of the sweep, with other runs, into a numbered subfolder.

    Returns:
        The subfolder; `None` if there are no tables, or they belong to this plan.
    """
    if not (folder / ROWS).exists() or manifest.read(folder).details.get("plan") == plan.key:
        return None
    number = next(number for number in itertools.count(1) if not (folder / EARLIER / str(number)).exists())
    place = folder / EARLIER / str(number)
    place.mkdir(parents=True)
    for name in (SWEEP, ROWS, RUNS, CURVES, manifest.FILE, inputs.FOLDER):
        if (folder / name).exists():
            (folder / name).rename(place / name)
    return place


def write_sweep(folder: Path, plan: Plan) -> None:
    """Writes the sweep file, the plugins, and a manifest without results, before the first run.

    Raises:
        OSError: the folder cannot be written.
    """
    replaced(folder / SWEEP, lambda path: path.write_text(plan.text, encoding="utf-8"))
    inputs.copy("", None, folder)
    if not (folder / manifest.FILE).exists():
        _manifest(plan, {}, {}, 0.0, folder).write(folder)


def write(folder: Path, plan: Plan, kept: Mapping[str, Kept], failed: Mapping[str, str], elapsed_s: float) -> None:
    """Writes the tables and the manifest of all finished runs.

    Raises:
        OSError: the folder cannot be written.
    """
    before_s = (manifest.read(folder).elapsed_s or 0.0) if (folder / manifest.FILE).exists() else 0.0
    runs = tables.of_runs(plan, kept)
    replaced(folder / ROWS, partial(write_parquet, tables.of_settings(runs)))
    replaced(folder / RUNS, partial(write_parquet, runs))
    replaced(folder / CURVES, partial(write_parquet, tables.of_curves(plan, kept)))
    _manifest(plan, kept, failed, before_s + elapsed_s, folder).write(folder)


def _manifest(
    plan: Plan, kept: Mapping[str, Kept], failed: Mapping[str, str], elapsed_s: float, folder: Path
) -> Manifest:
    # Missing runs count as empty digests, so that a complete sweep has another digest than a partial one.
    digest = hashlib.blake2b(digest_size=32)
    for run in plan.runs:
        digest.update(str(kept[run.name]["digest"] if run.name in kept else "").encode() + b"\0")
    done = [kept[run.name] for run in plan.runs if run.name in kept]
    details = {
        "file": plan.file,
        "axes": [{"key": axis.key, "values": [*axis.labels], "chooses": axis.chooses} for axis in plan.axes],
        "settings": len(plan.settings),
        "schemes": list(dict.fromkeys(setting.scheme for setting in plan.settings)),
        "paired": _is_paired(plan, kept),
        "plan": plan.key,
        "overrides": plan.fixed,
        # Without a folder: the command reads the scenario that is saved in the folder itself.
        "repeat": _command(plan, None),
        "plugins": [{"file": f"{inputs.FOLDER}/{name}", "sha256": sha256} for name, sha256 in inputs.plugins()],
        "warnings": run_warnings.counted(one.get("warnings", ()) for one in done),
        "failed": [
            {"setting": plan.describe(setting), "scheme": setting.scheme, "seed": run.seed, "error": failed[run.name]}
            for run in plan.runs
            if run.name in failed
            for setting in [plan.settings[run.setting]]
        ],
    }
    return Manifest(
        kind="sweep",
        name=plan.name,
        title=plan.title,
        version=_native.__version__,
        engine=manifest.engine(),
        commit=manifest.commit(),
        seeds=plan.seeds,
        effort="full",
        digest=digest.hexdigest(),
        runs=len(done),
        missing=len(plan.runs) - len(done),
        elapsed_s=round(elapsed_s, 3),
        cpu_s=round(sum(float(one.get("cpu_s", 0.0)) for one in done), 3),
        day=datetime.now(UTC).date().isoformat(),
        command=_command(plan, folder),
        details=details,
    )


def _command(plan: Plan, folder: Path | None) -> str:
    """The command that resumes the sweep in `folder`, or, without a folder, repeats the sweep from its saved files."""
    # Seeds that are not consecutive come from the file or an override, so the command needs no option for them.
    in_a_row = plan.seeds == tuple(range(plan.seeds[0], plan.seeds[0] + len(plan.seeds)))
    seeds = f" --seeds {len(plan.seeds)}" if len(plan.seeds) > 1 and in_a_row else ""
    verb = "sweep" if plan.is_varied or not in_a_row else "run"
    overrides = plan.fixed if verb == "run" else [*plan.fixed, *plan.seed_overrides]
    settings = "".join(f" --set {shlex.quote(one)}" for one in overrides)
    first = f" --seed {plan.seeds[0]}" if verb == "run" else ""
    names = (
        [f"{inputs.FOLDER}/{name}" for name, _ in inputs.plugins()]
        if folder is None
        else [path for path, _ in sources()]
    )
    plugins = "".join(f" --plugin {shlex.quote(name)}" for name in names)
    given = plan.file
    if given in (simulate.TEXT_NAME, DICTIONARY):
        # A scenario from a text or a dictionary has no other file than the copy in the folder.
        given = str((folder or Path()) / SWEEP)
    file, place = (Path(given).name, "") if folder is None else (given, f" -o {shlex.quote(str(folder))}")
    return f"sparelane {verb} {shlex.quote(file)}{settings}{first}{seeds}{plugins}{place}"


def _is_paired(plan: Plan, kept: Mapping[str, Kept]) -> bool:
    """True if runs that differ only in the scheme always had the same traffic."""
    seen: dict[tuple[Any, ...], str] = {}
    for run in plan.runs:
        if run.name in kept:
            values = plan.values(plan.settings[run.setting])
            # Keys of a scheme do not affect the traffic.
            shared = tuple(str(values[axis.key]) for axis in plan.setting_axes if not axis.scheme)
            traffic = str(kept[run.name]["traffic"])
            if seen.setdefault((run.seed, *shared), traffic) != traffic:
                return False
    return True


def read(folder: Path) -> SavedSweep:
    """Reads the results of a sweep.

    Raises:
        SavedResultsError: the folder holds no sweep, a file cannot be read, or another version wrote it.
    """
    found = manifest.read(folder)
    if found.kind != "sweep":
        raise SavedResultsError(f'"{folder}" holds results of another kind: {found.kind}')
    if not (folder / ROWS).exists():
        raise SavedResultsError(f'the sweep in "{folder}" has no results yet: `{found.command}` resumes it')
    try:
        curves = pl.read_parquet(folder / CURVES)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read "{folder / CURVES}": {error}') from error
    return SavedSweep(folder, found, rows.read(folder / ROWS), rows.read(folder / RUNS), curves)
