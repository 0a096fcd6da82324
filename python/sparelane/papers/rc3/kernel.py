"""The scenario of experiments on the kernel with RC3, and the overrides that several of them use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SCENARIO = "rc3-kernel"
# Controllers by their names in rows.
INNER: Mapping[str, str] = {"New Reno": "newreno", "CUBIC": "cubic"}
# Hosts send and receive up to 44 packets as one: TSO and GRO. A card that joins packets waits for the next one.
OFFLOAD = ("transport.send_batch=44", "transport.receive_batch=44", "transport.receive_batch_timeout=20us")


def workload(flows: Iterable[tuple[str, tuple[str, ...], str, int]]) -> str:
    """Returns the override for flows, each with its scheme, its two hosts, its size, and its start in milliseconds."""
    listed = ", ".join(
        f"{{ kind = 'bulk', scheme = '{scheme}', pairs = [{list(hosts)}], size = '{size}', start = '{start_ms}ms' }}"
        for scheme, hosts, size, start_ms in flows
    )
    return f"workload=[{listed}]"
