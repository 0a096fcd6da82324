"""Writes the results of experiments to disk: rows, figures and flows of each, and the pages and JSON of all."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparelane.common.folders import plain_name
from sparelane.common.frames import write_json_value, write_parquet
from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.papers.engine.base import Effort, Experiment, Verdict
from sparelane.papers.engine.rows import Evaluation, Json, to_record
from sparelane.papers.engine.runner import Finished
from sparelane.papers.engine.saved import Saved
from sparelane.papers.pages import markdown
from sparelane.papers.pages.text import effort_words
from sparelane.reports import plots
from sparelane.results import manifest

# The JSON file with all results of a folder.
REPORT = "report.json"


def rows_json(finished: Sequence[Finished]) -> list[Json]:
    """Returns every row of every experiment as a JSON object."""
    return [to_record(row, done.task.experiment.id) for done in finished for row in done.evaluation.rows]


def save_experiment(finished: Finished, folder: Path) -> None:
    """Writes an experiment's rows, manifest, curves, figure and the flows of its first seed into `folder/<id>`.

    The new folder replaces an existing one at once, so that an interruption leaves no incomplete results.

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
    saved.write(finished, place)
    _draw(finished.task.experiment, finished.task.effort, finished.evaluation, place)
    for simulation, outcome in finished.outcomes.items():
        if simulation.keep_flows:
            (place / "flows").mkdir(exist_ok=True)
            write_parquet(outcome.flows, place / "flows" / f"{plain_name(simulation.label)}.parquet")


def _draw(experiment: Experiment, effort: Effort, evaluation: Evaluation, place: Path) -> None:
    with plots.style():
        drawing = experiment.draw(evaluation)
        plots.say_effort(drawing, effort_words(experiment, effort))
        plots.save(drawing, place)


def redraw(results: Sequence[Saved]) -> None:
    """Draws the figures of saved results again with the present code.

    Raises:
        OSError: a folder cannot be written.
    """
    for one in results:
        _draw(one.experiment, one.effort, one.evaluation, one.place)


def save_report(folder: Path, unfinished: Sequence[str]) -> None:
    """Writes the pages and `report.json` for all results in the folder, including those of earlier runs.

    Raises:
        OSError: the folder cannot be written.
        SavedResultsError: the results of an earlier run cannot be read.
    """
    results, _ = saved.read_all(folder, registry())
    save_pages(results, folder, unfinished=unfinished)
    content = {
        "version": manifest.program(),
        "experiments": [_experiment_json(one) for one in results],
        "unfinished": list(unfinished),
    }
    write_json_value(content, folder / REPORT)


def unfinished(folder: Path, results: Sequence[Saved]) -> list[str]:
    """Returns the ids of experiments that the last interrupted run did not finish and that still have no results."""
    try:
        ids = json.loads((folder / REPORT).read_text(encoding="utf-8"))["unfinished"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    found = {one.experiment.id for one in results}
    return [id for id in ids if isinstance(id, str) and id not in found]


def save_pages(
    results: Sequence[Saved], folder: Path, *, see: str | None = None, unfinished: Sequence[str] = ()
) -> Path:
    """Writes the page of all results, one page per experiment, and one of the claims that fail.

    The reasons in saved rows are updated to those that the experiments have now.

    Args:
        results: the results, all from below `folder`.
        folder: the folder of results.
        see: another page that the page of all results links to; by default, the page that it already links to.
        unfinished: the ids of requested experiments without results.

    Returns:
        The path of the page of all results.

    Raises:
        OSError: the folder cannot be written.
    """
    for one in results:
        saved.write_rows(one.experiment.id, one.evaluation, one.place)
        (one.place / markdown.PAGE).write_text(markdown.experiment_page(one), encoding="utf-8")
    target = folder / markdown.PAGE
    see = see or markdown.linked_page(target)
    target.write_text(markdown.index(results, see=see, unfinished=unfinished), encoding="utf-8")
    claims = markdown.failed_claims(results)
    if claims is None:
        (folder / markdown.CLAIMS).unlink(missing_ok=True)
    else:
        (folder / markdown.CLAIMS).write_text(claims, encoding="utf-8")
    return target


def _experiment_json(one: Saved) -> dict[str, Any]:
    experiment, effort = one.experiment, one.effort
    return {
        "id": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        "method": experiment.method,
        "assumptions": list(experiment.assumptions),
        "fitted": list(experiment.fitted),
        "effort": {"name": effort.name, "seeds": effort.seeds, "stop_s": effort.stop_s},
        "version": one.manifest.program,
        "day": one.manifest.day,
        "outdated": one.is_outdated,
        "rows": [to_record(row, experiment.id) for row in one.evaluation.rows],
        "claims": [_claim_json(verdict) for verdict in one.verdicts],
        "unneeded_reasons": [key.words for key in one.unneeded_reasons],
        "notes": list(one.evaluation.notes),
        "runs": [
            {"scenario": scenario, "settings": list(settings), "seed": seed, "cpu_s": spent}
            for (scenario, settings, seed), spent in one.cpu_s.items()
        ],
    }


def _claim_json(verdict: Verdict) -> dict[str, Any]:
    """Returns a verdict as a JSON object; the bound of an open side is null."""
    limits = verdict.band or (-math.inf, math.inf)
    low, high = (None if math.isinf(limit) else limit for limit in limits)
    return {
        "claim": verdict.text,
        "value": verdict.value,
        "low": low,
        "high": high,
        "holds": verdict.holds,
        "problem": verdict.problem,
    }
