"""Run the two simulators for `peers.py`."""

import csv
import json
import subprocess
import sys
from pathlib import Path

from ns3_build import FOLDER, WORK, build_ns3_program, must_run, say
from peers_rows import Completion, PeersError, Row, Speed

SEED = 1

COMPLETION_SCENARIO = FOLDER / "peers_abilene.toml"

# In ns-3 3.44, the time to find lost segments grows with the square of the window. With many losses, as on abilene30
# after half a second, single events take a tenth of a second. Runs are aborted after this time.
NS3_LIMIT_S = 1800

# Runs of sparelane can be shorter than the noise of the machine, so the median of several runs is reported.
SPARELANE_RUNS = 3


def ns3_speed(row: Row) -> Speed | None:
    """Run ns-3 once, which writes the completion times to `completions_file`. Return `None` at the time limit."""
    command = [str(build_ns3_program("ns3_peer")), f"--base={WORK / row.workload}", f"--duration={row.simulated_s}"]
    command += [f"--ssthresh={row.ssthresh_packets or 0}", f"--fct={completions_file(row)}"]
    try:
        answer = must_run(command, f"ns-3 failed on {row.workload}", limit_s=NS3_LIMIT_S)
    except subprocess.TimeoutExpired:
        say(f"{row.workload}: ns-3 is aborted after {NS3_LIMIT_S} s")
        return None
    return speed_from(answer, f"ns-3 on {row.workload}")


def completions_file(row: Row) -> Path:
    """Return the file for the completion times of ns-3 on one row."""
    return WORK / f"{row.workload}-{row.simulated_s:g}s-ns3.csv"


def ns3_fct(row: Row) -> list[Completion]:
    """Return all flows of one row in ns-3, in order of start times."""
    with completions_file(row).open(encoding="ascii", newline="") as file:
        flows = [(int(line["bytes"]), int(line["fct_ns"])) for line in csv.DictReader(file)]
    return [Completion(size_bytes, fct_ns / 1e9 if fct_ns >= 0 else None) for size_bytes, fct_ns in flows]


def sparelane_speed(row: Row) -> Speed:
    """Run sparelane several times and return the run with the median CPU time."""
    sparelane = Path(sys.executable).with_name("sparelane")
    if not sparelane.exists():
        raise PeersError(f"{sparelane} does not exist: install the project into this environment first")
    answer = WORK / "sparelane.json"
    command = [str(sparelane), "bench", str(WORK / f"{row.workload}.topo"), "--duration", f"{row.simulated_s:g}s"]
    command += ["--json", str(answer)]
    if row.ssthresh_packets is not None:
        command += ["--ssthresh", str(row.ssthresh_packets)]
    runs = []
    for _ in range(SPARELANE_RUNS):
        must_run(command, f"sparelane failed on {row.workload}")
        runs.append(speed_from(answer.read_text(encoding="utf-8"), f"sparelane on {row.workload}"))
    return sorted(runs, key=lambda run: run.cpu_s)[SPARELANE_RUNS // 2]


def ours_fct(row: Row) -> list[Completion]:
    """Return the flows of one row of `COMPLETION_WORKLOAD` that start in sparelane, in order of start times."""
    import sparelane

    result = sparelane.run(COMPLETION_SCENARIO, seed=SEED, set={"duration": f"{row.simulated_s:g}s"})
    flows = result.flows.select("size_bytes", "completion_s").iter_rows()
    return [Completion(size_bytes, completion_s) for size_bytes, completion_s in flows]


def speed_from(text: str, source: str) -> Speed:
    """Parse the JSON output of a simulator: an object, or a list with one object."""
    try:
        found = json.loads(text)
        fields = found[0] if isinstance(found, list) else found
        return Speed(
            packet_hops=int(fields["packet_hops"]),
            events=int(fields["events"]),
            cpu_s=float(fields["cpu_s"]),
            peak_rss_mb=float(fields["peak_rss_mb"]),
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise PeersError(f"cannot parse the output of {source} ({error!r}): {text.strip()[:300]}") from error
