"""Controllers, workloads and flow sizes that users write in Python."""

from sparelane.plugins.failure import PluginError
from sparelane.plugins.loading import Loaded, fingerprint, load, load_sources, of_this_session, sources
from sparelane.plugins.params import Flow, param
from sparelane.plugins.registry import REGISTRY, controller, sizes, workload

__all__ = [
    "REGISTRY",
    "Flow",
    "Loaded",
    "PluginError",
    "controller",
    "fingerprint",
    "load",
    "load_sources",
    "of_this_session",
    "param",
    "sizes",
    "sources",
    "workload",
]
