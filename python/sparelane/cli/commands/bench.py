"""`sparelane bench`: how fast the simulator is."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from sparelane.common import folders
from sparelane.simulation import bench
from sparelane.terminal.streams import STREAMS


@click.command("bench")
@click.argument("workloads", metavar="[WORKLOAD.topo]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("duration", "--duration", metavar="TIME", help="Simulated time, as in 50ms; 0s only builds.")
@click.option(
    "ssthresh",
    "--ssthresh",
    type=click.IntRange(min=2),
    metavar="SEGMENTS",
    help="Initial slow-start threshold.  [default: unbounded]",
)
@click.option("ladder", "--ladder", is_flag=True, help="Fat trees of 8 to 64 ports instead, at the same load.")
@click.option(
    "json_file", "--json", type=click.Path(path_type=Path, dir_okay=False), help="Write the timings to this file."
)
def command(
    workloads: tuple[Path, ...], duration: str | None, ssthresh: int | None, ladder: bool, json_file: Path | None
) -> None:
    """Time the simulator on workloads: each .topo file with the .flows beside it.

    Without arguments the three standard workloads run: dumbbell10 for 10 s with a slow-start threshold of 400 segments,
    abilene30 for 2 s, and leafspine for 50 ms. TCP is NewReno with SACK, segments of 1460 bytes, an initial window of
    4, an ACK per packet, drop-tail queues, a retransmission timeout of at least 0.2 s, and a SYN timeout of 1 s.
    """
    if json_file is not None:
        folders.ready_file(json_file)
    if ladder:
        if workloads or ssthresh is not None:
            raise click.UsageError("--ladder has workloads of its own; it goes with --duration and --json alone")
        _climb(duration, json_file)
        return
    timings: list[bench.Timing] = []
    with tempfile.TemporaryDirectory(prefix="sparelane-") as scratch:
        chosen = workloads or bench.standard_workloads(Path(scratch))
        # All workloads are checked before the first is timed.
        durations = [_duration(topology, duration) for topology in chosen]
        for topology, length in zip(chosen, durations, strict=True):
            standard = bench.STANDARDS.get(topology.stem, bench.Standard(None, None))
            timings.append(
                bench.measure(topology, length, standard.ssthresh_segments if ssthresh is None else ssthresh)
            )
            _keep(timings, json_file)
            _print(timings[-1])
            if STREAMS.is_unread and json_file is None:
                break


def _climb(duration: str | None, json_file: Path | None) -> None:
    click.echo("ports    hosts     links     flows  packet-hops   build s     CPU s  ns a hop    MB peak")
    rungs: list[bench.Rung] = []
    for ports, usual in bench.LADDER.items():
        rung = bench.climb(ports, usual if duration is None else duration)
        rungs.append(rung)
        _keep(rungs, json_file)
        timing = rung.timing
        per_hop_ns = 1e9 * timing.cpu_s / timing.packet_hops if timing.packet_hops else 0.0
        click.echo(
            f"{rung.ports:>5} {rung.hosts:>8,} {rung.links:>9,} {rung.flows:>9,} {timing.packet_hops:>12,} "
            f"{rung.build_s:>9.2f} {timing.cpu_s:>9.2f} {per_hop_ns:>9.1f} {timing.peak_rss_mb:>10.1f}"
        )
        if STREAMS.is_unread and json_file is None:
            break


def _duration(topology: Path, given: str | None) -> str:
    """The simulated time of a workload, whose files are there."""
    for path in (topology, topology.with_suffix(".flows")):
        if not path.is_file():
            raise FileNotFoundError(f'there is no file "{path}"')
    duration = given
    if duration is None:
        duration = bench.STANDARDS.get(topology.stem, bench.Standard(None, None)).duration
    if duration is None:
        raise click.UsageError(f'"{topology.stem}" has no standard length: say --duration, as in --duration 1s')
    return duration


def _print(timing: bench.Timing) -> None:
    speed = timing.packet_hops / timing.cpu_s / 1e6 if timing.cpu_s > 0 else 0.0
    click.echo(
        f"{timing.workload:<14} {timing.events:>13,} events {timing.packet_hops:>13,} packet-hops "
        f"{timing.cpu_s:8.3f} s CPU {timing.wall_s:8.3f} s wall {timing.peak_rss_mb:8.1f} MB peak "
        f"{speed:7.2f} M packet-hops per CPU second"
    )


def _keep(timings: Sequence[bench.Timing | bench.Rung], path: Path | None) -> None:
    """Writes what there is so far, if a file is asked for."""
    if path is None:
        return
    STREAMS.saved(f"the timings are saved in {path}")
    text = json.dumps([timing.to_json() for timing in timings], indent=2)
    folders.replaced(path, lambda place: place.write_text(text + "\n", encoding="utf-8"))
