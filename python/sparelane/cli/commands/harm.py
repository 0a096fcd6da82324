"""`sparelane harm`: measures how much a transfer slows a concurrent TCP flow."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from sparelane import _native
from sparelane._native import WireError
from sparelane.cli.commands.wire_options import options_of, wire_options
from sparelane.cli.main import Incomplete
from sparelane.common import percentiles
from sparelane.emulation import namespaces
from sparelane.wire import addresses, harm

SPARELANE = [sys.executable, "-c", "from sparelane.cli.main import main; main()"]


@click.command("harm")
@wire_options("harm")
@click.option("--serve", metavar="ADDR:PORT", help="Serve as the far end of the TCP flow until stopped; needs no keys.")
@click.option("--tcp", metavar="HOST:PORT", help="Far end of the TCP flow: a host with --serve.")
@click.option("--local", is_flag=True, help="Measure between two network namespaces of this machine (as root).")
@click.option(
    "--rate",
    "mbps",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="Rate of the --local path, Mb/s.",
)
@click.option(
    "--round-trip",
    "round_trip_ms",
    type=click.FloatRange(0, 1000),
    default=0.0,
    help="Round-trip delay of the --local path, ms.",
)
@click.option("--fifo", is_flag=True, help="Use one queue without priorities on the --local path.")
@click.option("--tcp-cc", "controller", default="cubic", show_default=True, help="Congestion control of the TCP flow.")
@click.option("--other-cc", "other", help="Congestion control of the second TCP flow.  [default: that of --tcp-cc]")
@click.option(
    "--seconds", type=click.FloatRange(0.5, 3600), default=5.0, show_default=True, help="Seconds per measurement."
)
@click.option("--rounds", type=click.IntRange(1, 100), default=2, show_default=True, help="Number of repetitions.")
@click.option(
    "--most-loss",
    type=click.FloatRange(0, 100),
    help="Exit with 3 if the tail costs TCP more than this percentage of its throughput.",
)
@click.option(
    "--most-delay",
    type=click.FloatRange(0),
    help="Exit with 3 if the tail adds more than this many ms to the p99 round-trip time.",
)
@click.argument("to", metavar="HOST[:PORT]", required=False)
def command(
    to: str | None,
    keys: str,
    trust: tuple[str, ...],
    as_json: bool,
    serve: str | None,
    tcp: str | None,
    local: bool,
    mbps: int,
    round_trip_ms: float,
    fifo: bool,
    controller: str,
    other: str | None,
    seconds: float,
    rounds: int,
    most_loss: float | None,
    most_delay: float | None,
    **given: Any,
) -> None:
    """Measure how much a transfer to the receiver at HOST slows a concurrent TCP flow of the kernel.

    On the far host, run `sparelane recv`, and `sparelane harm --serve ADDR:PORT` as the far end of the TCP flow; --tcp
    gives its address here. With --local, all of them run on a path that the command creates. The head of a transfer
    takes a share of the path like any other flow. --most-loss and --most-delay limit what the tail costs in addition,
    or what the whole transfer costs if it has no tail.
    """
    if serve is not None:
        harm.sink(serve, partial(_announce, as_json))
    peer = None if to is None else addresses.peer(to)
    options = options_of(given, peer)
    if local:
        # Everything is checked before namespaces are created.
        options.check()
        harm.check_controllers(controller, other or controller)
        path = partial(namespaces.hosts, mbps, priorities=not fifo, round_trip_s=round_trip_ms * 1e-3)
        report = _locally(path, given=given, extra=_flow_options(controller, other, seconds, rounds))
    else:
        if peer is None or tcp is None:
            raise click.UsageError("allowed: HOST with --tcp, or --local, or --serve")
        measured = harm.measure(
            peer.address,
            tcp,
            keys=keys,
            trust=trust,
            peer=peer.fingerprint,
            options=options,
            controller=controller,
            other=other,
            seconds=seconds,
            rounds=rounds,
        )
        report = {
            **asdict(measured),
            "lost_share": measured.lost_share,
            "more_than_tcp": measured.more_than_tcp,
            "added_p99_s": measured.added_p99_s,
            "tail_lost_share": measured.tail_lost_share,
            "tail_added_p99_s": measured.tail_added_p99_s,
            "judged": measured.judged,
        }
    if as_json:
        click.echo(json.dumps(report))
    else:
        _show(report)
    # A transfer without a tail is judged as a whole.
    who = "transfer" if report["beside_head"] is None else "tail"
    lost, added_s = report["judged"]
    if most_loss is not None and lost * 100 > most_loss:
        raise Incomplete(f"the {who} costs {lost:.1%} of the TCP flow's throughput, more than {most_loss} %")
    if most_delay is not None and added_s is None:
        raise Incomplete(
            f"--most-delay needs {percentiles.fewest(0.99)} samples for a 99th percentile, and there were fewer: "
            "raise --seconds or --rounds"
        )
    if most_delay is not None and added_s * 1e3 > most_delay:
        raise Incomplete(f"the {who} adds {added_s * 1e3:.1f} ms at the 99th percentile, more than {most_delay} ms")


def _announce(as_json: bool, address: str) -> None:
    """Prints the address of the far end of the TCP flow."""
    click.echo(json.dumps({"event": "listening", "address": address}) if as_json else f"listening at {address}")


def _flow_options(controller: str, other: str | None, seconds: float, rounds: int) -> list[str]:
    """Returns the options of the inner command that describe the TCP flows."""
    flows = ["--tcp-cc", controller, "--other-cc", other or controller]
    return [*flows, "--seconds", str(seconds), "--rounds", str(rounds), "--json"]


def _show(report: dict[str, Any]) -> None:
    click.echo(f"{'':>21}  {'throughput':>14}  {'median RTT':>10}  {'p99 RTT':>10}  retransmitted")
    names = {
        "alone": "alone",
        "beside_tcp": "with another TCP flow",
        "beside_head": "with the head only",
        "beside": "with the transfer",
    }
    for key, name in names.items():
        row = report[key]
        if row is None:
            continue
        click.echo(
            f"{name:>21}  {row['bps'] / 1e6:9.2f} Mb/s  {row['rtt_median_s'] * 1e3:7.2f} ms"
            f"  {_ms(row['rtt_p99_s']):>10}  {row['retransmitted']:13}"
        )
    click.echo(f"the transfer moved {report['transfer_bps'] / 1e6:.2f} Mb/s")
    click.echo(
        f"the TCP flow loses {report['lost_share']:.1%} of its throughput"
        + (
            f", and its 99th percentile grows by {_ms(report['added_p99_s'])}"
            if report["added_p99_s"] is not None
            else f"; the 99th percentile needs {percentiles.fewest(0.99)} samples: raise --seconds or --rounds"
        )
    )
    share = report["more_than_tcp"]
    click.echo(f"its throughput is {abs(share):.1%} {'lower' if share > 0 else 'higher'} than with another TCP flow")
    if report["beside_head"] is not None:
        click.echo(
            f"in addition to the head, the tail costs {report['tail_lost_share']:.1%} of the throughput alone, and "
            f"{_ms(report['tail_added_p99_s'])} at the 99th percentile"
        )


def _ms(seconds: float | None) -> str:
    """Formats seconds as milliseconds; a dash for `None`."""
    return "–" if seconds is None else f"{seconds * 1e3:.2f} ms"


def _locally(
    path: Callable[[], AbstractContextManager[namespaces.Hosts]], *, given: dict[str, Any], extra: list[str]
) -> dict[str, Any]:
    """Runs the receiver, the far end of the TCP flow and the measurement between two namespaces.

    Returns:
        The JSON report of the measurement.
    """
    why_not = namespaces.missing()
    if why_not is not None:
        raise WireError(f"--local {why_not}")
    with tempfile.TemporaryDirectory() as folder, path() as ends:
        prints = {side: _native.new_key(str(Path(folder, side))) for side in ("sender", "receiver")}
        Path(folder, "to").mkdir()
        at = f"{namespaces.RECEIVER}:0"
        receiver = ["recv", "--keys", f"{folder}/receiver", "--trust", prints["sender"], "--listen", at, "--json"]
        # Each measurement ends its transfer early. The receiver would warn about that each time.
        receiver += ["--log-level", "error"]
        processes = []
        try:
            addresses = []
            for line in ([*receiver, "-o", f"{folder}/to"], ["harm", "--serve", at, "--json"]):
                words = ends.measured(ends.receiver, *SPARELANE, *line)
                process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
                processes.append(process)
                assert process.stdout is not None
                # The first line of both programs has their address, since they listen on a free port.
                addresses.append(json.loads(process.stdout.readline())["address"])
            own = ["--keys", f"{folder}/sender", "--trust", prints["receiver"], "--tcp", addresses[1], *extra]
            own += ["--cc", options_of(given).controller, "--unmarked", given["unmarked"]]
            own += [word for key, value in given["settings"].items() for word in ("--set", f"{key}={value}")]
            words = ends.measured(ends.sender, *SPARELANE, "harm", *own, addresses[0])
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise WireError(done.stderr.strip().removeprefix("sparelane: "))
            report: dict[str, Any] = json.loads(done.stdout)
            return report
        finally:
            for process in processes:
                process.kill()
                process.wait()
