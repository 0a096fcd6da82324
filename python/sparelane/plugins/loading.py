"""Loads plugin files: Python files that register controllers, workloads and flow sizes."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparelane.plugins.failure import PluginError, failure
from sparelane.plugins.registry import REGISTRY, Registered


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin file that this process has loaded.

    Attributes:
        path: the absolute path.
        text: the content at that time.
    """

    path: str
    text: str

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


LOADED: dict[str, Loaded] = {}

# Prefix of the names of modules that hold plugin files.
MODULE_PREFIX = "sparelane_plugin_"


def load(path: str | os.PathLike[str]) -> Loaded:
    """Runs a plugin file, unless this process has run it already.

    Raises:
        FileNotFoundError: the file does not exist.
        PluginError: the file fails, registers nothing, or has changed since it was loaded.
    """
    place = Path(path).resolve()
    if not place.is_file():
        raise FileNotFoundError(f'there is no plugin file "{path}"')
    if place.suffix != ".py":
        raise PluginError(f'plugin "{path}": not a file of Python; allowed: a name that ends in .py', file=str(place))
    try:
        # Some editors write a byte order mark before UTF-8.
        text = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise PluginError(f'plugin "{path}": cannot be read: {(cause or str(error)).lower()}') from error
    return load_text(Loaded(str(place), text))


def load_text(plugin: Loaded) -> Loaded:
    """Runs a plugin from its text, unless this process has run it already. The file may be on another machine.

    Raises:
        PluginError: the plugin fails, registers nothing, or this path was loaded with another text.
    """
    before = LOADED.get(plugin.path)
    if before is None:
        execute(plugin)
        return LOADED.setdefault(plugin.path, plugin)
    if before != plugin:
        raise PluginError(f'plugin "{plugin.path}": it has changed since it was loaded; allowed: a new process')
    return before


def execute(plugin: Loaded) -> None:
    """Runs the text of a plugin as a new module.

    Raises:
        PluginError: the plugin fails or registers nothing.
    """
    whose = f'plugin "{plugin.path}"'
    module = types.ModuleType(f"{MODULE_PREFIX}{plugin.sha256[:12]}_{Path(plugin.path).stem}")
    module.__file__ = plugin.path
    sys.modules[module.__name__] = module
    kinds = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}
    try:
        exec(compile(plugin.text, plugin.path, "exec"), vars(module))
    except SystemExit as error:
        del sys.modules[module.__name__]
        raise PluginError(
            f"{whose}: ends the program (SystemExit: {error.code}); allowed: a file that runs to its end",
            whose,
            plugin.path,
        ) from error
    except Exception as error:
        del sys.modules[module.__name__]
        raise failure(whose, None, error) from error
    if REGISTRY.kinds == kinds:
        del sys.modules[module.__name__]
        raise PluginError(
            f"{whose}: registers nothing; allowed: a file with a class under @sparelane.controller, or a function "
            "under @sparelane.workload or @sparelane.sizes",
            whose,
            plugin.path,
        )


def sources() -> list[list[str]]:
    """The path and text of all plugin files of this process, as lists for JSON. Worker processes get them."""
    return [[plugin.path, plugin.text] for plugin in LOADED.values()]


def load_sources(plugins: Iterable[Sequence[str]]) -> None:
    """Loads plugins from the lists of `sources`, in a worker process on this machine or another.

    Raises:
        PluginError: a plugin fails.
    """
    for path, text in plugins:
        load_text(Loaded(path, text))


def fingerprint(text: str = "") -> str:
    """A fingerprint of the plugin code that results depend on; empty without plugins.

    It covers all plugin files, and registrations of this session that `text` may name. Their source does not show
    whether a function that they call has changed, so every registration counts as new code.

    Args:
        text: A scenario with its overrides.
    """
    parts = [plugin.sha256 for plugin in LOADED.values()]
    parts += [registered.token for registered in of_this_session(text)]
    return hashlib.sha256("".join(parts).encode()).hexdigest() if parts else ""


def of_this_session(text: str) -> list[Registered]:
    """The registrations that a text may name and that come from this session instead of a plugin file.

    Worker processes do not know them.
    """
    return [
        registered
        for kind in REGISTRY.kinds.values()
        for name, registered in kind.items()
        if not registered.origin[0].startswith(MODULE_PREFIX)
        and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    ]
