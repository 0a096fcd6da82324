"""sparelane: a packet simulator for congestion control.

`run` simulates a scenario and returns its results as tables. The command line, `sparelane`, does the same and redoes
the papers' experiments.
"""

from sparelane import wire
from sparelane._native import Ack, Cancelled, Congestion, Controller, PhysicsError, Run, ScenarioError, __version__
from sparelane.api import check, run
from sparelane.extras import MissingExtraError
from sparelane.names import UnknownNameError
from sparelane.plugins import Flow, PluginError, controller, param, sizes, workload
from sparelane.result import Result
from sparelane.traces import TraceError

__all__ = [
    "Ack",
    "Cancelled",
    "Congestion",
    "Controller",
    "Flow",
    "MissingExtraError",
    "PhysicsError",
    "PluginError",
    "Result",
    "Run",
    "ScenarioError",
    "TraceError",
    "UnknownNameError",
    "__version__",
    "check",
    "controller",
    "param",
    "run",
    "sizes",
    "wire",
    "workload",
]
