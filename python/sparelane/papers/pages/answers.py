"""The first sentence of an experiment's report, and the glossary of its rows.

The sentence states one number of the experiment next to the paper's. Both come from `answers.toml`, which names a row
and a text for each experiment, and explains schemes, metrics and variants.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from sparelane.papers.engine.base import Verdict
from sparelane.papers.engine.rows import Row, joined
from sparelane.papers.pages.text import claim_cells, stated

FILE = "answers.toml"
# The parts of a row's key.
PARTS = ("setting", "variant", "traffic", "scheme", "metric", "average")


@cache
def _declared() -> Mapping[str, Any]:
    """Returns the content of the file."""
    text = (resources.files("sparelane.papers") / FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def declared() -> Mapping[str, tuple[Mapping[str, str], str]]:
    """Returns the row and the text of each experiment that has its own answer."""
    return {one["experiment"]: (one["row"], one["text"]) for one in _declared()["answer"]}


def answer(id: str, rows: Sequence[Row], verdicts: Sequence[Verdict], witness: str = "paper") -> str:
    """Returns the answer of an experiment in one sentence; empty if no run gave the number.

    An experiment that the file does not list is answered by its first claim that has a number.
    """
    if id in declared():
        parts, text = declared()[id]
        found = next((row for row in rows if all(part(row, name) == parts.get(name, "") for name in PARTS)), None)
        if found is not None and found.value is not None:
            return _sentence(found, text, witness)
    for verdict in verdicts:
        if verdict.value is not None:
            _, number, band, _ = claim_cells(verdict)
            return f"{verdict.text}: the number is {number}; the claim holds with {band}."
    return ""


def part(row: Row, name: str) -> str:
    """Returns a part of a row's key as text."""
    return row.key.metric.name if name == "metric" else str(getattr(row.key, name))


def _sentence(row: Row, text: str, witness: str) -> str:
    unit = row.key.metric.unit
    paper = "" if row.paper is None else amount(row.paper, unit)
    if not paper and row.stated is not None:
        paper = joined(stated(row.stated), unit, by=" ")
    filled = text.replace("{ours}", amount(row.value or 0.0, unit)).replace("{paper}", paper)
    return f"{filled}." if not paper or "{paper}" in text else f"{filled}; the {witness} has {paper}."


def amount(value: float, unit: str) -> str:
    """Returns a number with its unit, to three significant digits; larger numbers are rounded to whole ones."""
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return joined(shown.replace("-", "−"), unit, by=" ")


def glossary(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Returns the schemes, metrics and variants of the rows that need an explanation, each once with its meaning."""
    content = _declared()
    found: dict[str, str] = {}
    for row in rows:
        key = row.key
        for kind, name in (("metrics", key.metric.name), ("schemes", key.scheme)):
            # Explains the whole name if the file has it, else each of its words.
            for word in re.findall(r"[\w-]+", name) if name not in content[kind] else [name]:
                if word in content[kind]:
                    found[word] = content[kind][word]
    variants = dict.fromkeys(row.key.variant for row in rows if row.key.variant)
    for variant in variants:
        # A variant may combine several, separated by commas.
        for name, meaning in content["variants"].items():
            if re.search(rf"(?:^|, ){re.escape(name)}(?:,|$)", variant):
                found[name] = meaning
    pairs = list(found.items())
    plain = [variant for variant in variants if variant not in content["variants"]]
    if plain:
        listed = ", ".join(f'"{variant}"' for variant in plain)
        pairs.append(("other variants", f"each differs from the paper as its name states: {listed}."))
    return pairs
