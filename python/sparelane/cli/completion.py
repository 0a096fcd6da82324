"""Shell completion of names of scenarios, experiments and controllers, and of scenario keys and their values.

Click calls these functions when the shell requests completions. docs/editors.md shows how to turn completion on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from sparelane import _native
from sparelane.common import experiment_index
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario import library, schema

# Suffixes of files that commands read as scenarios.
SUFFIXES = (".toml", ".json")


def _matching(incomplete: str, names: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """The names, each with its description, that start with the incomplete word."""
    return [CompletionItem(name, help=text) for name, text in names if name.startswith(incomplete)]


def scenario_files(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes ready-made scenarios by name, and files."""
    ready = _matching(incomplete, ((name, "ready-made") for name in library.names()))
    folder, _, name = incomplete.rpartition("/")
    there = Path(folder or ("/" if incomplete.startswith("/") else "."))
    files = sorted(one.name for one in there.iterdir()) if there.is_dir() else []
    shown = [f"{folder}/{one}" if "/" in incomplete else one for one in files if one.startswith(name)]
    # The item of type "file" lets the shell complete other files itself.
    known = [CompletionItem(one) for one in shown if one.endswith(SUFFIXES)]
    return [CompletionItem(incomplete, type="file"), *ready, *known]


def experiments(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the ids of experiments, and names of papers, which select all experiments of a paper."""
    index = experiment_index.read()
    papers = sorted({one.id.partition("/")[0] for one in index})
    return _matching(
        incomplete, [*((paper, "all of a paper") for paper in papers), *((one.id, one.title) for one in index)]
    )


def controllers(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the names of controllers."""
    entries = _native.catalogue(REGISTRY.catalogue())
    return _matching(incomplete, ((one["name"], one["summary"]) for one in entries if one["kind"] == "controller"))


def entries(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes every name that `sparelane list` shows."""
    found = [(one["name"].strip("[]"), one["summary"]) for one in _native.catalogue(REGISTRY.catalogue())]
    found += [(name, "ready-made") for name in library.names()]
    names = dict(found)
    return [*_matching(incomplete, sorted(names.items())), *experiments(context, option, incomplete)]


def settings(context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes `KEY=VALUE` for `--set`, with the keys of the scenario on the command line and their fixed values."""
    scenario = _scenario(context)
    dotted, equals, value = incomplete.partition("=")
    *outer, key = dotted.split(".")
    if equals:
        values = _values([*outer, key], scenario)
        return [CompletionItem(f"{dotted}={one}") for one in values if one.startswith(value)]
    before = "".join(f"{part}." for part in outer)
    return [
        CompletionItem(f"{before}{name}{end}", help=help)
        for name, end, help in _keys(outer, scenario)
        if name.startswith(key)
    ]


def _keys(outer: Sequence[str], scenario: Any) -> list[tuple[str, str, str]]:
    """The keys of a table as (name, ending, description). The ending is a dot for tables and `=` for values."""
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


def _values(keys: Sequence[str], scenario: Any) -> list[str]:
    """The values of a key that has a fixed set of them; otherwise an empty list."""
    *outer, key = keys
    found: list[str] = []
    for table in schema.tables_at(outer, _without(scenario, keys)):
        for way in schema.values_of(table, key):
            found += way.get("enum", [way["const"]] if "const" in way else [])
            found += ["true", "false"] if way.get("type") == "boolean" else []
    if keys[0] == "workload" and key == "scheme" and isinstance(scenario, dict):
        found += list(scenario.get("scheme", ()))
    return list(dict.fromkeys(found))


def _at(keys: Sequence[str], scenario: Any) -> Any:
    """The part of a scenario below these keys, or `None`."""
    found = scenario
    for key in keys:
        if isinstance(found, list):
            found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
        else:
            found = found.get(key) if isinstance(found, dict) else None
    return found


def _without(scenario: Any, keys: Sequence[str]) -> Any:
    """A scenario without the value below these keys, since that value is about to be replaced."""
    if not isinstance(scenario, dict) or keys[0] not in scenario:
        return scenario
    rest = {key: value for key, value in scenario.items() if key != keys[0]}
    return rest if len(keys) == 1 else {**scenario, keys[0]: _without(scenario[keys[0]], keys[1:])}


def _scenario(context: click.Context) -> Any:
    """The scenario on the command line as a dictionary; empty if it is missing or unreadable."""
    # If the line ends in an option without its value, click leaves the arguments before it unparsed.
    file = context.params.get("scenario") or context.params.get("file") or next(iter(context.args), None)
    if not isinstance(file, str):
        return {}
    try:
        return _native.tables(library.resolve(file).read_text(encoding="utf-8"), file)
    except (OSError, ValueError):
        return {}


class Bash(BashComplete):
    """Completion for bash, which splits `key=value` into three words and adds a space after a completed word."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'COMPREPLY+=("$value"); [[ $value == *[.=/] ]] && compopt -o nospace'
    )
    is_value = False

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, joined again around `=`, and the incomplete word."""
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*before, incomplete]:
            is_next = not words or (word != "=" and (not words[-1].endswith("=") or word.startswith("--")))
            words[len(words) if is_next else -1 :] = [word if is_next else words[-1] + word]
        self.is_value = "=" in words[-1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Formats an item. A value is printed without its key, which bash counts as a completed word."""
        value = item.value.rpartition("=")[2] if self.is_value else item.value
        return super().format_completion(CompletionItem(value, type=item.type))


add_completion_class(Bash)
