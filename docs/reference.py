"""Generates the reference pages before Sphinx builds the documentation.

There is one page for each controller, queue, topology and so on, made from the program's declarations, and one for each
experiment, copied from the results. Git ignores the folder of generated pages.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparelane import Result, Sweep
from sparelane.cli.commands.list import KINDS, Entry, catalogue
from sparelane.simulation import columns
from sparelane.simulation.summary import Summary
from sparelane.wire.settings import SETTINGS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"

# The kinds of entries that have one page per entry.
PAGES = ("controller", "queue", "topology", "workload", "sizes", "cross_traffic", "table", "scenario")

# Files of the repository that become pages, by the name of the page.
CHAPTERS = {"architecture": "ARCHITECTURE.md", "contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}


def generate(folder: Path) -> None:
    """Deletes `folder` and writes all generated pages into it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    entries = catalogue()
    for kind in PAGES:
        _write_kind(folder / kind, kind, [entry for entry in entries if entry.kind == kind])
    (folder / "tables.md").write_text(_tables_page(), encoding="utf-8")
    (folder / "wire-settings.md").write_text(_wire_settings_page(), encoding="utf-8")
    _write_results(folder / "results")
    for name, file in CHAPTERS.items():
        # Links in these files are relative to the root of the repository; the copies are two folders below it.
        text = (ROOT / file).read_text(encoding="utf-8").replace("](docs/", "](../")
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def _tables_page() -> str:
    """Returns the page that describes the columns of all tables of runs and sweeps."""
    parts = [
        "# Tables of results\n",
        "The tables of `Result`, `Sweep` and `Summary` are Polars data frames. Saved tables have the same columns.\n",
    ]
    for owner, tables in ((Result, columns.RESULT), (Sweep, columns.SWEEP), (Summary, columns.SUMMARY)):
        for name, declared in tables.items():
            text = inspect.getdoc(inspect.getattr_static(owner, name)) or ""
            rows = [
                (f"`{one.name}`", one.dtype, one.unit, "yes" if one.is_optional else "", one.meaning)
                for one in declared
            ]
            summary = text.partition("\n\nColumns:")[0] if owner is not Summary else ""
            parts += [
                f"## {owner.__name__}.{name}\n",
                summary,
                _table(("column", "type", "unit", "null", "meaning"), rows),
            ]
    return "\n".join(parts)


def _wire_settings_page() -> str:
    """Returns the page of the settings of transfers and tunnels."""
    rows = [
        (f"`{one.option}`", f"`{one.name}`", one.default_text, one.allowed, one.option_meaning, ", ".join(one.commands))
        for one in SETTINGS
    ]
    headings = ("option", "attribute of `Options`", "default", "allowed", "meaning", "commands")
    text = "The settings of transfers, tunnels and measurements on the command line and in Python.\n"
    return "\n".join(["# Settings of the wire\n", text, _table(headings, rows)])


def _write_kind(folder: Path, kind: str, entries: Sequence[Entry]) -> None:
    folder.mkdir()
    for entry in entries:
        (folder / f"{_file_name(entry.name)}.md").write_text(_page(entry), encoding="utf-8")
    title = KINDS[kind]
    lines = [
        f"# {title[0].upper()}{title[1:]}\n",
        _table(
            ("name", "summary", "source"),
            [(f"[{entry.name}]({_file_name(entry.name)}.md)", entry.summary, entry.source) for entry in entries],
        ),
        _contents([_file_name(entry.name) for entry in entries]),
    ]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _page(entry: Entry) -> str:
    summary = entry.summary[:1].upper() + entry.summary[1:]
    lines = [f"# {entry.name}\n", f"{summary}.\n"]
    if entry.source:
        lines.append(f"Source: {entry.source}.\n")
    if entry.params:
        rows = [
            (f"`{param['name']}`", f"`{param['default']}`", param["allowed"], param["meaning"], param["source"])
            for param in entry.params
        ]
        lines.append(_table(("key", "default", "allowed", "meaning", "source of the default"), rows))
    notes = [note for note in entry.notes if not note.startswith("file: ")]
    lines += [f"{note}\n" for note in notes]
    if entry.kind == "scenario":
        text = (ROOT / "scenarios" / f"{entry.name}.toml").read_text(encoding="utf-8")
        lines.append(f"To run it: `sparelane run {entry.name}`.\n\n```toml\n{text.rstrip()}\n```\n")
    return "\n".join(lines)


def _write_results(folder: Path) -> None:
    """Copies the pages of the last full results with their figures."""
    for path in RESULTS.rglob("*"):
        if path.name in {"README.md", "claims.md", "figure.png"}:
            target = folder / path.relative_to(RESULTS)
            target = target.with_name("index.md") if path.name == "README.md" else target
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                target.write_text(_local_links(path.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                shutil.copyfile(path, target)
    found = [*folder.glob("claims.md"), *folder.glob("*/*/index.md")]
    pages = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in found)
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n" + _contents(pages))


def _local_links(text: str) -> str:
    text = text.replace("(../docs/", "(../../")
    return re.sub(r"\(([^)\s]*)README\.md\)", r"(\1index.md)", text)


def _contents(pages: Iterable[str]) -> str:
    return "```{toctree}\n:hidden:\n\n" + "".join(f"{page}\n" for page in pages) + "```\n"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [headings, tuple("---" for _ in headings), *rows]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |\n" for line in cells)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-").lower()
