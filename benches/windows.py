"""Run Linux's controllers that ns-3 also has in both simulators, with the same scripts, and compare their windows.

Usage: python benches/windows.py [--ns3] [--only TEXT] [--markdown FILE] [--figure FILE]

A script is one flow on a path that drops no segments, or only given ones. The congestion windows are compared at
regular samples: the mean difference must be within 5 %, and the difference at each quarter of the run within 10 %. For
larger differences the table gives the reason, and the bounds of `windows_notes.py` apply.

Without --ns3, the windows of ns-3 are read from `ns3_windows.csv`, and only sparelane runs, for some seconds in total.
With --ns3, ns-3 is installed and compiled if needed and runs again, for up to a minute per script. Its lines in that
file are replaced.

The exit status is 1 if a row is out of its bounds, and 2 if the comparison could not be made.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from controllers_show import markdown, show
from ns3_build import build_ns3_program
from peers_rows import PeersError
from programs import WORK, must_run, say
from windows_record import read_record, write_record
from windows_run import Windows, ns3_windows, ns3_windows_command, ours
from windows_scripts import SCRIPTS, Script
from windows_show import HEADINGS, WindowRow, figure


def main() -> int:
    """Parse the command line, run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare windows with ns-3's.")
    parser.add_argument("--ns3", action="store_true", help="run ns-3 again and record its windows")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scripts whose name contains this")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table to this file")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw the windows of both simulators")
    arguments = parser.parse_args()
    try:
        return compare(arguments)
    except (PeersError, OSError) as error:
        print(f"bench-windows: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench-windows: stopped", file=sys.stderr)
        return 2


def compare(arguments: argparse.Namespace) -> int:
    """Run the comparison, print it and return the exit status."""
    chosen = [script for script in SCRIPTS if arguments.only in script.name]
    if not chosen:
        names = ", ".join(script.name for script in SCRIPTS)
        raise PeersError(f"no script's name contains {arguments.only!r}; available: {names}")
    if arguments.ns3:
        for script in chosen:
            write_record(read_record() | {script.name: run_ns3(script)})
    record = read_record()
    missing = [script.name for script in chosen if script.name not in record]
    if missing:
        raise PeersError(f"no windows of ns-3 are recorded for {', '.join(missing)}; run with --ns3")
    with tempfile.TemporaryDirectory() as folder:
        rows = [WindowRow(script, ours(script, Path(folder)), record[script.name]) for script in chosen]
    lines = [row.cells() for row in rows]
    show("Windows compared with ns-3", HEADINGS, lines)
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown(HEADINGS, lines), encoding="utf-8")
    if arguments.figure is not None:
        figure(rows, arguments.figure)
    return 0 if all(row.holds for row in rows) else 1


def run_ns3(script: Script) -> Windows:
    """Run ns-3 once."""
    program = build_ns3_program("ns3_controllers")
    say(f"{script.name}: ns-3")
    script.write(WORK)
    return ns3_windows(script, must_run(ns3_windows_command(script, program, WORK), f"ns-3 failed on {script.name}"))


if __name__ == "__main__":
    sys.exit(main())
