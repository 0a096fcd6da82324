"""The plan that the guest follows: commands of iproute2, settings, and flows, one a line."""

from __future__ import annotations

from collections.abc import Iterator

from sparelane.linux.mapping import ETHERNET, PACKET, Network

# Both ends of each virtual cable have one address, so that nobody has to be asked for it.
STATION = "02:00:00:00:00:01"
# No host's own queue is a bottleneck: packets.
ENOUGH = 1_000_000


def lines(network: Network) -> Iterator[str]:
    """The plan's lines."""
    yield "set - /proc/sys/net/ipv4/tcp_mem 4000000 4000000 4000000"
    yield "set - /proc/sys/net/core/netdev_max_backlog 1000000"
    hosts = [(f"{side}{pair}", router, number, pair) for side, router, number in SIDES for pair in range(network.pairs)]
    for name in ("west", "east", *(host for host, *_ in hosts)):
        yield f"run ip netns add {name}"
        yield f"run ip -n {name} link set lo up"
    yield from _cable("west", "core", "10.0.0.1", "east", "core", "10.0.0.2")
    for host, router, number, pair in hosts:
        yield from _cable(host, "eth", f"10.{number}.{pair}.1", router, host, f"10.{number}.{pair}.2")
        yield f"run ip -n {host} route add default via 10.{number}.{pair}.2"
    yield "run ip -n west route add 10.2.0.0/16 via 10.0.0.2"
    yield "run ip -n east route add 10.1.0.0/16 via 10.0.0.1"
    yield from _queues(network, hosts)
    for router in ("west", "east"):
        yield f"set {router} /proc/sys/net/ipv4/ip_forward 1"
    for host, *_ in hosts:
        for key, setting in _settings(network):
            yield f"set {host} /proc/sys/net/ipv4/{key} {setting}"
    for flow in network.flows:
        side = 2 if flow.target.startswith("right") else 1
        address = f"10.{side}.{flow.target.removeprefix('left').removeprefix('right')}.1"
        size = flow.size_bytes or 0
        yield f"flow {flow.controller} {flow.source} {flow.target} {address} {flow.start_ns} {size}"
    yield "watch west core"
    if network.sample_ns is not None:
        yield f"sample {network.sample_ns}"
    yield f"end {network.duration_ns}"


# Names of hosts, their router, and the number of their networks.
SIDES = (("left", "west", 1), ("right", "east", 2))


def _cable(first: str, device: str, address: str, second: str, other: str, peer: str) -> Iterator[str]:
    yield f"run ip -n {first} link add {device} type veth peer name {other} netns {second}"
    for name, port, own in ((first, device, address), (second, other, peer)):
        yield f"run ip -n {name} addr add {own}/24 dev {port}"
        yield f"run ip -n {name} link set {port} address {STATION} arp off gso_max_segs 1 txqueuelen 1000 up"


def _queues(network: Network, hosts: list[tuple[str, str, int, int]]) -> Iterator[str]:
    """Rates and queues where they are; all delay of a path is at its first hop, which moves no packet past another."""
    delay = 2 * network.access_ns + network.bottleneck_ns
    access = f"rate {network.access_bps}bit -{ETHERNET}"
    loss = f" loss {100 * network.loss:.9f}%" if network.loss else ""
    for host, router, *_ in hosts:
        yield f"run tc -n {host} qdisc add dev eth root netem delay {delay / 1000:.3f}us limit {ENOUGH} {access}"
        yield f"run tc -n {router} qdisc add dev {host} root netem limit {ENOUGH}{loss} {access}"
    queue = network.queue
    for router in ("west", "east"):
        if queue.kind == "fifo":
            rate = f"rate {network.bottleneck_bps}bit -{ETHERNET}"
            yield f"run tc -n {router} qdisc add dev core root netem limit {queue.limit_packets + 1} {rate}"
            continue
        # This shaper counts the header of Ethernet: the rate is larger by as much, for full packets.
        rate = f"{network.bottleneck_bps * (PACKET + ETHERNET) // PACKET}bit"
        room = (queue.limit_packets + 1) * (PACKET + ETHERNET)
        yield f"run tc -n {router} qdisc add dev core root handle 1: tbf rate {rate} burst 1600 limit {room}"
        yield f"run tc -n {router} qdisc add dev core parent 1:1 handle 2: {queue.kind} {' '.join(queue.words)}"


def _settings(network: Network) -> tuple[tuple[str, str], ...]:
    """What makes hosts of Linux hosts of a scenario: 40 bytes of header, buffers that are no limit, no memory."""
    return (
        ("tcp_timestamps", "0"),
        ("tcp_ecn", "1" if network.ecn else "0"),
        ("tcp_no_metrics_save", "1"),
        ("tcp_rmem", "4096 67108864 268435456"),
        ("tcp_wmem", "4096 262144 268435456"),
    )
