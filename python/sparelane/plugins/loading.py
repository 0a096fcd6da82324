"""Plugin files: Python files that register controllers, workloads and flow sizes."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sparelane.plugins.failure import PluginError, failure
from sparelane.plugins.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin file of this process.

    Attributes:
        path: absolute.
        sha256: of its bytes when it was loaded.
    """

    path: Path
    sha256: str


LOADED: dict[Path, Loaded] = {}


def load(path: str | os.PathLike[str]) -> Loaded:
    """Runs a plugin file, once in a process.

    Raises:
        FileNotFoundError: there is no such file.
        PluginError: it fails, registers nothing, or has changed since it was loaded.
    """
    place = Path(path).resolve()
    if not place.is_file():
        raise FileNotFoundError(f'there is no plugin file "{path}"')
    try:
        digest = hashlib.sha256(place.read_bytes()).hexdigest()
    except OSError as error:
        raise PluginError(f'plugin "{path}": cannot be read: {(error.strerror or str(error)).lower()}') from error
    before = LOADED.get(place)
    if before is not None:
        if before.sha256 != digest:
            raise PluginError(f'plugin "{path}": it has changed since it was loaded; allowed: a new process')
        return before
    execute(place, f"sparelane_plugin_{digest[:12]}_{place.stem}")
    return LOADED.setdefault(place, Loaded(place, digest))


def execute(place: Path, name: str) -> None:
    """Runs the file as a module of this name.

    Raises:
        PluginError: it fails, or registers nothing.
    """
    plugin = f'plugin "{place}"'
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise PluginError(f"{plugin}: not a file of Python; allowed: a name that ends in .py", plugin, str(place))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    kinds = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise failure(plugin, None, error) from error
    if REGISTRY.kinds == kinds:
        del sys.modules[name]
        raise PluginError(
            f"{plugin}: registers nothing; allowed: a file with a class under @sparelane.controller, or a function "
            "under @sparelane.workload or @sparelane.sizes",
            plugin,
            str(place),
        )


def files() -> tuple[str, ...]:
    """All plugin files of this process: what a worker process loads before it runs scenarios."""
    return tuple(str(loaded.path) for loaded in LOADED.values())


def load_all(paths: Iterable[str]) -> None:
    """Loads these files: for the start of a worker process, which gets what `files` gave.

    Raises:
        FileNotFoundError: one is not there.
        PluginError: one fails.
    """
    for path in paths:
        load(path)
