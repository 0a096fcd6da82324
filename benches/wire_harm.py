"""What a transfer costs TCP flows of the kernel beside it, beside what one more TCP flow costs them.

The head of a transfer is a flow like any other and takes a share. So each setting is measured under RC3, and under the
controller of its head alone: what the tail adds is the difference.
"""

import itertools
import json
import subprocess
import sys
from typing import Any

from wire_transfers import of_kernel, say

from sparelane._native import WireError

SPARELANE = [sys.executable, "-c", "from sparelane.cli import main; main()"]

MBPS, ROUND_TRIP_MS = 50, 20

QUEUES = {"priorities": [], "one queue": ["--fifo"]}
FLOWS = ("cubic", "bbr")
TRANSFERS = ("rc3", "cubic")

# What a tail may cost where the path has priorities: percent of throughput, and milliseconds of the 99th percentile.
MOST_LOST, MOST_ADDED_MS = 1.0, 1.0

HEADINGS = (
    "queue",
    "flow",
    "transfer",
    "alone",
    "p99",
    "beside TCP",
    "p99",
    "beside it",
    "p99",
    "it moves",
    "flow loses",
)


def one(queue: str, flow: str, transfer: str, seconds: float) -> dict[str, Any]:
    """What `sparelane harm` says of one setting."""
    line = ["harm", "--local", "--json", "--rate", str(MBPS), "--round-trip", str(ROUND_TRIP_MS), "--tcp-cc", flow]
    line += ["--cc", transfer, "--seconds", str(seconds), "--rounds", "2", *QUEUES[queue]]
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=60 + 12 * seconds, check=False)
    if done.returncode != 0:
        raise WireError(done.stderr.strip())
    told: dict[str, Any] = json.loads(done.stdout)
    return {"queue": queue, "flow": flow, "transfer": transfer, **told}


def cells(row: dict[str, Any]) -> list[str]:
    """A line of the table."""
    line = [row["queue"], row["flow"], row["transfer"]]
    for turn in ("alone", "beside_tcp", "beside"):
        line += [f"{row[turn]['bps'] / 1e6:.2f} Mb/s", f"{row[turn]['rtt_p99_s'] * 1e3:.1f} ms"]
    return [*line, f"{row['transfer_bps'] / 1e6:.2f} Mb/s", f"{row['lost_share']:.1%}"]


def of_tail(with_tail: dict[str, Any], without: dict[str, Any]) -> str:
    """What the tail adds to what its head costs: of the throughput the flow has alone, and at its 99th percentile."""
    lost = 100 * (without["beside"]["bps"] - with_tail["beside"]["bps"]) / with_tail["alone"]["bps"]
    added_ms = 1e3 * (with_tail["beside"]["rtt_p99_s"] - without["beside"]["rtt_p99_s"])
    told = (
        f"{with_tail['queue']}, {with_tail['flow']}: the tail costs {lost:.1f} % of the throughput, {added_ms:.1f} ms"
    )
    if with_tail["queue"] != "priorities":
        return told
    is_met = lost <= MOST_LOST and added_ms <= MOST_ADDED_MS
    return f"{told}; at most {MOST_LOST:g} % and {MOST_ADDED_MS:g} ms: {'met' if is_met else 'MISSED'}"


def measure(seconds: float) -> list[dict[str, Any]]:
    """Measures and prints all settings.

    Raises:
        WireError: one of them cannot be measured.
    """
    say(f"\nTCP flows of the kernel beside a transfer, {MBPS} Mb/s, {ROUND_TRIP_MS} ms, turns of {seconds:g} s")
    available = of_kernel()
    for flow in FLOWS:
        if flow not in available:
            say(f"{flow} is left out: this kernel has no such congestion control")
    flows = [flow for flow in FLOWS if flow in available]
    rows = [one(*setting, seconds) for setting in itertools.product(QUEUES, flows, TRANSFERS)]
    table = [list(HEADINGS), *(cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(HEADINGS))]
    for line in table:
        say("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    by_setting = {(row["queue"], row["flow"], row["transfer"]): row for row in rows}
    for queue, flow in itertools.product(QUEUES, flows):
        say(of_tail(by_setting[queue, flow, "rc3"], by_setting[queue, flow, "cubic"]))
    return rows
