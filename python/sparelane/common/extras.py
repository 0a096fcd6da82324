"""Parts that need libraries of their own, which not everybody installs: `pip install 'sparelane[EXTRA]'`."""

from __future__ import annotations

import importlib.util
from typing import Literal

Extra = Literal["figures", "papers"]

# What each extra brings, as it is imported, and what for.
MODULES: dict[Extra, tuple[tuple[str, ...], str]] = {
    "figures": (("matplotlib",), "figures are drawn"),
    "papers": (("matplotlib", "scipy"), "experiments are redone and drawn"),
}


class MissingExtraError(ImportError):
    """A library is not installed that some parts need; the message says how to get it."""


def require(extra: Extra) -> None:
    """Makes sure that what an extra brings is there, before any work is done.

    Raises:
        MissingExtraError: it is not.
    """
    modules, purpose = MODULES[extra]
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{purpose} with {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed: "
            f"pip install 'sparelane[{extra}]'"
        )
