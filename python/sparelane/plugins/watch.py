"""Watches calls into plugins: reports slow calls, and ends calls that exceed their time limit.

The simulator calls a controller in its own thread and does not measure real time. A second thread inspects the stack of
the first one four times a second. If it finds the same frame again, the same call is still running.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from sparelane.plugins.failure import PACKAGE, OverLimitError, RunOverLimitError, is_foreign
from sparelane.plugins.registry import REGISTRY

# Interval between inspections, seconds.
POLL_S = 0.25
# A slow call is first reported after this time, and again whenever its duration has doubled, seconds.
REPORT_AFTER_S = 5.0
# The signal that interrupts a call that sleeps or waits in the main thread.
SIGNAL = signal.SIGALRM


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of plugin code and of runs.

    Attributes:
        call_s: limit of a call of a method or generator, seconds; `None` for no limit.
        run_s: limit of a whole run, seconds; `None` for no limit.
    """

    call_s: float | None = 60.0
    run_s: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An active call into plugin code.

    Attributes:
        frame: the frame of the called function.
        since_s: the time when the call was first seen, monotonic clock.
    """

    frame: FrameType
    since_s: float

    @property
    def plugin(self) -> str:
        """The plugin that the code belongs to, such as `controller "my-law"`."""
        code, owner = self.frame.f_code, None
        if code.co_argcount:
            owner = self.frame.f_locals.get(code.co_varnames[0])
        made = (type(owner).__module__, type(owner).__qualname__)
        written = (self.frame.f_globals.get("__name__"), code.co_qualname)
        for kind, registered in REGISTRY.kinds.items():
            for name, one in registered.items():
                if one.origin in (made, written):
                    return f'{kind} "{name}"'
        return "plugin code"

    @property
    def name(self) -> str:
        """The name of the called function."""
        return self.frame.f_code.co_name


def called(frame: FrameType | None) -> FrameType | None:
    """The outermost plugin frame of the stack that ends with `frame`, or `None`."""
    outermost, is_own = None, False
    while frame is not None and not _is_ours(frame):
        outermost, is_own = frame, is_own or not is_foreign(frame.f_code.co_filename)
        frame = frame.f_back
    return outermost if is_own else None


def plugin_call(thread: int) -> FrameType | None:
    """The outermost frame of a thread's current call into a plugin, or `None`."""
    return called(sys._current_frames().get(thread))


def _is_ours(frame: FrameType) -> bool:
    return PACKAGE in Path(frame.f_code.co_filename).parents


class CallWatcher:
    """The watching thread and its state."""

    def __init__(self, limits: Limits, report: Callable[[str], object] | None) -> None:
        self._limits, self._report = limits, report
        self._watched = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._ended = threading.Event()
        self._began_s = time.monotonic()
        self._call: Call | None = None
        self._report_s = 0.0
        self._verdict = OverLimitError()
        self._thread = threading.Thread(target=self._poll, name="watch", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watches the current thread inside the `with` block."""
        before = signal.signal(SIGNAL, self._on_signal) if self._is_main else None
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()
            self._call = None
            if self._is_main:
                signal.signal(SIGNAL, before)

    def _poll(self) -> None:
        while not self._ended.wait(POLL_S):
            frame = plugin_call(self._watched)
            now_s = time.monotonic()
            if frame is None or self._call is None or frame is not self._call.frame:
                self._call, self._report_s = None if frame is None else Call(frame, now_s), REPORT_AFTER_S
                continue
            self._judge(self._call, now_s)

    def _judge(self, call: Call, now_s: float) -> None:
        """Reports a slow call, and ends a call that exceeds its limit."""
        lasted_s = now_s - call.since_s
        if self._report is not None and lasted_s >= self._report_s:
            self._report_s *= 2
            place = innermost(sys._current_frames().get(self._watched))
            self._report(f"{call.plugin} has been in {call.name} for {lasted_s:.0f} s{place}")
        call_s, run_s = self._limits.call_s, self._limits.run_s
        if call_s is not None and lasted_s >= call_s:
            self._end(
                OverLimitError(f"{call.name} takes longer than {call_s:g} s; allowed: less, or another --call-limit")
            )
        elif run_s is not None and now_s - self._began_s >= run_s:
            self._end(
                RunOverLimitError(f"the run takes longer than {run_s:g} s; allowed: less, or another --run-limit")
            )

    def _end(self, verdict: OverLimitError) -> None:
        self._verdict = verdict
        if self._is_main:
            # The call may have returned by now, so the handler checks again.
            with suppress(ProcessLookupError):
                signal.pthread_kill(self._watched, SIGNAL)
        else:
            # The interpreter instantiates the class without arguments, so the class itself holds the message.
            error = type("OverLimitError", (type(verdict),), {"__str__": lambda _: str(verdict)})
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._watched), ctypes.py_object(error))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        call = self._call
        if call is not None and called(frame) is call.frame:
            raise self._verdict


def innermost(frame: FrameType | None) -> str:
    """The place in plugin code where a thread is, for messages."""
    while frame is not None and not _is_ours(frame):
        if not is_foreign(frame.f_code.co_filename):
            return f" ({frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name})"
        frame = frame.f_back
    return ""


@contextmanager
def watched(limits: Limits, report: Callable[[str], object] | None = None) -> Iterator[None]:
    """Watches this thread's calls into plugins inside the `with` block. Does nothing if no plugin is registered.

    Args:
        limits: the time limits; a call that exceeds one fails with a `PluginError`.
        report: called with a message about each slow call.
    """
    if REGISTRY.catalogue() is None:
        yield
        return
    with CallWatcher(limits, report).running():
        yield
