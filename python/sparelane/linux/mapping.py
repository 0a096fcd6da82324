"""A scenario as the network of Linux that does the same: what cannot be mapped is refused by name."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sparelane import units
from sparelane._native import ScenarioError

# The kernel's name of each controller that it has.
CONTROLLERS = {
    "newreno": "reno",
    "cubic": "cubic",
    "bic": "bic",
    "highspeed": "highspeed",
    "scalable": "scalable",
    "h-tcp": "htcp",
    "hybla": "hybla",
    "dctcp": "dctcp",
    "bbr": "bbr",
    "vegas": "vegas",
    "illinois": "illinois",
    "westwood": "westwood",
    "veno": "veno",
    "yeah": "yeah",
    "lp": "lp",
    "cdg": "cdg",
}
# Payload of a full segment, and the segment with its header of IP and TCP, bytes.
MSS = 1460
PACKET = 1500
# The kernel counts the header of Ethernet, which scenarios have none of, bytes.
ETHERNET = 14
MOST_PAIRS = 200
# What a scenario may have at its top.
TABLES = (
    "title",
    "source",
    "duration",
    "seed",
    "topology",
    "link",
    "queue",
    "transport",
    "scheme",
    "workload",
    "sample",
)
MOST_FLOWS = 1000


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow: `size_bytes` is none where it has no end."""

    scheme: str
    controller: str
    source: str
    target: str
    size_bytes: int | None
    start_ns: int


@dataclass(frozen=True, slots=True)
class Queue:
    """The output queue of a bottleneck: `words` are its parameters as `tc` takes them."""

    kind: str
    limit_packets: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """A dumbbell with its flows; rates in bits per second, delays in nanoseconds, one way."""

    pairs: int
    access_bps: int
    access_ns: int
    bottleneck_bps: int
    bottleneck_ns: int
    loss: float
    queue: Queue
    ecn: bool
    flows: tuple[Flow, ...]
    duration_ns: int
    sample_ns: int | None
    sampled: tuple[int, ...]


class _Reader:
    """Reads the tables of a scenario; messages name the file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def refuse(self, what: str, allowed: str) -> ScenarioError:
        return ScenarioError(f"{self.file}: {what}: --on linux cannot do it; allowed: {allowed}")

    def only(self, table: dict[str, Any], name: str, keys: Collection[str]) -> None:
        """Refuses the first key of a table that is none of `keys`."""
        for key in table:
            if key not in keys:
                raise self.refuse(f"{name}.{key}" if name else key, ", ".join(sorted(keys)))

    def number(self, value: object, key: str, unit: str) -> float:
        """A value with its unit, as a number in the unit of results."""
        read = units.read(value if isinstance(value, str) else repr(value))
        if read is None or read[1] != unit:
            raise self.refuse(f"{key} = {value!r}", f"a number of {unit or 'no unit'}")
        return read[0]

    def nanoseconds(self, value: object, key: str) -> int:
        return round(self.number(value, key, "s") * 1e9)


def with_settings(text: str, settings: Sequence[str]) -> dict[str, Any]:
    """The tables of a scenario that the parser has accepted, with values replaced as `--set` does."""
    tables: dict[str, Any] = tomllib.loads(text)
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            parsed: object = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = value
        *path, last = key.strip().split(".")
        for table in _reached(tables, path):
            if isinstance(table, list):
                table[int(last)] = parsed
            else:
                table[last] = parsed
    return tables


def _reached(table: Any, path: Sequence[str]) -> list[Any]:
    """The tables at a path; where it names no entry of a list, all of the entries."""
    if isinstance(table, list) and (not path or not path[0].isdigit()):
        return [found for entry in table for found in _reached(entry, path)]
    if not path:
        return [table]
    if isinstance(table, list):
        return _reached(table[int(path[0])], path[1:])
    return _reached(table.setdefault(path[0], {}), path[1:])


def network(tables: dict[str, Any], file: str) -> Network:
    """The network of a scenario that is valid.

    Raises:
        ScenarioError: Linux cannot do it here; names the first key.
    """
    read = _Reader(file)
    read.only(tables, "", TABLES)
    topology = tables["topology"]
    if topology["kind"] != "dumbbell":
        raise read.refuse(f"topology.kind = {topology['kind']!r}", "dumbbell")
    pairs = topology.get("pairs", 1)
    if pairs > MOST_PAIRS:
        raise read.refuse(f"topology.pairs = {pairs}", f"up to {MOST_PAIRS}")
    rates = [
        round(read.number(topology.get(key, default), f"topology.{key}", "bit/s"))
        for key, default in (("access_rate", "1Gbps"), ("bottleneck_rate", "100Mbps"))
    ]
    delays = [
        read.nanoseconds(topology.get(key, default), f"topology.{key}")
        for key, default in (("access_delay", "1ms"), ("bottleneck_delay", "18ms"))
    ]
    bdp = min(rates) / 8 * 2 * (2 * delays[0] + delays[1]) / 1e9
    transport = tables.get("transport", {})
    read.only(transport, "transport", ("preset", "ecn"))
    if transport.get("preset", "linux") != "linux":
        raise read.refuse(f"transport.preset = {transport['preset']!r}", "linux")
    sample = tables.get("sample", {})
    flows = _flows(read, tables, pairs, bdp)
    for key in ("queues", "links"):
        if sample.get(key):
            raise read.refuse(f"sample.{key}", f"flows (--set sample.{key}=[])")
    return Network(
        pairs=pairs,
        access_bps=rates[0],
        access_ns=delays[0],
        bottleneck_bps=rates[1],
        bottleneck_ns=delays[1],
        loss=_loss(read, tables.get("link", [])),
        queue=_queue(read, tables.get("queue", {}), bdp),
        ecn=transport.get("ecn", "off") not in ("off", False) or any(flow.controller == "dctcp" for flow in flows),
        flows=flows,
        duration_ns=read.nanoseconds(tables["duration"], "duration"),
        sample_ns=read.nanoseconds(sample.get("interval", "10ms"), "sample.interval") if sample.get("flows") else None,
        sampled=tuple(sample.get("flows", ())),
    )


def _flows(read: _Reader, tables: dict[str, Any], pairs: int, bdp: float) -> tuple[Flow, ...]:
    schemes = {}
    for name, scheme in tables["scheme"].items():
        read.only(scheme, f"scheme.{name}", ("controller",))
        if scheme["controller"] not in CONTROLLERS:
            raise read.refuse(f"scheme.{name}.controller = {scheme['controller']!r}", ", ".join(CONTROLLERS))
        schemes[name] = CONTROLLERS[scheme["controller"]]
    workloads = tables["workload"]
    flows = []
    for number, workload in enumerate([workloads] if isinstance(workloads, dict) else workloads):
        name = f"workload.{number}"
        if workload["kind"] != "bulk":
            raise read.refuse(f"{name}.kind = {workload['kind']!r}", "bulk")
        read.only(workload, name, ("kind", "scheme", "pairs", "size", "start"))
        hosts = workload.get("pairs", "halves")
        if hosts == "halves":
            hosts = [[f"left{pair}", f"right{pair}"] for pair in range(pairs)]
        if isinstance(hosts, str):
            raise read.refuse(f"{name}.pairs = {hosts!r}", 'halves, or a list such as [["left0", "right0"]]')
        size = _bytes(read, workload.get("size", "unlimited"), f"{name}.size", MSS, bdp)
        start = read.nanoseconds(workload.get("start", "0s"), f"{name}.start")
        scheme = workload.get("scheme", next(iter(schemes)))
        for source, target in hosts:
            if source[:-1].rstrip("0123456789") == target[:-1].rstrip("0123456789"):
                raise read.refuse(f"{name}.pairs: {source} to {target}", "pairs of a left and a right host")
            flows.append(Flow(scheme, schemes[scheme], source, target, size, start))
    if len(flows) > MOST_FLOWS:
        raise read.refuse(f"{len(flows)} flows", f"up to {MOST_FLOWS}")
    return tuple(sorted(flows, key=lambda flow: flow.start_ns))


def _bytes(read: _Reader, value: object, key: str, packet: int, bdp: float) -> int | None:
    if value == "unlimited":
        return None
    text = value if isinstance(value, str) else f"{value}B"
    found = units.read(text)
    scale = {"B": 1.0, "packets": float(packet), "bdp": bdp}
    if found is None or found[1] not in scale:
        raise read.refuse(f"{key} = {value!r}", "bytes, packets or bdp")
    return max(1, round(found[0] * scale[found[1]]))


def _loss(read: _Reader, links: Any) -> float:
    loss = 0.0
    for number, link in enumerate([links] if isinstance(links, dict) else links):
        name = f"link.{number}"
        read.only(link, name, ("select", "between", "loss"))
        if link.get("select", "core") != "core" or sorted(link.get("between", ["east", "west"])) != ["east", "west"]:
            raise read.refuse(name, 'select = "core"')
        loss = read.number(link.get("loss", 0), f"{name}.loss", "")
    return loss


def _queue(read: _Reader, table: dict[str, Any], bdp: float) -> Queue:
    kind = table.get("kind", "fifo")
    limit = _bytes(read, table.get("limit", "1bdp"), "queue.limit", PACKET, bdp) or 1
    packets = max(1, limit // PACKET)
    common = ("kind", "limit")
    if kind == "fifo":
        read.only(table, "queue", common)
        return Queue(kind, packets, ())
    ecn = ("ecn",) if table.get("ecn", kind == "fq-codel") else ("noecn",)
    if kind in ("codel", "fq-codel"):
        own = ("flows",) if kind == "fq-codel" else ()
        read.only(table, "queue", (*common, "target", "interval", "ecn", *own))
        words = [word for key in own for word in (key, str(table.get(key, 1024)))]
        delays = _delays(read, table, (("target", "target", "5ms"), ("interval", "interval", "100ms")))
        return Queue(kind.replace("-", "_"), packets, ("limit", str(packets), *words, *delays, *ecn))
    if kind == "pie":
        read.only(table, "queue", (*common, "target", "update_interval", "ecn"))
        delays = _delays(read, table, (("target", "target", "15ms"), ("update_interval", "tupdate", "15ms")))
        return Queue(kind, packets, ("limit", str(packets), *delays, *ecn))
    if kind == "red":
        return _red(read, table, packets, bdp)
    raise read.refuse(f"queue.kind = {kind!r}", "fifo, codel, fq-codel, pie, red")


def _delays(read: _Reader, table: dict[str, Any], keys: Sequence[tuple[str, str, str]]) -> list[str]:
    words = []
    for key, word, default in keys:
        words += [word, f"{read.nanoseconds(table.get(key, default), f'queue.{key}') // 1000}us"]
    return words


def _red(read: _Reader, table: dict[str, Any], packets: int, bdp: float) -> Queue:
    """RED as Linux has it is not gentle, and takes the weight of its average from `min` and `max`."""
    read.only(table, "queue", ("kind", "limit", "min", "max", "max_probability", "gentle", "ecn"))
    if table.get("gentle", True):
        raise read.refuse("queue.gentle = true (the default)", "gentle = false")
    low, high = (_bytes(read, table[key], f"queue.{key}", PACKET, bdp) or 1 for key in ("min", "max"))
    words = ["limit", str(packets * (PACKET + ETHERNET)), "min", str(low), "max", str(high), "avpkt", str(PACKET)]
    words += ["burst", str(max(1, (2 * low + high) // (3 * PACKET) + 1))]
    words += ["probability", str(read.number(table.get("max_probability", 0.1), "queue.max_probability", ""))]
    return Queue("red", packets, (*words, *(["ecn"] if table.get("ecn", False) else [])))
