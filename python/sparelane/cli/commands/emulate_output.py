"""The output of `sparelane emulate`, as text or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from sparelane._native import EmulationError
from sparelane.common import percentiles
from sparelane.terminal import console

if TYPE_CHECKING:
    import polars as pl

    from sparelane.emulation.emulator import Network, Outcome, SelfTest


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command to run at a host."""

    host: str
    arguments: tuple[str, ...]


def print_ready(network: Network, commands: Sequence[HostCommand], *, as_json: bool) -> None:
    """Prints the self-test and the hosts with their addresses."""
    test = network.self_test
    if test is None:
        raise EmulationError("there was no self-test")
    if as_json:
        hosts = [asdict(host) for host in network.hosts]
        click.echo(json.dumps({"event": "ready", "hosts": hosts, "self_test": asdict(test)}))
        return
    console.warn(network.warnings)
    click.echo(self_test_text(test))
    for host in network.hosts:
        click.echo(f"{host.name}: {host.address}, ip netns exec {host.namespace} COMMAND")
    if not commands:
        click.echo("the network runs until Ctrl-C")
    sys.stdout.flush()


def self_test_text(test: SelfTest) -> str:
    """The self-test in one line."""
    return (
        f"this machine sustains {_mbps(test.rate_bps)} (at most {test.packets_per_s / 1e3:,.0f} thousand packets per "
        f"second), with delay errors of {_us(test.delay_error_median_s)} (median) and {_us(test.delay_error_p99_s)} "
        f"(99th percentile); required: {_mbps(test.asked_bps)}, {_us(test.allowed_delay_error_s)}"
        + ("" if test.is_realtime else "; no real-time priority, so other programs may delay packets")
    )


def print_outcome(outcome: Outcome, commands: Sequence[HostCommand], codes: Sequence[int], *, as_json: bool) -> None:
    """Prints the counters of links and classes, and how late packets were."""
    counts = outcome.counts
    if as_json:
        ran = [
            {"host": one.host, "command": list(one.arguments), "exit": code}
            for one, code in zip(commands, codes, strict=False)
        ]
        tables = {"links": outcome.links.to_dicts(), "classes": outcome.classes.to_dicts()}
        click.echo(json.dumps({"event": "finished", "commands": ran, "counts": counts, **tables}))
        return
    _print_table(outcome.links)
    _print_table(outcome.classes)
    click.echo(
        f"{counts['packets_from_hosts']:,} packets came from hosts, {counts['packets_to_hosts']:,} went to hosts, "
        f"{counts['dropped_packets']:,} were dropped or lost; lateness: {_us(counts['late_median_s'])} (median), "
        f"{_p99(counts)} (99th percentile), {_us(counts['late_max_s'])} (maximum)"
    )
    for name, text in (
        ("missed_packets", "were lost before they entered the network: programs sent more than this machine sustains"),
        ("overflowed_packets", "were dropped since memory ran out, not by a queue"),
        ("refused_packets", "were refused by the kernel of their host"),
        ("foreign_packets", "were discarded, since they were not IPv4 or not addressed to a host of the network"),
    ):
        if counts[name]:
            click.echo(f"note: {counts[name]:,} packets {text}", err=True)


def _p99(counts: Mapping[str, float]) -> str:
    """The 99th percentile of lateness as text; a dash if there are too few packets."""
    found = percentiles.if_enough(counts["late_p99_s"], 0.99, int(counts["packets_to_hosts"]))
    return "–" if found is None else _us(found)


def _print_table(table: pl.DataFrame) -> None:
    rows = [table.columns, *([str(value) for value in row] for row in table.rows())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    for row in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:,.0f} Mb/s" if bps >= 1e8 else f"{bps / 1e6:.3g} Mb/s"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} us"
