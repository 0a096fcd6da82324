"""Run the simulators for `peers.py`."""

import contextlib
import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ns3_build import build_ns3_program
from peers_rows import Completion, HtsimPairs, PeersError, Round, Row, Speed, median_run
from programs import FOLDER, WORK, must_run, say

SEED = 1

COMPLETION_SCENARIO = FOLDER / "peers_abilene.toml"

# In ns-3 3.44, the time to find lost segments grows with the square of the window. With many losses, as on abilene30
# after half a second, single events take a tenth of a second. Runs are aborted after this time.
NS3_LIMIT_S = 1800

# Runs of sparelane can be shorter than the noise of the machine, so the median of several runs is reported.
SPARELANE_RUNS = 3

# Payload of a full-size packet.
SEGMENT_BYTES = 1460


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
    return median_run([sparelane_run(row) for _ in range(SPARELANE_RUNS)])


def sparelane_run(row: Row) -> Speed:
    """Run sparelane once."""
    sparelane = Path(sys.executable).with_name("sparelane")
    if not sparelane.exists():
        raise PeersError(f"{sparelane} does not exist: install the project into this environment first")
    answer = WORK / "sparelane.json"
    command = [str(sparelane), "bench", str(WORK / f"{row.workload}.topo"), "--duration", f"{row.simulated_s:g}s"]
    command += ["--json", str(answer)]
    if row.ssthresh_packets is not None:
        command += ["--ssthresh", str(row.ssthresh_packets)]
    must_run(command, f"sparelane failed on {row.workload}")
    return speed_from(answer.read_text(encoding="utf-8"), f"sparelane on {row.workload}")


def htsim_pairs(row: Row, program: Path, rounds: int) -> HtsimPairs:
    """Run htsim and sparelane in turn on one core, `rounds` times each."""
    base, threshold = str(WORK / row.workload), str(row.ssthresh_packets or 0)
    command = [str(program), base, f"{row.simulated_s:g}", threshold]
    results = []
    with on_one_core():
        for _ in range(rounds):
            answer = must_run(command, f"htsim failed on {row.workload}")
            results.append(Round(speed_from(answer, f"htsim on {row.workload}"), sparelane_run(row)))
    return HtsimPairs(tuple(results), delivered_packets(row))


def delivered_packets(row: Row) -> int:
    """Return the number of full-size packets that sparelane's receivers get in order."""
    from sparelane.simulation import bench, simulate

    scenario = bench.scenario_text(WORK / f"{row.workload}.topo", f"{row.simulated_s:g}s", row.ssthresh_packets)
    flows = simulate.prepare(scenario, threads=1).run().flows
    return sum(-(-delivered_bytes // SEGMENT_BYTES) for delivered_bytes in flows["delivered_bytes"])


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and those that it starts, on one core. Has an effect on Linux only."""
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


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
            delivered_packets=int(fields["delivered_packets"]) if "delivered_packets" in fields else None,
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise PeersError(f"cannot parse the output of {source} ({error!r}): {text.strip()[:300]}") from error
