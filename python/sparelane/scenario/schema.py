"""The JSON Schema of scenarios, for editors and for shell completion."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sparelane import _native
from sparelane.plugins.registry import REGISTRY

Schema = Mapping[str, Any]


def text(*, is_sweep: bool = False) -> str:
    """The JSON Schema (draft 7) of scenarios or sweep files, including plugins that are registered by now."""
    return json.dumps(json.loads(_native.json_schema(REGISTRY.catalogue(), is_sweep)), indent=1, ensure_ascii=False)


@cache
def _of_scenarios(catalogue: _native.Catalogue | None) -> Schema:
    found: Schema = json.loads(_native.json_schema(catalogue))
    return found


def scenarios() -> Schema:
    """The schema of scenarios."""
    return _of_scenarios(REGISTRY.catalogue())


def tables_at(keys: Sequence[str], scenario: Any) -> Iterator[Schema]:
    """The schemas of the table under keys such as `["scheme", "tcp"]` that are consistent with `scenario`."""
    root = scenarios()
    tables = [(root, scenario)]
    for key in keys:
        inside = _entry(scenario, key)
        tables = [
            (value, inside) for table, _ in tables for value in values_of(table, key) if _fits(value, inside, root)
        ]
        scenario = inside
    for table, _ in tables:
        yield from (option for option in _resolved(table, root) if _fits(option, scenario, root))


def values_of(table: Schema, key: str) -> Iterator[Schema]:
    """The alternative schemas of the value under a key of a table."""
    root = scenarios()
    for option in _resolved(table, root):
        if option.get("type") == "array" and key.isdecimal():
            yield from _resolved(option["items"], root)
        properties = option.get("properties", {})
        if key in properties:
            yield from _resolved(properties[key], root)
        elif isinstance(option.get("additionalProperties"), Mapping):
            yield from _resolved(option["additionalProperties"], root)


def _resolved(schema: Any, root: Schema) -> Iterator[Schema]:
    """The alternatives of a schema, with references and combinations (`anyOf`, `allOf`) resolved."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _resolved(root["definitions"][schema["$ref"].removeprefix("#/definitions/")], root)
    for combination in ("anyOf", "allOf"):
        for option in schema.get(combination, ()):
            yield from _resolved(option, root)
    if not {"$ref", "anyOf", "allOf"} & set(schema):
        yield schema


def _fits(schema: Schema, table: Any, root: Schema) -> bool:
    """True if a table may follow this schema, since no constant of the schema contradicts it (such as its `kind`)."""
    if not isinstance(table, Mapping):
        return True
    for option in _resolved(schema, root):
        constants = {key: value["const"] for key, value in option.get("properties", {}).items() if "const" in value}
        if all(table.get(key, constant) == constant for key, constant in constants.items()):
            return True
    return False


def _entry(container: Any, key: str) -> Any:
    if isinstance(container, Mapping):
        return container.get(key)
    if isinstance(container, list) and key.isdecimal() and int(key) < len(container):
        return container[int(key)]
    return None
