"""An index of the experiments with their ids, titles and sources.

Importing all experiments is slow and needs plotting libraries. Commands that only list experiments read this index
instead. `make goldens` rewrites it, and a test compares it with the experiments.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "experiment_index.json"


@dataclass(frozen=True, slots=True)
class Indexed:
    """The entry of an experiment.

    Attributes:
        id: `paper/name`.
        title: one line.
        source: the figure, table or section of the paper.
    """

    id: str
    title: str
    source: str


def read() -> list[Indexed]:
    """The entries of all experiments, ordered by id."""
    return [Indexed(**entry) for entry in json.loads(FILE.read_text(encoding="utf-8"))]


def ids() -> list[str]:
    """The ids of all experiments, in alphabetical order."""
    return [entry.id for entry in read()]


def text(entries: list[Indexed]) -> str:
    """The content of the index file for these entries."""
    return json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False) + "\n"
