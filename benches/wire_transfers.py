"""Times of transfers between namespaces: ours, a plain stream of QUIC, and the kernel's TCP, by turns on one path."""

import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from sparelane._native import WireError
from sparelane.emulation.namespaces import RECEIVER, Hosts, ahead, hosts

EXAMPLE = Path(__file__).parent.parent / "target/release/examples/wire"

# The path of the times in virtual time: 100 Mb/s, 40 ms, 350 packets of each class.
MBPS, ROUND_TRIP_S, PACKETS = 100, 0.04, 350

# Bytes, and the share of packets that is lost.
CASES = ((1_700_000, 0.0), (20_000_000, 0.0), (1_700_000, 0.01))

# A tail that "insists" does not yield where class 0 waits; with "/1" no batches are sent.
NAMES = (
    *("rc3", "rc3+insists", "rc3/bbr", "cubic", "bbr", "bbr/1"),
    *("stream-cubic", "stream-bbr", "tcp-cubic", "tcp-bbr"),
)

# Whom RC3 is held against below the table.
BESIDE = ("stream-cubic", "tcp-cubic", "tcp-bbr")

# The slowest transfer ends within a minute, or says that it does not.
LIMIT_S = 90


@dataclass(slots=True)
class Times:
    """Seconds of the transfers of one kind, in the order of their rounds, and why others gave none."""

    name: str
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, ends: Hosts, size_bytes: int) -> None:
        """One transfer more."""
        seconds, why_not = once(ends, self.name, size_bytes)
        if seconds is None:
            self.failures.append(why_not)
        else:
            self.seconds.append(seconds)

    def cell(self) -> str:
        """The median, the least and the most in milliseconds."""
        if not self.seconds:
            return "-"
        low, middle, high = (1e3 * of(self.seconds) for of in (min, median, max))
        return f"{middle:.0f} ({low:.0f} to {high:.0f})"

    def failed(self) -> str:
        """How many gave no time, and why the first did not; empty where all did."""
        return f"  {len(self.failures)} failed: {self.failures[0]}" if self.failures else ""


def of_kernel() -> list[str]:
    """The congestion controls that this kernel has, loaded or built in."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def names_here(available: list[str]) -> list[str]:
    """Who can be measured on a kernel that has these congestion controls."""
    return [name for name in NAMES if not name.startswith("tcp-") or name.removeprefix("tcp-") in available]


def once(ends: Hosts, name: str, size_bytes: int) -> tuple[float | None, str]:
    """Seconds of one transfer, or none and why."""
    line = [*ahead(), str(EXAMPLE), "namespaces", ends.sender, ends.receiver, RECEIVER, str(size_bytes), name]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"not done within {LIMIT_S} s"
    if done.returncode != 0:
        return None, done.stderr.strip()
    return float(done.stdout.split()[1]), ""


def case(size_bytes: int, loss: float, rounds: int, names: list[str]) -> tuple[list[Times], Hosts]:
    """All kinds in turn, so many times, on one path."""
    times = [Times(name) for name in names]
    with hosts(MBPS, priorities=True, packets=PACKETS, round_trip_s=ROUND_TRIP_S, loss=loss) as ends:
        for _ in range(rounds):
            for row in times:
                row.add(ends, size_bytes)
    return times, ends


def ratios(times: list[Times]) -> str:
    """The median of RC3 beside those of others."""
    medians = {row.name: median(row.seconds) for row in times if row.seconds}
    if "rc3" not in medians:
        return "no transfer by rc3"
    told = [f"{name} {medians['rc3'] / medians[name]:.2f}" for name in BESIDE if name in medians]
    return "rc3 takes of the time of " + ", ".join(told)


def measure(rounds: int) -> list[dict[str, object]]:
    """Measures and prints all cases.

    Raises:
        WireError: the example is not compiled, or there can be no such path.
    """
    if not EXAMPLE.exists():
        raise WireError("the transfers need `cargo build --release -p sparelane-net --example wire`")
    names = names_here(of_kernel())
    for name in NAMES:
        if name not in names:
            say(f"{name} is left out: this kernel has no such congestion control")
    told: list[dict[str, object]] = []
    for size_bytes, loss in CASES:
        times, ends = case(size_bytes, loss, rounds, names)
        say(
            f"\n{size_bytes / 1e6:g} MB at {MBPS} Mb/s, {ROUND_TRIP_S * 1e3:.0f} ms, loss {loss:.0%}, between"
            f" namespaces: milliseconds, median of {rounds} (least to most)"
        )
        for row in times:
            say(f"{row.name:>14}  {row.cell():>24}{row.failed()}")
        say(ratios(times))
        for carried in ends.carried:
            p99 = "–" if carried.late_p99_s is None else f"{carried.late_p99_s * 1e3:.1f}"
            late = f"{carried.late_median_s * 1e3:.2f} ms late in the median, {p99} at the 99th percentile"
            say(f"{carried.packets} packets were held, {late}; {carried.refused} more were refused")
        told.append({"bytes": size_bytes, "loss": loss, "times": [asdict(row) for row in times]})
    return told


def say(text: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
