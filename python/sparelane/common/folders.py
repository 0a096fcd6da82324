"""Checks of output folders and files, and atomic writes.

Commands check that they can write their output before they work for hours, and readers never see a partial file.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

# The ending of temporary files.
PARTIAL = ".partial"


class OutputError(Exception):
    """Results cannot be written to a path."""


class SavedResultsError(Exception):
    """Results cannot be read from a path. The message names the reason."""


def cache_folder(name: str) -> Path:
    """The folder `sparelane/NAME` in the user's cache, which XDG_CACHE_HOME moves. It may not exist yet."""
    return _base("XDG_CACHE_HOME", ".cache") / "sparelane" / name


def config_folder() -> Path:
    """The folder `sparelane` in the user's configuration, which XDG_CONFIG_HOME moves. It may not exist yet."""
    return _base("XDG_CONFIG_HOME", ".config") / "sparelane"


def _base(variable: str, usual: str) -> Path:
    """A base folder of the XDG specification, which ignores relative paths in its variables."""
    given = os.environ.get(variable, "")
    return Path(given) if given.startswith("/") else Path.home() / usual


def ready_folder(folder: Path) -> Path:
    """Creates the folder if it does not exist, and checks that it is writable.

    Raises:
        OutputError: the folder cannot be created or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f'cannot write into the folder "{folder}": {_cause(error)}') from error
    return folder


def check_folder(folder: Path) -> None:
    """Checks that the folder could be created and written, without creating it.

    Raises:
        OutputError: the folder cannot be created or written.
    """
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OutputError(f'cannot write into the folder "{folder}": {_cause(error)}') from error


def ready_file(path: Path) -> Path:
    """Checks that the file can be written. A file that did not exist is removed again.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        existed = path.exists()
        with path.open("a"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise OutputError(f'cannot write the file "{path}": {_cause(error)}') from error
    return path


def replaced(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file atomically: under a temporary name in the same folder, which then replaces the file.

    Several threads and processes may write the same file at once; the last one replaces it.

    A symbolic link is followed, so the file that it points to is replaced. Paths that are not regular files, such as
    pipes and `/dev/stdout`, are written directly, since a file must not replace them.

    Raises:
        OSError: the file cannot be written; it is then unchanged.
    """
    if path.exists() and not path.is_file():
        write(path)
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{PARTIAL}")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _cause(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def plain_name(text: str) -> str:
    """Returns a text as part of a file name: lower-case letters, digits and dots, with hyphens for all others."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
