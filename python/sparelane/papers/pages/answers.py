"""The first sentence of an experiment's report, and the glossary of its rows.

The sentence states one number of the experiment next to the paper's; the experiment's file gives its row and text.
`glossary.toml` explains schemes, metrics and variants.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from sparelane.papers.engine.base import Experiment, Verdict
from sparelane.papers.engine.rows import Row, joined
from sparelane.papers.pages.text import claim_cells, stated

FILE = "glossary.toml"


@cache
def _terms() -> Mapping[str, Mapping[str, str]]:
    """Returns the content of the file: the meaning of each scheme, metric and variant."""
    text = (resources.files("sparelane.papers") / FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


def answer(experiment: Experiment, rows: Sequence[Row], verdicts: Sequence[Verdict]) -> str:
    """Returns the answer of an experiment in one sentence; empty if no run gave the number.

    An experiment whose file has no answer is answered by its first claim that has a number.
    """
    if experiment.answer is not None:
        key, text = experiment.answer
        found = next((row for row in rows if row.key == key), None)
        if found is not None and found.value is not None:
            return _sentence(found, text, experiment.witness)
    for verdict in verdicts:
        if verdict.value is not None:
            _, number, band, _ = claim_cells(verdict)
            return f"{verdict.text}: the number is {number}; the claim holds with {band}."
    return ""


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
    content = _terms()
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
