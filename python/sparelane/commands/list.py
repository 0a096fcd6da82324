"""`sparelane list`: what there is to simulate with, and to redo."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import click

from sparelane import _native, completion, experiment_index, extras, library, terminal
from sparelane.commands.plugin_option import plugin_option
from sparelane.names import UnknownNameError, below
from sparelane.plugins.registry import REGISTRY

# Kinds of things, in the order in which people meet them, and what to call several of them.
KINDS: Mapping[str, str] = {
    "controller": "controllers",
    "queue": "queues",
    "topology": "topologies",
    "workload": "workloads",
    "sizes": "flow sizes",
    "cross_traffic": "cross traffic",
    "table": "tables of a scenario file",
    "experiment": "experiments",
    "scenario": "ready-made scenarios",
}

# What is told of a parameter.
COLUMNS: Final = ("name", "default", "allowed", "meaning", "source")

# The tables whose keys every entry of a kind has beside its own.
SHARED = {
    "controller": "[scheme.NAME]",
    "queue": "[queue]",
    "workload": "[[workload]]",
    "cross_traffic": "[[cross_traffic]]",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing with a name.

    Attributes:
        kind: one of `KINDS`.
        name: what a scenario or a command calls it.
        summary: one line.
        source: where it is defined.
        params: its parameters: what `COLUMNS` names, with units in `allowed`.
        notes: more about it, a paragraph each.
    """

    kind: str
    name: str
    summary: str
    source: str
    params: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = field(default=())


@click.command("list")
@click.argument("name", required=False, shell_complete=completion.entries)
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
@plugin_option
def command(name: str | None, as_json: bool) -> None:
    """Show controllers, queues, topologies, workloads, experiments and ready-made scenarios.

    With NAME, show that one with its parameters; of an experiment, what it assumes.
    """
    entries = catalogue()
    if name is not None:
        entries = [_whole(entry) for entry in find(name, entries)]
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], indent=2, ensure_ascii=False))
    elif name is None:
        _show_all(entries)
    else:
        for entry in entries:
            _show_one(entry)


def find(name: str, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that `name` means: of that name, with or without brackets, or the only experiment that begins so.

    Raises:
        UnknownNameError: it means none, or one of several.
    """
    named = [entry for entry in entries if entry.name == name or entry.name.strip("[]") == name]
    if named:
        return named
    ids = below(name, [entry.name for entry in entries if entry.kind == "experiment"])
    if len(ids) != 1:
        raise UnknownNameError("entry", name, [entry.name for entry in entries])
    return [entry for entry in entries if entry.name == ids[0]]


def catalogue() -> list[Entry]:
    """Everything that has a name, by kind; experiments without their notes, which take long to load."""
    entries = [_declared(entry) for entry in _native.catalogue(REGISTRY.catalogue())]
    entries += [Entry("experiment", one.id, one.title, one.source) for one in experiment_index.read()]
    entries += [
        Entry("scenario", ready.name, ready.summary, ready.source, notes=(f"file: {ready.path}",))
        for ready in library.catalogue()
    ]
    order = list(KINDS)
    return sorted(entries, key=lambda entry: order.index(entry.kind))


def _declared(entry: _native.CatalogueEntry) -> Entry:
    params = [{column: param[column] for column in COLUMNS} for param in entry["params"]]
    return Entry(entry["kind"], entry["name"], entry["summary"], entry["source"], params)


def _whole(entry: Entry) -> Entry:
    """An entry with its notes."""
    if entry.kind != "experiment":
        return entry
    extras.require("papers")
    from sparelane.experiments import registry

    experiment = registry()[entry.name]
    return replace(entry, notes=(experiment.method, *experiment.assumptions))


def _show_all(entries: Sequence[Entry]) -> None:
    for kind, title in KINDS.items():
        rows = [(entry.name, entry.summary, entry.source) for entry in entries if entry.kind == kind]
        if rows:
            headings = ("name", "summary", "source")
            terminal.show_table(title, headings, headings, rows)
    terminal.output().print("`sparelane list NAME` shows one with its parameters.", markup=False)


def _show_one(entry: Entry) -> None:
    console = terminal.output()
    console.print(f"{entry.kind} {entry.name}: {entry.summary}", style="bold", markup=False)
    if entry.source:
        console.print(f"source: {entry.source}", markup=False)
    if entry.params:
        terminal.show_table(
            "parameters", COLUMNS, COLUMNS, [[param[name] for name in COLUMNS] for param in entry.params]
        )
    if entry.kind in SHARED:
        console.print(
            f"It has the keys of {SHARED[entry.kind]}, too: `sparelane list '{SHARED[entry.kind]}'`.", markup=False
        )
    for note in entry.notes:
        console.print(f"- {note}", markup=False)
