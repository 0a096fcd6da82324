"""What an experiment leaves on disk: its rows, its figure, its flows, and the report over all of them."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import _native
from sparelane.experiments import plots
from sparelane.experiments.base import Json, Row
from sparelane.experiments.runner import Finished
from sparelane.experiments.text import HEADINGS, cells
from sparelane.frames import write_csv, write_json_value, write_parquet

ROW_SCHEMA = {
    "experiment": pl.String,
    "row": pl.String,
    "metric": pl.String,
    "unit": pl.String,
    "paper": pl.Float64,
    "ours": pl.Float64,
    "ci95": pl.Float64,
    "difference": pl.Float64,
    "deviates": pl.Boolean,
    "reason": pl.String,
}


def rows_json(finished: Sequence[Finished]) -> list[Json]:
    """Every row of every experiment, as machines read it."""
    return [row.to_json(done.task.experiment.id) for done in finished for row in done.evaluation.rows]


def save_experiment(finished: Finished, folder: Path) -> None:
    """Writes an experiment's rows, curves, figure and the flows of its first seed into `folder/<id>`.

    All of it appears at once, in place of what was there: an interruption leaves nothing half done.

    Raises:
        OSError: the folder cannot be written.
    """
    place = folder / finished.task.experiment.id
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=place.parent) as scratch:
        part = Path(scratch) / place.name
        part.mkdir()
        _write_experiment(finished, part)
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)


def _write_experiment(finished: Finished, place: Path) -> None:
    rows = rows_json([finished])
    write_json_value(rows, place / "rows.json")
    write_csv(pl.DataFrame(rows, schema=ROW_SCHEMA), place / "rows.csv")
    for name, curve in finished.evaluation.curves.items():
        write_csv(curve, place / f"{name}.csv")
    with plots.style():
        plots.save(finished.task.experiment.draw(finished.evaluation), place)
    for simulation, outcome in finished.outcomes.items():
        if simulation.keep_flows:
            (place / "flows").mkdir(exist_ok=True)
            write_parquet(outcome.flows, place / "flows" / f"{_file_name(simulation.label)}.parquet")


def save_report(finished: Sequence[Finished], unfinished: Sequence[str], folder: Path) -> None:
    """Writes `report.md` and `report.json`: all comparisons, with what each one assumes.

    Raises:
        OSError: the folder cannot be written.
    """
    (folder / "report.md").write_text(_markdown(finished, unfinished), encoding="utf-8")
    content = {
        "version": _native.__version__,
        "experiments": [_experiment_json(done) for done in finished],
        "unfinished": list(unfinished),
    }
    write_json_value(content, folder / "report.json")


def _experiment_json(done: Finished) -> dict[str, Any]:
    experiment, effort = done.task.experiment, done.task.effort
    return {
        "id": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        "method": experiment.method,
        "assumptions": list(experiment.assumptions),
        "effort": {"name": effort.name, "seeds": effort.seeds, "stop_s": effort.stop_s},
        "rows": [row.to_json(experiment.id) for row in done.evaluation.rows],
        "notes": list(done.evaluation.notes),
        "runs": [
            {
                "label": simulation.label,
                "scenario": simulation.scenario,
                "settings": list(simulation.settings),
                "seed": simulation.seed,
                "digest": outcome.digest,
            }
            for simulation, outcome in done.outcomes.items()
        ],
    }


def _markdown(finished: Sequence[Finished], unfinished: Sequence[str]) -> str:
    parts = [
        "# The papers' numbers beside ours\n",
        f"sparelane {_native.__version__}. Intervals hold 95 % (Student's t over the seeds). "
        "A difference is ours less the paper's.\n",
    ]
    parts += [_section(done) for done in finished]
    if unfinished:
        parts.append("## Not finished\n\n" + "".join(f"- {id}\n" for id in unfinished))
    return "\n".join(parts)


def _section(done: Finished) -> str:
    experiment, effort = done.task.experiment, done.task.effort
    runs = f"{effort.name}: {effort.seeds} seed{'s' if effort.seeds > 1 else ''}" if done.outcomes else "no simulation"
    length = f", runs of {effort.stop_s:g} s" if effort.stop_s else ""
    lines = [
        f"## {experiment.id}: {experiment.title}\n",
        f"Source: {experiment.source}. {experiment.method} ({runs}{length}.)\n",
        _table(done.evaluation.rows),
        f"![{experiment.title}]({experiment.id}/figure.png)\n",
    ]
    if done.evaluation.notes:
        lines.append("".join(f"{note}\n" for note in done.evaluation.notes))
    lines.append("Assumptions:\n\n" + "".join(f"- {assumption}\n" for assumption in experiment.assumptions))
    return "\n".join(lines)


def _table(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(cells(row) for row in rows)]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |\n" for line in lines)


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-").lower()
