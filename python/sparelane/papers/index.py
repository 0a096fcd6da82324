"""Writes the index of the experiments, which commands read instead of importing all experiments.

Run it with `python -m sparelane.papers.index`.
"""

from __future__ import annotations

from sparelane.common.experiment_index import FILE, Indexed, text
from sparelane.papers import registry


def entries() -> list[Indexed]:
    """Returns the entries of all experiments."""
    return [Indexed(id, experiment.title, experiment.source) for id, experiment in registry().items()]


if __name__ == "__main__":
    FILE.write_text(text(entries()), encoding="utf-8")
