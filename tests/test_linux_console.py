"""Tests of the explanations for kernels that did not boot or ended early, from their console output."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparelane._native import LinuxError
from sparelane.cli.commands import linux
from sparelane.uml import console, kernel, running

FLOATING_POINT = """Core dump limits :
	soft - NONE
userspace - ptrace set fp regs failed, errno = 14
Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b
CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12.117 #1
Stack:
 60239a3c 00000000 60003c00 602b8a10
Call Trace:
 [<60003c00>] ? panic+0x0/0x2b0
 [<60103b40>] ? copy_strings_kernel+0x0/0x40
"""


def test_a_panic_is_reported_with_its_line_and_cause_instead_of_the_last_lines() -> None:
    reason = console.explain(FLOATING_POINT, 1)
    assert reason.startswith("the kernel panicked: Attempted to kill init! exitcode=0x0000000b; likely cause: ")
    assert "floating-point registers" in reason
    assert "errno = 14" in reason
    assert "copy_strings" not in reason


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("", -9, "ended by SIGKILL; likely cause: this host has no memory left"),
        (
            "Warning: tempdir /tmp/x is not on tmpfs",
            -6,
            "ended by SIGABRT; likely cause: no room for the kernel's memory",
        ),
        ("Warning: tempdir /tmp/x is not on tmpfs", -25, "ulimit -f"),
        ("/tmp/x must be not mounted noexec", 1, "set TMPDIR"),
        ("setup_physmem - mapping 2135396352 bytes of memory at 0x1 failed - errno = -12", 1, "ulimit -v"),
        ("<5>Linux version 6.12\n<0>Kernel panic - not syncing: Segfault with no mm\n<4> [<6000>] ? x", -6, "no mm"),
        ("", 3, "with status 3, and it wrote nothing"),
        ("", -40, "ended by signal 40"),
        ("check_ptrace : ptrace failed: Operation not permitted", 1, "forbids ptrace"),
        ("Checking PROT_EXEC mmap in /tmp/x...Operation not permitted", 1, "mounted noexec"),
        ("write: No space left on device", 1, "set TMPDIR"),
        ("[    0.120000] Kernel panic - not syncing: VFS: Unable to mount root fs on hostfs", 1, "files of this host"),
        ("Kernel panic - not syncing: Requested init /x failed (error -2).", 1, "start the program of the run"),
        (
            "Kernel panic - not syncing: The system was going to sleep forever, aborting",
            1,
            "nothing was left to happen",
        ),
        ("Kernel panic - not syncing: System is deadlocked on memory", 1, "panicked: System is deadlocked on memory"),
        ("one\n [<60103b40>] ? copy_strings_kernel\n\n 60239a3c 00000000\n", 1, 'its last line was "one"'),
    ],
)
def test_each_kind_of_failure_has_an_understandable_reason(text: str, status: int, expected: str) -> None:
    assert expected in console.explain(text, status)


def fake(folder: Path, script: str) -> kernel.Kernel:
    """Returns a kernel that is a shell script."""
    binary = folder / "linux"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return kernel.Kernel(binary, folder / "guest", "key")


def test_a_kernel_that_panics_at_its_boot_fails_with_the_panic(tmp_path: Path) -> None:
    broken = fake(tmp_path, f"cat <<'END'\n{FLOATING_POINT}END\nexit 1")
    with pytest.raises(LinuxError, match=r"panicked: Attempted to kill init! .*floating-point"):
        running.trial(broken)


def test_a_kernel_that_is_killed_is_reported_with_the_signal(tmp_path: Path) -> None:
    with pytest.raises(LinuxError, match="ended by SIGKILL"):
        running.trial(fake(tmp_path, f"kill -{signal.SIGKILL.value} $$"))


def test_the_build_command_fails_if_the_kernel_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = fake(tmp_path, "echo 'Kernel panic - not syncing: No working init found.'\nexit 1")
    monkeypatch.setattr(kernel, "find", lambda rc3: broken)
    done = CliRunner().invoke(linux.build, [])
    assert isinstance(done.exception, LinuxError)
    assert "does not run on this host: the kernel panicked: No working init found" in str(done.exception)


@pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")
def test_the_build_command_ends_with_a_simulated_second() -> None:
    done = CliRunner().invoke(linux.build, [], catch_exceptions=False)
    packets = int(done.output.split("one simulated second with ")[1].split()[0])
    # The packets of 100 Mb/s for a second without its start, and an acknowledgment for at least every second packet.
    assert packets > 7000
