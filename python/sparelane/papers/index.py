"""An index of the experiments, so that nobody has to load all of them, and what they draw with, for their names.

`make goldens` writes it anew; a test holds it to the experiments.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "index.json"


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


def of_experiments() -> list[Indexed]:
    """The index as it should be: what the experiments themselves say."""
    from sparelane.papers import registry

    return [Indexed(id, experiment.title, experiment.source) for id, experiment in registry().items()]


def text(entries: list[Indexed]) -> str:
    """The file that says this."""
    return json.dumps([asdict(entry) for entry in entries], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(of_experiments()), encoding="utf-8")
