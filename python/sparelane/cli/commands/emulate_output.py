"""What `sparelane emulate` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from sparelane._native import EmulationError
from sparelane.common import percentiles
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    import polars as pl

    from sparelane.emulation.emulator import Network, Outcome, SelfTest


@dataclass(frozen=True, slots=True)
class Asked:
    """A command to run at a host."""

    host: str
    words: tuple[str, ...]


def say_ready(network: Network, commands: Sequence[Asked], *, as_json: bool) -> None:
    """Says what this machine keeps, and which hosts there are."""
    test = network.self_test
    if test is None:
        raise EmulationError("there was no self-test")
    if as_json:
        hosts = [asdict(host) for host in network.hosts]
        click.echo(json.dumps({"event": "ready", "hosts": hosts, "self_test": asdict(test)}))
        return
    terminal.warn(network.warnings)
    click.echo(self_test_text(test))
    for host in network.hosts:
        click.echo(f"{host.name}: {host.address}, ip netns exec {host.namespace} COMMAND")
    if not commands:
        click.echo("the network is there until Ctrl-C")
    sys.stdout.flush()


def self_test_text(test: SelfTest) -> str:
    """The self-test in a line for people."""
    return (
        f"this machine keeps {_mbps(test.rate_bps)} ({test.packets_per_s / 1e3:,.0f} thousand packets a second at "
        f"most), and delays to {_us(test.delay_error_median_s)} (median) and {_us(test.delay_error_p99_s)} (99th "
        f"percentile); asked for: {_mbps(test.asked_bps)}, {_us(test.allowed_delay_error_s)}"
        + ("" if test.is_realtime else "; other programs may go before the network's packets")
    )


def say_outcome(outcome: Outcome, commands: Sequence[Asked], codes: Sequence[int], *, as_json: bool) -> None:
    """Says what the links counted."""
    counts = outcome.counts
    if as_json:
        ran = [
            {"host": asked.host, "command": list(asked.words), "exit": code}
            for asked, code in zip(commands, codes, strict=False)
        ]
        tables = {"links": outcome.links.to_dicts(), "classes": outcome.classes.to_dicts()}
        click.echo(json.dumps({"event": "finished", "commands": ran, "counts": counts, **tables}))
        return
    _say_table(outcome.links)
    _say_table(outcome.classes)
    click.echo(
        f"{counts['packets_from_hosts']:,} packets came from hosts, {counts['packets_to_hosts']:,} went to hosts, "
        f"{counts['dropped_packets']:,} were dropped or lost; they were late by {_us(counts['late_median_s'])} "
        f"(median), {_p99(counts)} (99th percentile), {_us(counts['late_max_s'])} (most)"
    )
    for name, text in (
        ("missed_packets", "were lost before the network saw them: programs sent faster than this machine carries"),
        ("overflowed_packets", "were dropped for want of memory, and not by a queue"),
        ("refused_packets", "were not taken by the kernel of their host"),
        ("foreign_packets", "were for no host of the network, or not IPv4, and went nowhere"),
    ):
        if counts[name]:
            click.echo(f"note: {counts[name]:,} packets {text}", err=True)


def _p99(counts: Mapping[str, float]) -> str:
    """The 99th percentile of lateness, or a dash for too few packets."""
    found = percentiles.if_enough(counts["late_p99_s"], 0.99, int(counts["packets_to_hosts"]))
    return "–" if found is None else _us(found)


def _say_table(table: pl.DataFrame) -> None:
    rows = [table.columns, *([str(value) for value in row] for row in table.rows())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    for row in rows:
        click.echo("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:,.0f} Mb/s" if bps >= 1e8 else f"{bps / 1e6:.3g} Mb/s"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} us"
