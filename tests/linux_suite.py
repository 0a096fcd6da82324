"""The tests of `make test-linux`: measures how fast this host runs the kernel, and runs the set of tests that fits.

Hosts that are slow at switching between processes, such as virtual machines in others, boot User-Mode Linux up to ten
times more slowly than a desktop. The short set leaves out tests that are marked `long_on_linux`: those that repeat with
another parameter what the set shows already, and experiments.

Usage: python tests/linux_suite.py [full|short]; without a word the measurement decides.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparelane._native import LinuxError
from sparelane.uml import kernel, running

# The longest trial on a host that runs the full set, seconds. A trial is `running.TRIAL` with its boot. The full set
# takes as long as some 160 of them on one processor, the short set as some 50.
FULL_UP_TO_S = 5.0
# How often the trial is run: the fastest counts, since other programs can only make it longer.
TRIALS = 2
# The longest test is in the first file.
FILES = ("test_linux_controllers", "test_linux", "test_linux_console", "test_linux_vectors", "test_linux_rtcp")
# How many tests have to pass at least: nearly all of the set.
LEAST_PASSED = {"full": 140, "short": 120}


def measured_s() -> float:
    """The time that this host takes for a trial, seconds."""
    found = kernel.find()
    if found is None:
        raise LinuxError("there is no kernel to test: sparelane linux build")
    return min(running.trial(found).seconds for _ in range(TRIALS))


def set_for(trial_s: float) -> str:
    """Returns the set of tests for a host by the duration of its trial run."""
    return "full" if trial_s <= FULL_UP_TO_S else "short"


def main(words: list[str]) -> int:
    """Measures the host, prints one line, runs the tests, and returns pytest's exit code."""
    if len(words) > 1 or not set(words) <= set(LEAST_PASSED):
        print(f"{' '.join(words)}: allowed: full, short, or nothing", file=sys.stderr)
        return 2
    trial_s = measured_s()
    which = words[0] if words else set_for(trial_s)
    speed = f"one simulated second takes {trial_s:.1f} s on this host"
    print(f"{speed} (full set: up to {FULL_UP_TO_S:.1f} s): running the {which} set", flush=True)
    tests = [str(Path(__file__).parent / f"{name}.py") for name in FILES]
    marked = ["-m", "not long_on_linux"] if which == "short" else []
    options = ["-q", "--numprocesses", "auto", "--least-passed", str(LEAST_PASSED[which]), *marked]
    return subprocess.run([sys.executable, "-m", "pytest", *options, *tests], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
