"""Errors of plugin code in a run, with the place in the plugin's source."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from sparelane.plugins.attributes import MistypedAttributeError, suggestion

PACKAGE = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


class OverLimitError(BaseException):
    """A call exceeded its time limit. Not an `Exception`, so that `except Exception` in a plugin does not catch it."""


class RunOverLimitError(OverLimitError):
    """A run exceeded its time limit during a call into a plugin."""


class PluginError(RuntimeError):
    """Python code of a plugin failed or returned an invalid value. `__cause__` has the original error and traceback.

    Attributes:
        plugin: the plugin, such as `controller "my-law"`.
        file: the file of the failure, if it is known.
        line: the line in that file.
    """

    def __init__(self, message: str, plugin: str = "", file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.file = file
        self.line = line

    def __reduce__(self) -> tuple[type[PluginError], tuple[str, str, str | None, int | None]]:
        return PluginError, (str(self), self.plugin, self.file, self.line)


def failure(plugin: str, at_s: float | None, cause: BaseException) -> PluginError:
    """Wraps an exception from a plugin.

    Args:
        plugin: the plugin, such as `controller "my-law"`.
        at_s: the simulated time, if a run is active.
        cause: the exception.
    """
    what = str(cause) or type(cause).__name__
    if not isinstance(cause, ValueError | PluginError | OverLimitError | MistypedAttributeError):
        what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    if isinstance(cause, AttributeError):
        what += suggestion(cause)
    when = "" if at_s is None else f" at {at_s:.6f} s of the run"
    file, line, where = place(cause)
    at = "" if file is None else f" ({file}, line {line}, in {where})"
    error = PluginError(f"{plugin}{when}: {what}{at}", plugin, file, line)
    error.__cause__ = cause
    return error


def place(cause: BaseException) -> tuple[str | None, int | None, str]:
    """The origin of an exception in plugin code: file, line and function of the innermost frame outside libraries."""
    if isinstance(cause, MistypedAttributeError):
        return cause.place
    if isinstance(cause, SyntaxError) and cause.filename:
        return cause.filename, cause.lineno, "the file"
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if not is_foreign(frame.filename)]
    if not own:
        return None, None, ""
    return own[-1].filename, own[-1].lineno, own[-1].name


def where(cause: BaseException) -> str:
    """The place of an exception as text for messages; empty if it did not come from plugin code."""
    file, line, name = place(cause)
    return "" if file is None else f" in {name} ({file}, line {line})"


def is_foreign(file: str) -> bool:
    """True if a file belongs to a library, to Python, or to this package."""
    path = Path(file)
    homes = (PACKAGE, STANDARD_LIBRARY)
    return file.startswith("<frozen") or "site-packages" in path.parts or any(home in path.parents for home in homes)
