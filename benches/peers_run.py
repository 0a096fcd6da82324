"""Running the two simulators for `peers.py`: ns-3, installed and compiled the first time, and sparelane."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import workloads
from peers_rows import Completion, PeersError, Row, Speed

FOLDER = Path(__file__).resolve().parent
WORK = workloads.DEFAULT_FOLDER
SEED = 1

NS3_VERSION = "3.44.post0"
NS3_LIBRARY_PREFIX = "ns3.44-"
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "traffic-control", "stats", "bridge")
NS3_VENV = WORK / "ns3-venv"
NS3_SOURCE = FOLDER / "ns3_peer.cc"
NS3_PROGRAM = WORK / "ns3_peer"

COMPLETION_SCENARIO = FOLDER / "peers_abilene.toml"

# ns-3 3.44 looks for lost segments in time that grows with the square of the window: where many are lost, as on
# abilene30 after half a second, single events take a tenth of a second. A run that takes longer than this is given up.
NS3_LIMIT_S = 1800

# A run of sparelane can be shorter than the noise of the machine: the median of this many is reported.
SPARELANE_RUNS = 3


def ns3_package() -> Path:
    """The folder of the installed ns-3, with `include` and `lib64`; installs it the first time."""
    if not list(NS3_VENV.glob(f"lib/python*/site-packages/ns3-{NS3_VERSION}.dist-info")):
        say(f"installing ns-3 {NS3_VERSION} into {NS3_VENV}")
        hint = "it has wheels for Linux on x86-64 and CPython 3.11 to 3.13, and needs the package index to be in reach"
        must_run([sys.executable, "-m", "venv", "--clear", str(NS3_VENV)], f"cannot make {NS3_VENV}")
        # Without its dependencies: they only serve ns-3's Python bindings, and take long to build.
        pip = [str(NS3_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wheel = ["--no-deps", "--only-binary", ":all:", f"ns3=={NS3_VERSION}"]
        must_run([*pip, *wheel], f"cannot install ns-3 {NS3_VERSION}: {hint}")
    return next(NS3_VENV.glob("lib/python*/site-packages/ns3"))


def build_ns3_program() -> None:
    """Compile `ns3_peer.cc`, unless the program is newer than its source and than ns-3."""
    package = ns3_package()
    if NS3_PROGRAM.exists() and NS3_PROGRAM.stat().st_mtime > max(
        path.stat().st_mtime for path in (NS3_SOURCE, package)
    ):
        return
    compiler = shutil.which("g++")
    if compiler is None:
        raise PeersError("there is no g++, which ns-3's side of the comparison needs; on Debian: apt install g++")
    say(f"compiling {NS3_SOURCE.name}")
    libraries = package / "lib64"
    unfinished = NS3_PROGRAM.with_suffix(".new")
    must_run(
        [
            *(compiler, "-std=c++20", "-O3", "-march=native"),
            # As the package was built; ns-3's headers depend on it.
            *("-DNS3_LOG_ENABLE", "-DNS3_ASSERT_ENABLE", "-DNS3_BUILD_PROFILE_RELEASE"),
            *("-isystem", str(package / "include"), str(NS3_SOURCE), "-o", str(unfinished)),
            *(f"-L{libraries}", *(f"-l{NS3_LIBRARY_PREFIX}{name}" for name in NS3_LIBRARIES)),
            # ns-3's libraries find each other through the program's search path; only an old-style one reaches them.
            *(f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags"),
        ],
        f"cannot compile {NS3_SOURCE.name}",
    )
    unfinished.replace(NS3_PROGRAM)


def ns3_speed(row: Row) -> Speed | None:
    """Run ns-3 once; leaves the completion times in `completions_file`. `None` when it takes longer than we wait."""
    command = [str(NS3_PROGRAM), f"--base={WORK / row.workload}", f"--duration={row.simulated_s}"]
    command += [f"--ssthresh={row.ssthresh_packets or 0}", f"--fct={completions_file(row)}"]
    try:
        answer = must_run(command, f"ns-3 failed on {row.workload}", limit_s=NS3_LIMIT_S)
    except subprocess.TimeoutExpired:
        say(f"{row.workload}: ns-3 is given up after {NS3_LIMIT_S} s")
        return None
    return speed_from(answer, f"ns-3 on {row.workload}")


def completions_file(row: Row) -> Path:
    """Where ns-3 leaves the completion times of one row."""
    return WORK / f"{row.workload}-{row.simulated_s:g}s-ns3.csv"


def ns3_fct(row: Row) -> list[Completion]:
    """All flows of one row in ns-3, in order of start."""
    with completions_file(row).open(encoding="ascii", newline="") as file:
        flows = [(int(line["bytes"]), int(line["fct_ns"])) for line in csv.DictReader(file)]
    return [Completion(size_bytes, fct_ns / 1e9 if fct_ns >= 0 else None) for size_bytes, fct_ns in flows]


def sparelane_speed(row: Row) -> Speed:
    """Run sparelane a few times; of them, the one with the median CPU time."""
    sparelane = Path(sys.executable).with_name("sparelane")
    if not sparelane.exists():
        raise PeersError(f"there is no {sparelane}: install the project into this environment first")
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
    """The flows of one row of `COMPLETION_WORKLOAD` in sparelane, in order of start, if before the end."""
    import sparelane

    result = sparelane.run(COMPLETION_SCENARIO, seed=SEED, set={"duration": f"{row.simulated_s:g}s"})
    flows = result.flows.select("size_bytes", "completion_s").iter_rows()
    return [Completion(size_bytes, completion_s) for size_bytes, completion_s in flows]


def must_run(command: Sequence[str], failure: str, limit_s: float | None = None) -> str:
    """Run a program; its standard output. Raises with `failure` and the end of what it said when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise PeersError(f"{failure} (exit status {done.returncode})\n{said}")
    return done.stdout


def speed_from(text: str, source: str) -> Speed:
    """What a simulator wrote as JSON: an object, or a list of one."""
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
        raise PeersError(f"{source} answered what cannot be understood ({error!r}): {text.strip()[:300]}") from error


def say(what: str) -> None:
    """Tell a person what goes on."""
    print(f"bench-peers: {what}", file=sys.stderr, flush=True)
