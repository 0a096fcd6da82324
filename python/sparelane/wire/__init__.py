"""Encrypted transfers between real hosts, with any of the controllers.

Hosts identify each other by keys (`sparelane keys`).

```python
import sparelane as sl

with sl.wire.Receiver("0.0.0.0:7777", "inbox", keys="keys", trust=[fingerprint]) as receiver:
    for event in receiver.events():
        print(event)
```
"""

from sparelane.wire.transfer import Item, Options, Progress, Receiver, Report, Tunnel, WireError, send

__all__ = ["Item", "Options", "Progress", "Receiver", "Report", "Tunnel", "WireError", "send"]
