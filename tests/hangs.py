"""Guards against tests that hang.

A test waits for an event, a number of steps or an order of events. It never measures how fast the machine is. The
limit here only ends a test whose event never comes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

# How long a test waits for a process, an answer or a condition before it takes it to hang, seconds. Far longer than any
# machine needs: a test that reaches it has failed, and no test asserts anything about a shorter time.
HANG_S = 300.0


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Waits until a condition holds; fails after `HANG_S`, or if `process`, which should bring it about, ends first."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {HANG_S:g} s"
        # The process may have brought it about as its last deed.
        assert process is None or process.poll() is None or condition(), "the process ended before the condition held"
        time.sleep(0.01)
