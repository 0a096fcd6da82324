"""Compares utilisation and queues of controllers with ns-3's on the same dumbbells, as recorded in benches/."""

from pathlib import Path

import pytest
from controllers_notes import NOTES
from controllers_record import read_record
from controllers_run import ours
from controllers_scenarios import SCENARIOS, Scenario
from controllers_show import Row

RECORD = read_record()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_utilisation_and_queue_are_within_their_bounds_of_ns3(scenario: Scenario, tmp_path: Path) -> None:
    row = Row(scenario, ours(scenario, tmp_path), RECORD[scenario.name])
    assert row.holds, ", ".join(row.cells())


def test_every_record_and_note_belongs_to_a_scenario() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert list(RECORD) == names
    assert set(NOTES) <= set(names)
    assert all(note.reason for note in NOTES.values())
