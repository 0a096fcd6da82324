"""Declarations of plugin parameters: default, meaning, bounds and unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# The largest integer that floats represent exactly with all smaller ones.
MAX_WHOLE = 2**53

# The units of quantities that plugins get, and the kinds of quantities that scenarios write.
MEASURES = {"s": "time", "bps": "rate", "bytes": "size"}

# The default bounds of each kind of quantity.
BOUNDS = {"time": (0.0, 1e6), "rate": (1e3, 1e14), "size": (1.0, 1e15)}


class Declaration:
    """The declaration of a parameter in a class or function."""

    def __init__(
        self,
        default: bool | int | float | str,
        doc: str,
        *,
        min: float | None = None,
        max: float | None = None,
        choices: Sequence[str] = (),
        unit: str = "",
        source: str = "",
    ) -> None:
        self.default = default
        self.doc = doc
        self.min = min
        self.max = max
        self.choices = tuple(choices)
        self.unit = unit
        self.source = source

    @property
    def kind(self) -> str:
        """The kind of the parameter in the catalogue."""
        match self.default:
            case bool():
                return "flag"
            case str():
                return "choice"
            case int() | float() if self.unit in MEASURES:
                return MEASURES[self.unit]
            case int():
                return "whole"
            case float():
                return "number"
        raise TypeError(f"a parameter is a boolean, a number or a text, and not {type(self.default).__name__}")

    def declared(self, name: str) -> dict[str, object]:
        """The declaration in the form of the catalogue.

        Raises:
            TypeError: the default has an unsupported type.
            ValueError: the declaration contradicts itself.
        """
        kind = self.kind
        if kind == "choice" and not self.choices:
            raise ValueError(f"the parameter {name!r} is a text: list the allowed texts in choices")
        if not self.doc:
            raise ValueError(f"the parameter {name!r} has no doc, which describes its meaning")
        least, most = BOUNDS.get(kind, (0.0, MAX_WHOLE) if kind == "whole" else (-1e300, 1e300))
        low, high = (least if self.min is None else self.min), (most if self.max is None else self.max)
        if not low <= high:
            raise ValueError(f"the parameter {name!r} has bounds {low} and {high}; allowed: min below max")
        if kind in ("whole", "size", "rate", "time") and low < 0:
            raise ValueError(f"the parameter {name!r} is a {kind} and cannot be below 0; numbers are written as in 1.0")
        return {
            "name": name,
            "kind": kind,
            "default": self.default,
            "min": float(low),
            "max": float(high),
            "choices": list(self.choices),
            "unit": self.unit,
            "doc": self.doc,
            "source": self.source or "its plugin",
        }


def param(
    default: Any,
    doc: str,
    *,
    min: float | None = None,
    max: float | None = None,
    choices: Sequence[str] = (),
    unit: str = "",
    source: str = "",
) -> Any:
    """Declares a parameter that scenarios can set.

    In a controller class, `increase = param(1.0, "segments per round trip", min=0.1, max=100.0)` makes `self.increase`
    the scenario's value, or 1.0. In the signature of a workload or a size distribution, use it as the default of a
    named argument.

    Args:
        default: a boolean, an integer, a float, or one of `choices`.
        doc: the meaning, in one line.
        min: the smallest allowed value.
        max: the largest allowed value.
        choices: the allowed texts.
        unit: the unit, for the documentation. With `"s"`, `"bps"` or `"bytes"`, scenarios write a time, a rate or a
            size, such as `"40ms"`, `"10Mbps"` or `"64KB"`, and the plugin gets a number in this unit.
        source: the source of the default.
    """
    return Declaration(default, doc, min=min, max=max, choices=choices, unit=unit, source=source)


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow of a workload.

    Attributes:
        start_s: the start time, seconds; not before that of the previous flow.
        src: the name of the sending host.
        dst: the name of the receiving host.
        size_bytes: the payload; `None` for a flow without end.
        scheme: the scheme; `None` for that of the workload.
    """

    start_s: float
    src: str
    dst: str
    size_bytes: float | None
    scheme: str | None = None
