"""Determines which keys of a scenario take a list or a table as a single value, where a list does not mean a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from sparelane import _native
from sparelane.plugins import REGISTRY

# Tables of a scenario whose keys depend on the entry of another key.
FORMS = {"topology": "topology", "workload": "workload", "queue": "queue", "nic": "queue", "queue_at": "queue"}
FORMS["cross_traffic"] = "cross_traffic"
# Tables inside a workload or a scheme, by their key.
INNER_TABLES = {"sizes": "sizes", "inner": "controller"}

Path = tuple[str | int, ...]


def takes_list(path: Path, scenario: Mapping[str, Any]) -> bool:
    """True if lists are single values of the key at this path of the scenario."""
    return any(is_list for is_list, _ in _taken(path, scenario))


def takes_table(path: Path, scenario: Mapping[str, Any]) -> bool:
    """True if tables are single values of the key at this path of the scenario."""
    return any(is_table for _, is_table in _taken(path, scenario))


def declares(path: Path, table: Mapping[str, Any], key: str) -> bool:
    """True if scenarios can set this key in a table at this path."""
    names = [part for part in path if isinstance(part, str)]
    # The keys of a mix are the names of schemes, and their values are numbers.
    if names[-1] == "mix":
        return key in table and not isinstance(table[key], str)
    return any(key in _catalogue().get(entry, {}) for entry in _entries_of(names, table))


def _taken(path: Path, scenario: Mapping[str, Any]) -> Iterator[tuple[bool, bool]]:
    """Yields two flags for each form of the table around a path: the key takes lists, and the key takes tables."""
    names = [part for part in path if isinstance(part, str)]
    key, where = names[-1], names[:-1]
    for kind, entry in _entries_of(where, _find(path[:-1], scenario)):
        takes = _catalogue().get((kind, entry), {}).get(key)
        if takes is not None:
            yield takes


def _entries_of(where: list[str], table: Any) -> Iterator[tuple[str, str]]:
    """The catalogue entries, by kind and name, that declare the keys of a table."""
    if not where:
        yield ("table", "(top level)")
        return
    last = where[-1]
    if where[0] == "scheme" and len(where) == 2:
        yield ("table", "[scheme.NAME]")
        yield from (("controller", name) for name in _chosen_names(table, "controller"))
    elif last in INNER_TABLES:
        chooser = "controller" if last == "inner" else "kind"
        yield from ((INNER_TABLES[last], name) for name in _chosen_names(table, chooser))
    elif last in FORMS:
        yield from (("table", name) for name in (f"[{last}]", f"[[{last}]]"))
        yield from ((FORMS[last], name) for name in _chosen_names(table, "kind"))
        if last == "queue_at":
            yield ("table", "[queue]")
    else:
        # The catalogue lists a nested table by its own name or by its whole path. `emulate.change` has the former.
        names = dict.fromkeys((last, ".".join(where)))
        yield from (("table", text) for name in names for text in (name, f"[{name}]", f"[[{name}]]"))


def _chosen_names(table: Any, chooser: str) -> list[str]:
    """The names under the key that chooses the form of a table; several if that key itself varies."""
    value = table.get(chooser) if isinstance(table, Mapping) else None
    return [value] if isinstance(value, str) else list(map(str, value)) if isinstance(value, list) else []


def _find(path: Path, scenario: Mapping[str, Any]) -> Any:
    found: Any = scenario
    for part in path:
        found = found[part]
    return found


def _catalogue() -> Mapping[tuple[str, str], Mapping[str, tuple[bool, bool]]]:
    """Two flags for each key of each entry: the key takes lists, and the key takes tables."""
    return _keys_of(REGISTRY.catalogue())


@cache
def _keys_of(catalogue: _native.Catalogue | None) -> Mapping[tuple[str, str], Mapping[str, tuple[bool, bool]]]:
    return {
        (entry["kind"], entry["name"]): {param["name"]: param["takes"] for param in entry["params"]}
        for entry in _native.catalogue(catalogue)
    }
