"""`sparelane bench`: measures the speed of the simulator."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from sparelane.common import folders
from sparelane.simulation import bench, simulate
from sparelane.terminal.streams import STREAMS

# The number of times that each workload runs on one thread and on several.
ROUNDS = 5


@click.command("bench")
@click.argument("workloads", metavar="[WORKLOAD.topo]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "duration", "--duration", metavar="TIME", help="Simulated time, such as 50ms; 0s only builds the network."
)
@click.option(
    "ssthresh",
    "--ssthresh",
    type=click.IntRange(min=2),
    metavar="SEGMENTS",
    help="Initial slow-start threshold.  [default: unbounded]",
)
@click.option(
    "ladder",
    "--ladder",
    is_flag=True,
    help="Run fat trees of 8 to 64 ports at the same load. The column later is the time of a hop in the second half.",
)
@click.option(
    "million",
    "--million",
    is_flag=True,
    help="Open a million flows at once in a fat tree of 65,536 hosts, for 2 us or --duration. Needs 3 GB of memory.",
)
@click.option(
    "threads",
    "--threads",
    type=click.IntRange(2, simulate.MAX_THREADS),
    help="Compare large networks on this many threads with one thread. The column separate is the ratio of as many "
    "separate runs at the same time, which the machine allows.",
)
@click.option("json_file", "--json", type=click.Path(path_type=Path, dir_okay=False), help="File for the timings.")
def command(
    workloads: tuple[Path, ...],
    duration: str | None,
    ssthresh: int | None,
    ladder: bool,
    million: bool,
    threads: int | None,
    json_file: Path | None,
) -> None:
    """Time the simulator on workloads. Each is a .topo file, with its .flows file in the same folder.

    Without arguments, the three standard workloads run: dumbbell10 for 10 s with a slow-start threshold of 400
    segments, abilene30 for 2 s, and leafspine for 50 ms. TCP is NewReno with SACK, segments of 1460 bytes, an initial
    window of 4, an ACK per packet, drop-tail queues, a retransmission timeout of at least 0.2 s, and a SYN timeout of
    1 s.
    """
    if json_file is not None:
        folders.ready_file(json_file)
    if threads is not None:
        if workloads or ssthresh is not None or duration is not None or ladder or million:
            raise click.UsageError("--threads has its own workloads; allowed: --json")
        _run_on_threads(threads, json_file)
        return
    if ladder or million:
        if workloads or ssthresh is not None or (ladder and million):
            option = "--ladder" if ladder else "--million"
            raise click.UsageError(f"{option} has its own workloads; allowed: --duration and --json")
        if ladder:
            _run_ladder(duration, json_file)
        else:
            _run_million(duration, json_file)
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


def _run_on_threads(threads: int, json_file: Path | None) -> None:
    click.echo(f"{'workload':<18} domains  1 thread, s  {threads} threads, s  ratio  separate  digests")
    speedups: list[bench.Speedup] = []
    with tempfile.TemporaryDirectory(prefix="sparelane-") as scratch:
        for name, (scenario, settings) in bench.threaded_workloads(Path(scratch)).items():
            one = bench.speedup(name, scenario, settings, threads, ROUNDS)
            speedups.append(one)
            _keep(speedups, json_file)
            alone_s, together_s = statistics.median(one.alone_s), statistics.median(one.together_s)
            digests = "equal" if one.have_equal_digests else "DIFFERENT"
            click.echo(
                f"{name:<18} {one.domains:>7} {alone_s:>12.3f} {together_s:>13.3f} {one.ratio:>6.2f} "
                f"{one.separate_ratio:>9.2f}  {digests}"
            )
            if STREAMS.is_unread and json_file is None:
                break


def _run_ladder(duration: str | None, json_file: Path | None) -> None:
    click.echo("ports   hosts    links     flows packet-hops build s   CPU s ns/hop  later MB peak")
    timings_of_trees: list[bench.FatTreeTiming] = []
    for ports, usual in bench.LADDER.items():
        tree = bench.measure_fat_tree(ports, usual if duration is None else duration)
        timings_of_trees.append(tree)
        _keep(timings_of_trees, json_file)
        timing = tree.timing
        per_hop_ns = 1e9 * timing.cpu_s / timing.packet_hops if timing.packet_hops else 0.0
        later_ns = "-" if tree.further_hop_ns is None else f"{tree.further_hop_ns:.1f}"
        click.echo(
            f"{tree.ports:>5} {tree.hosts:>7,} {tree.links:>8,} {tree.flows:>9,} {timing.packet_hops:>11,} "
            f"{tree.build_s:>7.2f} {timing.cpu_s:>7.2f} {per_hop_ns:>6.1f} {later_ns:>6} {timing.peak_rss_mb:>7.1f}"
        )
        if STREAMS.is_unread and json_file is None:
            break


def _run_million(duration: str | None, json_file: Path | None) -> None:
    one = bench.measure_open_flows(bench.MILLION, duration)
    _keep([one], json_file)
    timing = one.timing
    speed = timing.packet_hops / timing.cpu_s / 1e6 if timing.cpu_s > 0 else 0.0
    click.echo(f"fat tree of {one.ports} ports, {one.hosts:,} hosts, {one.open_flows:,} flows open at once")
    click.echo(f"build  {one.build_s:8.2f} s wall {one.built_mb:10.1f} MB peak")
    click.echo(
        f"run    {timing.wall_s:8.2f} s wall {timing.peak_rss_mb:10.1f} MB peak {timing.cpu_s:8.2f} s CPU "
        f"{timing.packet_hops:,} packet-hops {speed:.2f} M packet-hops per CPU second"
    )


def _duration(topology: Path, given: str | None) -> str:
    """The simulated time of a workload.

    Raises:
        FileNotFoundError: one of its two files does not exist.
        UsageError: the workload has no standard duration, and none is given.
    """
    for path in (topology, topology.with_suffix(".flows")):
        if not path.is_file():
            raise FileNotFoundError(f'there is no file "{path}"')
    duration = given
    if duration is None:
        duration = bench.STANDARDS.get(topology.stem, bench.Standard(None, None)).duration
    if duration is None:
        raise click.UsageError(f'"{topology.stem}" has no standard duration: set --duration, such as --duration 1s')
    return duration


def _print(timing: bench.Timing) -> None:
    speed = timing.packet_hops / timing.cpu_s / 1e6 if timing.cpu_s > 0 else 0.0
    click.echo(
        f"{timing.workload:<14} {timing.events:>13,} events {timing.packet_hops:>13,} packet-hops "
        f"{timing.cpu_s:8.3f} s CPU {timing.wall_s:8.3f} s wall {timing.peak_rss_mb:8.1f} MB peak "
        f"{speed:7.2f} M packet-hops per CPU second"
    )


def _keep(
    timings: Sequence[bench.Timing | bench.FatTreeTiming | bench.OpenFlowsTiming | bench.Speedup], path: Path | None
) -> None:
    """Writes the timings so far to the file, if one is given."""
    if path is None:
        return
    STREAMS.saved(f"the timings are saved in {path}")
    text = json.dumps([timing.to_json() for timing in timings], indent=2)
    folders.replaced(path, lambda place: place.write_text(text + "\n", encoding="utf-8"))
