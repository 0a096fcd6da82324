"""What a scenario may say, as JSON Schema: for editors, and for what a shell completes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sparelane import _native
from sparelane.plugins.registry import REGISTRY

Schema = Mapping[str, Any]


def text(*, is_sweep: bool = False) -> str:
    """The JSON Schema (draft 7) of scenarios, or of sweep files, with what plugins have registered so far."""
    return json.dumps(json.loads(_native.json_schema(REGISTRY.catalogue(), is_sweep)), indent=1, ensure_ascii=False)


@cache
def _of_scenarios(catalogue: _native.Catalogue | None) -> Schema:
    found: Schema = json.loads(_native.json_schema(catalogue))
    return found


def scenarios() -> Schema:
    """The schema of scenarios."""
    return _of_scenarios(REGISTRY.catalogue())


def tables_at(keys: Sequence[str], scenario: Any) -> Iterator[Schema]:
    """The schemas of tables under keys such as `["scheme", "tcp"]`: those that fit what `scenario` says there."""
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
    """What a table allows under a key, each way by itself."""
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
    """A schema's ways, each without references to definitions and choices of others."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _resolved(root["definitions"][schema["$ref"].removeprefix("#/definitions/")], root)
    for word in ("anyOf", "allOf"):
        for option in schema.get(word, ()):
            yield from _resolved(option, root)
    if not {"$ref", "anyOf", "allOf"} & set(schema):
        yield schema


def _fits(schema: Schema, given: Any, root: Schema) -> bool:
    """Whether a table may be of this schema: the word that it gives for its kind is the schema's."""
    if not isinstance(given, Mapping):
        return True
    for option in _resolved(schema, root):
        words = {key: value["const"] for key, value in option.get("properties", {}).items() if "const" in value}
        if all(given.get(key, word) == word for key, word in words.items()):
            return True
    return False


def _entry(given: Any, key: str) -> Any:
    if isinstance(given, Mapping):
        return given.get(key)
    if isinstance(given, list) and key.isdecimal() and int(key) < len(given):
        return given[int(key)]
    return None
