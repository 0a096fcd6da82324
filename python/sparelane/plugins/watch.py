"""Watches calls into somebody's own Python code: says which of them takes long, and ends one that is over its limit.

The simulator calls a controller in the thread that runs it, and knows nothing of time. A second thread looks, four
times a second, where the first one is: a call that is found again is the same one, and still there.
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

# How often to look, seconds.
LOOK_S = 0.25
# After so many seconds a call is told of for the first time, and then whenever that has doubled.
TOLD_S = 5.0
# What ends a call that sleeps or waits in the main thread.
SIGNAL = signal.SIGALRM


@dataclass(frozen=True, slots=True)
class Limits:
    """How long somebody's own code, and a run, may take.

    Attributes:
        call_s: one call of a method or generator, seconds; `None` for any time.
        run_s: a run of a sweep as a whole, seconds; `None` for any time.
    """

    call_s: float | None = 60.0
    run_s: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call into somebody's own code that is under way.

    Attributes:
        frame: of the function that was called.
        since_s: when it was first seen, by the monotonic clock.
    """

    frame: FrameType
    since_s: float

    @property
    def whose(self) -> str:
        """Whose code: `controller "my-law"`."""
        code, owner = self.frame.f_code, None
        if code.co_argcount:
            owner = self.frame.f_locals.get(code.co_varnames[0])
        made = (type(owner).__module__, type(owner).__qualname__)
        written = (self.frame.f_globals.get("__name__"), code.co_qualname)
        for kind, registered in REGISTRY.kinds.items():
            for name, one in registered.items():
                if one.origin in (made, written):
                    return f'{kind} "{name}"'
        return "code of one's own"

    @property
    def name(self) -> str:
        """The function that was called."""
        return self.frame.f_code.co_name


def called(frame: FrameType | None) -> FrameType | None:
    """The outermost function that the simulator has called, of a thread that is there now."""
    outermost, is_own = None, False
    while frame is not None and not _is_ours(frame):
        outermost, is_own = frame, is_own or not is_foreign(frame.f_code.co_filename)
        frame = frame.f_back
    return outermost if is_own else None


def plugin_call(thread: int) -> FrameType | None:
    """The call into a plugin that a thread is in: its outermost frame, or `None`."""
    return called(sys._current_frames().get(thread))


def _is_ours(frame: FrameType) -> bool:
    return PACKAGE in Path(frame.f_code.co_filename).parents


class Watch:
    """The second thread, and what it has seen."""

    def __init__(self, limits: Limits, say: Callable[[str], object] | None) -> None:
        self._limits, self._say = limits, say
        self._watched = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._ended = threading.Event()
        self._began_s = time.monotonic()
        self._call: Call | None = None
        self._told_s = 0.0
        self._verdict = OverLimitError()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watches this thread meanwhile."""
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

    def _look(self) -> None:
        while not self._ended.wait(LOOK_S):
            frame = plugin_call(self._watched)
            now_s = time.monotonic()
            if frame is None or self._call is None or frame is not self._call.frame:
                self._call, self._told_s = None if frame is None else Call(frame, now_s), TOLD_S
                continue
            self._judge(self._call, now_s)

    def _judge(self, call: Call, now_s: float) -> None:
        """Tells of a call that takes long, and ends one that takes too long."""
        lasted_s = now_s - call.since_s
        if self._say is not None and lasted_s >= self._told_s:
            self._told_s *= 2
            place = innermost(sys._current_frames().get(self._watched))
            self._say(f"{call.whose} has been in {call.name} for {lasted_s:.0f} s{place}")
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
            # It may have ended meanwhile: whoever hears the signal looks.
            with suppress(ProcessLookupError):
                signal.pthread_kill(self._watched, SIGNAL)
        else:
            # Such an exception is made of its class alone, which therefore knows the words.
            told = type("OverLimitError", (type(verdict),), {"__str__": lambda _: str(verdict)})
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._watched), ctypes.py_object(told))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        call = self._call
        if call is not None and called(frame) is call.frame:
            raise self._verdict


def innermost(frame: FrameType | None) -> str:
    """Where in somebody's own code a thread is, for messages."""
    while frame is not None and not _is_ours(frame):
        if not is_foreign(frame.f_code.co_filename):
            return f" ({frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name})"
        frame = frame.f_back
    return ""


@contextmanager
def watched(limits: Limits, say: Callable[[str], object] | None = None) -> Iterator[None]:
    """Watches this thread's calls into plugins; where nothing is registered, there is nothing to watch.

    Args:
        limits: how long a call may take; one that takes longer fails with a `PluginError`.
        say: is told, in words, of a call that takes long.
    """
    if REGISTRY.catalogue() is None:
        yield
        return
    with Watch(limits, say).running():
        yield
