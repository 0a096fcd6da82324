"""Traces of packets, as other programs read them: what `--trace flow=3,port=core-1` asks for."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native

# Bytes that are kept of a packet: its headers.
SNAP_BYTES = 96

# Packets, or events, that a trace has at most: some 150 MB.
MOST = 1_000_000

KEYS = ("flow", "port", "snap", "count")


class TraceError(Exception):
    """A trace that cannot be: the message says what is wrong, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces to make in a run.

    Attributes:
        flows: numbers of flows in order of start: `flow-3.pcapng` at the sender's host, and `flow-3.sqlog`.
        ports: names of ports, `west:east`, or `west` for all ports of a node: `port-west-east.pcapng`.
        snap_bytes: bytes that are kept of a packet.
        most: packets, or events, that each trace has at most.
    """

    flows: tuple[int, ...] = ()
    ports: tuple[str, ...] = ()
    snap_bytes: int = SNAP_BYTES
    most: int = MOST

    def asked(self, folder: Path) -> list[_native.TraceRequest]:
        """As the simulator takes them, with files in this folder."""
        asked = [(kind, str(flow), f"flow-{flow}.{end}") for flow in self.flows for kind, end in ENDINGS]
        asked += [("port", port, f"port-{file_name(port)}.pcapng") for port in self.ports]
        return [
            {"kind": kind, "of": of, "path": str(folder / name), "snap_bytes": self.snap_bytes, "most": self.most}
            for kind, of, name in asked
        ]


ENDINGS = (("flow", "pcapng"), ("qlog", "sqlog"))


def file_name(port: str) -> str:
    """A port's name as a part of a file's."""
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in port)


def parse(text: str) -> Traces:
    """What `flow=3,port=core-1,snap=96,count=1000` asks for; `flow` and `port` can be repeated.

    Raises:
        TraceError: it is not of this form.
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
