"""Controllers, workloads and flow sizes of one's own, by name.

The decorators here put classes and functions into this process's catalogue, where every scenario finds them.
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
    """One registration.

    Attributes:
        native: The form that the catalogue takes.
        origin: Module and qualified name. A later registration of the same origin, as by a notebook's cell, replaces
            this one.
        file: The file of the code, if it is in one.
        line: The line there.
        token: Differs from that of every other registration.
    """

    native: Any
    origin: tuple[str, str]
    file: str | None
    line: int | None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def place(self) -> str:
        """For messages."""
        return "elsewhere" if self.file is None else f"in {self.file}, line {self.line}"


@dataclass(slots=True)
class Registry:
    """What is registered in this process."""

    kinds: dict[str, dict[str, Registered]] = field(
        default_factory=lambda: {"controller": {}, "workload": {}, "sizes": {}}
    )
    made: _native.Catalogue | None = None

    def add(self, kind: str, name: str, registered: Registered) -> None:
        """Adds one, in place of one of the same origin.

        Raises:
            ValueError: the name is another's.
        """
        before = self.kinds[kind].get(name)
        if before is not None and before.origin != registered.origin:
            raise ValueError(f'there is a {kind} "{name}" already, {before.place}; allowed: another name')
        changed = {**self.kinds[kind], name: registered}
        # A name that is built in is refused here, where it is given.
        self.made = catalogue_of({**self.kinds, kind: changed})
        self.kinds[kind] = changed

    def catalogue(self) -> _native.Catalogue | None:
        """What is built in, and all of this; `None` where this is nothing."""
        return self.made


def catalogue_of(kinds: Mapping[str, Mapping[str, Registered]]) -> _native.Catalogue:
    """What is built in, and these."""
    natives = [
        [registered.native for registered in kinds[kind].values()] for kind in ("controller", "workload", "sizes")
    ]
    return _native.Catalogue(*natives)


REGISTRY = Registry()

# What functions are called that have no docstring.
FLOWS = "flows of a plugin"
SIZES = "sizes of a plugin"


def controller(
    name: str, *, summary: str = "", source: str = "a plugin"
) -> Callable[[ControllerClass], ControllerClass]:
    """Registers a class of controllers under a name that scenarios can use, alone or inside `rc3`.

    Args:
        name: lower-case letters, digits and hyphens.
        summary: one line for `sparelane list`; the first line of the class's docstring by default.
        source: where the law is defined.

    Raises:
        TypeError: The name is missing; the class does not inherit from `sparelane.Controller`; or it has no `on_ack` or
            `on_congestion` that can be called with the arguments that the simulator passes.
        ValueError: The name is taken, a parameter contradicts itself, or a name in the class has no effect.
    """
    refuse_bare(name, "controller")

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
    """Registers a generator of flows: `kind = "name"` in a scenario's `[[workload]]`.

    The function gets the run (hosts, duration, random draws under the scenario's seed) and its parameters, and gives
    flows in order of start, which are read to the end of the run before it begins.

    Args:
        name: what a scenario says.
        summary: one line for `sparelane list`; the first line of the docstring by default.
        source: where it is defined.

    Raises:
        TypeError: The name is missing.
        ValueError: The name is taken, or a parameter contradicts itself.
    """
    refuse_bare(name, "workload")

    def register(function: FlowsOf) -> FlowsOf:
        _register(function, "workload", _native.WorkloadKind, name, summary or first_line(function, FLOWS), source)
        return function

    return register


def sizes(name: str, *, summary: str = "", source: str = "a plugin") -> Callable[[SizesOf], SizesOf]:
    """Registers a distribution of flow sizes: `sizes = { kind = "name" }` in a scenario's workload.

    The function gets a `random.Random` under the scenario's seed and its parameters, and gives samples in bytes, each
    as likely.

    Args:
        name: what a scenario says.
        summary: one line for `sparelane list`; the first line of the docstring by default.
        source: where it is defined.

    Raises:
        TypeError: The name is missing.
        ValueError: The name is taken, or a parameter contradicts itself.
    """
    refuse_bare(name, "sizes")

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
    """Registers a function whose named arguments are its parameters."""
    made = native(function, checked(name), summary, source, arguments(function))
    REGISTRY.add(kind, name, registration(made, function))


def first_line(described: object, otherwise: str) -> str:
    """The first line of somebody's own docstring."""
    own = vars(described).get("__doc__") if isinstance(described, type) else getattr(described, "__doc__", None)
    lines = (own or "").strip().splitlines()
    return lines[0] if lines else otherwise


def refuse_bare(name: object, decorator: str) -> None:
    """Refuses a decorator that was written without its name, and so was given the class or function.

    Raises:
        TypeError: The name is not text.
    """
    if not isinstance(name, str):
        raise TypeError(
            f'@sparelane.{decorator} takes a name, as in @sparelane.{decorator}("my-{decorator}"); this is {name!r}'
        )


def checked(name: str) -> str:
    """A name that can stand in a scenario.

    Raises:
        ValueError: It cannot.
    """
    if not (name[:1].islower() and name.isascii() and all(c.islower() or c.isdigit() or c == "-" for c in name)):
        raise ValueError(f"{name!r} is no name; allowed: lower-case letters, digits and hyphens, a letter first")
    return name


def arguments(function: Callable[..., object]) -> list[dict[str, object]]:
    """The parameters that a function declares as defaults of its named arguments.

    Raises:
        ValueError: an argument beside the first has no declared default.
    """
    named = list(inspect.signature(function).parameters.values())[1:]
    undeclared = [argument.name for argument in named if not isinstance(argument.default, Declaration)]
    if undeclared:
        raise ValueError(
            f"the argument {undeclared[0]!r} is not declared; allowed: {undeclared[0]} = sparelane.param(...)"
        )
    return [argument.default.declared(argument.name) for argument in named]


def registration(native: object, thing: Any) -> Registered:
    """What is kept of a registration."""
    try:
        file, (_, line) = inspect.getsourcefile(thing), inspect.getsourcelines(thing)
    except (OSError, TypeError):
        file, line = None, None
    return Registered(native, (thing.__module__, thing.__qualname__), file, line)
