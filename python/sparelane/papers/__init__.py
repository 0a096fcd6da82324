"""The experiments that reproduce the papers' tables and figures: one TOML file each, in the folder of its paper."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from sparelane.common.names import UnknownNameError
from sparelane.papers.engine import declared, panels
from sparelane.papers.engine.base import Experiment
from sparelane.papers.engine.sections import DeclarationError

# Packages of this one that hold no experiments.
TOOLS = ("engine", "pages")


@cache
def registry() -> Mapping[str, Experiment]:
    """Returns all experiments by id: each TOML file in a paper's folder, except for the shared texts."""
    papers = [paper.name for paper in pkgutil.iter_modules(__path__) if paper.ispkg and paper.name not in TOOLS]
    files = [path for place in __path__ for paper in papers for path in (Path(place) / paper).glob("*.toml")]
    found = [read(path) for path in files if path.name != declared.SHARED]
    return {experiment.id: experiment for experiment in sorted(found, key=lambda one: one.id)}


def read(path: Path) -> Experiment:
    """Returns the experiment that a file in the folder of its paper declares.

    Raises:
        DeclarationError: the file or a key in it is wrong.
    """
    name = f"{__name__}.{path.parent.name}.{declared.kind_of(path)}"
    try:
        kind = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise DeclarationError(
            f'{path.parent.name}/{path.name}: "kind" is "{name.rpartition(".")[2]}"; no such module is in the folder'
        ) from error
    if not hasattr(kind, "experiment") and not hasattr(kind, "cells"):
        raise DeclarationError(
            f'{path.parent.name}/{path.name}: "kind" names {name}, which has neither "experiment" nor "cells"'
        )
    further = (getattr(kind, name, None) for name in ("VALUES", "metrics_of"))
    declaration = declared.read(path, kind.METRICS, *further)
    if hasattr(kind, "experiment"):
        # The kind reads further keys of the file.
        experiment: Experiment = kind.experiment(declaration)
        return experiment
    draw = kind.draw if hasattr(kind, "draw") else panels.read(declaration)
    declaration.rest.finish()
    return declaration.study(kind.cells, kind.evaluate, draw)


def select(names: Sequence[str]) -> list[Experiment]:
    """Returns the experiments whose id equals one of the names or starts with it; all experiments without names.

    Examples of names are `rc3`, `rc3/fig8` and `rc3/fig8-load`.

    Raises:
        UnknownNameError: no id starts with a name.
    """
    known = registry()
    if not names:
        return list(known.values())
    chosen: set[str] = set()
    for name in names:
        matches = [name] if name in known else [id for id in known if name and id.startswith(name)]
        if not matches:
            raise UnknownNameError("experiment", name, list(known))
        chosen.update(matches)
    return [experiment for id, experiment in known.items() if id in chosen]
