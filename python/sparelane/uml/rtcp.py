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
# The units of parameters other than plain numbers.
UNITS = {"max_rate": "bps", "unit_rate": "bps", "urgent_below": "B"}


def settable() -> list[str]:
    """The parameters of a scheme that the program has."""
    settings = next(settings for name, _, settings in _native.linux_programs() if name == NAME)
    return [setting[0] for setting in settings]


def word(values: Mapping[str, Any], line_rate_bps: int) -> str:
    """The parameters of a scheme as the kernel's command line takes them.

    Args:
        values: all parameters of the scheme.
        line_rate_bps: the rate of hosts.

    Raises:
        LinuxError: a value does not fit the program's integers.
    """
    # In the simulator, 0 is the number of segments per acknowledgment. The program needs a number.
    known = {**values, "min_window": max(1, values["min_window"])}
    settings = [(name, f"{known[name]}{UNITS.get(name, '')}") for name in settable() if known.get(name) is not None]
    if values["classify"] == BY_SIZE:
        settings += [(f"weight.{name}", f"{weight}") for name, weight in values["weights"].items()]
    numbers = _native.linux_constants(NAME, settings, line_rate_bps)
    while numbers and not numbers[-1]:
        numbers.pop()
    return f"{PARAMETER}={','.join(map(str, numbers))}"
