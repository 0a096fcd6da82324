"""Two bulk flows over a dumbbell: flow 0 completes, and flow 1 lasts until the end of the run."""

from __future__ import annotations

from typing import Any

WORKLOADS = """\
[[workload]]
kind = "bulk"
pairs = [["left0", "right0"]]
size = "100kB"

[[workload]]
kind = "bulk"
pairs = [["left1", "right1"]]

[sample]
interval = "100ms"
flows = [0]
"""

# The same tables as part of a dictionary.
TABLES: dict[str, Any] = {
    "workload": [
        {"kind": "bulk", "pairs": [["left0", "right0"]], "size": "100kB"},
        {"kind": "bulk", "pairs": [["left1", "right1"]]},
    ],
    "sample": {"interval": "100ms", "flows": [0]},
}
