"""Measure the wire between network namespaces: transfers, what the simulator says of them, and harm to TCP beside them.

Usage: python benches/wire.py [--rounds N] [--only transfers|prediction|harm] [--seconds S] [--json FILE]

Needs root, iproute2, the kernel's htb and TUN devices; for the transfers and the prediction also the compiled example
(`cargo build --release -p sparelane-net --example wire`). Where something is missing this says what, and is done.

The queue of the path is the kernel's, htb with a pfifo for each class; delay and loss come behind it. Times of a busy
machine differ by tens of percents: a target that is missed here is told, and that is all; `benches/wire_report.py`
gathers what is told.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import wire_harm
import wire_prediction
import wire_transfers

from sparelane._native import WireError
from sparelane.emulation import delay_line, namespaces


def main() -> int:
    """Take the command line; give the exit status."""
    parser = argparse.ArgumentParser(description="Measure the wire between network namespaces.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="transfers and turns of each kind")
    parser.add_argument("--only", choices=["transfers", "prediction", "harm"], help="one of the tables")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="S", help="of each turn that measures harm")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was measured to this file")
    given = parser.parse_args()
    if given.rounds < 1 or given.seconds < 0.5:
        parser.error("there is one round at least, and half a second")
    why_not = namespaces.missing() or delay_line.missing()
    if why_not is not None:
        sys.stdout.write(f"between namespaces nothing was measured: this {why_not}\n")
        return 0
    told: dict[str, object] = {}
    try:
        if given.only in (None, "transfers"):
            told["transfers"] = wire_transfers.measure(given.rounds)
        if given.only in (None, "prediction"):
            told["prediction"] = [asdict(row) for row in wire_prediction.measure(given.rounds)]
        if given.only in (None, "harm"):
            told["harm"] = wire_harm.measure(given.seconds, given.rounds)
    except (WireError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if given.json is not None:
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
