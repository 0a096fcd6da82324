"""Real programs over a simulated network, in real time.

```python
from sparelane import emulation

with emulation.network("two-flows-priority") as net:
    server = net.start("right0", ["iperf3", "-s", "-1"])
    net.start("left0", ["iperf3", "-c", net.address("right0")]).wait()
print(net.outcome().links)
```
"""

from sparelane.emulation.emulator import Host, Network, Outcome, SelfTest, missing, network

__all__ = ["Host", "Network", "Outcome", "SelfTest", "missing", "network"]
