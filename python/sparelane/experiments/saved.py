"""Results of experiments as files, from which they can be read, explained and judged again.

Rows are numbers and stay as they were measured. Reasons, claims and all other words are the experiment's as it is when
the results are read: a reason that is found after a run of hours stands beside its row without another run.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import _native
from sparelane.experiments.base import Effort, Evaluation, Experiment, Row, Simulation, Verdict
from sparelane.experiments.runner import Finished
from sparelane.folders import SavedResultsError
from sparelane.frames import write_csv, write_json_value

MANIFEST = "experiment.json"
ROWS = "rows.json"
FIGURE = "figure.png"
# The folder of the tables that the figure draws, besides the rows.
CURVES = "curves"

# What tells a simulation from all others: the scenario, its overrides and the seed.
RunKey = tuple[str, tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Saved:
    """An experiment's results, as they were saved.

    Attributes:
        experiment: as it is now.
        effort: what went into the results.
        evaluation: rows and notes; explained as the experiment is now.
        cpu_s: the processor time of each simulation, seconds, by what tells it apart.
        version: of the program that simulated, with the commit where that is known.
        day: when it was, as year, month and day.
        place: the folder.
        digest: a fingerprint of all runs in order; empty where nothing was simulated.
    """

    experiment: Experiment
    effort: Effort
    evaluation: Evaluation
    cpu_s: Mapping[RunKey, float]
    version: str
    day: str
    place: Path
    digest: str = ""

    @property
    def figure(self) -> Path:
        """The file of the figure."""
        return self.place / FIGURE

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What becomes of the experiment's claims."""
        return self.experiment.check(self.effort, self.evaluation)

    @property
    def is_outdated(self) -> bool:
        """Whether the experiment would now ask for other simulations than these results rest on."""
        return {_key(simulation) for simulation in self.experiment.plan(self.effort)} != set(self.cpu_s)

    @property
    def is_simulated(self) -> bool:
        """Whether the results rest on simulations, so that the effort matters."""
        return bool(self.cpu_s)

    @property
    def is_quick(self) -> bool:
        """Whether the effort was a quick one."""
        return self.experiment.is_quick(self.effort)

    @property
    def is_full(self) -> bool:
        """Whether nothing was left out of the full effort."""
        return self.experiment.is_full(self.effort)

    @property
    def unneeded_reasons(self) -> list[tuple[str, str]]:
        """Row and metric of reasons that no row needs; none are known where the effort was not the full one."""
        return self.experiment.unneeded_reasons(self.evaluation) if self.is_full else []


def write(finished: Finished, folder: Path) -> None:
    """Writes an experiment's rows and manifest into its folder.

    Raises:
        OSError: the folder cannot be written.
    """
    experiment, effort, evaluation = finished.task.experiment, finished.task.effort, finished.evaluation
    write_json_value([row.to_json(experiment.id) for row in evaluation.rows], folder / ROWS)
    manifest = {
        "id": experiment.id,
        "version": version(),
        "day": datetime.now(UTC).date().isoformat(),
        "effort": {"name": effort.name, "seeds": effort.seeds, "stop_s": effort.stop_s},
        "notes": list(evaluation.notes),
        "runs": [
            {
                "label": simulation.label,
                "scenario": simulation.scenario,
                "settings": list(simulation.settings),
                "seed": simulation.seed,
                "digest": outcome.digest,
                "cpu_s": round(outcome.cpu_s, 3),
            }
            for simulation, outcome in finished.outcomes.items()
        ],
    }
    write_json_value(manifest, folder / MANIFEST)


def read_all(folder: Path, known: Mapping[str, Experiment]) -> tuple[list[Saved], list[str]]:
    """The results below a folder, in the order of the known experiments; and the ids that none of these has.

    Raises:
        SavedResultsError: a file is not as `write` makes it.
    """
    manifests = {path.parent: _load(path) for path in sorted(folder.glob(f"*/*/{MANIFEST}"))}
    found = {str(manifest.get("id")): (place, manifest) for place, manifest in manifests.items()}
    saved = [_read(experiment, *found[id]) for id, experiment in known.items() if id in found]
    return saved, [id for id in found if id not in known]


def _read(experiment: Experiment, place: Path, manifest: Mapping[str, Any]) -> Saved:
    try:
        effort = Effort(**manifest["effort"])
        cpu_s = {(run["scenario"], tuple(run["settings"]), run["seed"]): run["cpu_s"] for run in manifest["runs"]}
        rows = tuple(_row(row) for row in _load(place / ROWS))
        found = Evaluation(rows, tuple(manifest["notes"]), _curves(place))
        explained = experiment.explain(effort, found)
        digest = _digest([str(run["digest"]) for run in manifest["runs"]])
        return Saved(experiment, effort, explained, cpu_s, manifest["version"], manifest["day"], place, digest)
    except (KeyError, TypeError) as error:
        raise SavedResultsError(f'"{place}" does not hold results as this version saves them: {error}') from error


def _digest(digests: Sequence[str]) -> str:
    """One fingerprint of those of all runs; empty without runs."""
    return hashlib.blake2b("\n".join(digests).encode(), digest_size=16).hexdigest() if digests else ""


def write_curves(evaluation: Evaluation, folder: Path) -> None:
    """Writes the tables that the figure may draw, a file each.

    Raises:
        OSError: the folder cannot be written.
    """
    if evaluation.curves:
        (folder / CURVES).mkdir()
    for name, curve in evaluation.curves.items():
        write_csv(curve, folder / CURVES / f"{name}.csv")


def _curves(place: Path) -> dict[str, pl.DataFrame]:
    try:
        return {path.stem: pl.read_csv(path) for path in sorted((place / CURVES).glob("*.csv"))}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read the curves of "{place}": {error}') from error


def _row(row: Mapping[str, Any]) -> Row:
    names = ("row", "metric", "unit", "paper", "ours", "ci95", "is_loss_rate")
    return Row(**{name: row[name] for name in names})


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error


def _key(simulation: Simulation) -> RunKey:
    return (simulation.scenario, simulation.settings, simulation.seed)


def distinct_cpu_s(saved: Sequence[Saved]) -> float:
    """The processor time of all simulations, seconds; one that experiments share counts once."""
    return sum({key: spent for one in saved for key, spent in one.cpu_s.items()}.values())


@cache
def version() -> str:
    """The program's version, and in a checkout of its sources the commit, marked where files differ from it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return _native.__version__
    return f"{_native.__version__} ({commit})"
