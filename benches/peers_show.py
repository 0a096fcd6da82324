"""The tables and the JSON output of `peers.py`."""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ns3_build import NS3_VERSION
from peers_rows import (
    CLAIMED_TIMES_HTSIM,
    CLAIMED_TIMES_HTSIM_LISTED,
    CLAIMED_TIMES_NS3,
    BucketComparison,
    Comparison,
    HtsimPairs,
    Row,
)
from rich import box
from rich.console import Console
from rich.table import Table


def speed_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of speeds and verdicts."""
    table = _table(
        "Speed in million packet-hops per CPU second, and relative to other simulators",
        ("workload", "simulated", "sparelane", "ns-3", "x ns-3", "x ns-3 optimised*", "x htsim*", "x htsim"),
    )
    table.add_column("claim", justify="left")
    for c in comparisons:
        table.add_row(
            c.row.workload,
            seconds(c.row.simulated_s),
            number(c.sparelane.mhops_per_s, 2),
            number(c.ns3.mhops_per_s if c.ns3 else None, 4),
            number(c.times_ns3, 0),
            _times_listed(c.times_ns3_listed, (c.row.ns3_listed,)),
            _times_listed(c.times_htsim_listed, c.row.htsim_listed or ()),
            number(c.times_htsim, 1),
            c.verdict(),
        )
    return table


def htsim_table(pairs_of_rows: Sequence[tuple[Row, HtsimPairs]]) -> Table:
    """Return the table of the rounds with htsim: speeds, ratios, and the work and memory of both."""
    table = _table(
        "htsim in the same run: speed in million packet-hops per CPU second",
        ("workload", "simulated", "rounds", "sparelane", "htsim", "ratio", "range of ratios"),
    )
    for heading in ("packet-hops", "htsim", "delivered packets", "htsim", "MB", "htsim"):
        table.add_column(heading, justify="right")
    for row, pairs in pairs_of_rows:
        ours, theirs = pairs.sparelane, pairs.htsim
        table.add_row(
            row.workload,
            seconds(row.simulated_s),
            number(len(pairs.rounds), 0),
            number(ours.mhops_per_s, 2),
            number(theirs.mhops_per_s, 2),
            number(statistics.median(pairs.ratios), 2),
            f"{number(pairs.ratios[0], 2)} to {number(pairs.ratios[-1], 2)}",
            number(ours.packet_hops, 0),
            number(theirs.packet_hops, 0),
            number(pairs.sparelane_delivered_packets, 0),
            number(theirs.delivered_packets, 0),
            number(ours.peak_rss_mb, 1),
            number(theirs.peak_rss_mb, 1),
        )
    return table


def size_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of packet-hops, events and peak memory."""
    table = _table(
        "Work and peak memory",
        ("workload", "simulated", "packet-hops", "ns-3", "events", "ns-3", "MB", "ns-3"),
    )
    for c in comparisons:
        ours, theirs = c.sparelane, c.ns3
        table.add_row(
            c.row.workload,
            seconds(c.row.simulated_s),
            number(ours.packet_hops, 0),
            number(theirs.packet_hops if theirs else None, 0),
            number(ours.events, 0),
            number(theirs.events if theirs else None, 0),
            number(ours.peak_rss_mb, 1),
            number(theirs.peak_rss_mb if theirs else None, 1),
        )
    return table


def completion_table(buckets: Sequence[BucketComparison], row: Row) -> Table:
    """Return the table of completion times in both simulators."""
    table = _table(
        f"Mean completion time on {row.workload}, {seconds(row.simulated_s)}: flows that finish in both",
        ("size", "flows", "sparelane, ms", "ns-3, ms", "sparelane / ns-3", "difference", "median ratio per flow"),
    )
    for b in buckets:
        table.add_row(
            b.bucket,
            number(b.flows, 0),
            number(b.sparelane_mean_s and b.sparelane_mean_s * 1e3, 3),
            number(b.ns3_mean_s and b.ns3_mean_s * 1e3, 3),
            number(b.mean_ratio, 4),
            f"{(b.mean_ratio - 1) * 100:+.2f} %" if b.mean_ratio else "–",
            number(b.median_ratio, 4),
        )
    return table


def show(
    comparisons: Sequence[Comparison], buckets: Sequence[BucketComparison], completion_row: Row, commit: str | None
) -> None:
    """Print all tables. `commit` is the measured commit of htsim, or `None` if htsim did not run."""
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(speed_table(comparisons))
    console.print(
        f"  Claim: at least {CLAIMED_TIMES_NS3:g} x ns-3, as run and optimised, and {CLAIMED_TIMES_HTSIM:g} x htsim in"
        f" the same run, or {CLAIMED_TIMES_HTSIM_LISTED:g} x its listed speed.\n"
        "  * Listed speed, measured on another machine. The ns-3 run here has assertions enabled, which makes it\n"
        "    1.6 to 1.8 times slower than an optimised build.\n"
    )
    if commit is None:
        console.print(
            "  htsim did not run, so its listed speeds are used. With --htsim FOLDER, it runs beside sparelane.\n"
        )
    else:
        console.print(htsim_table([(c.row, c.pairs) for c in comparisons if c.pairs]))
        console.print(
            f"  csg-htsim at commit {commit}. In each round, htsim and sparelane run one after the other on one core.\n"
            "  Speeds are those of the runs with the median CPU time, and the ratio is the median over the rounds.\n"
            "  htsim has no SACK, a minimum timeout of 250 ms, and another choice among equal paths.\n"
        )
    console.print(size_table(comparisons))
    console.print(
        "  ns-3 counts a packet-hop at the start of a transmission, sparelane at the arrival of the packet. ns-3 also\n"
        "  closes its connections, which sparelane does not.\n"
    )
    console.print(completion_table(buckets, completion_row))


def write_json(
    path: Path,
    comparisons: Sequence[Comparison],
    buckets: Sequence[BucketComparison],
    completion_row: Row,
    commit: str | None,
) -> None:
    """Write all results as JSON. `commit` is the measured commit of htsim, or `None` if htsim did not run."""
    document = {
        "ns3_version": NS3_VERSION,
        "htsim_commit": commit,
        "claim": {
            "times_htsim": CLAIMED_TIMES_HTSIM,
            "times_htsim_listed": CLAIMED_TIMES_HTSIM_LISTED,
            "times_ns3": CLAIMED_TIMES_NS3,
        },
        "rows": [
            asdict(c)
            | {
                "times_ns3": c.times_ns3,
                "times_ns3_listed": c.times_ns3_listed,
                "times_htsim": c.times_htsim,
                "times_htsim_listed": c.times_htsim_listed,
                "misses": c.misses(),
            }
            for c in comparisons
        ],
        "completion_times": {
            "workload": completion_row.workload,
            "simulated_s": completion_row.simulated_s,
            "buckets": [asdict(b) for b in buckets],
        },
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index == 0 else "right")
    return table


def _times_listed(times: float | None, listed: Sequence[float | None]) -> str:
    """Format a ratio to a listed speed together with that speed, which can be a range."""
    speeds = " to ".join(f"{speed:g}" for speed in dict.fromkeys(listed) if speed is not None)
    return f"{times:,.1f} (of {speeds})" if times is not None else "–"


def number(value: float | None, decimals: int) -> str:
    """Format a number; `None` gives a dash."""
    return "–" if value is None else f"{value:,.{decimals}f}"


def seconds(value_s: float) -> str:
    """Format a time in s or ms."""
    return f"{value_s:g} s" if value_s >= 0.1 else f"{value_s * 1e3:g} ms"
