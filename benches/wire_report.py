"""Run all measurements of `make bench-wire` one after the other, and list missed targets at the end.

Usage: python benches/wire_report.py [COMMAND...]

Each command is a shell command line; the default is `COMMANDS`. All commands run even if one misses a target or fails.
The exit status is 1 if there was a missed target or a failure.
"""

import shlex
import subprocess
import sys
from collections.abc import Sequence

WIRE = "cargo run --quiet --release -p sparelane-net --example wire --"
COMMANDS = (
    f"{WIRE} virtual",
    "cargo test --quiet -p sparelane-net --test prediction -- --nocapture",
    f"{WIRE} loopback",
    "cargo run --quiet --release -p sparelane-net --example associations -- 1000",
    f"{shlex.quote(sys.executable)} benches/wire.py",
)

# The end of a line that reports a missed target.
MISSED = "MISSED"


def run(command: str) -> tuple[list[str], int]:
    """Run a command, print its output, and return the lines with missed targets and the exit status."""
    missed = []
    with subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if line.rstrip().endswith(MISSED):
                missed.append(line.strip())
    return missed, process.returncode


def main(commands: Sequence[str]) -> int:
    """Run all commands and return the exit status."""
    failures: list[str] = []
    for command in commands:
        missed, status = run(command)
        failures += missed
        # A command that fails because of missed targets has already listed them.
        if status != 0 and not missed:
            failures.append(f"`{command}` failed with exit status {status}")
    if failures:
        sys.stdout.write("\nmissed:\n" + "".join(f"  {line}\n" for line in failures))
        return 1
    sys.stdout.write("\nall targets are met\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or COMMANDS))
