"""What is kept of runs, on disk, as soon as they are done: one line of JSON each, under the run's name.

Lines are only ever appended. What a full disk or a killed process leaves of a line is passed over when the journal is
read, and cut off before more is written.
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
    """The journal of a folder, open for reading once and then for appending; nobody else may write it meanwhile.

    Attributes:
        has_others: whether it holds runs that were not wanted when it was last read.
    """

    has_others = False

    def __init__(self, folder: Path) -> None:
        """Opens the journal, and makes one where there is none.

        Raises:
            OutputError: it cannot be written, or another sweep does.
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
        """What is kept of the wanted runs, by name; runs that failed are not among them."""
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
        self._file.truncate(end)
        return found

    def append(self, name: str, kept: Kept) -> None:
        """Adds what is kept of a run; it is in the hands of the operating system when this returns.

        Raises:
            OSError: it cannot be written.
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
            # What could not be written was said when it was tried.
            return
