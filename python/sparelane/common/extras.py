"""Checks for optional libraries, which are installed with `pip install 'sparelane[EXTRA]'`."""

from __future__ import annotations

import importlib.util
from typing import Literal

Extra = Literal["figures", "papers"]

# The modules of each extra, and their purpose as the start of a sentence.
MODULES: dict[Extra, tuple[tuple[str, ...], str]] = {
    "figures": (("matplotlib",), "figures are drawn"),
    "papers": (("matplotlib", "scipy"), "experiments are evaluated and drawn"),
}


class MissingExtraError(ImportError):
    """An optional library is missing. The message contains the command that installs it."""


def require(extra: Extra) -> None:
    """Checks that the modules of an extra are installed, before any work is done.

    Raises:
        MissingExtraError: a module is not installed.
    """
    modules, purpose = MODULES[extra]
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{purpose} with {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed: "
            f"pip install 'sparelane[{extra}]'"
        )
