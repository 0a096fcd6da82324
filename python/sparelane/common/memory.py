"""How much memory this process took at its peak."""

from __future__ import annotations

import resource
from pathlib import Path

CLEAR_PEAK = "5"


def forget_peak() -> None:
    """Starts the measurement anew, where the kernel lets us; else the peak is that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK, encoding="ascii")
    except OSError:
        return


def peak_bytes() -> int:
    """The most memory resident since `forget_peak`, or since the start where the kernel does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(fields["VmHWM"].split()[0]) * 1024
