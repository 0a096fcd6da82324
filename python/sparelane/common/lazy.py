"""Imports that wait until they are needed.

`public_name` imports the public names of a package when they are first used. `provide` and `provided` let a package
call a function that a package above it defines, without importing that package.
"""

from __future__ import annotations

import importlib
import sys

# Type checkers assume that this is true. Importing `typing` would take longer than the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# Functions that are called from below the package that defines them: their names, and "module:function" of each.
_PROVIDED: dict[str, str] = {}


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


def provide(name: str, home: str) -> None:
    """Registers the function that packages below its own call as `name`.

    Args:
        name: the name by which it is called.
        home: the full name of its module and its own name, as in `package.module:function`.
    """
    _PROVIDED[name] = home


def provided(name: str) -> Callable[..., Any]:
    """Returns the function that is registered as `name`, and imports its module.

    Raises:
        KeyError: no function is registered under this name.
    """
    module, _, function = _PROVIDED[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
