"""Environments for reinforcement learning of controllers: `pip install 'sparelane[gym]'`.

`CongestionEnv` is a Gymnasium environment with one agent, and `CongestionParallelEnv` a PettingZoo one with several.
Importing this module registers the environments of `REGISTERED`, so that `gymnasium.make("sparelane/Window-v0")` finds
them. `gymnasium.make("sparelane.gym:sparelane/Window-v0")` imports the module by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparelane.common.lazy import public_name
from sparelane.gym.flow import OBSERVED, Reward

if TYPE_CHECKING:
    from sparelane.gym.several import CongestionParallelEnv
    from sparelane.gym.single import CongestionEnv

__all__ = ["OBSERVED", "REGISTERED", "CongestionEnv", "CongestionParallelEnv", "Reward"]

# The module of each environment.
ENVIRONMENTS = {"CongestionEnv": "sparelane.gym.single", "CongestionParallelEnv": "sparelane.gym.several"}

# The ids of environments in Gymnasium, with the agent's action and the scenario, a file in `tasks`.
REGISTERED = {
    "sparelane/Window-v0": ("window", "window.toml"),
    "sparelane/Pace-v0": ("pace", "pace.toml"),
    "sparelane/VariedWindow-v0": ("window", "varied-window.toml"),
    "sparelane/VariedPace-v0": ("pace", "varied-pace.toml"),
}


def __getattr__(name: str) -> Any:
    """Imports an environment when it is first used, since each needs another library."""
    try:
        return public_name(__name__, name, ENVIRONMENTS)
    except ModuleNotFoundError as error:
        if error.name not in ("gymnasium", "pettingzoo"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}: pip install 'sparelane[gym]'", name=error.name
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)


def _register() -> None:
    """Registers the environments with Gymnasium, if it is installed."""
    try:
        from gymnasium import register, registry
    except ModuleNotFoundError:
        return
    from sparelane.gym.episodes import TASKS

    for name, (sets, task) in REGISTERED.items():
        if name not in registry:
            entry_point = f"{ENVIRONMENTS['CongestionEnv']}:CongestionEnv"
            register(name, entry_point, kwargs={"scenario": str(TASKS / task), "sets": sets})


_register()
