"""Run all that `make bench-wire` measures, one after another, and say at the end what was missed.

Usage: python benches/wire_report.py [COMMAND...]

Each command is a line for the shell; without, they are those of `COMMANDS`. A target that is missed, or a command that
fails, does not keep the others from being measured. The exit status is 1 where there was either.
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

# How a line ends that tells of a missed target.
MISSED = "MISSED"


def run(command: str) -> tuple[list[str], int]:
    """Runs a command and prints what it says; gives the lines with missed targets, and its exit status."""
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
    """Runs all commands; gives the exit status."""
    told: list[str] = []
    for command in commands:
        missed, status = run(command)
        told += missed
        # A command that ends with an error since it has missed targets has told them.
        if status != 0 and not missed:
            told.append(f"`{command}` ended with {status}")
    if told:
        sys.stdout.write("\nmissed:\n" + "".join(f"  {line}\n" for line in told))
        return 1
    sys.stdout.write("\nall targets are met\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or COMMANDS))
