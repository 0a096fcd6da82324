"""Environments for learning controllers: `pip install sparelane[gym]`.

`CongestionEnv` is a Gymnasium environment with one agent, `CongestionParallelEnv` a PettingZoo one with several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparelane.gym.flow import OBSERVED, Reward

if TYPE_CHECKING:
    from sparelane.gym.several import CongestionParallelEnv
    from sparelane.gym.single import CongestionEnv

__all__ = ["OBSERVED", "CongestionEnv", "CongestionParallelEnv", "Reward"]

# Where each environment is, and what it needs.
ENVIRONMENTS = {"CongestionEnv": "sparelane.gym.single", "CongestionParallelEnv": "sparelane.gym.several"}


def __getattr__(name: str) -> Any:
    """Loads an environment when it is asked for: each needs a library of its own."""
    if name not in ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        return getattr(importlib.import_module(ENVIRONMENTS[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("gymnasium", "pettingzoo"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}: pip install 'sparelane[gym]'", name=error.name
        ) from error
