"""A scenario as the network of Linux that does the same: what cannot be mapped is refused by name."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparelane._native import ScenarioError
from sparelane.common import units
from sparelane.uml import rtcp
from sparelane.uml.network import ETHERNET, MOST_BATCH, MSS, PACKET, Cable, Flow, Host, Loss, Network, Offload, Queue
from sparelane.uml.parameters import CONTROLLERS, module_word, settable

# Hosts in all, routers, and flows.
MOST_HOSTS = 400
MOST_ROUTERS = 30
MOST_FLOWS = 1000
# Payload and header of a full segment that carries timestamps, bytes.
WITH_TIMESTAMPS = (1448, 52)
# The same over IPv6, without and with timestamps.
IPV6 = ((1440, 60), (1428, 72))
# The levels of strict priority that the kernel's table of types of service can tell apart.
LEVELS = 4
# What a scenario may have at its top.
TABLES = (
    "title",
    "source",
    "duration",
    "seed",
    "topology",
    "link",
    "drop",
    "queue",
    "transport",
    "scheme",
    "workload",
    "sample",
)


# Workloads whose flows are drawn with the seed.
DRAWN = ("requests",)
Drawn = Mapping[str, Any]


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


def draws_flows(tables: dict[str, Any]) -> bool:
    """Whether flows are drawn with the seed, as the simulator draws them."""
    workloads = tables["workload"]
    return any(one["kind"] in DRAWN for one in ([workloads] if isinstance(workloads, dict) else workloads))


def network(tables: dict[str, Any], file: str, drawn: Sequence[Drawn] = ()) -> Network:
    """The network of a scenario that is valid.

    Args:
        tables: the scenario's.
        file: its name, for messages.
        drawn: the flows, where the simulator draws them: rows of its table of flows.

    Raises:
        ScenarioError: Linux cannot do it here; names the first key.
    """
    read = _Reader(file)
    read.only(tables, "", TABLES)
    routers, hosts, cables, access = _topology(read, tables["topology"])
    slowest = min(access, *(cable.rate_bps for cable in cables))
    bdp = slowest / 8 * _mean_round_trip_s(hosts, cables)
    transport = tables.get("transport", {})
    read.only(transport, "transport", ("preset", "ecn", "mss", "header", "delayed_ack", *BATCHES))
    if transport.get("preset", "linux") != "linux":
        raise read.refuse(f"transport.preset = {transport['preset']!r}", "linux")
    if not isinstance(transport.get("delayed_ack", True), bool):
        raise read.refuse("a table in transport.delayed_ack", "true, or false")
    sizes = tuple(
        _bytes(read, transport.get(key, f"{plain}B"), f"transport.{key}", MSS, bdp)
        for key, plain in (("mss", MSS), ("header", PACKET - MSS))
    )
    allowed = ((MSS, PACKET - MSS), WITH_TIMESTAMPS, *IPV6)
    if sizes not in allowed:
        raise read.refuse(
            f"transport.mss = {sizes[0]}B with transport.header = {sizes[1]}B",
            "{}B with {}B, or for timestamps {}B with {}B; over IPv6 {}B with {}B, or {}B with {}B".format(
                *itertools.chain(*allowed)
            ),
        )
    offload = _offload(read, transport)
    sample = tables.get("sample", {})
    read.only(sample, "sample", ("interval", "flows", "queues", "links"))
    parameters, flows = _flows(read, tables, routers, hosts, (access, sizes[0], bdp), drawn)
    cables = _losses(read, tables.get("link", []), routers, cables)
    has_rc3 = any(flow.rc3_levels for flow in flows)
    if has_rc3 or offload.send_packets > 1:
        why = "rc3" if has_rc3 else "transport.send_batch"
        hosts = _late_on_arrival(read, tables["topology"], hosts, why)
    lowest = max((max(flow.level, flow.rc3_levels) for flow in flows), default=0)
    if sizes in IPV6 and any(flow.level for flow in flows):
        raise read.refuse("scheme.class over IPv6", "class = 0, or IPv4")
    queue = _queue(read, tables.get("queue", {}), bdp, lowest, min(cable.rate_bps for cable in cables))
    if has_rc3 and queue.kind != "priority":
        raise read.refuse(f"queue.kind = {queue.kind!r} with rc3", "priority")
    wanted = {key: _ports(read, sample.get(key, []), f"sample.{key}", routers) for key in ("queues", "links")}
    losses = _planned(read, tables, routers, hosts, flows, sizes[0])
    if losses and (has_rc3 or sizes in IPV6 or offload.send_packets > 1 or offload.joins):
        raise read.refuse("drop with rc3, IPv6 or batches", "drop without them")
    is_sampled = bool(sample.get("flows") or wanted["queues"] or wanted["links"])
    return Network(
        routers=routers,
        hosts=hosts,
        cables=cables,
        access_bps=access,
        queue=queue,
        timestamps=sizes in (WITH_TIMESTAMPS, IPV6[1]),
        ecn=transport.get("ecn", "off") not in ("off", False) or any(flow.controller == "dctcp" for flow in flows),
        flows=flows,
        parameters=parameters,
        duration_ns=read.nanoseconds(tables["duration"], "duration"),
        sample_ns=read.nanoseconds(sample.get("interval", "10ms"), "sample.interval") if is_sampled else None,
        sampled=tuple(sample.get("flows", ())),
        queues=wanted["queues"],
        links=wanted["links"],
        offload=offload,
        is_ipv6=sizes in IPV6,
        losses=losses,
        acks_each=not transport.get("delayed_ack", True),
    )


# What a scenario says of segments that go and come in batches.
BATCHES = ("send_batch", "receive_batch", "receive_batch_timeout")


def _offload(read: _Reader, transport: dict[str, Any]) -> Offload:
    """Segmentation offload up to so many packets, and receive offload as the kernel has it: 64 kB, or none."""
    sends, receives = (transport.get(key, 1) for key in BATCHES[:2])
    if sends > MOST_BATCH:
        raise read.refuse(f"transport.send_batch = {sends}", f"1 to {MOST_BATCH}")
    if receives not in (1, MOST_BATCH):
        raise read.refuse(f"transport.receive_batch = {receives}", f"1, {MOST_BATCH}")
    waits_ns = read.nanoseconds(transport.get(BATCHES[2], "100us"), f"transport.{BATCHES[2]}")
    return Offload(sends, receives > 1, waits_ns)


Row = tuple[tuple[str, ...], tuple[Host, ...], tuple[Cable, ...], int]


def _topology(read: _Reader, table: dict[str, Any]) -> Row:
    """Routers, hosts and cables, and the rate of hosts' own cables."""
    kind = table["kind"]
    if kind not in ("dumbbell", "chain"):
        raise read.refuse(f"topology.kind = {kind!r}", "dumbbell, chain")

    def rate(key: str, default: str) -> int:
        return round(read.number(table.get(key, default), f"topology.{key}", "bit/s"))

    def delay(key: str, default: str) -> int:
        return read.nanoseconds(table.get(key, default), f"topology.{key}")

    access, access_ns = rate("access_rate", "1Gbps"), delay("access_delay", "1ms")
    if kind == "dumbbell":
        pairs = table.get("pairs", 1)
        _at_most(read, 2 * pairs, MOST_HOSTS, f"topology.pairs = {pairs}", f"up to {MOST_HOSTS // 2}")
        # All delay of a path is at its first hop, which moves no packet past another.
        whole = 2 * access_ns + delay("bottleneck_delay", "18ms")
        hosts = [Host(f"{side}{pair}", at, pair, whole, 0) for at, side in enumerate(SIDES) for pair in range(pairs)]
        return ("west", "east"), tuple(hosts), (Cable(rate("bottleneck_rate", "100Mbps"), 0, 0.0),), access
    count, each = table.get("routers", 3), table.get("hosts_per_router", 1)
    if not 2 <= count <= MOST_ROUTERS:
        raise read.refuse(f"topology.routers = {count}", f"2 to {MOST_ROUTERS}")
    _at_most(read, count * each, MOST_HOSTS, f"topology.hosts_per_router = {each}", f"up to {MOST_HOSTS // count}")
    hosts = [
        Host(f"h{count * (1 + number) + at}", at, number, access_ns, access_ns)
        for number in range(each)
        for at in range(count)
    ]
    cable = Cable(rate("link_rate", "100Mbps"), delay("link_delay", "10ms"), 0.0)
    return tuple(f"r{at}" for at in range(count)), tuple(hosts), (cable,) * (count - 1), access


SIDES = ("left", "right")


def _late_on_arrival(read: _Reader, table: dict[str, Any], hosts: Sequence[Host], why: str) -> tuple[Host, ...]:
    """Hosts that serve priorities, or split segments, do so before the delay: that is behind all queues of a path."""
    if table["kind"] != "dumbbell":
        raise read.refuse(f"topology.kind = {table['kind']!r} with {why}", "dumbbell")
    return tuple(replace(host, delay_ns=0, back_ns=host.delay_ns) for host in hosts)


def _at_most(read: _Reader, count: int, most: int, what: str, allowed: str) -> None:
    if count > most:
        raise read.refuse(what, allowed)


def _mean_round_trip_s(hosts: Sequence[Host], cables: Sequence[Cable]) -> float:
    """The mean base round-trip time between hosts behind different routers, seconds."""
    spans = [
        one.delay_ns
        + other.back_ns
        + other.delay_ns
        + one.back_ns
        + 2 * sum(cable.delay_ns for cable in cables[one.router : other.router])
        for one in hosts
        for other in hosts
        if one.router < other.router
    ]
    return sum(spans) / len(spans) / 1e9


def _flows(
    read: _Reader,
    tables: dict[str, Any],
    routers: Sequence[str],
    hosts: Sequence[Host],
    scales: tuple[int, int, float],
    drawn: Sequence[Drawn],
) -> tuple[tuple[str, ...], tuple[Flow, ...]]:
    """Parameters of the kernel's modules, and flows in order of start.

    Scales are the rate of hosts, bit/s, and a packet and a BDP, bytes.
    """
    schemes, parameters = _schemes(read, tables["scheme"], scales[0])
    at = {host.name: host.router for host in hosts}
    workloads = tables["workload"]
    flows = []
    for row in drawn:
        controller, level, rc3_levels = schemes[row["scheme"]]
        if at[row["src"]] == at[row["dst"]]:
            raise read.refuse(f"a flow from {row['src']} to {row['dst']}", "flows between different routers")
        ends = (row["src"], row["dst"], row["size_bytes"], round(row["start_s"] * 1e9))
        of = (row["request"], row["traffic_class"])
        flows.append(Flow(row["scheme"], controller, *ends, level, rc3_levels, *of))
    for number, workload in enumerate([workloads] if isinstance(workloads, dict) else workloads):
        name = f"workload.{number}"
        if workload["kind"] not in ("bulk", *DRAWN):
            raise read.refuse(f"{name}.kind = {workload['kind']!r}", ", ".join(("bulk", *DRAWN)))
        if drawn:
            continue
        read.only(workload, name, ("kind", "scheme", "pairs", "size", "start"))
        pairs = workload.get("pairs", "halves")
        if pairs == "halves":
            names = [host.name for host in hosts]
            half = len(names) // 2
            pairs = list(zip(names[:half], names[half : 2 * half], strict=True))
        if isinstance(pairs, str):
            raise read.refuse(f"{name}.pairs = {pairs!r}", f'halves, or a list such as [["{hosts[0].name}", ...]]')
        size = _bytes(read, workload.get("size", "unlimited"), f"{name}.size", *scales[1:])
        start = read.nanoseconds(workload.get("start", "0s"), f"{name}.start")
        scheme = workload.get("scheme", next(iter(schemes)))
        controller, level, rc3_levels = schemes[scheme]
        if rc3_levels and size is None:
            raise read.refuse(f"{name}.size = 'unlimited' under rc3", "a size")
        for source, target in pairs:
            if at[source] == at[target]:
                raise read.refuse(f"{name}.pairs: {source} to {target}", "pairs of hosts at different routers")
            flows.append(Flow(scheme, controller, source, target, size, start, level, rc3_levels))
    if len(flows) > MOST_FLOWS:
        raise read.refuse(f"{len(flows)} flows", f"up to {MOST_FLOWS}")
    return parameters, tuple(sorted(flows, key=lambda flow: flow.start_ns))


def _schemes(
    read: _Reader, tables: dict[str, Any], line_rate_bps: int
) -> tuple[dict[str, tuple[str, int, int]], tuple[str, ...]]:
    """Each scheme's controller in the kernel, priority and levels of RC3, and parameters, which the kernel has once."""
    schemes = {}
    set_by: dict[str, tuple[dict[str, str], str]] = {}
    for name, scheme in tables.items():
        given = scheme["controller"]
        if given == "rc3":
            schemes[name] = (_inner(read, name, scheme), 0, LEVELS - 1)
            continue
        if given not in CONTROLLERS and given != rtcp.NAME:
            raise read.refuse(f"scheme.{name}.controller = {given!r}", ", ".join((*CONTROLLERS, rtcp.NAME, "rc3")))
        allowed = (*rtcp.settable(), "weights", "interface") if given == rtcp.NAME else settable(given)
        read.only(scheme, f"scheme.{name}", ("controller", "class", "like", "transport", *allowed))
        read.only(scheme.get("transport", {}), f"scheme.{name}.transport", ("ecn",) if given == "dctcp" else ())
        if scheme.get("like", "linux") != "linux":
            raise read.refuse(f"scheme.{name}.like = {scheme['like']!r}", "linux")
        level = scheme.get("class", 0)
        if level >= LEVELS:
            raise read.refuse(f"scheme.{name}.class = {level}", f"0 to {LEVELS - 1}")
        if given == rtcp.NAME:
            words = {given: _rtcp_word(read, name, scheme, line_rate_bps)}
        else:
            words = {key: _module_word(read, name, given, key, scheme[key]) for key in allowed if key in scheme}
        first, earlier = set_by.setdefault(given, (words, name))
        if first != words:
            raise read.refuse(
                f"scheme.{name} and scheme.{earlier} with other parameters of {given} at once",
                "one set of parameters a controller",
            )
        schemes[name] = (CONTROLLERS.get(given, given), level, 0)
    return schemes, tuple(word for words, _ in set_by.values() for word in words.values())


def _rtcp_word(read: _Reader, name: str, scheme: dict[str, Any], line_rate_bps: int) -> str:
    if (mistake := rtcp.mistake(scheme)) is not None:
        raise read.refuse(f"scheme.{name}.{mistake[0]}", mistake[1])
    return rtcp.word(scheme, line_rate_bps)


def _inner(read: _Reader, name: str, scheme: dict[str, Any]) -> str:
    """The kernel's controller of class 0 under RC3."""
    read.only(scheme, f"scheme.{name}", ("controller", "inner"))
    inner = scheme.get("inner", "newreno")
    if isinstance(inner, dict):
        read.only(inner, f"scheme.{name}.inner", ("controller",))
        inner = inner.get("controller", "newreno")
    if inner not in CONTROLLERS:
        raise read.refuse(f"scheme.{name}.inner = {inner!r}", ", ".join(CONTROLLERS))
    return CONTROLLERS[inner]


def _module_word(read: _Reader, scheme: str, controller: str, key: str, value: object) -> str:
    found = units.read(value) if isinstance(value, str) else None
    number = found[0] if found else value
    word = module_word(controller, key, float(number)) if isinstance(number, int | float) else None
    if word is None:
        raise read.refuse(f"scheme.{scheme}.{key} = {value!r}", "a value that the kernel can hold, such as the default")
    return word


def _ports(read: _Reader, pairs: Any, key: str, routers: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of neighbouring routers: those of a list, or all where it says so."""
    both = [pair for near, far in itertools.pairwise(routers) for pair in ((near, far), (far, near))]
    if isinstance(pairs, str):
        raise read.refuse(f"{key} = {pairs!r}", f'a list such as [["{routers[0]}", "{routers[1]}"]]')
    for pair in pairs:
        if tuple(pair) not in both:
            raise read.refuse(f"{key}: {' to '.join(pair)}", "pairs of neighbouring routers")
    return tuple((near, far) for near, far in pairs)


def _bytes(read: _Reader, value: object, key: str, packet: int, bdp: float) -> int | None:
    if value == "unlimited":
        return None
    text = value if isinstance(value, str) else f"{value}B"
    found = units.read(text)
    scale = {"B": 1.0, "packets": float(packet), "bdp": bdp}
    if found is None or found[1] not in scale:
        raise read.refuse(f"{key} = {value!r}", "bytes, packets or bdp")
    return max(1, round(found[0] * scale[found[1]]))


def _losses(read: _Reader, links: Any, routers: Sequence[str], cables: tuple[Cable, ...]) -> tuple[Cable, ...]:
    """The cables with the losses that `[[link]]` gives them."""
    losses = [cable.loss for cable in cables]
    for number, link in enumerate([links] if isinstance(links, dict) else links):
        name = f"link.{number}"
        read.only(link, name, ("select", "between", "loss"))
        if link.get("select", "core") != "core":
            raise read.refuse(f"{name}.select = {link['select']!r}", "core")
        chosen = list(range(len(cables)))
        if "between" in link:
            ends = set(link["between"])
            chosen = [at for at in chosen if {routers[at], routers[at + 1]} == ends]
            if not chosen:
                raise read.refuse(f"{name}.between: {' and '.join(link['between'])}", "neighbouring routers")
        for at in chosen:
            losses[at] = read.number(link.get("loss", 0), f"{name}.loss", "")
            # They are at the node of the cable's delay, or, where there is one cable alone, before the hosts.
            if losses[at] and len(cables) > 1 and not cables[at].delay_ns:
                raise read.refuse(f"{name}.loss of cables without a delay", "topology.link_delay above 0")
    return tuple(Cable(cable.rate_bps, cable.delay_ns, loss) for cable, loss in zip(cables, losses, strict=True))


def _planned(
    read: _Reader,
    tables: dict[str, Any],
    routers: Sequence[str],
    hosts: Sequence[Host],
    flows: Sequence[Flow],
    mss: int,
) -> tuple[Loss, ...]:
    """Losses of `[[drop]]`, which are where a flow comes to its first router's queue."""
    at = {host.name: host.router for host in hosts}
    drops = tables.get("drop", [])
    losses = []
    for number, drop in enumerate([drops] if isinstance(drops, dict) else drops):
        name, flow = f"drop.{number}", drop.get("flow", 0)
        read.only(drop, name, ("from", "to", "flow", "segments", "copies"))
        if flow >= len(flows):
            raise read.refuse(f"{name}.flow = {flow}", f"0 to {len(flows) - 1}")
        first = routers[at[flows[flow].source]]
        ends = (drop["from"], drop["to"])
        if len(routers) > 2 or ends != (first, next(router for router in routers if router != first)):
            raise read.refuse(f"{name}: {' to '.join(ends)}", "a dumbbell's bottleneck in the direction of the flow")
        losses += [Loss(flow, segment * mss, drop.get("copies", 1)) for segment in drop["segments"]]
    return tuple(losses)


def _marking(packets: int, threshold_s: float) -> Queue:
    """A queue that marks what has waited for longer, as DCTCP wants it: CoDel's threshold, without its own law."""
    words = ("limit", str(packets), "target", "1000s", "interval", "1000s", "noecn")
    return Queue("codel", packets, (*words, "ce_threshold", f"{max(1, round(threshold_s * 1e6))}us"))


def _queue(read: _Reader, table: dict[str, Any], bdp: float, lowest: int, rate_bps: int) -> Queue:
    kind = table.get("kind", "priority" if lowest else "fifo")
    limit = _bytes(read, table.get("limit", "1bdp"), "queue.limit", PACKET, bdp) or 1
    packets = max(1, limit // PACKET)
    common = ("kind", "limit")
    if kind == "fifo":
        read.only(table, "queue", (*common, "mark_at"))
        if "mark_at" in table:
            mark_at = _bytes(read, table["mark_at"], "queue.mark_at", PACKET, bdp) or 1
            return _marking(packets, mark_at * 8 / rate_bps)
        return Queue(kind, packets, ())
    if kind == "priority":
        read.only(table, "queue", (*common, "push_out"))
        if table.get("push_out", True):
            raise read.refuse("queue.push_out = true (the default)", "push_out = false")
        return Queue(kind, packets, ("bands", str(LEVELS), "priomap", *PRIORITIES))
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
    raise read.refuse(f"queue.kind = {kind!r}", "fifo, priority, codel, fq-codel, pie, red")


# The kernel's table of priorities, by the priority that a router reads from a packet's type of service: 0, 2, 6 and 4
# for those of `plan.TYPES_OF_SERVICE`.
PRIORITIES = tuple("0010302000000000")


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
