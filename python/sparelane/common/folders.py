"""Output folders and files, tried before any work is done for them, and what is wrong with folders."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path


class OutputError(Exception):
    """A place that results cannot be written to."""


class SavedResultsError(Exception):
    """A place that results cannot be read from; the message says what is wrong with it."""


def ready_folder(folder: Path) -> Path:
    """Makes the folder if there is none, and tries to write into it.

    Raises:
        OutputError: that does not work.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f'cannot write into the folder "{folder}": {_cause(error)}') from error
    return folder


def check_folder(folder: Path) -> None:
    """Checks that the folder could be made and written into, and leaves nothing behind.

    Raises:
        OutputError: it could not.
    """
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OutputError(f'cannot write into the folder "{folder}": {_cause(error)}') from error


def ready_file(path: Path) -> Path:
    """Tries to open the file for writing; one that was not there is gone again afterwards.

    Raises:
        OutputError: that does not work.
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
    """Writes a file under a name beside its own, and gives it that when it is whole.

    A link stays, and leads to the new content. What is no file, such as a pipe or `/dev/stdout`, is written as it is:
    a file must not take its place.

    Raises:
        OSError: it cannot be written; the file is then as it was.
    """
    if path.exists() and not path.is_file():
        write(path)
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _cause(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
