"""What the report of an experiment says first: an answer in words and one number; and what the words of rows mean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from sparelane.papers.engine.base import Verdict
from sparelane.papers.engine.rows import Row, joined
from sparelane.papers.pages.text import claim_cells, said

FILE = "answers.toml"
# What tells a row from the others.
PARTS = ("setting", "variant", "traffic", "scheme", "metric", "average")


@cache
def _declared() -> Mapping[str, Any]:
    """What the file says."""
    text = (resources.files("sparelane.papers") / FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def declared() -> Mapping[str, tuple[Mapping[str, str], str]]:
    """The row and the words of each experiment that has an answer of its own."""
    return {one["experiment"]: (one["row"], one["text"]) for one in _declared()["answer"]}


def answer(id: str, rows: Sequence[Row], verdicts: Sequence[Verdict], witness: str = "paper") -> str:
    """The answer of an experiment in one sentence; empty where no run gave the number."""
    if id in declared():
        parts, text = declared()[id]
        found = next((row for row in rows if all(part(row, name) == parts.get(name, "") for name in PARTS)), None)
        if found is not None and found.value is not None:
            return _told(found, text, witness)
    for verdict in verdicts:
        if verdict.value is not None:
            _, number, band, _ = claim_cells(verdict)
            return f"{verdict.text}: here it is {number}; the claim holds with {band}."
    return ""


def part(row: Row, name: str) -> str:
    """A part of the key of a row, as a text."""
    return row.key.metric.name if name == "metric" else str(getattr(row.key, name))


def _told(row: Row, text: str, witness: str) -> str:
    unit = row.key.metric.unit
    paper = "" if row.paper is None else amount(row.paper, unit)
    if not paper and row.said is not None:
        paper = joined(said(row.said), unit, by=" ")
    words = text.replace("{ours}", amount(row.value or 0.0, unit)).replace("{paper}", paper)
    return f"{words}." if not paper or "{paper}" in text else f"{words}; the {witness} has {paper}."


def amount(value: float, unit: str) -> str:
    """A number with three digits, or as many as it has before the point, and its unit."""
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return joined(shown.replace("-", "−"), unit, by=" ")


def words_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What schemes, metrics and variants of the rows mean, as far as their names do not say it; each once."""
    content = _declared()
    found: dict[str, str] = {}
    for row in rows:
        key = row.key
        for kind, name in (("metrics", key.metric.name), ("schemes", key.scheme)):
            for word in re.findall(r"[\w-]+", name) if name not in content[kind] else [name]:
                if word in content[kind]:
                    found[word] = content[kind][word]
    variants = dict.fromkeys(row.key.variant for row in rows if row.key.variant)
    for variant in variants:
        for name, meaning in content["variants"].items():
            if re.search(rf"(?:^|, ){re.escape(name)}(?:,|$)", variant):
                found[name] = meaning
    pairs = list(found.items())
    plain = [variant for variant in variants if variant not in content["variants"]]
    if plain:
        listed = ", ".join(f'"{variant}"' for variant in plain)
        pairs.append(("other variants", f"what differs from the paper there is what they say: {listed}."))
    return pairs
