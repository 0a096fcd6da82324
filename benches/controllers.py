"""Run the controllers that sparelane and ns-3 have in common on the same dumbbells, and compare.

Usage: python benches/controllers.py [--ns3] [--only TEXT] [--markdown FILE]

The comparison covers the utilisation and the mean queue length of the bottleneck in the second part of a run. The
utilisation must agree within 5 %, the queue within 20 %. For larger differences the table gives the reason, and the
wider bounds of `controllers_notes.py` apply.

Without --ns3, the measurements of ns-3 are read from `ns3_controllers.csv`, and only sparelane runs, for some seconds
in total. With --ns3, ns-3 is installed and compiled if needed and runs again, for up to two minutes per row. Its rows
in that file are replaced.

The exit status is 1 if a row is out of its bounds, and 2 if the comparison could not be made.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from controllers_record import read_record, write_record
from controllers_run import Measured, ns3_command, ns3_measured, ours
from controllers_scenarios import SCENARIOS, Scenario
from controllers_show import HEADINGS, Row, markdown, show
from ns3_build import build_ns3_program
from peers_rows import PeersError
from programs import WORK, must_run, say


def main() -> int:
    """Parse the command line, run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare controllers with ns-3's.")
    parser.add_argument("--ns3", action="store_true", help="run ns-3 again and record its measurements")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose name contains this")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    arguments = parser.parse_args()
    try:
        return compare(with_ns3=arguments.ns3, only=arguments.only, markdown_file=arguments.markdown)
    except (PeersError, OSError) as error:
        print(f"bench-controllers: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench-controllers: stopped", file=sys.stderr)
        return 2


def compare(*, with_ns3: bool, only: str, markdown_file: Path | None) -> int:
    """Run the comparison, print it and return the exit status."""
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    if not chosen:
        raise PeersError(f"no scenario's name contains {only!r}; available: {', '.join(s.name for s in SCENARIOS)}")
    if with_ns3:
        for scenario in chosen:
            write_record(read_record() | {scenario.name: run_ns3(scenario)})
    record = read_record()
    missing = [scenario.name for scenario in chosen if scenario.name not in record]
    if missing:
        raise PeersError(f"no measurements of ns-3 are recorded for {', '.join(missing)}; run with --ns3")
    with tempfile.TemporaryDirectory() as folder:
        rows = [Row(scenario, ours(scenario, Path(folder)), record[scenario.name]) for scenario in chosen]
    lines = [row.cells() for row in rows]
    show("Controllers compared with ns-3", HEADINGS, lines)
    if markdown_file is not None:
        markdown_file.write_text(markdown(HEADINGS, lines), encoding="utf-8")
    return 0 if all(row.holds for row in rows) else 1


def run_ns3(scenario: Scenario) -> Measured:
    """Run ns-3 once."""
    program = build_ns3_program("ns3_controllers")
    say(f"{scenario.name}: ns-3")
    scenario.write(WORK)
    return ns3_measured(must_run(ns3_command(scenario, program, WORK), f"ns-3 failed on {scenario.name}"))


if __name__ == "__main__":
    sys.exit(main())
