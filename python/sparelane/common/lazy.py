"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

import importlib
import sys

# Type checkers take this as true. `typing` itself would take longer than the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping


def public_name(package: str, name: str, homes: Mapping[str, str]) -> object:
    """Returns a public name of a package, imported from the module that defines it, and keeps it in the package.

    A package calls it from its `__getattr__`.

    Args:
        package: the package's full name.
        name: the attribute that was looked up.
        homes: for each public name, the full name of the module that defines it.

    Raises:
        AttributeError: the package has no such public name.
    """
    loaded = sys.modules[package]
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=loaded)
    value = getattr(importlib.import_module(homes[name]), name)
    setattr(loaded, name, value)
    return value
