"""Queueing disciplines: the kinds of `[queue]` in the words of `tc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparelane.uml.network import ETHERNET, PACKET, Queue
from sparelane.uml.supported import check_table, refusal

if TYPE_CHECKING:
    from sparelane._native import Description

# The keys of each kind of queue that Linux supports, in addition to the kind and the limit.
KEYS = {
    "fifo": ("mark_at",),
    "priority": ("push_out",),
    "codel": ("target", "interval", "ecn"),
    "fq-codel": ("target", "interval", "ecn", "flows"),
    "pie": ("target", "update_interval", "ecn"),
    "red": ("min", "max", "max_probability", "gentle", "ecn"),
}
# The band for each priority that a router reads from the type of service. Priorities 0, 2, 6 and 4 are those of
# `plan.TYPES_OF_SERVICE`.
BANDS = tuple("0010302000000000")


def router_queue(scenario: Description, has_classes: bool, rate_bps: int) -> Queue:
    """The output queue of routers.

    Args:
        scenario: the scenario.
        has_classes: whether any flow sends below class 0.
        rate_bps: the rate of the slowest cable between routers.

    Raises:
        ScenarioError: Linux has no such queue.
    """
    queue, table = scenario["queue"], scenario["given"].get("queue", {})
    # Without a kind, schemes that send at low priority need the priority queue only if they have flows.
    kind = queue["kind"] if "kind" in table else "priority" if has_classes else "fifo"
    check_table(scenario, "queue", {"kind": kind}, kind=KEYS)
    check_table(scenario, "queue", table, ("kind", "limit", *KEYS[kind]))
    transport = next(iter(scenario["schemes"].values()))["transport"]
    packet_bytes = transport["mss_bytes"] + transport["header_bytes"]

    def scaled(bytes: int) -> int:
        """Bytes of the scenario's full packets as bytes of the kernel's, which differ if a preset counts Ethernet."""
        return bytes * PACKET // packet_bytes

    packets, mark_at, values = max(1, scaled(queue["limit_bytes"]) // PACKET), queue["mark_at_bytes"], queue["settings"]
    words, ecn = ["limit", str(packets)], "ecn" if values.get("ecn") else "noecn"
    match kind:
        case "fifo" if mark_at is not None:
            # CoDel marks packets that have waited for as long as the threshold takes. Its own law is off.
            kind, threshold_us = "codel", max(1, round(scaled(mark_at) * 8 / rate_bps * 1e6))
            words += ["target", "1000s", "interval", "1000s", "noecn", "ce_threshold", f"{threshold_us}us"]
        case "fifo":
            words = []
        case "priority":
            if queue["push_out"]:
                raise refusal(scenario, "queue.push_out = true (the default)", "push_out = false")
            words = ["priomap", *BANDS]
        case "codel":
            words += ["target", _us(values["target"]), "interval", _us(values["interval"]), ecn]
        case "fq-codel":
            words += ["flows", str(values["flows"])]
            words += ["target", _us(values["target"]), "interval", _us(values["interval"]), ecn]
        case "pie":
            words += ["target", _us(values["target"]), "tupdate", _us(values["update_interval"]), ecn]
        case _:
            if values["gentle"]:
                raise refusal(scenario, "queue.gentle = true (the default)", "gentle = false")
            # RED in Linux computes the weight of its average from min, max and the burst.
            low, high = scaled(values["min"]), scaled(values["max"])
            words = ["limit", str(packets * (PACKET + ETHERNET)), "min", str(low), "max", str(high)]
            words += ["avpkt", str(PACKET), "burst", str(max(1, (2 * low + high) // (3 * PACKET) + 1))]
            words += ["probability", str(values["max_probability"]), *(["ecn"] if values["ecn"] else [])]
    return Queue(kind.replace("-", "_"), packets, tuple(words))


def _us(seconds: float) -> str:
    """A time in whole microseconds."""
    return f"{round(seconds * 1e9) // 1000}us"
