"""Outcomes of simulations in the user's cache, so that an unchanged simulation is not run again.

An outcome is stored under a hash of everything that decides it. For the simulator, this is the resolved scenario with
its seed, and the compiled module. For Linux, it is the network with its flows, the seed, and the kernel. Both include
the Python modules that turn results into tables. Scenarios of equal meaning therefore share an outcome, and another
version of the program never reads the outcomes of this one.

Several processes may use one store, because entries are written under temporary names and then renamed. If the store
exceeds its limit, the entries that were not used for the longest time are removed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from sparelane.common import folders
from sparelane.papers.engine.base import Outcome
from sparelane.results import manifest

# The folder of the package.
PACKAGE = Path(__file__).parents[2]
# The version of the layout of entries.
LAYOUT = 2
TABLES = ("flows", "links", "drops", "delays", "series", "packets")
FACTS = "outcome.json"
DIGEST_BYTES = 20
# The modules and packages that turn the results of the simulator and of Linux into an outcome.
SIMULATOR_SOURCES = ("simulation", "common/frames.py", "papers/engine/simulations.py")
LINUX_SOURCES = (*SIMULATOR_SOURCES, "uml")
# The age after which a temporary file of a process that was killed is removed, seconds.
ABANDONED_S = 86_400.0


def simulator_key(resolved: str) -> str:
    """The key of a simulation, from its scenario as `Prepared.resolved` returns it."""
    return _hash(str(LAYOUT), manifest.engine(), _sources(SIMULATOR_SOURCES), resolved)


def linux_key(fingerprint: str) -> str:
    """The key of a run on Linux, from the fingerprint of `running.Prepared`."""
    return _hash(str(LAYOUT), _sources(LINUX_SOURCES), fingerprint)


def _hash(*parts: str) -> str:
    mixed = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        # The lengths keep the parts apart.
        mixed.update(f"{len(part)}:{part}".encode())
    return mixed.hexdigest()


@cache
def _sources(names: tuple[str, ...]) -> str:
    """A hash of Python modules, and of all modules in packages."""
    places = [PACKAGE / name for name in names]
    paths = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return _hash(*(f"{path.relative_to(PACKAGE)}\0{path.read_text(encoding='utf-8')}" for path in paths))


class _Sizes:
    """The sizes of stores as this process knows them, so that a write need not list all entries.

    A write lists them if the store may exceed its limit, and otherwise once a hundredth of the limit is written, since
    other processes may write, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The bytes at the last listing, and the bytes written since.
        self._of: dict[Path, tuple[int, int]] = {}

    def listed(self, folder: Path, size_bytes: int) -> None:
        """Takes the size of all entries."""
        with self._lock:
            self._of[folder] = (size_bytes, 0)

    def is_due(self, folder: Path, size_bytes: int, limit_bytes: int) -> bool:
        """Adds an entry, and returns true if the entries have to be listed."""
        with self._lock:
            if folder not in self._of:
                return True
            listed, written = self._of[folder]
            written += size_bytes
            self._of[folder] = (listed, written)
            return listed + written > limit_bytes or written > limit_bytes // 100


_sizes = _Sizes()


class DamagedError(Exception):
    """An entry cannot be read."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of outcomes.

    Attributes:
        limit_bytes: the largest size of all entries; with 0 the store stays empty.
        is_fresh: true to run all simulations and replace their entries.
        place: the folder; `None` is `sparelane/outcomes` in the user's cache on the machine that simulates.
    """

    limit_bytes: int
    is_fresh: bool = False
    place: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder, which may not exist yet."""
        return self.place or folders.cache_folder("outcomes")

    def outcome(self, key: str, simulate: Callable[[], Outcome]) -> Outcome:
        """Returns a stored outcome, or simulates and stores it. Problems with the store are noted in the outcome."""
        problem = ""
        if not self.is_fresh:
            try:
                if (found := self._read(key)) is not None:
                    return replace(found, is_reused=True)
            except DamagedError as error:
                problem = f"cannot read a stored outcome, so its simulation ran again: {error}"
        found = simulate()
        try:
            self._write(key, found)
        except OSError as error:
            problem = f'cannot store outcomes in "{self.folder}": {(error.strerror or str(error)).lower()}'
        return replace(found, problem=problem)

    def shrink(self) -> None:
        """Removes the entries that were not used for the longest time, until the store is within its limit.

        Raises:
            OSError: the folder cannot be read.
        """
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for used_s, size, path in entries:
            is_abandoned = path.suffix == folders.PARTIAL and used_s < time.time() - ABANDONED_S
            if is_abandoned or (total > self.limit_bytes and path.suffix != folders.PARTIAL):
                # Another process may have removed it.
                path.unlink(missing_ok=True)
                total -= size
        _sizes.listed(self.folder, total)

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """The time of the last use, the size and the path of each file."""
        if not self.folder.is_dir():
            return
        for file in os.scandir(self.folder):
            try:
                about = file.stat()
            except FileNotFoundError:
                continue
            yield about.st_mtime, about.st_size, Path(file.path)

    def _path(self, key: str) -> Path:
        return self.folder / key

    def _read(self, key: str) -> Outcome | None:
        path = self._path(key)
        try:
            outcome = _unpacked(path.read_bytes())
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise DamagedError(f'"{path}": {error}') from error
        return outcome

    def _write(self, key: str, outcome: Outcome) -> None:
        if not self.limit_bytes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        packed = _packed(outcome)
        folders.replaced(self._path(key), lambda path: path.write_bytes(packed))
        if _sizes.is_due(self.folder, len(packed), self.limit_bytes):
            self.shrink()


def _packed(outcome: Outcome) -> bytes:
    """An outcome as a ZIP archive of JSON and Arrow files, after a digest of the archive."""
    facts = {"digest": outcome.digest, "cpu_s": outcome.cpu_s, "counters": outcome.counters}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(FACTS, json.dumps(facts))
        for name in TABLES:
            table = io.BytesIO()
            getattr(outcome, name).write_ipc(table, compression="zstd")
            archive.writestr(name, table.getvalue())
    return _digest(packed.getvalue()) + packed.getvalue()


def _unpacked(content: bytes) -> Outcome:
    """The outcome that `_packed` has packed.

    Raises:
        ValueError: the content is damaged.
    """
    digest, packed = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if _digest(packed) != digest:
        raise ValueError("the content does not match its digest")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        found: dict[str, Any] = json.loads(archive.read(FACTS))
        found |= {name: pl.read_ipc(io.BytesIO(archive.read(name))) for name in TABLES}
    return Outcome(**found)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
