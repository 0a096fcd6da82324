"""Measure transfer times between namespaces: ours, a plain QUIC stream and the kernel's TCP, alternately on a path."""

import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from sparelane._native import WireError
from sparelane.emulation.namespaces import RECEIVER, Hosts, hosts, realtime_prefix

EXAMPLE = Path(__file__).parent.parent / "target/release/examples/wire"

# The same path as in virtual time: 100 Mb/s, 40 ms, 350 packets per class.
MBPS, ROUND_TRIP_S, PACKETS = 100, 0.04, 350

# Transfer size in bytes, and loss rate.
CASES = ((1_700_000, 0.0), (20_000_000, 0.0), (1_700_000, 0.01))

# A tail that "insists" does not yield to waiting class-0 data; "/1" disables batches.
NAMES = (
    *("rc3", "rc3+insists", "rc3/bbr", "cubic", "bbr", "bbr/1"),
    *("stream-cubic", "stream-bbr", "tcp-cubic", "tcp-bbr"),
)

# The schemes with which RC3 is compared below the table.
COMPARED = ("stream-cubic", "tcp-cubic", "tcp-bbr")

# The example limits a transfer to a minute.
LIMIT_S = 90


@dataclass(slots=True)
class Times:
    """The times of the transfers of one kind in seconds, in order of rounds, and the reasons of failures."""

    name: str
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, ends: Hosts, size_bytes: int) -> None:
        """Run one more transfer."""
        seconds, reason = run_once(ends, self.name, size_bytes)
        if seconds is None:
            self.failures.append(reason)
        else:
            self.seconds.append(seconds)

    def cell(self) -> str:
        """Format the median, the minimum and the maximum in ms."""
        if not self.seconds:
            return "-"
        low, middle, high = (1e3 * of(self.seconds) for of in (min, median, max))
        return f"{middle:.0f} ({low:.0f} to {high:.0f})"

    def failed(self) -> str:
        """Format the number of failures and the reason of the first; empty without failures."""
        return f"  {len(self.failures)} failed: {self.failures[0]}" if self.failures else ""


def kernel_congestion_controls() -> list[str]:
    """Return the congestion controls of this kernel, loaded or built in."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def measurable_names(available: list[str]) -> list[str]:
    """Return the names that can be measured with the kernel's `available` congestion controls."""
    return [name for name in NAMES if not name.startswith("tcp-") or name.removeprefix("tcp-") in available]


def run_once(ends: Hosts, name: str, size_bytes: int) -> tuple[float | None, str]:
    """Return the time of one transfer in seconds, or `None` and the reason of the failure."""
    line = [*realtime_prefix(), str(EXAMPLE), "namespaces", ends.sender, ends.receiver, RECEIVER, str(size_bytes), name]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"not complete after {LIMIT_S} s"
    if done.returncode != 0:
        return None, done.stderr.strip()
    return float(done.stdout.split()[1]), ""


def case(size_bytes: int, loss: float, rounds: int, names: list[str]) -> tuple[list[Times], Hosts]:
    """Run all kinds alternately on one path, `rounds` times."""
    times = [Times(name) for name in names]
    with hosts(MBPS, priorities=True, packets=PACKETS, round_trip_s=ROUND_TRIP_S, loss=loss) as ends:
        for _ in range(rounds):
            for row in times:
                row.add(ends, size_bytes)
    return times, ends


def ratios(times: list[Times]) -> str:
    """Format the ratios of RC3's median time to those of other schemes."""
    medians = {row.name: median(row.seconds) for row in times if row.seconds}
    if "rc3" not in medians:
        return "no transfer with rc3"
    ratios = [f"{name} {medians['rc3'] / medians[name]:.2f}" for name in COMPARED if name in medians]
    return "time of rc3 relative to " + ", ".join(ratios)


def measure(rounds: int) -> list[dict[str, object]]:
    """Measure and print all cases.

    Raises:
        WireError: The example is not compiled, or the path cannot be created.
    """
    if not EXAMPLE.exists():
        raise WireError("the transfers need `cargo build --release -p sparelane-net --example wire`")
    names = measurable_names(kernel_congestion_controls())
    for name in NAMES:
        if name not in names:
            say(f"{name} is skipped: this kernel does not have this congestion control")
    results: list[dict[str, object]] = []
    for size_bytes, loss in CASES:
        times, ends = case(size_bytes, loss, rounds, names)
        say(
            f"\n{size_bytes / 1e6:g} MB at {MBPS} Mb/s, {ROUND_TRIP_S * 1e3:.0f} ms, loss {loss:.0%}, between"
            f" namespaces, in ms: median of {rounds} (minimum to maximum)"
        )
        for row in times:
            say(f"{row.name:>14}  {row.cell():>24}{row.failed()}")
        say(ratios(times))
        for counts in ends.counts:
            p99 = "–" if counts.late_p99_s is None else f"{counts.late_p99_s * 1e3:.1f}"
            late = f"late by {counts.late_median_s * 1e3:.2f} ms (median), {p99} ms (p99)"
            say(f"{counts.packets} packets were delayed, {late}; {counts.refused} were dropped")
        results.append({"bytes": size_bytes, "loss": loss, "times": [asdict(row) for row in times]})
    return results


def say(text: str) -> None:
    """Print a line immediately."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
