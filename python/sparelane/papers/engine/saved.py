"""Saves the results of experiments as files, and reads them back.

Saved numbers stay as they were measured. Reasons, claims and all other texts come from the experiment as it is when
the results are read. A reason that is found after a long run therefore appears without another run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from sparelane import _native
from sparelane.common.folders import SavedResultsError, plain_name
from sparelane.common.frames import write_csv
from sparelane.papers.engine.base import Effort, Experiment, Simulation, Verdict
from sparelane.papers.engine.rows import COLUMNS, Evaluation, Key, from_record, to_record
from sparelane.papers.engine.runner import Finished
from sparelane.results import manifest
from sparelane.results.manifest import Manifest

ROWS = "rows.csv"
FIGURE = "figure.png"
# The folder of the tables that the figure draws, besides the rows.
CURVES = "curves"

NUMBERS = ("value", "interval", "paper", "paper_low", "paper_high")
SCHEMA: Mapping[str, pl.DataType] = {
    name: pl.Float64() if name in NUMBERS else pl.Boolean() if name == "is_loss_rate" else pl.String()
    for name in COLUMNS
}

# Identifies a simulation: the scenario, its overrides and the seed.
RunKey = tuple[str, tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Saved:
    """Saved results of an experiment.

    Attributes:
        experiment: the experiment in its present form.
        effort: the effort of the results.
        evaluation: rows and notes, with the experiment's present reasons.
        cpu_s: the processor time of each simulation, in seconds.
        manifest: the origin of the results.
        place: the folder.
    """

    experiment: Experiment
    effort: Effort
    evaluation: Evaluation
    cpu_s: Mapping[RunKey, float]
    manifest: Manifest
    place: Path

    @property
    def figure(self) -> Path:
        """The file of the figure."""
        return self.place / FIGURE

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on the experiment's claims."""
        return self.experiment.check(self.effort, self.evaluation)

    @property
    def is_outdated(self) -> bool:
        """True if the experiment now needs other simulations than those of these results."""
        return {_key(simulation) for simulation in self.experiment.plan(self.effort)} != set(self.cpu_s)

    @property
    def is_simulated(self) -> bool:
        """True if the results come from simulations, so that the effort matters."""
        return bool(self.cpu_s)

    @property
    def is_quick(self) -> bool:
        """True if the effort was a quick one."""
        return self.experiment.is_quick(self.effort)

    @property
    def is_full(self) -> bool:
        """True if the results include all simulations of the full effort."""
        return self.experiment.is_full(self.effort)

    @property
    def unneeded_reasons(self) -> list[Key]:
        """The keys of reasons that no row needs; empty unless the effort was the full one."""
        return self.experiment.unneeded_reasons(self.evaluation) if self.is_full else []


def write(finished: Finished, folder: Path) -> None:
    """Writes an experiment's rows, curves and manifest into its folder.

    Raises:
        OSError: the folder cannot be written.
    """
    experiment, effort, evaluation = finished.task.experiment, finished.task.effort, finished.evaluation
    write_rows(experiment.id, evaluation, folder)
    files = _write_curves(evaluation, folder)
    # The seeds are those of the effort; experiments without randomness have runs for the first one only.
    Manifest(
        kind="experiment",
        name=experiment.id,
        title=experiment.title,
        version=_native.__version__,
        engine=manifest.engine(),
        commit=manifest.commit(),
        seeds=tuple(effort.seed_numbers()),
        effort=effort.name,
        digest=_digest([outcome.digest for outcome in finished.outcomes.values()]),
        runs=len(finished.outcomes),
        missing=0,
        elapsed_s=round(finished.elapsed_s, 3),
        cpu_s=round(sum(outcome.cpu_s for outcome in finished.outcomes.values()), 3),
        day=datetime.now(UTC).date().isoformat(),
        command=command(experiment, effort),
        details={
            "stop_s": effort.stop_s,
            "notes": list(evaluation.notes),
            "curves": files,
            "runs": [
                {
                    "label": simulation.label,
                    "scenario": simulation.what,
                    "settings": list(simulation.settings),
                    "seed": simulation.seed,
                    "digest": outcome.digest,
                    "cpu_s": round(outcome.cpu_s, 3),
                }
                for simulation, outcome in finished.outcomes.items()
            ],
        },
    ).write(folder)


def command(experiment: Experiment, effort: Effort) -> str:
    """Returns the command that repeats results of this effort."""
    is_quick = experiment.is_quick(effort)
    usual = experiment.quick if is_quick else experiment.full
    is_usual = set(experiment.plan(effort)) == set(experiment.plan(usual))
    seeds = "" if is_usual else f" --seeds {effort.seeds}"
    return f"sparelane reproduce {experiment.id}{' --quick' if is_quick else ''}{seeds}"


def write_rows(id: str, evaluation: Evaluation, folder: Path) -> None:
    """Writes the rows of the experiment with this id.

    Raises:
        OSError: the folder cannot be written.
    """
    write_csv(pl.DataFrame([to_record(row, id) for row in evaluation.rows], schema=SCHEMA), folder / ROWS)


def read_all(folder: Path, known: Mapping[str, Experiment]) -> tuple[list[Saved], list[str]]:
    """Returns the results below a folder in the order of the known experiments, and the ids of unknown experiments.

    The folder is that of all results, of one paper, or of one experiment.

    Raises:
        SavedResultsError: a file is not in the form that `write` gives it.
    """
    places = [path.parent for below in ("", "*/", "*/*/") for path in sorted(folder.glob(f"{below}{manifest.FILE}"))]
    found = {read.name: (place, read) for place in places if (read := manifest.read_any(place)).kind == "experiment"}
    saved = [_read(experiment, *found[id]) for id, experiment in known.items() if id in found]
    return saved, [id for id in found if id not in known]


def _read(experiment: Experiment, place: Path, read: Manifest) -> Saved:
    try:
        effort = Effort(read.effort, len(read.seeds), read.details["stop_s"])
        runs = read.details["runs"]
        cpu_s = {(run["scenario"], tuple(run["settings"]), run["seed"]): run["cpu_s"] for run in runs}
        rows = tuple(from_record(record) for record in _records(place / ROWS))
        found = Evaluation(rows, tuple(read.details["notes"]), _curves(place, read.details["curves"]))
        return Saved(experiment, effort, experiment.explain(effort, found), cpu_s, read, place)
    except (KeyError, TypeError) as error:
        raise SavedResultsError(f'"{place}" does not hold results as this version saves them: {error}') from error


def _digest(digests: Sequence[str]) -> str:
    """Returns one digest of the digests of all runs; empty without runs."""
    return hashlib.blake2b("\n".join(digests).encode(), digest_size=16).hexdigest() if digests else ""


def _write_curves(evaluation: Evaluation, folder: Path) -> dict[str, str]:
    """Writes the tables besides the rows, and returns the name of each table's file."""
    files: dict[str, str] = {}
    if evaluation.curves:
        (folder / CURVES).mkdir()
    for name, curve in evaluation.curves.items():
        files[name] = _file_name(name, set(files.values()))
        write_csv(curve, folder / CURVES / files[name])
    return files


def _file_name(name: str, taken: AbstractSet[str]) -> str:
    """Returns a plain file name for a curve, other than those taken."""
    stem = plain_name(name) or "curve"
    names = (f"{stem}{suffix}.csv" for suffix in ("", *(f"-{number}" for number in range(2, len(taken) + 3))))
    return next(name for name in names if name not in taken)


def _curves(place: Path, files: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    try:
        return {name: pl.read_csv(place / CURVES / Path(file).name) for name, file in files.items()}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read the curves of "{place}": {error}') from error


def _records(path: Path) -> list[dict[str, object]]:
    try:
        table = pl.read_csv(path, schema_overrides=SCHEMA)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error
    return table.to_dicts()


def _key(simulation: Simulation) -> RunKey:
    return (simulation.what, simulation.settings, simulation.seed)


def distinct_cpu_s(saved: Sequence[Saved]) -> float:
    """Returns the processor time of all simulations in seconds. A simulation that experiments share counts once."""
    return sum({key: spent for one in saved for key, spent in one.cpu_s.items()}.values())
