"""The settings of the wire, as the Rust crate declares them.

The fields of `Options`, the options of the commands, their help texts and the table of the documentation follow from
these declarations. `stub` returns the types of the fields, which mypy reads from `declared.pyi`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from typing import Any

from sparelane import _native

# The type of a value in Python, by kind.
TYPES = {
    "whole": "int",
    "number": "float",
    "flag": "bool",
    "choice": "str",
    "rate": "str",
    "size": "str",
    "numbers": "Sequence[int]",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A declared setting.

    Attributes:
        name: the name in Python.
        option: the option on the command line; that of a flag reverses the default.
        commands: the commands that have the option.
        kind: the kind of values: `whole`, `number`, `flag`, `choice`, `rate`, `size` or `numbers`.
        unit: the unit of a number.
        bounds: the smallest and the largest number.
        choices: the allowed words.
        allowed: the allowed values as text.
        default: the default; `None` if it is no fixed value.
        unset: the value that holds if a setting without a fixed default is left out.
        meaning: the description, a sentence.
    """

    name: str
    option: str
    commands: Sequence[str]
    kind: str
    unit: str
    choices: Sequence[str]
    allowed: str
    default: Any
    unset: str | None
    meaning: str
    bounds: tuple[float, float] | None = None

    @property
    def type(self) -> str:
        """The type of the values in Python."""
        return TYPES[self.kind] if self.unset is None else f"{TYPES[self.kind]} | None"

    @property
    def default_text(self) -> str:
        """The default as the command line writes it."""
        if self.unset is not None:
            return self.unset
        return self.as_text(self.default)

    def as_text(self, value: Any) -> str:
        """Returns a value as the text that the Rust crate parses."""
        if self.kind == "flag":
            return "true" if value else "false"
        if self.kind == "numbers":
            return ",".join(map(str, value))
        return str(value)

    @property
    def option_meaning(self) -> str:
        """The description of the attribute in Python. That of a flag which is on describes the option that ends it."""
        return f"false: {self.meaning[0].lower()}{self.meaning[1:]}" if self.default is True else self.meaning


SETTINGS = tuple(Setting(**one) for one in _native.wire_settings())


def as_texts(options: object) -> list[tuple[str, str]]:
    """Returns the settings of `options` as pairs of name and text, without those that are `None`."""
    values = ((setting, getattr(options, setting.name)) for setting in SETTINGS)
    return [(setting.name, setting.as_text(value)) for setting, value in values if value is not None]


def make_declared() -> type:
    """Creates the dataclass with one field per setting."""
    fields = [(one.name, one.type, field(default=one.default)) for one in SETTINGS]
    return make_dataclass("Declared", fields, frozen=True, kw_only=True)


def docstring_section() -> str:
    """The descriptions of the settings, as entries of a docstring's section `Attributes`."""
    return "\n".join(
        textwrap.fill(
            f"{one.name}: {one.option_meaning}",
            116,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
        )
        for one in SETTINGS
    )


def stub() -> str:
    """The source of `declared.pyi`."""
    lines = [
        '"""The fields of the declared settings. `make stubs` writes this file."""',
        "",
        "from collections.abc import Sequence",
        "from dataclasses import dataclass",
        "",
        "@dataclass(frozen=True, kw_only=True)",
        "class Declared:",
        *(f"    {one.name}: {one.type} = ..." for one in SETTINGS),
    ]
    return "\n".join(lines) + "\n"
