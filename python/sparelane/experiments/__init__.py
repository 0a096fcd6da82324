"""The papers' tables and figures, redone: one module an experiment, found by looking through the packages here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache

from sparelane.experiments.base import Experiment
from sparelane.names import UnknownNameError


@cache
def registry() -> Mapping[str, Experiment]:
    """Every experiment by id: each module of a paper's package that defines `EXPERIMENT`."""
    found: dict[str, Experiment] = {}
    for paper in pkgutil.iter_modules(__path__):
        if not paper.ispkg:
            continue
        package = importlib.import_module(f"{__name__}.{paper.name}")
        for module in pkgutil.iter_modules(package.__path__):
            experiment = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "EXPERIMENT", None)
            if isinstance(experiment, Experiment):
                found[experiment.id] = experiment
    return dict(sorted(found.items()))


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
