"""The journal of a sweep, to which each outcome is appended when a run finishes, as one line of JSON.

Lines are only appended. An incomplete line after a full disk or a killed process is ignored when the journal is read,
and cut off before more is written.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Set
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from sparelane.common.folders import OutputError

FILE = "results.jsonl"

Kept = Mapping[str, Any]


class Journal:
    """The journal of a folder, locked against other processes while it is open.

    Attributes:
        has_others: true if the last `read` found runs that were not wanted.
    """

    has_others = False

    def __init__(self, folder: Path) -> None:
        """Opens the journal, or creates one.

        Raises:
            OutputError: the file cannot be written, or another sweep writes to it.
        """
        path = folder / FILE
        try:
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise OutputError(f'cannot write the file "{path}": {(error.strerror or str(error)).lower()}') from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise OutputError(f'another sweep writes into "{folder}": wait for it, or use another folder') from error

    def read(self, wanted: Set[str]) -> dict[str, Kept]:
        """The outcomes of the wanted runs, by name, without failed runs."""
        found: dict[str, Kept] = {}
        self.has_others = False
        self._file.seek(0)
        end = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            try:
                name, kept = json.loads(line)
            except ValueError:
                continue
            if "error" in kept:
                continue
            if name in wanted:
                found[name] = kept
            else:
                self.has_others = True
        # Cuts off an incomplete last line.
        self._file.truncate(end)
        return found

    def append(self, name: str, kept: Kept) -> None:
        """Appends the outcome of a run, and passes it to the operating system.

        Raises:
            OSError: the file cannot be written.
        """
        self._file.write(json.dumps([name, kept]).encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError:
            # `append` has raised this error already.
            return
