"""What a shell completes: names of scenarios, experiments and controllers, and keys of scenarios with their values.

Shells ask for it by click's means: docs/editors.md has the line for each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from sparelane import _native
from sparelane.common import experiment_index
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario import library, schema

# Endings of files that commands read as scenarios.
ENDINGS = (".toml", ".json")


def _beginning(incomplete: str, names: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    return [CompletionItem(name, help=words) for name, words in names if name.startswith(incomplete)]


def scenario_files(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ready-made scenarios by name, and files."""
    ready = _beginning(incomplete, ((name, "ready-made") for name in library.names()))
    folder, _, name = incomplete.rpartition("/")
    there = Path(folder or ("/" if incomplete.startswith("/") else "."))
    files = sorted(one.name for one in there.iterdir()) if there.is_dir() else []
    shown = [f"{folder}/{one}" if "/" in incomplete else one for one in files if one.startswith(name)]
    # What the shell itself knows of files comes where nothing of this fits.
    known = [CompletionItem(one) for one in shown if one.endswith(ENDINGS)]
    return [CompletionItem(incomplete, type="file"), *ready, *known]


def experiments(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Experiments by id, and the papers, which stand for all of theirs."""
    index = experiment_index.read()
    papers = sorted({one.id.partition("/")[0] for one in index})
    return _beginning(
        incomplete, [*((paper, "all of a paper") for paper in papers), *((one.id, one.title) for one in index)]
    )


def controllers(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Controllers by name."""
    entries = _native.catalogue(REGISTRY.catalogue())
    return _beginning(incomplete, ((one["name"], one["summary"]) for one in entries if one["kind"] == "controller"))


def entries(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Whatever `sparelane list` shows."""
    found = [(one["name"].strip("[]"), one["summary"]) for one in _native.catalogue(REGISTRY.catalogue())]
    found += [(name, "ready-made") for name in library.names()]
    names = dict(found)
    return [*_beginning(incomplete, sorted(names.items())), *experiments(context, option, incomplete)]


def settings(context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`KEY=VALUE` for `--set`: keys that the scenario on the command line can have, and words that they can take."""
    scenario = _given(context)
    dotted, equals, value = incomplete.partition("=")
    *outer, key = dotted.split(".")
    if equals:
        words = _words([*outer, key], scenario)
        return [CompletionItem(f"{dotted}={word}") for word in words if word.startswith(value)]
    before = "".join(f"{part}." for part in outer)
    return [
        CompletionItem(f"{before}{name}{end}", help=help)
        for name, end, help in _keys(outer, scenario)
        if name.startswith(key)
    ]


def _keys(outer: Sequence[str], scenario: Any) -> list[tuple[str, str, str]]:
    """The keys of a table, with a dot behind those that have keys of their own, and `=` behind the others."""
    found: dict[str, tuple[str, str, str]] = {}
    for table in schema.tables_at(outer, scenario):
        inside = _at(outer, scenario)
        if isinstance(inside, list):
            found.update({str(place): (str(place), ".", "") for place in range(len(inside))})
        names = list(table.get("properties", ()))
        if isinstance(table.get("additionalProperties"), dict) and isinstance(inside, dict):
            names += list(inside)
        for name in names:
            ways = list(schema.values_of(table, name))
            described = table.get("properties", {}).get(name, {}).get("description", "")
            for end in sorted({"." if way.get("type") == "object" else "=" for way in ways}):
                found[name + end] = (name, end, described.partition("\n")[0])
    return list(found.values())


def _words(keys: Sequence[str], scenario: Any) -> list[str]:
    """What a key can be set to, where that is one of some words."""
    *outer, key = keys
    found: list[str] = []
    for table in schema.tables_at(outer, _without(scenario, keys)):
        for way in schema.values_of(table, key):
            found += way.get("enum", [way["const"]] if "const" in way else [])
            found += ["true", "false"] if way.get("type") == "boolean" else []
    if keys[0] == "workload" and key == "scheme" and isinstance(scenario, dict):
        found += list(scenario.get("scheme", ()))
    return list(dict.fromkeys(found))


def _at(keys: Sequence[str], given: Any) -> Any:
    for key in keys:
        if isinstance(given, list):
            given = given[int(key)] if key.isdecimal() and int(key) < len(given) else None
        else:
            given = given.get(key) if isinstance(given, dict) else None
    return given


def _without(given: Any, keys: Sequence[str]) -> Any:
    """A scenario without one of its values, which is to be another."""
    if not isinstance(given, dict) or keys[0] not in given:
        return given
    rest = {key: value for key, value in given.items() if key != keys[0]}
    return rest if len(keys) == 1 else {**given, keys[0]: _without(given[keys[0]], keys[1:])}


def _given(context: click.Context) -> Any:
    """The scenario that stands on the command line so far; nothing where it cannot be read."""
    # Where the line ends in an option without its value, click leaves the arguments before it unread.
    file = context.params.get("scenario") or context.params.get("file") or next(iter(context.args), None)
    if not isinstance(file, str):
        return {}
    try:
        return tomllib.loads(library.resolve(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


class Bash(BashComplete):
    """Bash, which takes `key=value` for three words, and puts a space behind what it has completed."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'COMPREPLY+=("$value"); [[ $value == *[.=/] ]] && compopt -o nospace'
    )
    is_value = False

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, put together again around `=`, and the one that is begun."""
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*before, incomplete]:
            is_next = not words or (word != "=" and (not words[-1].endswith("=") or word.startswith("--")))
            words[len(words) if is_next else -1 :] = [word if is_next else words[-1] + word]
        self.is_value = "=" in words[-1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """One line; of a value without its key, which bash has taken for words that are complete."""
        value = item.value.rpartition("=")[2] if self.is_value else item.value
        return super().format_completion(CompletionItem(value, type=item.type))


add_completion_class(Bash)
