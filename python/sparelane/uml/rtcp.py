"""RTCP in the kernel: the source of the BPF program, built in, with a scheme's parameters as its constants."""

from __future__ import annotations

from typing import Any

from sparelane import _native
from sparelane._native import LinuxError
from sparelane.common import units

# Its name in scenarios and in the kernel, and the parameter that has its constants.
NAME = "rtcp"
PARAMETER = "tcp_rtcp.settings"
# What the program has to be told of a scheme that leaves it out: its default is two segments, and the simulator's one.
DEFAULTS = {"min_window": 1}
# The program has no queue of its own interface to look at.
INTERFACE = "delay"
CLASSIFY = ("no", "by-size")
# The units of parameters that are no plain numbers.
UNITS = {"max_rate": "bps", "unit_rate": "bps", "urgent_below": "B"}


def settable() -> list[str]:
    """The parameters of a scheme that the program has."""
    settings = next(settings for name, _, settings in _native.linux_programs() if name == NAME)
    return [setting[0] for setting in settings]


def mistake(scheme: dict[str, Any]) -> tuple[str, str] | None:
    """What this scheme asks for and the program does not have, and what it has."""
    if scheme.get("interface") != INTERFACE:
        return f"interface = {scheme.get('interface', 'apart')!r}", INTERFACE
    if scheme.get("classify", "no") not in CLASSIFY:
        return f"classify = {scheme['classify']!r}", ", ".join(CLASSIFY)
    if "weights" in scheme and scheme.get("classify") != "by-size":
        return "weights", 'weights with classify = "by-size", or weight'
    return None


def word(scheme: dict[str, Any], line_rate_bps: int) -> str:
    """A scheme that has no mistake, as the kernel's command line has it.

    Raises:
        LinuxError: a value that the program's integers cannot hold.
    """
    settings = [(name, _text(name, value)) for name, value in (DEFAULTS | scheme).items() if name in settable()]
    if scheme.get("classify") == "by-size":
        weights: dict[str, Any] = scheme.get("weights", {})
        settings += [(f"weight.{name}", f"{_number(weight):g}") for name, weight in weights.items()]
    numbers = _native.linux_constants(NAME, settings, line_rate_bps)
    while numbers and not numbers[-1]:
        numbers.pop()
    return f"{PARAMETER}={','.join(map(str, numbers))}"


def _text(name: str, value: Any) -> str:
    """A value as the program's settings are written."""
    if isinstance(value, str) and units.read(value) is None:
        return value
    unit = UNITS.get(name, "")
    return f"{round(_number(value))}{unit}" if unit or isinstance(value, int) else repr(_number(value))


def _number(value: Any) -> float:
    found = units.read(value) if isinstance(value, str) else (float(value), "")
    if found is None:
        raise LinuxError(f"{value!r} is no number")
    return found[0]
