"""Decorators that register controllers, workloads and flow sizes written in Python.

Registered classes and functions are part of this process's catalogue, where every scenario finds them by name.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sparelane import _native
from sparelane.plugins.attributes import check_class
from sparelane.plugins.params import Declaration, Flow

ControllerClass = TypeVar("ControllerClass", bound=type[_native.Controller])
FlowsOf = TypeVar("FlowsOf", bound=Callable[..., Iterable[Flow]])
SizesOf = TypeVar("SizesOf", bound=Callable[..., Iterable[float]])


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered class or function.

    Attributes:
        native: Its form in the native catalogue.
        origin: Module and qualified name. A later registration with the same origin, such as a notebook cell that runs
            again, replaces this one.
        file: The file of the code, if there is one.
        line: The line in that file.
        token: A unique value for each registration.
    """

    native: Any
    origin: tuple[str, str]
    file: str | None
    line: int | None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def place(self) -> str:
        """The place of the code, for messages."""
        return "elsewhere" if self.file is None else f"in {self.file}, line {self.line}"


@dataclass(slots=True)
class Registry:
    """All registrations of this process."""

    kinds: dict[str, dict[str, Registered]] = field(
        default_factory=lambda: {"controller": {}, "workload": {}, "sizes": {}}
    )
    made: _native.Catalogue | None = None

    def add(self, kind: str, name: str, registered: Registered) -> None:
        """Adds a registration, or replaces the one with the same origin.

        Raises:
            ValueError: the name is used by another registration or is built in.
        """
        before = self.kinds[kind].get(name)
        if before is not None and before.origin != registered.origin:
            raise ValueError(f'there is a {kind} "{name}" already, {before.place}; allowed: another name')
        changed = {**self.kinds[kind], name: registered}
        # Building the catalogue rejects names that are built in.
        self.made = catalogue_of({**self.kinds, kind: changed})
        self.kinds[kind] = changed

    def catalogue(self) -> _native.Catalogue | None:
        """The catalogue of built-in and registered entries; `None` if nothing is registered."""
        return self.made


def catalogue_of(kinds: Mapping[str, Mapping[str, Registered]]) -> _native.Catalogue:
    """Builds a catalogue of the built-in entries and these registrations."""
    natives = [
        [registered.native for registered in kinds[kind].values()] for kind in ("controller", "workload", "sizes")
    ]
    return _native.Catalogue(*natives)


REGISTRY = Registry()

# Summaries of functions without a docstring.
FLOWS = "flows of a plugin"
SIZES = "sizes of a plugin"


def controller(
    name: str, *, summary: str = "", source: str = "a plugin"
) -> Callable[[ControllerClass], ControllerClass]:
    """Registers a controller class under a name that scenarios can use, alone or inside `rc3`.

    Args:
        name: lower-case letters, digits and hyphens.
        summary: one line for `sparelane list`; the first line of the class's docstring by default.
        source: the paper or document that defines the controller.

    Raises:
        TypeError: The name is missing; the class does not inherit from `sparelane.Controller`; or it has no `on_ack` or
            `on_congestion` that accepts the arguments of the simulator.
        ValueError: The name is taken, a parameter contradicts itself, or a name in the class has no effect.
    """
    require_name(name, "controller")

    def register(class_: ControllerClass) -> ControllerClass:
        check_class(class_)
        names = [name for base in reversed(class_.__mro__) for name in vars(base)]
        declared = {
            name: value for name in names if isinstance(value := inspect.getattr_static(class_, name), Declaration)
        }
        native = _native.ControllerKind(
            class_,
            name,
            summary or first_line(class_, "a controller of a plugin"),
            source,
            [declaration.declared(name) for name, declaration in declared.items()],
            list(getattr(class_, "needs", ())),
            list(getattr(class_, "traced", ())),
        )
        REGISTRY.add("controller", name, registration(native, class_))
        return class_

    return register


def workload(name: str, *, summary: str = "", source: str = "a plugin") -> Callable[[FlowsOf], FlowsOf]:
    """Registers a generator of flows, which scenarios use with `kind = "name"` in `[[workload]]`.

    The function takes the run (hosts, duration, random draws from the scenario's seed) and its parameters. It yields
    flows in order of start. All flows up to the end of the run are read before the simulation starts.

    Args:
        name: the name in scenarios.
        summary: one line for `sparelane list`; the first line of the docstring by default.
        source: the paper or document that defines the workload.

    Raises:
        TypeError: The name is missing.
        ValueError: The name is taken, or a parameter contradicts itself.
    """
    require_name(name, "workload")

    def register(function: FlowsOf) -> FlowsOf:
        _register(function, "workload", _native.WorkloadKind, name, summary or first_line(function, FLOWS), source)
        return function

    return register


def sizes(name: str, *, summary: str = "", source: str = "a plugin") -> Callable[[SizesOf], SizesOf]:
    """Registers a distribution of flow sizes, which workloads use with `sizes = { kind = "name" }`.

    The function takes a `random.Random` with the scenario's seed and its parameters. It returns samples in bytes, which
    are equally likely.

    Args:
        name: the name in scenarios.
        summary: one line for `sparelane list`; the first line of the docstring by default.
        source: the paper or document that defines the distribution.

    Raises:
        TypeError: The name is missing.
        ValueError: The name is taken, or a parameter contradicts itself.
    """
    require_name(name, "sizes")

    def register(function: SizesOf) -> SizesOf:
        _register(function, "sizes", _native.SizesKind, name, summary or first_line(function, SIZES), source)
        return function

    return register


def _register(
    function: Callable[..., object],
    kind: str,
    native: type[_native.WorkloadKind | _native.SizesKind],
    name: str,
    summary: str,
    source: str,
) -> None:
    """Registers a function; its named arguments become parameters."""
    made = native(function, checked(name), summary, source, arguments(function))
    REGISTRY.add(kind, name, registration(made, function))


def first_line(described: object, otherwise: str) -> str:
    """The first line of a docstring that is not inherited, or `otherwise`."""
    own = vars(described).get("__doc__") if isinstance(described, type) else getattr(described, "__doc__", None)
    lines = (own or "").strip().splitlines()
    return lines[0] if lines else otherwise


def require_name(name: object, decorator: str) -> None:
    """Rejects a decorator without parentheses, which gets the class or function instead of a name.

    Raises:
        TypeError: The name is not text.
    """
    if not isinstance(name, str):
        raise TypeError(
            f'@sparelane.{decorator} takes a name, as in @sparelane.{decorator}("my-{decorator}"); this is {name!r}'
        )


def checked(name: str) -> str:
    """Returns the name if scenarios can use it.

    Raises:
        ValueError: The name has other characters than allowed.
    """
    if not (name[:1].islower() and name.isascii() and all(c.islower() or c.isdigit() or c == "-" for c in name)):
        raise ValueError(f"{name!r} is not a valid name; allowed: lower-case letters, digits, hyphens; a letter first")
    return name


def arguments(function: Callable[..., object]) -> list[dict[str, object]]:
    """The parameters of a function, from the defaults of its named arguments.

    Raises:
        ValueError: an argument after the first has no declared default.
    """
    named = list(inspect.signature(function).parameters.values())[1:]
    undeclared = [argument.name for argument in named if not isinstance(argument.default, Declaration)]
    if undeclared:
        raise ValueError(
            f"the argument {undeclared[0]!r} is not declared; allowed: {undeclared[0]} = sparelane.param(...)"
        )
    return [argument.default.declared(argument.name) for argument in named]


def registration(native: object, thing: Any) -> Registered:
    """The registration of a class or function, with its place in the source."""
    try:
        file, (_, line) = inspect.getsourcefile(thing), inspect.getsourcelines(thing)
    except (OSError, TypeError):
        file, line = None, None
    return Registered(native, (thing.__module__, thing.__qualname__), file, line)
