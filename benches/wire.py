"""Measure the wire transport between network namespaces: transfers, their prediction, harm to TCP, and programs.

Usage: python benches/wire.py [--rounds N] [--only transfers|prediction|harm|programs] [--seconds S] [--json FILE]

Needs root, iproute2, and the kernel's htb and TUN devices. Transfers and prediction also need the compiled example
(`cargo build --release -p sparelane-net --example wire`). If anything is missing, the script names it and exits with
status 0.

The queue of the path is the kernel's htb with one pfifo per class, followed by delay and loss. Times on a busy machine
vary by tens of percent, so missed targets are printed but do not change the exit status. `benches/wire_report.py`
collects them.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import wire_harm
import wire_prediction
import wire_programs
import wire_transfers

from sparelane._native import WireError
from sparelane.emulation import delay_line, namespaces


def main() -> int:
    """Parse the command line, run the measurements and return the exit status."""
    parser = argparse.ArgumentParser(description="Measure the wire transport between network namespaces.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="repetitions of each measurement")
    parser.add_argument(
        "--only", choices=["transfers", "prediction", "harm", "programs"], help="measure only one of the tables"
    )
    parser.add_argument("--seconds", type=float, default=4.0, metavar="S", help="duration of each harm measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds < 0.5:
        parser.error("--rounds must be at least 1 and --seconds at least 0.5")
    reason = namespaces.missing() or delay_line.missing()
    if reason is not None:
        sys.stdout.write(f"nothing was measured between namespaces: this {reason}\n")
        return 0
    results: dict[str, object] = {}
    try:
        if arguments.only in (None, "transfers"):
            results["transfers"] = wire_transfers.measure(arguments.rounds)
        if arguments.only in (None, "prediction"):
            results["prediction"] = [asdict(row) for row in wire_prediction.measure(arguments.rounds)]
        if arguments.only in (None, "harm"):
            results["harm"] = wire_harm.measure(arguments.seconds, arguments.rounds)
        if arguments.only in (None, "programs"):
            results["programs"] = wire_programs.measure(arguments.rounds)
    except (WireError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
