"""Peak memory of this process."""

from __future__ import annotations

import resource
from pathlib import Path

# The value that resets the peak (proc_pid_clear_refs(5)).
CLEAR_PEAK = "5"


def reset_peak() -> None:
    """Resets the peak if the kernel allows it; otherwise it covers the whole life of the process."""
    try:
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK, encoding="ascii")
    except OSError:
        return


def peak_bytes() -> int:
    """The peak resident memory since `reset_peak`, in bytes; since the start on systems without /proc."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(fields["VmHWM"].split()[0]) * 1024
