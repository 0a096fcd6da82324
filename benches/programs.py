"""Compile and run the programs of other simulators."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import workloads
from peers_rows import PeersError

FOLDER = Path(__file__).resolve().parent
WORK = workloads.DEFAULT_FOLDER


def cpp_compiler(simulator: str) -> str:
    """Return the path of g++.

    Raises:
        PeersError: g++ is not installed.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise PeersError(f"g++ is missing, which the comparison with {simulator} needs; on Debian: apt install g++")
    return compiler


def must_run(command: Sequence[str], failure: str, limit_s: float | None = None) -> str:
    """Run a program and return its standard output.

    Raises:
        PeersError: The program failed; the message has `failure` and the end of its output.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 0:
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise PeersError(f"{failure} (exit status {done.returncode})\n{output}")
    return done.stdout


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"benches: {what}", file=sys.stderr, flush=True)
