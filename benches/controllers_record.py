"""The recorded measurements of ns-3 in `ns3_controllers.csv`, which make it unnecessary to run ns-3."""

import csv
from collections.abc import Mapping
from pathlib import Path

from controllers_run import Measured
from controllers_scenarios import SCENARIOS

RECORD = Path(__file__).resolve().with_name("ns3_controllers.csv")
COLUMNS = ("scenario", "link_use", "queue_packets")


def read_record() -> dict[str, Measured]:
    """Return the measurements of ns-3 by scenario name."""
    if not RECORD.exists():
        return {}
    with RECORD.open(encoding="ascii", newline="") as file:
        return {
            line["scenario"]: Measured(float(line["link_use"]), float(line["queue_packets"]))
            for line in csv.DictReader(file)
        }


def write_record(record: Mapping[str, Measured]) -> None:
    """Replace the record, in the order of the scenarios and without scenarios that no longer exist."""
    with RECORD.open("w", encoding="ascii", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        for scenario in SCENARIOS:
            if measured := record.get(scenario.name):
                lines.writerow((scenario.name, f"{measured.link_use:.4f}", f"{measured.queue_packets:.2f}"))
