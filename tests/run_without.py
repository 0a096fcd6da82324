"""Runs command lines in a process that lacks some capabilities, and prints exit codes and standard error as JSON.

Usage: `python run_without.py CAPABILITY...`, with a JSON list of command lines on standard input. The output is a list
with the exit code and the standard error of each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path

# The import names of the libraries of all extras.
EXTRA_LIBRARIES = frozenset({"distributed", "gymnasium", "matplotlib", "pettingzoo", "scipy"})


class HidingFinder(MetaPathFinder):
    """Refuses to import the libraries of extras, before other finders are tried."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in EXTRA_LIBRARIES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without_extras() -> None:
    sys.meta_path.insert(0, HidingFinder())
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: None if name in EXTRA_LIBRARIES else find_spec(name, package)


def without_root() -> None:
    os.geteuid = lambda: 65534


def without_linux() -> None:
    # Loads Python's own settings first, which are in a file named after the real platform.
    sysconfig.get_config_vars()
    sys.platform = "darwin"
    del socket.TCP_CONGESTION
    from sparelane import _native

    for name in (
        "Emulation",
        "LoadedController",
        "Watch",
        *(name for name in vars(_native) if name.startswith("linux_")),
    ):
        delattr(_native, name)


def without_programs() -> None:
    os.environ["PATH"] = ""


def without_kernel() -> None:
    os.environ["XDG_CACHE_HOME"] = str(Path("cache").resolve())


def without_names() -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    socket.getaddrinfo = unknown  # type: ignore[assignment]


CAPABILITIES: dict[str, Callable[[], None]] = {
    "extras": without_extras,
    "root": without_root,
    "programs": without_programs,
    "kernel": without_kernel,
    "names": without_names,
    "linux": without_linux,
}


def run_all(lines: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Returns the exit code and the standard error of each command line."""
    from click.testing import CliRunner

    from sparelane.cli.main import main

    found = []
    for arguments in lines:
        result = CliRunner().invoke(main, arguments)
        failure = "" if result.exception is None or isinstance(result.exception, SystemExit) else repr(result.exception)
        found.append((result.exit_code, result.stderr + failure))
    return found


if __name__ == "__main__":
    for capability in sys.argv[1:]:
        CAPABILITIES[capability]()
    print(json.dumps(run_all(json.load(sys.stdin))))
