"""Run sparelane, ns-3 and htsim on the neutral workloads, one after the other on one core, and compare them.

Usage: python benches/peers.py [--full] [--htsim FOLDER] [--rounds NUMBER] [--json FILE]

The project must be installed in the current environment, and a C++ compiler is needed. The first run installs ns-3
into `benches/work/ns3-venv` and compiles `ns3_peer.cc` against it; both are kept.

htsim runs if --htsim, or the environment variable HTSIM, names a checkout of csg-htsim
(https://github.com/Broadcom/csg-htsim). Its library is compiled with `htsim_peer.cc` into `benches/work`. Without a
checkout, the listed speeds of htsim are used.

Compared are:

- Speed, in packet-hops per second of CPU time. A packet-hop is one packet, data or acknowledgment, crossing one link.
  The time to build the network is excluded. On every row, the claim is at least 100 times the speed of ns-3, and
  10 times that of htsim. If htsim does not run, the claim is 6 times its listed speed.
- Peak memory of the whole process.
- Packet-hops and delivered packets, which show that the simulators do the same work.
- Completion times per flow on abilene30, for flows that finish in both sparelane and ns-3.

sparelane and htsim run in rounds, each one after the other on the same core, because the speed of a machine varies with
its other load. The ratio is the median over the rounds.

By default ns-3 runs on the short rows only, for seconds each. With --full it runs on all rows, for minutes each; the
run of 2 s on abilene30 exceeds the time limit and is aborted.

The exit status is 1 if a row misses the claim, and 2 if the comparison could not be made.
"""

import argparse
import sys
from pathlib import Path

import workloads
from htsim_build import build_htsim_program, htsim_commit, htsim_folder
from ns3_build import build_ns3_program
from peers_rows import COMPLETION_WORKLOAD, ROWS, Comparison, PeersError, Row, compare_completions
from peers_run import SEED, htsim_pairs, ns3_fct, ns3_speed, ours_fct, sparelane_speed
from peers_show import seconds, show, write_json
from programs import WORK, say


def compare_speed(row: Row, *, with_ns3: bool, htsim: Path | None, rounds: int) -> Comparison:
    """Run one row in all simulators, one after the other. `htsim` is its compiled program."""
    pairs = None
    if htsim is not None:
        say(f"{row.workload}, {seconds(row.simulated_s)}: htsim and sparelane, {rounds} rounds")
        pairs = htsim_pairs(row, htsim, rounds)
        ours = pairs.sparelane
    else:
        say(f"{row.workload}, {seconds(row.simulated_s)}: sparelane")
        ours = sparelane_speed(row)
    if not with_ns3:
        return Comparison(row, ours, None, pairs)
    say(f"{row.workload}, {seconds(row.simulated_s)}: ns-3")
    return Comparison(row, ours, ns3_speed(row), pairs)


def compare(*, full: bool, htsim: Path | None, rounds: int, json_file: Path | None) -> bool:
    """Run the whole comparison, print it and return whether the claim holds on every row.

    `htsim` is a checkout of csg-htsim.
    """
    if json_file is not None and not json_file.resolve().parent.is_dir():
        raise PeersError(f"the folder {json_file.resolve().parent} of {json_file.name} does not exist")
    WORK.mkdir(parents=True, exist_ok=True)
    for workload in workloads.neutral_workloads(SEED):
        workload.write(WORK)
    htsim_program = build_htsim_program(htsim) if htsim else None
    build_ns3_program("ns3_peer")
    comparisons = [
        compare_speed(row, with_ns3=full or not row.long, htsim=htsim_program, rounds=rounds) for row in ROWS
    ]
    completion_rows = [c.row for c in comparisons if c.ns3 and c.row.workload == COMPLETION_WORKLOAD]
    if not completion_rows:
        raise PeersError(f"ns-3 completed no run of {COMPLETION_WORKLOAD}, so there are no completion times to compare")
    completion_row = completion_rows[-1]
    buckets = compare_completions(ours_fct(completion_row), ns3_fct(completion_row))
    commit = htsim_commit(htsim) if htsim else None
    show(comparisons, buckets, completion_row, commit)
    if json_file is not None:
        write_json(json_file, comparisons, buckets, completion_row, commit)
    return not any(c.misses() for c in comparisons)


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}; allowed: at least 1")
    return number


def main() -> int:
    """Parse the command line, run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description="Compare sparelane with ns-3 and htsim on the neutral workloads.")
    parser.add_argument("--full", action="store_true", help="run ns-3 on the long rows too, up to 30 minutes each")
    parser.add_argument(
        "--htsim", type=Path, metavar="FOLDER", help="checkout of csg-htsim to run (default: the variable HTSIM)"
    )
    parser.add_argument(
        "--rounds", type=positive, default=3, metavar="NUMBER", help="rounds with htsim (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    try:
        htsim = htsim_folder(arguments.htsim)
        held = compare(full=arguments.full, htsim=htsim, rounds=arguments.rounds, json_file=arguments.json)
    except (PeersError, OSError) as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench-peers: stopped", file=sys.stderr)
        return 2
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
