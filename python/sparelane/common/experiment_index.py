"""An index of the experiments: their ids, titles and sources, without loading the experiments.

Loading all experiments takes long and needs libraries for drawing. `make goldens` writes the index again, and a test
compares it with the experiments.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "experiment_index.json"


@dataclass(frozen=True, slots=True)
class Indexed:
    """One experiment.

    Attributes:
        id: `paper/name`.
        title: one line.
        source: where the paper has it.
    """

    id: str
    title: str
    source: str


def read() -> list[Indexed]:
    """All experiments, by id."""
    return [Indexed(**entry) for entry in json.loads(FILE.read_text(encoding="utf-8"))]


def ids() -> list[str]:
    """The ids of all experiments, in order."""
    return [entry.id for entry in read()]


def text(entries: list[Indexed]) -> str:
    """The content of the file for these entries."""
    return json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False) + "\n"
