"""Measure the harm of a transfer to the kernel's TCP flows, compared with the harm of one more TCP flow.

The head of a transfer takes its share of the path as any flow does. `sparelane harm` therefore measures each setting
with the transfer and with its head alone, alternately; the difference is the harm of the tail. The shares of two
competing flows vary randomly by a few percent, which is more than the tail may cost. A head with a constant window
avoids this variation, so the targets apply to that transfer. The other transfer shows the usual case.
"""

import itertools
import json
import subprocess
import sys
from typing import Any

from wire_transfers import kernel_congestion_controls, say

from sparelane._native import WireError

SPARELANE = [sys.executable, "-c", "from sparelane.cli.main import main; main()"]

MBPS, ROUND_TRIP_MS = 50, 20

QUEUES = {"priorities": [], "one queue": ["--fifo"]}
FLOWS = ("cubic", "bbr")
# The options of each transfer.
TRANSFERS = {
    "rc3": ["--cc", "rc3"],
    "rc3, 4 segments": ["--cc", "rc3", "--set", "inner=constant", "--set", "inner.window=4"],
}
TARGETED = "rc3, 4 segments"

# The targets for a tail on a path with priorities: loss of throughput in percent, and added p99 delay in ms.
MAX_LOST_PERCENT, MAX_ADDED_MS = 1.0, 1.0

HEADINGS = (
    "queue",
    "flow",
    "transfer",
    "alone",
    "p99",
    "with CUBIC",
    "p99",
    "with its head",
    "p99",
    "with transfer",
    "p99",
    "transfer rate",
    "flow loss",
)


def measure_setting(queue: str, flow: str, transfer: str, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the result of `sparelane harm` for one setting."""
    line = ["harm", "--local", "--json", "--rate", str(MBPS), "--round-trip", str(ROUND_TRIP_MS), "--tcp-cc", flow]
    line += ["--other-cc", "cubic", "--seconds", str(seconds), "--rounds", str(rounds)]
    line += [*TRANSFERS[transfer], *QUEUES[queue]]
    limit_s = 60 + rounds * (25 + 8 * seconds)
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=limit_s, check=False)
    if done.returncode != 0:
        raise WireError(done.stderr.strip())
    result: dict[str, Any] = json.loads(done.stdout)
    return {"queue": queue, "flow": flow, "transfer": transfer, **result}


def cells(row: dict[str, Any]) -> list[str]:
    """Return a line of the table."""
    line = [row["queue"], row["flow"], row["transfer"]]
    for turn in ("alone", "beside_tcp", "beside_head", "beside"):
        line += [f"{row[turn]['bps'] / 1e6:.2f} Mb/s", f"{row[turn]['rtt_p99_s'] * 1e3:.1f} ms"]
    return [*line, f"{row['transfer_bps'] / 1e6:.2f} Mb/s", f"{row['lost_share']:.1%}"]


def describe_tail(row: dict[str, Any]) -> str:
    """Describe the harm of the tail: the loss relative to the throughput without transfer, and the added p99 delay."""
    lost, added_ms = 100 * row["tail_lost_share"], 1e3 * row["tail_added_p99_s"]
    queue, flow, transfer = (row[key] for key in ("queue", "flow", "transfer"))
    text = f"{queue}, {flow}, {transfer}: the tail costs {lost:.1f} % of the throughput, {added_ms:.1f} ms"
    if queue != "priorities":
        one_more, beside = (row[turn]["bps"] / 1e6 for turn in ("beside_tcp", "beside"))
        left = f"it leaves {beside:.1f} Mb/s; target: at least as with one more CUBIC flow, {one_more:.1f}"
        return f"{text}; {left}: {'met' if beside >= one_more else 'MISSED'}"
    if transfer != TARGETED:
        return text
    is_met = lost <= MAX_LOST_PERCENT and added_ms <= MAX_ADDED_MS
    return f"{text}; at most {MAX_LOST_PERCENT:g} % and {MAX_ADDED_MS:g} ms: {'met' if is_met else 'MISSED'}"


def measure(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Measure and print all settings.

    Raises:
        WireError: A setting cannot be measured.
    """
    say(f"\nTCP flows of the kernel with a transfer, {MBPS} Mb/s, {ROUND_TRIP_MS} ms, {rounds} rounds of {seconds:g} s")
    available = kernel_congestion_controls()
    for flow in FLOWS:
        if flow not in available:
            say(f"{flow} is skipped: this kernel does not have this congestion control")
    flows = [flow for flow in FLOWS if flow in available]
    rows = [measure_setting(*setting, seconds, rounds) for setting in itertools.product(QUEUES, flows, TRANSFERS)]
    table = [list(HEADINGS), *(cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(HEADINGS))]
    for line in table:
        say("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    for row in rows:
        say(describe_tail(row))
    return rows
