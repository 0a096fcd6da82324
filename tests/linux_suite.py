"""Runs the tests of `make test-linux`: the full or the short set, depending on the measured speed of this host.

Hosts that are slow at switching between processes, such as virtual machines in others, boot User-Mode Linux up to ten
times more slowly than a desktop. The short set leaves out tests that are marked `long_on_linux`: repetitions with other
parameters, and experiments.

Usage: python tests/linux_suite.py [full|short]; by default, the measurement decides.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparelane._native import LinuxError
from sparelane.uml import kernel, running

# The maximum duration of a trial on a host that runs the full set, seconds. A trial is `running.TRIAL` with its boot.
# On one core, the full set takes about 160 times as long as a trial, and the short set about 50 times.
FULL_UP_TO_S = 5.0
# The number of trials. The fastest counts, since other programs can only make a trial longer.
TRIALS = 2
# The file with the longest test comes first.
FILES = ("test_linux_controllers", "test_linux", "test_linux_console", "test_linux_vectors", "test_linux_rtcp")
# The minimum number of tests that must pass: almost the whole set.
LEAST_PASSED = {"full": 205, "short": 172}


def measured_s() -> float:
    """Returns the duration of a trial on this host, seconds."""
    found = kernel.find()
    if found is None:
        raise LinuxError("there is no kernel to test: sparelane linux build")
    return min(running.trial(found).seconds for _ in range(TRIALS))


def set_for(trial_s: float) -> str:
    """Returns the set of tests for a host with this duration of a trial."""
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
