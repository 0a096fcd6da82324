"""RC3 in the kernel, segment by segment: what a socket is told, and what it does with what a peer may send.

Each script of `linux/rc3/scripts` is one end of a connection; the other one is the kernel's.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sparelane.uml import kernel, running

FOLDER = kernel.FILES / "rc3" / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.script"))
# A script lasts less than two seconds of virtual time, and about one of a processor.
LONGEST_S = 60.0

patched = kernel.find("on")
with_rc3 = pytest.mark.skipif(patched is None, reason="no kernel with RC3: sparelane linux build --rc3")


def played(script: str, place: Path) -> str:
    """What becomes of a script: `as written`, or the first line that is not so."""
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
        said, _ = process.communicate(timeout=LONGEST_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    outcome = place / "outcome"
    assert outcome.exists(), said.decode(errors="replace")[-2000:]
    # What the kernel warns of is an error of the patches.
    assert b"WARNING" not in said, said.decode(errors="replace")[-4000:]
    return outcome.read_text().strip()


@with_rc3
@pytest.mark.parametrize("script", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_the_kernel_does_as_the_script_says(script: Path, tmp_path: Path) -> None:
    assert played(script.read_text(), tmp_path) == "as written"


@with_rc3
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("connect\nwrite 2\n> 0 1..0", "line 3, > 0 1..0: in place of bytes 1000-2000 came: level 0 bytes 0-1000"),
        ("connect\nwrite 1\nquiet 5", "line 3, quiet 5: this came: level 0 bytes 0-1000"),
        ("connect\n> 0 0..0", "line 2, > 0 0..0: nothing came"),
        ("ask 4", "line 1, ask 4: it failed: [Errno 22]"),
        ("ask 0 EPERM", "line 1, ask 0 EPERM: it did not fail with EPERM"),
        ("connect\ncount TCPRc3Sent 1", "line 2, count TCPRc3Sent 1: it is 0"),
        ("connect\ninfo cwnd 11", "line 2, info cwnd 11: it is 10"),
    ],
)
def test_a_script_that_the_kernel_does_not_follow_is_told_by_its_line(script: str, why: str, tmp_path: Path) -> None:
    assert played(script, tmp_path).startswith(why)


def test_each_script_says_what_it_is_for() -> None:
    assert len(SCRIPTS) >= 12
    for script in SCRIPTS:
        first, *commands = script.read_text().splitlines()
        assert first.startswith("# "), script.name
        assert first.endswith("."), script.name
        assert any(line.startswith(("> ", "levels", "quiet")) for line in commands), script.name
