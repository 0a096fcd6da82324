"""Run every controller that ns-3 has, too, in both simulators on the same dumbbells, and compare.

Usage: python benches/controllers.py [--ns3] [--only TEXT] [--markdown FILE]

Compared are the share of the bottleneck's capacity that is used and the mean number of packets that wait there, over
the second part of a run. The first is to agree within 5 %, the second within 20 %; where one does not, the table says
why, and the wider bound of `controllers_notes.py` holds.

Without --ns3, what ns-3 measured is read from `ns3_controllers.csv`, and only sparelane runs, seconds in all. With it,
ns-3 is installed and compiled the first time, runs again, up to two minutes a row, and its rows in that file are
replaced.

The exit status is 1 when a row is out of its bounds, 2 when the comparison could not be made.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from controllers_record import read_record, write_record
from controllers_run import Measured, ns3_command, ns3_measured, ours
from controllers_scenarios import SCENARIOS, Scenario
from controllers_show import HEADINGS, Row, markdown, show
from ns3_build import WORK, build_ns3_program, must_run, say
from peers_rows import PeersError


def main() -> int:
    """Take the command line; give the exit status."""
    parser = argparse.ArgumentParser(description="Compare controllers with ns-3's.")
    parser.add_argument("--ns3", action="store_true", help="run ns-3 again, and record what it measures")
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
    """Make the comparison and show it; the exit status."""
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    if not chosen:
        raise PeersError(f"no scenario's name contains {only!r}; there are: {', '.join(s.name for s in SCENARIOS)}")
    if with_ns3:
        for scenario in chosen:
            write_record(read_record() | {scenario.name: run_ns3(scenario)})
    record = read_record()
    missing = [scenario.name for scenario in chosen if scenario.name not in record]
    if missing:
        raise PeersError(f"ns-3's side is not recorded for {', '.join(missing)}; run with --ns3")
    with tempfile.TemporaryDirectory() as folder:
        rows = [Row(scenario, ours(scenario, Path(folder)), record[scenario.name]) for scenario in chosen]
    lines = [row.cells() for row in rows]
    show("Controllers beside ns-3's", HEADINGS, lines)
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
