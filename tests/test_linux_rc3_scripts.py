"""Tests of RC3 in the kernel with scripts of single segments.

Each script in `linux/rc3/scripts` is one end of a connection; the kernel is the other end.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hangs import HANG_S
from sparelane.uml import kernel, running

FOLDER = kernel.FILES / "rc3" / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.script"))
# A script takes less than 2 s of virtual time and about 1 s of processor time.

patched = kernel.find("on")
with_rc3 = pytest.mark.skipif(patched is None, reason="no kernel with RC3: sparelane linux build --rc3")


def outcome_of(script: str, place: Path) -> str:
    """Runs a script and returns `as written`, or the first line that failed."""
    assert patched is not None
    (place / "script").write_text(script)
    python = Path(sys.executable).resolve()
    process = subprocess.Popen(
        running.command(patched.binary, python, "-IS", str(FOLDER / "play.py"), str(place), memory="256M"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=running.environment(place, 1),
        cwd=place,
        start_new_session=True,
    )
    try:
        console, _ = process.communicate(timeout=HANG_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    outcome = place / "outcome"
    assert outcome.exists(), console.decode(errors="replace")[-2000:]
    # A warning of the kernel is an error of the patches.
    assert b"WARNING" not in console, console.decode(errors="replace")[-4000:]
    return outcome.read_text().strip()


@with_rc3
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_the_kernel_follows_the_script(script: Path, tmp_path: Path) -> None:
    assert outcome_of(script.read_text(), tmp_path) == "as written"


@with_rc3
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("connect\nwrite 2\n> 0 1..0", "line 3, > 0 1..0: in place of bytes 1000-2000 came: level 0 bytes 0-1000"),
        ("connect\nwrite 1\nquiet 5", "line 3, quiet 5: this came: level 0 bytes 0-1000"),
        ("connect\n> 0 0..0", "line 2, > 0 0..0: nothing came"),
        ("ask 8", "line 1, ask 8: it failed: [Errno 22]"),
        ("ask 0 EPERM", "line 1, ask 0 EPERM: it did not fail with EPERM"),
        ("connect\ncount TCPRc3Sent 1", "line 2, count TCPRc3Sent 1: it is 0"),
        ("connect\ninfo cwnd 11", "line 2, info cwnd 11: it is 10"),
    ],
)
def test_a_script_that_fails_is_reported_with_its_line(script: str, expected: str, tmp_path: Path) -> None:
    assert outcome_of(script, tmp_path).startswith(expected)


def test_each_script_starts_with_its_purpose() -> None:
    assert len(SCRIPTS) >= 12
    for script in SCRIPTS:
        first, *commands = script.read_text().splitlines()
        assert first.startswith("# "), script.name
        assert first.endswith("."), script.name
        assert any(line.startswith(("> ", "levels", "quiet")) for line in commands), script.name
