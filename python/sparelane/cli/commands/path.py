"""`sparelane path`: measures how the path to a receiver treats the classes of packets."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from sparelane.cli.commands.wire_options import options_of, wire_options
from sparelane.wire import addresses
from sparelane.wire import path as wire_path

VERDICTS = {
    "priorities": "The path gives lower classes worse service, so a low-priority tail does not harm other traffic.",
    "one queue": "The path has one queue for all classes, so a low-priority tail takes capacity from other traffic.",
    "marks lost": "The path changes the DSCP of lower classes, so transfers send no tail unless --unmarked is set.",
    "unknown": "The service of the lower classes could not be determined.",
}


@click.command("path")
@wire_options("path")
@click.option(
    "--load",
    "load_s",
    type=click.FloatRange(0, 60),
    default=1.0,
    show_default=True,
    help="Duration of the load, seconds; 0 for none.",
)
@click.option("--load-rate", default="1Gbps", show_default=True, metavar="RATE", help="Highest rate of the load.")
@click.argument("to", metavar="HOST[:PORT]")
def command(
    to: str,
    keys: str,
    trust: tuple[str, ...],
    as_json: bool,
    load_s: float,
    load_rate: str,
    **given: Any,
) -> None:
    """Measure the path to the receiver at HOST, which is an address or an alias of hosts.toml.

    Prints whether the path preserves the DSCP of each class, and whether it gives the lower classes worse service. To
    find out, the command loads class 1 slightly above the path's rate for a second, and sends small packets of all
    classes at the same time. On a path without lower classes this load disturbs other traffic; --load 0 skips it.
    """
    peer = addresses.peer(to)
    report = wire_path.measure(
        peer.address,
        keys=keys,
        trust=trust,
        peer=peer.fingerprint,
        options=options_of(given, peer),
        load_s=load_s,
        most_rate=load_rate,
    )
    if as_json:
        click.echo(json.dumps({**asdict(report), "verdict": report.verdict}))
        return
    rows = [["class", "DSCP", "mark", "served", "min", "median", "p99", "loss", "loaded", "p99", "loss"]]
    for row in report.classes:
        mark = f"becomes {row.arrives_as}" if row.mark == "changed" else row.mark
        cells = [str(row.number), str(row.dscp), mark, row.served]
        cells += [_ms(row.idle.min_s), _ms(row.idle.median_s), _ms(row.idle.p99_s), f"{row.idle.loss:.1%}"]
        if row.loaded is not None:
            cells += [_ms(row.loaded.median_s), _ms(row.loaded.p99_s), f"{row.loaded.loss:.1%}"]
        rows.append(cells)
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
    for cells in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False)))
    click.echo(f"rate {_mbps(report.rate_bps)}, tail {_mbps(report.tail_bps)}, packets of {report.mtu_bytes} bytes")
    if report.load_bps is not None:
        click.echo(f"load in class 1: {_mbps(report.load_bps)} sent, {_mbps(report.arrived_bps)} arrived")
    answers = {True: "yes", False: "no"}
    click.echo(f"batches on this host: sent: {answers[report.gso]}; received: {answers[report.gro]}")
    click.echo(VERDICTS[report.verdict])


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g} ms"


def _mbps(bps: int | None) -> str:
    return "unknown" if bps is None else f"{bps / 1e6:,.0f} Mb/s" if bps >= 1e8 else f"{bps / 1e6:.3g} Mb/s"
