"""`sparelane list`: shows and searches everything that scenarios and commands can name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

import click

from sparelane import _native
from sparelane.cli import completion
from sparelane.cli.commands.plugin_option import plugin_option
from sparelane.common import experiment_index, extras
from sparelane.common.names import UnknownNameError, below
from sparelane.plugins.registry import REGISTRY
from sparelane.scenario import library
from sparelane.terminal import console

# The kinds of entries, in the order of the output, with their plural.
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

# The columns of the table of parameters.
COLUMNS: Final = ("name", "default", "allowed", "meaning", "source")

# The kinds whose entries a scenario selects by name.
NAMED = ("controller", "queue", "topology", "workload", "sizes", "cross_traffic")

# Keys of these tables apply to every entry of the kind, in addition to its own keys.
SHARED = {
    "controller": "[scheme.NAME]",
    "queue": "[queue]",
    "workload": "[[workload]]",
    "cross_traffic": "[[cross_traffic]]",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A named entry, such as a controller or an experiment.

    Attributes:
        kind: a key of `KINDS`.
        name: the name in scenarios or commands.
        summary: one line.
        source: the paper or document that defines it.
        params: its parameters, with the keys of `COLUMNS`; units are part of `allowed`.
        notes: further paragraphs.
    """

    kind: str
    name: str
    summary: str
    source: str
    params: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a search for a word.

    Attributes:
        remarks: sentences that explain the word.
        meant: entries with this name or alias.
        mentioned: further entries whose name or summary contains the word.
        keys: keys whose name or meaning contains the word, as entries with only these keys.
    """

    remarks: Sequence[str] = ()
    meant: Sequence[Entry] = ()
    mentioned: Sequence[Entry] = ()
    keys: Sequence[Entry] = ()

    @property
    def entries(self) -> list[Entry]:
        """All results as entries, for JSON. Remarks become notes of the entries in `meant`."""
        meant = [replace(entry, notes=(*self.remarks, *entry.notes)) for entry in self.meant]
        return [*meant, *self.mentioned, *self.keys]


@click.command("list")
@click.argument("name", metavar="[NAME|WORD]", required=False, shell_complete=completion.entries)
@click.option("as_json", "--json", is_flag=True, help="Print JSON.")
@plugin_option
def command(name: str | None, as_json: bool) -> None:
    """Show or search everything that scenarios can name.

    Without an argument, show controllers, queues, topologies, workloads, tables, experiments and ready-made scenarios.
    With a NAME, show the parameters of that entry, or the assumptions of an experiment. With any other WORD, search
    names, keys, their meanings, and names that other tools use, such as droptail or netem.
    """
    entries = catalogue()
    if name is None:
        if as_json:
            _print_json(entries)
        else:
            _show_all(entries)
        return
    found = find(name, entries)
    found = replace(found, meant=[_whole(entry) for entry in found.meant])
    if as_json:
        _print_json(found.entries)
    else:
        _show_found(name, found)


def find(word: str, entries: Sequence[Entry]) -> Found:
    """Returns the entries that `word` means or that mention it.

    An exact name, with or without brackets, finds only entries of that name. A prefix of an experiment's id finds the
    experiment if it is the only match and no other tool uses the word.

    Raises:
        UnknownNameError: nothing matches the word.
    """
    named = [entry for entry in entries if entry.name == word or entry.name.strip("[]") == word]
    if named:
        return Found(meant=named)
    ids = below(word, [entry.name for entry in entries if entry.kind == "experiment"])
    if len(ids) == 1 and not _native.aliases(word):
        return Found(meant=[entry for entry in entries if entry.name == ids[0]])
    found = _search(word, entries)
    if not (found.entries or found.remarks):
        raise UnknownNameError("entry", word, [entry.name for entry in entries])
    return found


def _search(word: str, entries: Sequence[Entry]) -> Found:
    """The entries and keys that have the word as an alias, or whose texts contain it."""
    plain = _native.normalized(word)
    meant = [entry for entry in entries if _native.normalized(entry.name.strip("[]")) == plain]
    remarks = [f'"{word}" is written "{entry.name}" here' for entry in meant]
    keys: dict[str, list[str]] = {}
    nearest: list[Entry] = []
    for alias in _native.aliases(word):
        remarks.append(alias["remark"])
        named = [entry for entry in entries if entry.name in alias["names"] and entry.kind in NAMED]
        (meant if alias["is_here"] and len(alias["names"]) == 1 else nearest).extend(named)
        for key in alias["keys"]:
            table, _, name = key.rpartition(" ")
            keys.setdefault(table, []).append(name)
    mentions = _matcher(word)
    mentioned = [
        entry for entry in entries if entry not in meant and (entry in nearest or mentions(entry.name, entry.summary))
    ]
    return Found(remarks, _distinct(meant), mentioned, _keys(word, entries, keys))


def _keys(word: str, entries: Sequence[Entry], meant: Mapping[str, Sequence[str]]) -> list[Entry]:
    """The keys that match a word, as entries with only these keys, best match first.

    Exact names and aliases come first, then keys whose name contains the word, then keys whose meaning contains it.
    Within a rank, keys of tables come before keys of other kinds.
    """
    mentions = _matcher(word)
    ranked: list[tuple[int, Entry]] = []
    for entry in entries:
        by_rank: dict[int, list[Mapping[str, str]]] = {}
        for one in entry.params:
            name = one["name"]
            if name in meant.get(entry.name, ()) or name == word.lower():
                by_rank.setdefault(0, []).append(one)
            elif mentions(name):
                by_rank.setdefault(1, []).append(one)
            elif mentions(name, one["meaning"], one["allowed"]):
                by_rank.setdefault(2, []).append(one)
        ranked += [(rank, replace(entry, params=params)) for rank, params in by_rank.items()]
    return [entry for _, entry in sorted(ranked, key=lambda one: (one[0], one[1].kind != "table"))]


def _matcher(word: str) -> Callable[..., bool]:
    """Returns a predicate. Each part of `word` must begin a word of one of the texts; names may contain it anywhere."""
    parts = [re.escape(part) for part in re.split(r"[\s_-]+", word.lower()) if part]

    def mentions(name: str, *texts: str) -> bool:
        text = " ".join((name, *texts)).lower()
        starts = all(re.search(rf"(?<![a-z0-9]){part}", text) for part in parts)
        return bool(parts) and (starts or (len(word) > 2 and word.lower() in name.lower()))

    return mentions


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for place, entry in enumerate(entries) if entry not in entries[:place]]


def catalogue() -> list[Entry]:
    """All entries, ordered by kind. Experiments come without notes, since importing those is slow."""
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
    from sparelane.papers import registry

    experiment = registry()[entry.name]
    return replace(entry, notes=(experiment.method, *experiment.assumptions))


def _show_all(entries: Sequence[Entry]) -> None:
    for kind, title in KINDS.items():
        rows = [(entry.name, entry.summary, entry.source) for entry in entries if entry.kind == kind]
        if rows:
            headings = ("name", "summary", "source")
            console.show_table(title, headings, headings, rows, least=("source",))
    console.output().print(
        "`sparelane list NAME` shows the parameters of an entry, and `sparelane list WORD` searches.", markup=False
    )


def _print_json(entries: Sequence[Entry]) -> None:
    click.echo(json.dumps([asdict(entry) for entry in entries], indent=2, ensure_ascii=False))


def _show_found(word: str, found: Found) -> None:
    printer = console.output()
    for remark in found.remarks:
        printer.print(f"{word}: {remark}.", markup=False)
    for entry in found.meant:
        _show_one(entry)
    if found.mentioned:
        headings = ("name", "kind", "summary")
        rows = [(entry.name, KINDS[entry.kind], entry.summary) for entry in found.mentioned]
        console.show_table(f'names and summaries with "{word}"', headings, headings, rows)
    if found.keys:
        columns = ("key", "of", "default", "meaning")
        keys = [
            (one["name"], entry.name, one["default"], one["meaning"]) for entry in found.keys for one in entry.params
        ]
        console.show_table(f'keys with "{word}"', columns, columns, keys)
    if found.mentioned or found.keys:
        printer.print("`sparelane list NAME` shows all keys of an entry.", markup=False)


def _show_one(entry: Entry) -> None:
    printer = console.output()
    printer.print(f"{entry.kind} {entry.name}: {entry.summary}", style="bold", markup=False)
    if entry.source:
        printer.print(f"source: {entry.source}", markup=False)
    if entry.params:
        cells = [[param[name] for name in COLUMNS] for param in entry.params]
        console.show_table("parameters", COLUMNS, COLUMNS, cells, least=("source",))
    if entry.kind in SHARED:
        printer.print(
            f"The keys of {SHARED[entry.kind]} also apply: `sparelane list '{SHARED[entry.kind]}'`.", markup=False
        )
    for note in entry.notes:
        printer.print(f"- {note}", markup=False)
