"""Translates a scenario into a network of Linux: routers in a row, hosts, cables, queueing disciplines and flows.

The simulator's parser resolves all units, defaults and random draws first. Anything that Linux cannot do is refused by
name, so that no run silently differs from its scenario.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sparelane.uml import rtcp, supported
from sparelane.uml.disciplines import router_queue
from sparelane.uml.network import MSS, PACKET, Cable, Change, Flow, Host, Loss, Network, Offload
from sparelane.uml.parameters import CONTROLLERS, module_word, settable
from sparelane.uml.supported import refusal

if TYPE_CHECKING:
    from sparelane._native import Description
    from sparelane.simulation.simulate import Prepared

MOST_FLOWS = 1000
# The number of commands that the guest takes.
MOST_CHANGES = 1000
# The quantities that the node in a cable changes.
MOVED = ("delay_ns", "loss")
# Payload and header of a full segment, bytes: over IPv4 without and with timestamps, and the same over IPv6.
PLAIN, STAMPED, PLAIN_IPV6, STAMPED_IPV6 = SIZES = ((MSS, PACKET - MSS), (1448, 52), (1440, 60), (1428, 72))
SIZES_TEXT = "{}B with {}B, or for timestamps {}B with {}B; over IPv6 {}B with {}B, or {}B with {}B"


def network(prepared: Prepared) -> Network:
    """The network of a scenario.

    Raises:
        ScenarioError: Linux cannot do it; the message names the first key or part.
    """
    scenario = prepared.describe()
    supported.check(scenario)
    kind, sample = scenario["given"]["topology"]["kind"], scenario["sample"]
    sizes, offload = _segments(scenario)
    flows = _flows(prepared, scenario)
    has_rc3, has_batches = any(flow.rc3_levels for flow in flows), offload.send_packets > 1
    changes = _changes(scenario)
    # Packets must be where they are in the scenario when a cable changes. If hosts have queues of their own, the delay
    # follows the bottleneck already, and only a node in the cable can change what happens on the wire.
    has_wire = kind != "dumbbell" or any(change.quantity in MOVED or not (has_rc3 or has_batches) for change in changes)
    hosts, cables = _topology(scenario, has_wire)
    _check_losses(scenario, cables)
    parameters = _parameters(scenario, {flow.scheme for flow in flows if flow.pool})
    _check_reuse(scenario, flows)
    if has_rc3 or has_batches:
        # Hosts that serve priorities or split segments have queues of their own, and the delay must follow these.
        if has_wire:
            why = "rc3" if has_rc3 else "transport.send_batch"
            what = f"topology.kind = {kind!r}" if kind != "dumbbell" else "changes of the delay or loss"
            raise refusal(scenario, f"{what} with {why}", "a dumbbell, with changes of the rate or down")
        hosts = tuple(replace(host, delay_ns=0, back_ns=host.delay_ns) for host in hosts)
    is_ipv6 = sizes in (PLAIN_IPV6, STAMPED_IPV6)
    if is_ipv6 and any(flow.level for flow in flows):
        raise refusal(scenario, "scheme.class over IPv6", "class = 0, or IPv4")
    has_classes = any(flow.level or flow.rc3_levels for flow in flows)
    queue = router_queue(scenario, has_classes, min(cable.rate_bps for cable in cables))
    if has_rc3 and queue.kind != "priority":
        raise refusal(scenario, f"queue.kind = {queue.kind!r} with rc3", "priority")
    if scenario["queue"]["mark_at_bytes"] is not None and any(one.quantity == "rate_bps" for one in changes):
        # The kernel marks by time, so the threshold would have to follow the rate.
        raise refusal(scenario, "queue.mark_at with changes of the rate", "mark_at with other changes")
    losses = _scripted_losses(scenario, flows, sizes[0])
    if losses and (has_rc3 or is_ipv6 or has_batches or offload.joins):
        raise refusal(scenario, "drop with rc3, IPv6 or batches", "drop without them")
    return Network(
        routers=tuple(scenario["routers"]),
        hosts=hosts,
        cables=cables,
        access_bps=_access_bps(scenario),
        queue=queue,
        timestamps=sizes in (STAMPED, STAMPED_IPV6),
        ecn=any(scenario["schemes"][flow.scheme]["transport"]["ecn"] for flow in flows),
        flows=flows,
        parameters=parameters,
        duration_ns=scenario["duration_ns"],
        sample_ns=sample["interval_ns"] if sample else None,
        sampled=tuple(sample["flows"]) if sample else (),
        queues=_ports(scenario, "queues", sample["queues"]) if sample else (),
        links=_ports(scenario, "links", sample["links"]) if sample else (),
        offload=offload,
        is_ipv6=is_ipv6,
        losses=losses,
        changes=changes,
        # Linux delays acknowledgments by its own rules, unless the scenario turns delays off.
        acks_each=scenario["given"].get("transport", {}).get("delayed_ack") is False,
        rc3_packets=_rc3_packets(scenario),
        restarts_after_idle=scenario["given"].get("transport", {}).get("restart_after_idle") != "no",
    )


def _access_bps(scenario: Description) -> int:
    return min(host["rate_bps"] for host in scenario["hosts"])


def _topology(scenario: Description, has_wire: bool) -> tuple[tuple[Host, ...], tuple[Cable, ...]]:
    """Hosts, and the cables between routers. With `has_wire`, a node in each cable delays packets."""
    routers = scenario["routers"]
    cables = tuple(Cable(one["rate_bps"], one["delay_ns"], one["loss"]) for one in scenario["cables"])
    found, numbers = [], defaultdict[int, Iterator[int]](itertools.count)
    for host in scenario["hosts"]:
        router, own_ns = routers.index(host["neighbour"]), host["delay_ns"]
        # Without such a node, the first hop of a dumbbell has the whole delay, where it reorders no packets.
        delays = (own_ns, own_ns) if has_wire else (2 * own_ns + cables[0].delay_ns, 0)
        found.append(Host(host["name"], router, next(numbers[router]), *delays))
    return tuple(found), cables if has_wire else tuple(replace(cable, delay_ns=0) for cable in cables)


def _changes(scenario: Description) -> tuple[Change, ...]:
    """The changes of cables, which have to be between routers and, for changes of delay and loss, to have a delay."""
    delays = {frozenset(cable["ends"]): cable["delay_ns"] for cable in scenario["cables"]}
    found = []
    # A link that goes down changes a route for each router behind it.
    if len(scenario["changes"]) > (most := MOST_CHANGES // len(scenario["routers"])):
        raise refusal(scenario, f"{len(scenario['changes'])} changes of single directions", f"up to {most}")
    for one in scenario["changes"]:
        near, far, quantity = one["from"], one["to"], one["quantity"]
        if (delay_ns := delays.get(frozenset((near, far)))) is None:
            raise refusal(scenario, f"a change from {near} to {far}", "changes of cables between routers")
        if not delay_ns and quantity in MOVED:
            what = f"a change of {quantity.removesuffix('_ns')} from {near} to {far}, which have no delay"
            raise refusal(scenario, what, "topology.link_delay or topology.bottleneck_delay above 0")
        found.append(Change(one["at_ns"], near, far, quantity, float(one["value"])))
    return tuple(found)


def _segments(scenario: Description) -> tuple[tuple[int, int], Offload]:
    """Payload and header of a full segment, and what hosts leave to their network cards."""
    transport, given = next(iter(scenario["schemes"].values()))["transport"], scenario["given"].get("transport", {})
    # The sizes of a preset include Ethernet's header, which the kernel adds on its own.
    sizes = (
        transport["mss_bytes"] if "mss" in given else PLAIN[0],
        transport["header_bytes"] if "header" in given else PLAIN[1],
    )
    if sizes not in SIZES:
        what = f"transport.mss = {sizes[0]}B with transport.header = {sizes[1]}B"
        raise refusal(scenario, what, SIZES_TEXT.format(*itertools.chain(*SIZES)))
    return sizes, Offload(
        transport["send_batch"], transport["receive_batch"] > 1, transport["receive_batch_timeout_ns"]
    )


def _flows(prepared: Prepared, scenario: Description) -> tuple[Flow, ...]:
    """The flows, in order of start."""
    rows = prepared.flows(MOST_FLOWS + 1)
    if len(rows) > MOST_FLOWS:
        raise refusal(scenario, f"more than {MOST_FLOWS} flows", f"up to {MOST_FLOWS}")
    at = {host["name"]: host["neighbour"] for host in scenario["hosts"]}
    flows = []
    pools: dict[tuple[int, str], int] = {}
    for row in rows:
        scheme = scenario["schemes"][row["scheme"]]
        controller, is_rc3 = scheme["controller"], scheme["controller"] == "rc3"
        if at[row["src"]] == at[row["dst"]]:
            raise refusal(scenario, f"a flow from {row['src']} to {row['dst']}", "flows between different routers")
        if is_rc3 and row["size_bytes"] is None:
            raise refusal(scenario, "a flow of unlimited size under rc3", "a size")
        name = str(scheme["settings"]["inner"]) if is_rc3 else controller
        ends = (row["src"], row["dst"], row["size_bytes"], row["start_ns"])
        levels = (0, len(scheme["settings"]["levels"]) + 1) if is_rc3 else (scheme["class"], 0)
        # A pool of the simulator has the connections of one workload, and a flow takes one with its scheme.
        pool = 0 if row["pool"] is None else pools.setdefault((row["pool"], row["scheme"]), 1 + len(pools))
        priority = rtcp.priority(scheme["settings"], row["size_bytes"]) if pool and controller == rtcp.NAME else 0
        flow = Flow(
            row["scheme"],
            CONTROLLERS.get(name, name),
            *ends,
            *levels,
            row["request"],
            row["traffic_class"],
            pool,
            priority,
        )
        flows.append(flow)
    return tuple(flows)


def _check_reuse(scenario: Description, flows: Sequence[Flow]) -> None:
    """Refuses what the kernel cannot tell apart on reused connections."""
    reused = {flow.scheme for flow in flows if flow.pool}
    weighed = {flow.scheme for flow in flows if flow.priority}
    # The kernel has one rule of classes for all connections of a scheme.
    if mixed := sorted(weighed & {flow.scheme for flow in flows if not flow.pool}):
        raise refusal(scenario, f"reused and new connections of {mixed[0]}", "one kind for a scheme of rtcp")
    if reused and scenario["drops"]:
        raise refusal(scenario, "drop with reused connections", "new connections")


def _rc3_packets(scenario: Description) -> tuple[int, ...]:
    """The number of packets in each level of RC3 but the last, from the cumulative numbers of the scenario."""
    # Hosts have one setting each, so all schemes with RC3 share it.
    found: dict[tuple[int, ...], str] = {}
    for name, scheme in scenario["schemes"].items():
        if scheme["controller"] == "rc3":
            found.setdefault(tuple(scheme["settings"]["levels"]), f"scheme.{name}.levels")
    if len(found) > 1:
        raise refusal(scenario, f"{' and '.join(found.values())} with other values", "the same levels for all schemes")
    ends = next(iter(found), ())
    return tuple(end - start for start, end in zip((0, *ends), ends, strict=False))


def _parameters(scenario: Description, reused: Collection[str]) -> tuple[str, ...]:
    """The parameters of the kernel's modules, as its command line takes them.

    Args:
        scenario: the scenario.
        reused: the schemes whose flows reuse connections.
    """
    # The kernel has each module once, so all schemes of a controller share its parameters.
    found: dict[str, tuple[list[str], str]] = {}
    for name, scheme in scenario["schemes"].items():
        controller, path = scheme["controller"], f"scheme.{name}"
        if controller == "rc3":
            continue
        words = _words(scenario, path, name, is_reused=name in reused)
        first, earlier = found.setdefault(controller, (words, path))
        if first != words:
            what = f"{path} and {earlier} with other parameters of {controller} at once"
            raise refusal(scenario, what, "one set of parameters a controller")
    return tuple(word for words, _ in found.values() for word in words)


def _words(scenario: Description, path: str, name: str, *, is_reused: bool) -> list[str]:
    """The parameters of a scheme as the kernel's command line takes them."""
    scheme, given = scenario["schemes"][name], scenario["given"]["scheme"][name]
    values = scheme["settings"]
    if scheme["controller"] == rtcp.NAME:
        return [rtcp.word(values, _access_bps(scenario), is_reused=is_reused)]
    words = []
    # Parameters that the scenario does not give keep the kernel's defaults.
    for key in (key for key in settable(scheme["controller"]) if key in given):
        if (word := module_word(scheme["controller"], key, values[key])) is None:
            what = f"{path}.{key} = {given[key]!r}"
            raise refusal(scenario, what, "a value that the kernel can hold, such as the default")
        words.append(word)
    return words


def _are_neighbours(scenario: Description, near: str, far: str) -> bool:
    return any({near, far} == set(cable["ends"]) for cable in scenario["cables"])


def _ports(scenario: Description, key: str, pairs: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """The sampled queues or links, which have to be between routers."""
    for near, far in pairs:
        if not _are_neighbours(scenario, near, far):
            raise refusal(scenario, f"sample.{key}: {near} to {far}", "pairs of neighbouring routers")
    return tuple((near, far) for near, far in pairs)


def _check_losses(scenario: Description, cables: Sequence[Cable]) -> None:
    """Refuses random losses outside the cables between routers, and where no node can lose packets."""
    for path, link in supported.tables(scenario, "link"):
        if "between" in link and not _are_neighbours(scenario, *link["between"]):
            raise refusal(scenario, f"{path}.between: {' and '.join(link['between'])}", "neighbouring routers")
        # The node that delays packets also loses them. In a network with one cable, its routers lose them.
        if len(cables) > 1 and any(cable.loss and not cable.delay_ns for cable in cables):
            raise refusal(scenario, f"{path}.loss of cables without a delay", "topology.link_delay above 0")


def _scripted_losses(scenario: Description, flows: Sequence[Flow], mss_bytes: int) -> tuple[Loss, ...]:
    """The losses of `[[drop]]`, which happen where a flow enters the queue of its first router."""
    at = {host["name"]: host["neighbour"] for host in scenario["hosts"]}
    losses = []
    for number, drop in enumerate(scenario["drops"]):
        path, flow, ends = f"drop.{number}", drop["flow"], (drop["from"], drop["to"])
        if flow >= len(flows):
            raise refusal(scenario, f"{path}.flow = {flow}", f"0 to {len(flows) - 1}")
        if len(scenario["routers"]) > 2 or ends != (at[flows[flow].source], at[flows[flow].target]):
            what = f"{path}: {' to '.join(ends)}"
            raise refusal(scenario, what, "a dumbbell's bottleneck in the direction of the flow")
        losses += [Loss(flow, segment * mss_bytes, drop["copies"]) for segment in drop["segments"]]
    return tuple(losses)
