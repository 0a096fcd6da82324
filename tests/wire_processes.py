"""Starts `send`, `recv`, `tunnel` and others in separate processes, for the tests of transfers."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command_line import SPARELANE
from hangs import HANG_S, wait_until
from sparelane import _native


def call(*arguments: str, code: int = 0) -> str:
    """Runs a command, checks its exit code, and returns its standard output, or standard error if the code is not 0."""
    done = subprocess.run([*SPARELANE, *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


class Keys:
    """The folder and the fingerprint of each side's key."""

    def __init__(self, at: Path) -> None:
        self.folder = {side: str(at / side) for side in ("sender", "receiver")}
        self.fingerprint = {side: _native.new_key(folder) for side, folder in self.folder.items()}

    def of(self, side: str) -> list[str]:
        """Returns the options with this side's keys and its trust in the other side."""
        other = "receiver" if side == "sender" else "sender"
        return ["--keys", self.folder[side], "--trust", self.fingerprint[other]]


class Running:
    """A running command and its output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._log: list[str] = []
        self._logging = threading.Thread(target=self._read_log, daemon=True)
        self._logging.start()
        # The address at which it listens, once known.
        self.address = ""

    def line(self) -> dict[str, Any]:
        """Returns the next event that it prints."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, self._whole_log()
        found: dict[str, Any] = json.loads(text)
        return found

    def until(self, event: str) -> dict[str, Any]:
        """Skips events until one of this kind, and returns it."""
        while (found := self.line())["event"] != event:
            pass
        return found

    def until_logged(self, text: str) -> None:
        """Waits for a line with this text on standard error."""
        wait_until(lambda: any(text in line for line in self._log), self.process)

    def rest(self, code: tuple[int, ...] = (0, 3)) -> tuple[list[dict[str, Any]], str]:
        """Waits for its end, and returns the remaining events and all of standard error."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        self.process.wait(HANG_S)
        errors = self._whole_log()
        assert self.process.returncode in code, (self.process.returncode, errors)
        return [json.loads(line) for line in output.splitlines()], errors

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._log.append(line)

    def join(self) -> None:
        """Waits until its log has ended."""
        self._logging.join(HANG_S)

    def _whole_log(self) -> str:
        self.join()
        return "".join(self._log)


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    """Runs a command with `--json` in a separate process, which ends with the block, or after `HANG_S`."""
    line = [*SPARELANE, *arguments, "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        command = Running(process)
        # A test that waits for a line too long then reads the end of the output and fails.
        alarm = threading.Timer(HANG_S, process.kill)
        alarm.start()
        try:
            yield command
        finally:
            alarm.cancel()
            process.kill()
            command.join()
