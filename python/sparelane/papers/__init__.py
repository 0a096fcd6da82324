"""The papers' tables and figures, redone: a file or a module an experiment, found by its place in a paper's package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from sparelane.common.names import UnknownNameError
from sparelane.papers.engine import declared
from sparelane.papers.engine.base import Experiment
from sparelane.papers.engine.sections import DeclarationError

# Packages of this one that hold no experiments.
TOOLS = ("engine", "pages")


@cache
def registry() -> Mapping[str, Experiment]:
    """Every experiment by id: each file, and each module that defines `EXPERIMENT`, in a paper's package."""
    found: list[Experiment] = []
    for paper in pkgutil.iter_modules(__path__):
        if not paper.ispkg or paper.name in TOOLS:
            continue
        package = importlib.import_module(f"{__name__}.{paper.name}")
        for module in pkgutil.iter_modules(package.__path__):
            experiment = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "EXPERIMENT", None)
            if isinstance(experiment, Experiment):
                found.append(experiment)
        found += [read(path) for place in package.__path__ for path in Path(place).glob("*.toml")]
    return {experiment.id: experiment for experiment in sorted(found, key=lambda one: one.id)}


def read(path: Path) -> Experiment:
    """The experiment that a file declares, in the folder of its paper.

    Raises:
        DeclarationError: something in the file is not as it must be.
    """
    name = f"{__name__}.{path.parent.name}.{declared.kind_of(path)}"
    try:
        kind = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise DeclarationError(
            f'{path.parent.name}/{path.name}: "kind" is "{name.rpartition(".")[2]}", which is no module beside the file'
        ) from error
    if not hasattr(kind, "experiment"):
        raise DeclarationError(f'{path.parent.name}/{path.name}: "kind" names {name}, which is no kind')
    experiment: Experiment = kind.experiment(declared.read(path, kind.METRICS))
    return experiment


def select(names: Sequence[str]) -> list[Experiment]:
    """The experiments whose id is, or begins with, one of the names; all without names.

    A name stands for an id, or for the ids below it: `rc3` or `rc3/fig8-load`, also `rc3/fig8`.

    Raises:
        UnknownNameError: no experiment has such an id.
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
