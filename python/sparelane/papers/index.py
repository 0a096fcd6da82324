"""Writes the index of the experiments: `python -m sparelane.papers.index`."""

from __future__ import annotations

from sparelane.common.experiment_index import FILE, Indexed, text
from sparelane.papers import registry


def of_experiments() -> list[Indexed]:
    """The entries of all experiments, from the experiments themselves."""
    return [Indexed(id, experiment.title, experiment.source) for id, experiment in registry().items()]


if __name__ == "__main__":
    FILE.write_text(text(of_experiments()), encoding="utf-8")
