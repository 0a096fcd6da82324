"""Tests that User-Mode Linux preserves vector registers, whatever the size of the host's processor state.

The tests boot a kernel with a program that fills all registers, makes the kernel switch between processes and threads,
deliver signals and handle page faults, and then compares the registers. A preloaded library makes the host appear to
have a larger state, such as that of a processor with AMX.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from hangs import HANG_S
from sparelane.uml import kernel, running

SOURCES = Path(__file__).parent / "linux_guests"
CHECKS = ("processes", "threads", "fork", "faults", "signals", "frames", "roomy", "tight")

found = kernel.find()
pytestmark = [
    pytest.mark.skipif(found is None, reason="there is no kernel: sparelane linux build"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]


@cache
def compiled(folder: Path, name: str, *options: str) -> Path:
    target = folder / Path(name).stem
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", *options, "-o", target, SOURCES / name],
        check=True,
        timeout=HANG_S,
    )
    return target


def boot(place: Path, state_bytes: int | None) -> tuple[str, str]:
    """Returns the outcome and the console of a kernel on a host with this size of processor state; `None`: its own."""
    assert found is not None
    program = compiled(place, "vectors.c", "-static", "-pthread")
    environment = running.environment(place, 1)
    if state_bytes is not None:
        library = compiled(place, "larger_state.c", "-shared", "-fPIC")
        environment |= {"LD_PRELOAD": str(library), "STATE_BYTES": str(state_bytes)}
    done = subprocess.run(
        running.command(found.binary, program, str(place), memory="256M"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=place,
        timeout=HANG_S,
        start_new_session=True,
        check=False,
    )
    outcome = place / "outcome"
    return outcome.read_text() if outcome.exists() else "", done.stdout.decode(errors="replace")


# The host's own size, that of processors with AMX, of which User-Mode Linux 6.12 saves a quarter, and one that exceeds
# the first buffer with which the kernel requests it.
@pytest.mark.parametrize("state_bytes", [None, 11_008, 70_000])
def test_vector_registers_survive_switches_faults_and_signals(state_bytes: int | None, tmp_path: Path) -> None:
    outcome, console = boot(tmp_path, state_bytes)
    results = dict(line.split(": ", 1) for line in outcome.splitlines()[1:])
    assert results == dict.fromkeys(CHECKS, "ok"), console[-2000:]
    frame = int(outcome.splitlines()[0].rsplit(" ", 1)[1])
    assert frame > (state_bytes or 512)
    assert "errno" not in console
