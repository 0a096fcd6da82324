"""RTCP in the kernel: the source of the BPF program, built in, with a scheme's parameters as its constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparelane import _native

# The name in scenarios and in the kernel, and the kernel parameter that has the constants.
NAME = "rtcp"
PARAMETER = "tcp_rtcp.settings"
# The values of `interface` that the program supports: it cannot look at the queue of its own interface.
INTERFACES = ("delay",)
BY_SIZE = "by-size"
# The program tells sizes by what a connection has sent, so the classes of flows on reused connections have priorities.
# They are multiples of 16, which leave a packet in the first band of a queue of priorities.
BY_PRIORITY = "by-priority"
PRIORITIES = {"urgent": 16, "high-volume": 32}
# The units of parameters other than plain numbers.
UNITS = {"max_rate": "bps", "unit_rate": "bps", "urgent_below": "B"}


def settable() -> list[str]:
    """The parameters of a scheme that the program has."""
    settings = next(settings for name, _, settings in _native.linux_programs() if name == NAME)
    return [setting[0] for setting in settings]


def priority(values: Mapping[str, Any], size_bytes: int | None) -> int:
    """The priority of a flow on a reused connection; 0 if sizes do not matter.

    Args:
        values: all parameters of the scheme.
        size_bytes: the size of the flow; `None` if it has no end.
    """
    if values["classify"] != BY_SIZE:
        return 0
    is_urgent = size_bytes is not None and size_bytes < values["urgent_below"]
    return PRIORITIES["urgent" if is_urgent else "high-volume"]


def word(values: Mapping[str, Any], line_rate_bps: int, *, is_reused: bool = False) -> str:
    """The parameters of a scheme as the kernel's command line takes them.

    Args:
        values: all parameters of the scheme.
        line_rate_bps: the rate of hosts.
        is_reused: flows reuse connections, and have the priorities of `priority`.

    Raises:
        LinuxError: a value does not fit the program's integers.
    """
    # In the simulator, 0 is the number of segments per acknowledgment. The program needs a number.
    known = {**values, "min_window": max(1, values["min_window"])}
    settings = [(name, f"{known[name]}{UNITS.get(name, '')}") for name in settable() if known.get(name) is not None]
    if values["classify"] == BY_SIZE and is_reused:
        settings = [(name, BY_PRIORITY if name == "classify" else value) for name, value in settings]
        settings += [(f"weight.{PRIORITIES[name]}", f"{weight}") for name, weight in values["weights"].items()]
    elif values["classify"] == BY_SIZE:
        settings += [(f"weight.{name}", f"{weight}") for name, weight in values["weights"].items()]
    numbers = _native.linux_constants(NAME, settings, line_rate_bps)
    while numbers and not numbers[-1]:
        numbers.pop()
    return f"{PARAMETER}={','.join(map(str, numbers))}"
