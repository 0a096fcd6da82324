"""The recorded windows of ns-3 in `ns3_windows.csv`: one line per script, in segments."""

import csv
from collections.abc import Mapping
from pathlib import Path

from windows_run import Windows
from windows_scripts import SCRIPTS

RECORD = Path(__file__).resolve().with_name("ns3_windows.csv")
COLUMNS = ("script", "every_ms", "windows")


def read_record() -> dict[str, Windows]:
    """Return the windows of ns-3 by script name."""
    if not RECORD.exists():
        return {}
    with RECORD.open(encoding="ascii", newline="") as file:
        return {line["script"]: [float(window) for window in line["windows"].split()] for line in csv.DictReader(file)}


def write_record(record: Mapping[str, Windows]) -> None:
    """Replace the record, in the order of the scripts and without scripts that no longer exist."""
    with RECORD.open("w", encoding="ascii", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for script in SCRIPTS:
            if windows := record.get(script.name):
                lines.writerow((script.name, script.every_ms, " ".join(f"{window:.1f}" for window in windows)))
