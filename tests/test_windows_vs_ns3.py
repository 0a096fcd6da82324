"""Compares congestion windows with ns-3's on the same scripts, as recorded in benches/."""

from pathlib import Path

import pytest
from windows_notes import NOTES, SAME
from windows_record import read_record
from windows_run import ours
from windows_scripts import SCRIPTS, Script
from windows_show import WindowRow

RECORD = read_record()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_windows_are_within_their_bounds_of_ns3(script: Script, tmp_path: Path) -> None:
    row = WindowRow(script, ours(script, tmp_path), RECORD[script.name])
    assert row.holds, ", ".join(row.cells())


def test_every_record_and_note_belongs_to_a_script_and_records_are_complete() -> None:
    names = [script.name for script in SCRIPTS]
    assert list(RECORD) == names
    assert set(NOTES) | set(SAME) <= set(names)
    assert not set(NOTES) & set(SAME)
    assert all(note.reason for note in NOTES.values())
    # ns-3 takes no sample at the very end.
    looks = [round(script.duration_s * 1000) // script.every_ms - 1 for script in SCRIPTS]
    assert [len(windows) for windows in RECORD.values()] == looks
