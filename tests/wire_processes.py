"""Commands that talk to other hosts, as processes of their own: what the tests of them share."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SPARELANE = [sys.executable, "-c", "from sparelane.cli.main import main; main()"]


def call(*arguments: str, code: int = 0) -> str:
    """What a command prints that ends with this exit code: on standard output, or on standard error if it fails."""
    done = subprocess.run([*SPARELANE, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


class Keys:
    """Folder and fingerprint of each side's key."""

    def __init__(self, at: Path) -> None:
        self.folder = {side: str(at / side) for side in ("sender", "receiver")}
        self.fingerprint = {
            side: call("keys", "new", "--dir", folder, "--quiet").strip() for side, folder in self.folder.items()
        }

    def of(self, side: str) -> list[str]:
        """The options by which this side knows itself and the other."""
        other = "receiver" if side == "sender" else "sender"
        return ["--keys", self.folder[side], "--trust", self.fingerprint[other]]


class Running:
    """A command that runs, and what it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        # Where it listens, once that is known.
        self.address = ""

    def line(self) -> dict[str, Any]:
        """The next line that it says."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, self.process.communicate(timeout=10)[1]
        told: dict[str, Any] = json.loads(text)
        return told

    def until(self, event: str) -> dict[str, Any]:
        """What it says until it tells of this event."""
        while (told := self.line())["event"] != event:
            pass
        return told

    def rest(self, timeout: float = 30, code: tuple[int, ...] = (0, 3)) -> tuple[list[dict[str, Any]], str]:
        """What it says until it ends, and what it has logged."""
        said, errors = self.process.communicate(timeout=timeout)
        assert self.process.returncode in code, (self.process.returncode, errors)
        return [json.loads(line) for line in said.splitlines()], errors


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    """A command in a process of its own that tells what happens in JSON; it ends with the block, or after a minute."""
    line = [*SPARELANE, *arguments, "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Whoever waits for a line in vain is told by the end of the output.
        alarm = threading.Timer(60, process.kill)
        alarm.start()
        try:
            yield Running(process)
        finally:
            alarm.cancel()
            process.kill()
