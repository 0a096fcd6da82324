"""sparelane: a network simulator and toolkit for congestion control.

- `run` simulates a scenario and returns a `Result`; `check` only validates the scenario.
- `sweep` simulates a scenario in many settings and returns a `Sweep`; `compare` compares its schemes.
- `load` reads results that `Result.save`, `sweep` or the command line saved.
- `controller`, `workload` and `sizes` register your own controllers and traffic; `param` declares their parameters.
- `sparelane.gym` has environments for reinforcement learning, `sparelane.wire` sends data between real hosts, and
  `sparelane.plugins` loads plugin files.

Names are imported when they are first used, so that `import sparelane` takes only a few milliseconds.
"""

from __future__ import annotations

from sparelane.common.lazy import provide, public_name

# Type checkers assume that this is true. Importing `typing` would take longer than the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from sparelane import gym, plugins, wire
    from sparelane._native import Ack, Cancelled, Congestion, Controller, PhysicsError, Run, ScenarioError, __version__
    from sparelane.common.extras import MissingExtraError
    from sparelane.common.folders import OutputError, SavedResultsError
    from sparelane.common.names import UnknownNameError
    from sparelane.plugins import Flow, PluginError, controller, param, sizes, workload
    from sparelane.simulation.result import Result
    from sparelane.simulation.simulate import check, prepare, run
    from sparelane.simulation.traces import TraceError
    from sparelane.sweep_api import Sweep, compare, load, sweep

__all__ = [
    "Ack",
    "Cancelled",
    "Congestion",
    "Controller",
    "Flow",
    "MissingExtraError",
    "OutputError",
    "PhysicsError",
    "PluginError",
    "Result",
    "Run",
    "SavedResultsError",
    "ScenarioError",
    "Sweep",
    "TraceError",
    "UnknownNameError",
    "__version__",
    "check",
    "compare",
    "controller",
    "gym",
    "load",
    "param",
    "plugins",
    "prepare",
    "run",
    "sizes",
    "sweep",
    "wire",
    "workload",
]

# The module that defines each public name.
_HOMES = {
    **dict.fromkeys(
        ("Ack", "Cancelled", "Congestion", "Controller", "PhysicsError", "Run", "ScenarioError", "__version__"),
        "sparelane._native",
    ),
    **dict.fromkeys(("check", "prepare", "run"), "sparelane.simulation.simulate"),
    **dict.fromkeys(("OutputError", "SavedResultsError"), "sparelane.common.folders"),
    **dict.fromkeys(("Flow", "PluginError", "controller", "param", "sizes", "workload"), "sparelane.plugins"),
    "MissingExtraError": "sparelane.common.extras",
    "Result": "sparelane.simulation.result",
    **dict.fromkeys(("Sweep", "compare", "load", "sweep"), "sparelane.sweep_api"),
    "TraceError": "sparelane.simulation.traces",
    "UnknownNameError": "sparelane.common.names",
}
# Modules that are available as attributes of the package without being imported.
_MODULES = ("gym", "plugins", "wire")

# `Result.plot` calls the package of figures, which is above its own package.
provide("plot of a run", "sparelane.reports.charts.plot:of_result")

if not TYPE_CHECKING:
    # Type checkers must not see this function, which would make every name valid to them.
    def __getattr__(name: str) -> object:
        """Imports a public name when it is first used."""
        if name in _MODULES:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        return public_name(__name__, name, _HOMES)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
