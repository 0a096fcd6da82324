"""What is raised where somebody's own Python code goes wrong in a run."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from sparelane.plugins.attributes import MistypedAttributeError, meant

PACKAGE = Path(__file__).parents[1]
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


class OverLimitError(BaseException):
    """A call takes longer than it may. It is no `Exception`, so that no `except Exception` of a plugin holds it up."""


class RunOverLimitError(OverLimitError):
    """A whole run takes longer than it may, and is in a call of a plugin."""


class PluginError(RuntimeError):
    """Python code of a plugin failed, or gave what cannot be; the cause is in `__cause__`, with its traceback.

    Attributes:
        plugin: whose code, such as `controller "my-law"`.
        file: the file in which it failed, if that is known.
        line: the line there.
    """

    def __init__(self, message: str, plugin: str = "", file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.file = file
        self.line = line

    def __reduce__(self) -> tuple[type[PluginError], tuple[str, str, str | None, int | None]]:
        return PluginError, (str(self), self.plugin, self.file, self.line)


def failure(plugin: str, at_s: float | None, cause: BaseException) -> PluginError:
    """The error to raise for one that a plugin has raised.

    Args:
        plugin: whose code, such as `controller "my-law"`.
        at_s: the simulated time, if a run is under way.
        cause: what it raised.
    """
    what = str(cause) or type(cause).__name__
    if not isinstance(cause, ValueError | PluginError | OverLimitError | MistypedAttributeError):
        what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    if isinstance(cause, AttributeError):
        what += meant(cause)
    when = "" if at_s is None else f" at {at_s:.6f} s of the run"
    file, line, where = place(cause)
    at = "" if file is None else f" ({file}, line {line}, in {where})"
    error = PluginError(f"{plugin}{when}: {what}{at}", plugin, file, line)
    error.__cause__ = cause
    return error


def place(cause: BaseException) -> tuple[str | None, int | None, str]:
    """Where in somebody's own code an exception arose: file, line and function of the innermost frame of no library."""
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
    """The same in words, for messages; nothing where it did not arise in such code."""
    file, line, name = place(cause)
    return "" if file is None else f" in {name} ({file}, line {line})"


def is_foreign(file: str) -> bool:
    """Whether a file is of a library, of Python, or of this package."""
    path = Path(file)
    homes = (PACKAGE, STANDARD_LIBRARY)
    return file.startswith("<frozen") or "site-packages" in path.parts or any(home in path.parents for home in homes)
