"""Runs real programs over a simulated network, in real time.

```python
from sparelane import emulation

with emulation.network("two-flows-priority") as net:
    server = net.start("right0", ["iperf3", "-s", "-1"])
    net.start("left0", ["iperf3", "-c", net.address("right0")]).wait()
print(net.outcome().links)
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparelane.emulation.emulator import Host, Network, Outcome, SelfTest, missing, network

__all__ = ["Host", "Network", "Outcome", "SelfTest", "missing", "network"]


if not TYPE_CHECKING:
    # Type checkers must not see this function, which would make every name valid to them.
    def __getattr__(name: str) -> object:
        """Imports a public name when it is first used, since the process of a delay line needs none of them."""
        from sparelane.common.lazy import public_name

        return public_name(__name__, name, dict.fromkeys(__all__, "sparelane.emulation.emulator"))


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
