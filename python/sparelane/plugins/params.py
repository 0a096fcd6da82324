"""Parameters of plugins, declared: a name, a default, what it means, and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Whole numbers beyond this are not exact as floats.
MAX_WHOLE = 2**53

# The units in which time, rates and sizes are given to a plugin, and what a scenario writes them as.
MEASURES = {"s": "time", "bps": "rate", "bytes": "size"}

# The bounds of a measure, where a declaration has none.
BOUNDS = {"time": (0.0, 1e6), "rate": (1e3, 1e14), "size": (1.0, 1e15)}


class Declaration:
    """A parameter, where a class or function declares it."""

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
        """What it is to the catalogue."""
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
        raise TypeError(f"a parameter is true or false, a number or a word, and not {type(self.default).__name__}")

    def declared(self, name: str) -> dict[str, object]:
        """As the catalogue takes it.

        Raises:
            TypeError: the default is of another kind.
            ValueError: the declaration contradicts itself.
        """
        kind = self.kind
        if kind == "choice" and not self.choices:
            raise ValueError(f"the parameter {name!r} is a word: choices says which words are allowed")
        if not self.doc:
            raise ValueError(f"the parameter {name!r} has no doc, which says what it means")
        least, most = BOUNDS.get(kind, (0.0, MAX_WHOLE) if kind == "whole" else (-1e300, 1e300))
        low, high = (least if self.min is None else self.min), (most if self.max is None else self.max)
        if not low <= high:
            raise ValueError(f"the parameter {name!r} has bounds {low} and {high}; allowed: min below max")
        if kind in ("whole", "size", "rate", "time") and low < 0:
            raise ValueError(f"the parameter {name!r} is a {kind}, of which none is below 0; a number is written 1.0")
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
    """Declares a parameter, which a scenario can set.

    In a controller's class, `increase = param(1.0, "segments per round trip", min=0.1, max=100.0)` makes
    `self.increase` the scenario's value, or 1.0. In the signature of a workload or a distribution of sizes it is the
    default of a named argument.

    Args:
        default: true or false, a whole number, a number with a point, or a word of `choices`.
        doc: what it means, in one line.
        min: the least value allowed.
        max: the largest value allowed.
        choices: the words allowed.
        unit: for the documentation; with `"s"`, `"bps"` and `"bytes"`, a scenario writes a time, a rate or a size, as
            in `"40ms"`, `"10Mbps"` and `"64KB"`, and the plugin gets a number in this unit.
        source: where the default comes from.
    """
    return Declaration(default, doc, min=min, max=max, choices=choices, unit=unit, source=source)


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow that a workload asks for.

    Attributes:
        start_s: when it starts; no earlier than the flow before it.
        src: the name of the host that sends.
        dst: the name of the host that receives.
        size_bytes: its payload; `None` for a flow without end.
        scheme: under which scheme; `None` for that of the workload.
    """

    start_s: float
    src: str
    dst: str
    size_bytes: float | None
    scheme: str | None = None
