"""The plan for the guest: commands of iproute2, settings and flows, one on each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparelane.uml.addresses import FOUR, SIX, Addresses
from sparelane.uml.network import ETHERNET, PACKET, Network, Offload

# Both ends of each virtual cable have the same hardware address, so that no node has to resolve one.
STATION = "02:00:00:00:00:01"
# A limit that no queue of a host reaches, packets.
ENOUGH = 1_000_000
# The type of service of each priority class, by which routers of Linux classify packets.
TYPES_OF_SERVICE = (0x00, 0x08, 0x10, 0x18)


def lines(network: Network, captures: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """The lines of the plan. `captures` are pairs of a node and its device."""
    plan = SIX if network.is_ipv6 else FOUR
    # The kernel's own limits on memory and backlog must never take effect.
    yield "set - /proc/sys/net/ipv4/tcp_mem 4000000 4000000 4000000"
    yield "set - /proc/sys/net/core/netdev_max_backlog 1000000"
    for name in (*network.routers, *(host.name for host in network.hosts)):
        yield from _node(network, name)
    yield from _row(network, plan)
    for host in network.hosts:
        router, (own, gateway) = network.routers[host.router], plan.host(host.router, host.number)
        if network.loses_from(host.name):
            yield from _carried(plan, host.name, own, router, gateway)
        else:
            yield from _cable(plan, host.name, "eth", own, router, host.name, gateway)
        yield f"run ip -n {host.name} route add default via {gateway}{' quickack 1' * network.acks_each}"
        yield from _offload(network.offload, host.name, router)
    yield from _access(network)
    yield from _queues(network)
    # Forwarding and TCP's settings follow once all devices exist.
    for router in network.routers:
        yield f"set {router} {plan.forwarding} 1"
    for host in network.hosts:
        for key, setting in _settings(network):
            yield f"set {host.name} /proc/sys/net/ipv4/{key} {setting}"
    addresses = {host.name: plan.host(host.router, host.number)[0] for host in network.hosts}
    for flow in network.flows:
        ends = f"{flow.source} {flow.target} {addresses[flow.target]}"
        service = TYPES_OF_SERVICE[flow.level]
        size = f"{flow.start_ns} {flow.size_bytes or 0}"
        yield f"flow {flow.controller} {ends} {size} {service} {flow.rc3_levels} {flow.pool} {flow.priority}"
    for loss in network.losses:
        yield f"lose {loss.flow} {loss.byte} {loss.copies}"
    # One end of each cable is enough: its device sees the packets of both directions.
    for near, far, _ in network.ports()[::2]:
        yield f"watch {near} {far}"
    for node, device in captures:
        yield f"capture {node} {device}"
    for host in network.hosts:
        yield f"host {host.name}"
    for router in (*network.routers, *(name for name, _, _ in _wires(network))):
        yield f"count {router}"
    if network.sample_ns is not None:
        yield f"sample {network.sample_ns}"
        for near, far in network.followed():
            yield f"queue {near} {far}"
    yield from _changes(network, plan)
    yield f"end {network.duration_ns}"


def wire(cable: int) -> str:
    """The name of the node that delays the packets of a cable with a delay."""
    return f"wire{cable}"


def _wires(network: Network) -> list[tuple[str, int, int]]:
    """The nodes that delay packets between routers, each with the number and the delay of its cable."""
    return [(wire(at), at, cable.delay_ns) for at, cable in enumerate(network.cables) if cable.delay_ns]


def _node(network: Network, name: str) -> Iterator[str]:
    yield f"run ip netns add {name}"
    yield f"run ip -n {name} link set lo up"
    if network.is_ipv6:
        # No node solicits routers, now or later.
        yield f"set {name} /proc/sys/net/ipv6/conf/default/router_solicitations 0"


def _offload(offload: Offload, host: str, router: str) -> Iterator[str]:
    """Offload at a host's cable. A virtual cable merges packets only if its other end splits them."""
    if offload.send_packets > 1:
        yield f"run ip -n {host} link set eth gso_max_segs {offload.send_packets}"
    if offload.joins:
        yield f"feature {router} {host} tso 0"
        yield f"feature {host} eth gro 1"
        yield f"set {host} /sys/class/net/eth/gro_flush_timeout {offload.join_ns}"


def _row(network: Network, plan: Addresses) -> Iterator[str]:
    """The routers, the cables and nodes between them, and their routes to each other's hosts."""
    wires = {at: name for name, at, _ in _wires(network)}
    for at, (near, far) in enumerate(zip(network.routers, network.routers[1:], strict=False)):
        here, there = plan.row(2 * at), plan.row(2 * at + 1)
        if at in wires:
            yield from _node(network, wires[at])
            yield from _cable(plan, near, far, here[0], wires[at], near, here[1])
            yield from _cable(plan, wires[at], far, there[0], far, near, there[1])
            yield f"set {wires[at]} {plan.forwarding} 1"
            onwards = there[1], here[0]
        else:
            yield from _cable(plan, near, far, here[0], far, near, here[1])
            onwards = "", ""
        for (router, other), onward in zip(((near, far), (far, near)), onwards, strict=True):
            for prefix, gateway in _routes(network, plan, router, other):
                yield f"run ip -n {router} route add {prefix} via {gateway}"
                if onward:
                    yield f"run ip -n {wires[at]} route add {prefix} via {onward}"


def _routes(network: Network, plan: Addresses, near: str, far: str) -> list[tuple[str, str]]:
    """The routes of a router through its neighbour `far`: the hosts that are reached, and the gateway."""
    at, other = network.routers.index(near), network.routers.index(far)
    here, there = plan.row(2 * min(at, other)), plan.row(2 * min(at, other) + 1)
    has_wire = network.cables[min(at, other)].delay_ns > 0
    if other > at:
        return [(plan.hosts(beyond), here[1]) for beyond in range(other, len(network.routers))]
    return [(plan.hosts(beyond), there[0] if has_wire else here[0]) for beyond in range(at)]


def _carried(plan: Addresses, host: str, own: str, router: str, gateway: str) -> Iterator[str]:
    """A host's cable through a node that loses some segments and carries all others between its two devices."""
    node = f"lossy-{host}"
    yield f"run ip netns add {node}"
    yield f"run ip -n {host} link add eth type veth peer name near netns {node}"
    yield f"run ip -n {router} link add {host} type veth peer name far netns {node}"
    for name, port, address in ((host, "eth", own), (router, host, gateway)):
        yield from _end(plan, name, port, address)
    for port in ("near", "far"):
        # The devices keep addresses of their own, so that the kernel of this node handles no packet.
        yield f"run ip -n {node} link set {port} arp off gso_max_segs 1 up"
    yield f"carry {node} near far"


def _cable(plan: Addresses, first: str, device: str, address: str, second: str, other: str, peer: str) -> Iterator[str]:
    yield f"run ip -n {first} link add {device} type veth peer name {other} netns {second}"
    for name, port, own in ((first, device, address), (second, other, peer)):
        yield from _end(plan, name, port, own)


def _end(plan: Addresses, node: str, device: str, address: str) -> Iterator[str]:
    yield f"run ip -n {node} addr add {address}/{plan.length} dev {device}"
    yield f"run ip -n {node} link set {device} address {STATION} arp off gso_max_segs 1 txqueuelen 1000 up"


def _access(network: Network) -> Iterator[str]:
    """Rates and delays between hosts and routers; in a dumbbell, also the random losses of its bottleneck."""
    rate = f"rate {network.access_bps}bit -{ETHERNET}"
    loss = _loss(network.cables[0].loss) if not network.cables[0].delay_ns else ""
    for host in network.hosts:
        router = network.routers[host.router]
        if network.is_late_on_arrival:
            yield from _host_queue(network, host.name)
        else:
            yield f"run tc -n {host.name} qdisc add dev eth root netem{_delay(host.delay_ns)} limit {ENOUGH} {rate}"
        back = f"netem{_delay(host.back_ns)} limit {ENOUGH}{loss} {rate}"
        yield f"run tc -n {router} qdisc add dev {host.name} root {back}"


def _host_queue(network: Network, host: str) -> Iterator[str]:
    """A host's own queue, which splits segments that are too large for the cable and serves priorities."""
    if network.has_rc3:
        yield from _priorities(network, host, "eth", network.access_bps, ENOUGH, ("priomap", *"0" * 16))
        yield from _tails(network, host, "eth")
    elif network.queue.kind == "priority":
        yield from _priorities(network, host, "eth", network.access_bps, ENOUGH, network.queue.words)
    else:
        yield f"run {_shaper(host, 'eth', network.access_bps, ENOUGH)}"


def _delay(delay_ns: float) -> str:
    return f" delay {delay_ns / 1000:.3f}us" if delay_ns else ""


def _loss(share: float) -> str:
    return f" loss {100 * share:.9f}%" if share else ""


def _queues(network: Network) -> Iterator[str]:
    """Queues and nodes between routers. Queues do not delay packets: the node in the cable does."""
    queue = network.queue
    for near, far, cable in network.ports():
        if queue.kind == "fifo" and network.has_changes(near, far, "rate_bps"):
            # netem fixes the departure of a packet at its arrival, and a token bucket at its departure.
            yield f"run {_shaper(near, far, cable.rate_bps, queue.limit_packets)}"
            continue
        if queue.kind == "fifo":
            rate = f"rate {cable.rate_bps}bit -{ETHERNET}"
            yield f"run tc -n {near} qdisc add dev {far} root netem limit {queue.limit_packets + 1} {rate}"
            continue
        if queue.kind == "priority":
            yield from _priorities(network, near, far, cable.rate_bps, queue.limit_packets, queue.words)
            if network.has_rc3:
                yield from _tails(network, near, far)
            continue
        yield f"run {_shaper(near, far, cable.rate_bps, queue.limit_packets)}"
        yield f"run tc -n {near} qdisc add dev {far} parent 1:1 handle 2: {queue.kind} {' '.join(queue.words)}"
    for name, at, delay_ns in _wires(network):
        for router in network.routers[at : at + 2]:
            yield f"run {_wire_queue(network, name, router, delay_ns, network.cables[at].loss)}"


def _wire_queue(network: Network, node: str, far: str, delay_ns: float, loss: float, verb: str = "add") -> str:
    """The discipline that delays and loses the packets that a node in a cable sends to the router `far`."""
    # netem keeps packets in order only if it has a rate. This one delays a packet by 12 ns.
    in_order = " rate 1000gbit" if any(one.quantity == "delay_ns" for one in network.changes) else ""
    late = f"netem{_delay(delay_ns)} limit {ENOUGH}{_loss(loss)}{in_order}"
    return f"tc -n {node} qdisc {verb} dev {far} root {late}"


def _changes(network: Network, plan: Addresses) -> Iterator[str]:
    """The commands that change cables during the run."""
    delays = {(near, far): float(cable.delay_ns) for near, far, cable in network.ports()}
    losses = {(near, far): cable.loss for near, far, cable in network.ports()}
    wires = {frozenset(network.routers[at : at + 2]): name for name, at, _ in _wires(network)}
    for one in network.changes:
        port = one.near, one.far
        if one.quantity == "rate_bps":
            yield f"at {one.at_ns} {_shaper(*port, int(one.value), network.queue.limit_packets, 'change')}"
        elif one.quantity == "down":
            # The router drops packets in front of the queue. Those in the queue are sent, as in the simulator.
            for prefix, gateway in _routes(network, plan, *port):
                route = f"blackhole {prefix}" if one.value else f"{prefix} via {gateway}"
                yield f"at {one.at_ns} ip -n {one.near} route replace {route}"
        else:
            (delays if one.quantity == "delay_ns" else losses)[port] = one.value
            wire = wires[frozenset(port)]
            yield f"at {one.at_ns} {_wire_queue(network, wire, one.far, delays[port], losses[port], 'change')}"


def _shaper(node: str, device: str, rate_bps: int, limit_packets: int, verb: str = "add") -> str:
    """A token bucket. It counts the header of Ethernet, so its rate is that of full packets with this header."""
    rate = f"{rate_bps * (PACKET + ETHERNET) // PACKET}bit"
    room = (limit_packets + 1) * (PACKET + ETHERNET)
    return f"tc -n {node} qdisc {verb} dev {device} root handle 1: tbf rate {rate} burst 1600 limit {room}"


def _priorities(
    network: Network, node: str, device: str, rate_bps: int, limit_packets: int, words: Sequence[str]
) -> Iterator[str]:
    """Strict priority below a token bucket."""
    yield f"run {_shaper(node, device, rate_bps, limit_packets)}"
    yield f"run tc -n {node} qdisc add dev {device} parent 1:1 handle 2: prio bands {network.bands} {' '.join(words)}"
    for band in range(1, network.bands + 1):
        yield f"run tc -n {node} qdisc add dev {device} parent 2:{band} pfifo limit {limit_packets}"


def _tails(network: Network, node: str, device: str) -> Iterator[str]:
    """Filters that sort packets into the levels of RC3 by code point: 3, 11, 19 and so on."""
    protocol, field = ("ipv6", "ip6 priority") if network.is_ipv6 else ("ip", "ip tos")
    for level in range(1, 1 + max(flow.rc3_levels for flow in network.flows)):
        service = (8 * level - 5) << 2
        # The number of a band is hexadecimal; there are at most eight.
        match = f"protocol {protocol} prio {level} u32 match {field} {service:#x} 0xfc flowid 2:{level + 1}"
        yield f"run tc -n {node} filter add dev {device} parent 2: {match}"


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _settings(network: Network) -> tuple[tuple[str, str], ...]:
    """Settings of hosts: timestamps and ECN as in the scenario, buffers that never limit, no cached metrics."""
    return (
        ("tcp_timestamps", "1" if network.timestamps else "0"),
        ("tcp_ecn", "1" if network.ecn else "0"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_rmem", "4096 67108864 268435456"),
        ("tcp_wmem", "4096 262144 268435456"),
        *((("tcp_slow_start_after_idle", "0"),) if not network.restarts_after_idle else ()),
        *((("tcp_rc3", "1"),) if network.has_rc3 else ()),
        # Limits that are not written keep the kernel's defaults, but no level uses them.
        *((("tcp_rc3_packets", _listed(network.rc3_packets)),) if network.has_rc3 and network.rc3_packets else ()),
    )
