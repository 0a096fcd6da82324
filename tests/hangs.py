"""Time limits that only end tests that hang.

Tests wait for an event, a number of steps or an order of events, and never depend on the speed of the machine.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

# The time after which a test that waits for a process, an answer or a condition fails, seconds. No machine needs that
# long, and no test checks a shorter time.
HANG_S = 300.0


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Waits until a condition holds; fails after `HANG_S`, or if `process`, which should cause it, ends before."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {HANG_S:g} s"
        # The process may have caused the condition just before it ended.
        assert process is None or process.poll() is None or condition(), "the process ended before the condition held"
        time.sleep(0.01)
