"""Explains why a kernel ended without results, from the output on its console."""

from __future__ import annotations

import re
import signal

PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
# Lines of the kernel's console and their causes in the words of users. The first pattern that matches counts.
CAUSES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), cause)
    for pattern, cause in (
        (
            r"(get|set) fp regs failed|get_fp_registers failed|Failed to initialize default registers",
            "this host does not hand over the floating-point registers of a process, or does not take them back",
        ),
        (
            r"ptrace.*(Operation not permitted|errno = 1\b)|check_ptrace.*failed|check_sysemu.*failed",
            "this host forbids ptrace, as containers may; allowed: a host or container where `strace true` works",
        ),
        (
            r"PROT_EXEC.*(Operation not permitted|failed)|not mounted noexec",
            "the folder for temporary files is mounted noexec: set TMPDIR",
        ),
        (
            r"No space left on device|Disk quota exceeded",
            "there is no room for the kernel's memory in the folder for temporary files: set TMPDIR",
        ),
        (
            r"Cannot allocate memory|failed.*errno = -?12\b",
            "this host has no memory left for the kernel, or a limit (ulimit -v)",
        ),
        (r"Out of memory|oom-kill", "the kernel's own memory is used up: too many hosts, flows or bytes in flight"),
        (r"Requested init .* failed|No working init found", "the kernel cannot start the program of the run"),
        (r"Unable to mount root fs|Cannot open root device", "the kernel cannot read the files of this host"),
        (r"going to sleep forever", "nothing was left to happen in virtual time"),
        (r"Attempted to kill init", "the program of the run was ended by a signal"),
    )
)
# Likely causes of signals that end the kernel's process without a line on its console.
NO_ROOM = "no room for the kernel's memory in the folder for temporary files (set TMPDIR)"
SIGNALS: dict[int, str] = {
    signal.SIGKILL: "this host has no memory left",
    signal.SIGABRT: NO_ROOM,
    signal.SIGBUS: NO_ROOM,
    signal.SIGXFSZ: "files of this process may not be as large as the kernel's memory (ulimit -f)",
}
# Lines of a stack trace, which help only readers of the kernel's source.
TRACE = re.compile(
    r"^\s*(\[<|\? |Call Trace|Stack:|Modules linked in|Pid: |CPU: |RIP: |RSP: |RAX: |RDX: |RBP: |R\d+: |EFLAGS|"
    r"Code: |---\[|Kernel Offset|[0-9a-f]{8,16}( [0-9a-f]{8,16})*\s*$)"
)
# The level and the time at the beginning of a line.
STAMP = re.compile(r"^(<\d>)?(\[\s*\d+\.\d+\]\s*)?")


def explain(console: str, status: int) -> str:
    """Explains in one line why a kernel ended: its panic, the likely cause, and the line that shows the cause.

    Args:
        console: the whole output of the kernel.
        status: the exit status of its process, as in `subprocess`: negative for a signal.
    """
    lines = [STAMP.sub("", line).strip() for line in console.splitlines()]
    lines = [line for line in lines if line and not TRACE.match(line)]
    panic = next((found[1].strip() for line in lines if (found := PANIC.search(line))), None)
    ended = f"the kernel panicked: {panic}" if panic is not None else _ended(status)
    for pattern, cause in CAUSES:
        for line in lines:
            if pattern.search(line):
                shown = "" if panic is not None and panic in line else f' ("{line}")'
                return f"{ended}; likely cause: {cause}{shown}"
    if panic is not None:
        return ended
    if -status in SIGNALS:
        return f"{ended}; likely cause: {SIGNALS[-status]}"
    return f'{ended}; its last line was "{lines[-1]}"' if lines else f"{ended}, and it wrote nothing"


def _ended(status: int) -> str:
    if status >= 0:
        return f"the kernel ended without results, with status {status}"
    try:
        return f"the kernel was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the kernel was ended by signal {-status}"
