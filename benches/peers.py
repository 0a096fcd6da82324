"""Run sparelane and ns-3 on the neutral workloads, one after the other on one core, and compare them.

Usage: python benches/peers.py [--full] [--json FILE]

The project must be installed in the current environment, and a C++ compiler is needed. The first run installs ns-3
into `benches/work/ns3-venv` and compiles `ns3_peer.cc` against it; both are kept.

Compared are:

- Speed, in packet-hops per second of CPU time. A packet-hop is one packet, data or acknowledgment, crossing one link.
  The time to build the network is excluded. The claim is at least 6 times htsim's listed speed and at least 100 times
  ns-3's, on every row.
- Peak memory of the whole process.
- Completion times per flow on abilene30, for flows that finish in both simulators.

By default ns-3 runs on the short rows only, for seconds each. With --full it runs on all rows, for minutes each; the
run of 2 s on abilene30 exceeds the time limit and is aborted.

The exit status is 1 if a row misses the claim, and 2 if the comparison could not be made.
"""

import argparse
import sys
from pathlib import Path

import workloads
from ns3_build import WORK, build_ns3_program, say
from peers_rows import COMPLETION_WORKLOAD, ROWS, Comparison, PeersError, Row, compare_completions
from peers_run import SEED, ns3_fct, ns3_speed, ours_fct, sparelane_speed
from peers_show import seconds, show, write_json


def compare_speed(row: Row, *, with_ns3: bool) -> Comparison:
    """Run one row in both simulators, one after the other."""
    say(f"{row.workload}, {seconds(row.simulated_s)}: sparelane")
    ours = sparelane_speed(row)
    if not with_ns3:
        return Comparison(row, ours, None)
    say(f"{row.workload}, {seconds(row.simulated_s)}: ns-3")
    return Comparison(row, ours, ns3_speed(row))


def compare(*, full: bool, json_file: Path | None) -> bool:
    """Run the whole comparison, print it and return whether the claim holds on every row."""
    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise PeersError(f"the folder {json_file.resolve().parent} of {json_file.name} does not exist")
    WORK.mkdir(parents=True, exist_ok=True)
    for workload in workloads.neutral_workloads(SEED):
        workload.write(WORK)
    build_ns3_program("ns3_peer")
    comparisons = [compare_speed(row, with_ns3=full or not row.long) for row in ROWS]
    completion_rows = [c.row for c in comparisons if c.ns3 and c.row.workload == COMPLETION_WORKLOAD]
    if not completion_rows:
        raise PeersError(f"ns-3 completed no run of {COMPLETION_WORKLOAD}, so there are no completion times to compare")
    completion_row = completion_rows[-1]
    buckets = compare_completions(ours_fct(completion_row), ns3_fct(completion_row))
    show(comparisons, buckets, completion_row)
    if json_file is not None:
        write_json(json_file, comparisons, buckets, completion_row)
    return not any(c.misses() for c in comparisons)


def main() -> int:
    """Parse the command line, run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare sparelane with ns-3 on the neutral workloads.")
    parser.add_argument("--full", action="store_true", help="run ns-3 on the long rows too, up to 30 minutes each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    try:
        return 0 if compare(full=arguments.full, json_file=arguments.json) else 1
    except (PeersError, OSError) as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench-peers: stopped", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
