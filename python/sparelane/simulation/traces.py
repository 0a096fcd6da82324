"""Parses requests for packet traces, such as `--trace flow=3,port=core-1`.

Traces are pcapng files and, for flows, qlog files.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native

# Recorded bytes of each packet, which cover its headers.
SNAP_BYTES = 96

# The largest number of packets or events in a trace, about 150 MB.
MOST = 1_000_000

KEYS = ("flow", "port", "snap", "count")


class TraceError(Exception):
    """A requested trace is impossible. The message states the reason and what is allowed."""


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces to record in a run.

    Attributes:
        flows: numbers of flows, in order of start. Flow 3 is written to `flow-3.pcapng`, recorded at the sending host,
            and to `flow-3.sqlog`.
        ports: names of ports: `west:east`, written to `port-west-east.pcapng`, or `west` for all ports of a node.
        snap_bytes: recorded bytes of each packet.
        most: the largest number of packets or events in each trace.
    """

    flows: tuple[int, ...] = ()
    ports: tuple[str, ...] = ()
    snap_bytes: int = SNAP_BYTES
    most: int = MOST

    def requests(self, folder: Path) -> list[_native.TraceRequest]:
        """The traces in the form of the simulator, with files in this folder."""
        requests = [(kind, str(flow), f"flow-{flow}.{end}") for flow in self.flows for kind, end in SUFFIXES]
        requests += [("port", port, f"port-{file_name(port)}.pcapng") for port in self.ports]
        return [
            {"kind": kind, "of": of, "path": str(folder / name), "snap_bytes": self.snap_bytes, "most": self.most}
            for kind, of, name in requests
        ]


SUFFIXES = (("flow", "pcapng"), ("qlog", "sqlog"))


def file_name(port: str) -> str:
    """The name of a port as part of a file name."""
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in port)


def parse(text: str) -> Traces:
    """Parses a text such as `flow=3,port=core-1,snap=96,count=1000`. `flow` and `port` can be repeated.

    Raises:
        TraceError: the text does not have this form.
    """
    flows: list[int] = []
    ports: list[str] = []
    numbers = {"snap": SNAP_BYTES, "count": MOST}
    bounds = {"snap": (40, 65535), "count": (1, 1_000_000_000), "flow": (0, 2**32 - 1)}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if key not in KEYS or not equals:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise TraceError(f'--trace "{part}": unknown; allowed: {", ".join(f"{name}=..." for name in KEYS)}{hint}')
        if key == "port":
            ports.append(value)
            continue
        low, high = bounds[key]
        if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
            raise TraceError(f'--trace "{part}": not allowed; allowed: a whole number from {low} to {high}')
        if key == "flow":
            flows.append(int(value))
        else:
            numbers[key] = int(value)
    if not flows and not ports:
        raise TraceError(f'--trace "{text}": nothing to trace; allowed: flow=NUMBER, port=NODE or port=NODE:NEXT')
    return Traces(tuple(dict.fromkeys(flows)), tuple(dict.fromkeys(ports)), numbers["snap"], numbers["count"])
