"""What ns-3 measured, kept in `ns3_controllers.csv` beside this file, so that not everyone needs to run it."""

import csv
from collections.abc import Mapping
from pathlib import Path

from controllers_run import Measured
from controllers_scenarios import SCENARIOS

RECORD = Path(__file__).resolve().with_name("ns3_controllers.csv")
COLUMNS = ("scenario", "link_use", "queue_packets")


def read_record() -> dict[str, Measured]:
    """What ns-3 measured, by the scenario's name."""
    if not RECORD.exists():
        return {}
    with RECORD.open(encoding="ascii", newline="") as file:
        return {
            line["scenario"]: Measured(float(line["link_use"]), float(line["queue_packets"]))
            for line in csv.DictReader(file)
        }


def write_record(record: Mapping[str, Measured]) -> None:
    """Replace the record; in the order of the scenarios, and without those that are no more."""
    with RECORD.open("w", encoding="ascii", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for scenario in SCENARIOS:
            if measured := record.get(scenario.name):
                lines.writerow((scenario.name, f"{measured.link_use:.4f}", f"{measured.queue_packets:.2f}"))
