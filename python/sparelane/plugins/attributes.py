"""Checks the names that a controller class uses, so that a mistyped name raises an error instead of having no effect.

Python code may assign any attribute. A controller that assigns `cwnd_byte` would keep its initial window for the whole
run, and a method `on_loss` would never be called. The rules:

- A class declares its attributes in its body, with a value or an annotation, or assigns them in `__init__`. A new
  attribute after `__init__` is rejected.
- A name similar to `cwnd_bytes` or `pacing_bps` is rejected in `__init__` as well, unless the body declares it.
- The methods that the simulator calls exist and accept the arguments that it passes.
- A method whose name begins with `on_` is one of these, or is called by the class itself.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator, Sequence, Set
from difflib import SequenceMatcher
from types import CodeType
from typing import Any

from sparelane import _native
from sparelane.common.names import near

# Attributes that a controller sets.
SETTABLE = ("cwnd_bytes", "pacing_bps")
# Attributes that a controller only reads.
READ_ONLY = ("mss_bytes", "flow_bytes", "traffic_class", "line_rate_bps", "seed")
# Methods that the simulator calls, with their arguments after `self`.
METHODS = {"on_ack": ("ack",), "on_congestion": ("event",), "limits": ()}
# Class attributes that the simulator reads.
CLASS_ATTRIBUTES = ("needs", "traced")
# Names of other tools for the window and the pacing rate. They are rejected if the class sets neither of ours.
ELSEWHERE = {
    "cwnd": "cwnd_bytes",
    "cwnd_packets": "cwnd_bytes",
    "cwnd_segments": "cwnd_bytes",
    "window": "cwnd_bytes",
    "pace": "pacing_bps",
    "pacing_rate": "pacing_bps",
    "pacing_rate_bps": "pacing_bps",
}
# A name with at least this similarity, from 0 to 1, counts as mistyped.
MISTYPED = 0.85


class MistypedAttributeError(AttributeError):
    """A controller assigns an attribute that its class does not declare.

    Attributes:
        place: file, line and function of the assignment, if they are known.
    """

    def __init__(self, message: str, place: tuple[str | None, int | None, str] = (None, None, "")) -> None:
        super().__init__(message)
        self.place = place


def check_class(class_: type[Any]) -> None:
    """Checks a controller class when it is registered.

    Raises:
        TypeError: A method is missing, or does not accept the arguments that the simulator passes.
        ValueError: A name in its body has no effect, or hides an attribute of `sparelane.Controller`.
    """
    if not (isinstance(class_, type) and issubclass(class_, _native.Controller)):
        raise TypeError("a controller is a class that inherits from sparelane.Controller")
    own = {name: value for base in reversed(_bases(class_)) for name, value in vars(base).items()}
    for name in (*SETTABLE, *READ_ONLY):
        if name in own:
            raise ValueError(
                f"the class hides the attribute {name} of sparelane.Controller; allowed: to set it in __init__"
                if name in SETTABLE
                else f"the class hides the attribute {name} of sparelane.Controller; allowed: another name"
            )
    _check_methods(class_, own)
    _check_class_attributes(own)
    _check_signatures(class_, own)


def _check_methods(class_: type[Any], own: dict[str, Any]) -> None:
    """Rejects methods that nothing calls, and classes without a required method."""
    called = {name for code in _codes(class_) for name in code.co_names}
    for name, value in own.items():
        if name in METHODS or name in called or not callable(value):
            continue
        found = near(name, METHODS)
        if name.startswith("on_") or any(_is_mistyped(name, method) for method in METHODS):
            hint = f'; did you mean "{found[0]}"?' if found else ""
            raise ValueError(
                f"nothing calls the method {name}; allowed: on_ack and on_congestion, which the simulator calls, or "
                f"one that the class calls itself{hint}"
            )
    for name in ("on_ack", "on_congestion"):
        if name not in own:
            raise TypeError(f"the controller has no {name}(self, {METHODS[name][0]})")


def _check_class_attributes(own: dict[str, Any]) -> None:
    """Rejects `needs` and `traced` with values other than tuples of names, and names similar to these two."""
    for name in CLASS_ATTRIBUTES:
        value = own.get(name, ())
        is_group = isinstance(value, Sequence | Set) and not isinstance(value, str)
        if not is_group or any(type(one) is not str for one in value):
            raise ValueError(f'{name} is {value!r}; allowed: a tuple of names, as in {name} = ("name",)')
    for name, value in own.items():
        if isinstance(value, Sequence) and name not in CLASS_ATTRIBUTES:
            found = next((known for known in CLASS_ATTRIBUTES if _is_mistyped(name, known)), None)
            if found is not None:
                raise ValueError(f'nothing reads {name} in the class; did you mean "{found}"?')


def _check_signatures(class_: type[Any], own: dict[str, Any]) -> None:
    """Rejects methods that do not accept the arguments of the simulator."""
    for name, arguments in {**METHODS, "__init__": ()}.items():
        if name not in own:
            continue
        method = inspect.getattr_static(class_, name)
        form = f"{name}({', '.join(('self', *arguments))})"
        if not callable(method) and not isinstance(method, staticmethod | classmethod):
            raise TypeError(f"{name} is {method!r}; allowed: a method {form}")
        if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
            raise TypeError(f"{name} is a coroutine or a generator, which a call does not run; allowed: def {form}")
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            # Some callables written in C have no signature.
            continue
        passed = arguments if isinstance(method, staticmethod | classmethod) else ("self", *arguments)
        if isinstance(method, classmethod):
            passed = ("class", *arguments)
        try:
            signature.bind(*passed)
        except TypeError as error:
            more = "; parameters are declared with sparelane.param" if name == "__init__" else ""
            raise TypeError(f"{name}{signature} cannot be called as {form}: {error}{more}") from error


def check_made(controller: _native.Controller, names: Sequence[str], traced: Sequence[str]) -> None:
    """Checks the attributes of a controller after `__init__`.

    Args:
        controller: The controller.
        names: The names to check.
        traced: The names that time series record.

    Raises:
        MistypedAttributeError: A name is similar to `cwnd_bytes` or `pacing_bps`; or it is another tool's name for them
            in a class that sets neither; or a traced attribute does not exist.
    """
    class_ = type(controller)
    declared = _declared(class_)
    is_foreign = not _sets_limits(class_)
    for name in names:
        if name in declared:
            continue
        known = next((known for known in SETTABLE if _is_mistyped(name, known)), None)
        known = known or (ELSEWHERE.get(name) if is_foreign else None)
        if known is not None:
            raise MistypedAttributeError(
                f"the attribute {name} has no effect; allowed: a name that the class declares, as in {name}: float; "
                f'did you mean "{known}"?',
                _place(class_, name),
            )
    for name in traced:
        if not hasattr(controller, name):
            raise MistypedAttributeError(
                f"traced names {name}, which is not an attribute after __init__; allowed: one that __init__ assigns"
                f"{_suggestion(name, [*names, *declared, *SETTABLE])}"
            )


def refuse_late(controller: _native.Controller, name: str) -> None:
    """Rejects a new attribute after `__init__`.

    Raises:
        MistypedAttributeError: The class does not declare the attribute.
    """
    class_ = type(controller)
    if name in _declared(class_):
        return
    others = [one for one in (*vars(controller), *_declared(class_), *SETTABLE) if one != name]
    raise MistypedAttributeError(
        f"{name} is not an attribute of the controller; allowed: one that __init__ assigns, or that the class "
        f"declares, as in {name}: float{_suggestion(name, others)}",
        _place(class_, name),
    )


def suggestion(error: AttributeError) -> str:
    """A hint for a missing attribute that code has read; empty if no attribute has a similar name."""
    if not isinstance(error.name, str) or isinstance(error, MistypedAttributeError):
        return ""
    return _suggestion(error.name, [name for name in dir(error.obj) if not name.startswith("_")])


def _suggestion(name: str, known: Sequence[str]) -> str:
    found = near(name, known)
    return f'; did you mean "{found[0]}"?' if found else ""


def _sets_limits(class_: type[Any]) -> bool:
    """True if the code of a class sets the window or the pacing rate, or defines `limits`."""
    stored = {name for code in _codes(class_) for name, _ in _stored(code)}
    return "limits" in _declared(class_) or not stored.isdisjoint(SETTABLE)


def _is_mistyped(name: str, known: str) -> bool:
    """True if a name is probably `known` mistyped. `max_cwnd_bytes` and `cwnd_bytes_2` are not."""
    if name == known:
        return False
    rest = name.replace(known, "", 1) if known in name else ""
    if any(one == "_" or one.isdigit() for one in rest):
        return False
    return SequenceMatcher(None, _bare(name), _bare(known)).ratio() >= MISTYPED


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def _bases(class_: type[Any]) -> list[type[Any]]:
    """The class and its bases, without `sparelane.Controller` and `object`."""
    return [base for base in class_.__mro__ if base not in (_native.Controller, object)]


def _declared(class_: type[Any]) -> set[str]:
    """The names that the bodies of the class and its bases declare, with a value or an annotation."""
    return {name for base in _bases(class_) for name in (*vars(base), *inspect.get_annotations(base, eval_str=False))}


def _codes(class_: type[Any]) -> Iterator[CodeType]:
    """The code of the methods of a class and of the functions nested in them."""
    for base in _bases(class_):
        for value in vars(base).values():
            function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
            code = getattr(function, "__code__", None)
            if isinstance(code, CodeType):
                yield from _inside(code)


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inside(constant)


def _stored(code: CodeType) -> Iterator[tuple[str, int | None]]:
    """The attributes that code assigns, each with the line."""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        line = (positions.lineno if positions else None) or line
        if instruction.opname == "STORE_ATTR":
            yield instruction.argval, line


def _place(class_: type[Any], name: str) -> tuple[str | None, int | None, str]:
    """The file, line and function where a class assigns an attribute."""
    for code in _codes(class_):
        for stored, line in _stored(code):
            if stored == name:
                return code.co_filename, line, code.co_name
    return None, None, ""
