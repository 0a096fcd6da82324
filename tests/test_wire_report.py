"""Tests that `make bench-wire` runs all measurements even if one misses its target."""

import subprocess
import sys
from pathlib import Path

from hangs import HANG_S

REPORT = Path(__file__).parent.parent / "benches" / "wire_report.py"


def report(*commands: str) -> tuple[int, str]:
    line = [sys.executable, str(REPORT), *commands]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
    return done.returncode, done.stdout


def test_measurements_continue_after_a_missed_target_and_all_misses_are_listed() -> None:
    commands = [
        "sh -c 'echo first: 2, at most 1: MISSED; exit 1'",
        "echo second: MISSED",
        "sh -c 'exit 7'",
        "echo last",
    ]
    status, text = report(*commands)
    measured, _, missed = text.partition("\nmissed:\n")
    assert status == 1
    assert measured.splitlines() == ["first: 2, at most 1: MISSED", "second: MISSED", "last"]
    assert missed.splitlines() == [
        "  first: 2, at most 1: MISSED",
        "  second: MISSED",
        "  `sh -c 'exit 7'` failed with exit status 7",
    ]


def test_the_report_states_that_all_targets_are_met() -> None:
    assert report("echo a target: 1, at most 2: met") == (0, "a target: 1, at most 2: met\n\nall targets are met\n")
