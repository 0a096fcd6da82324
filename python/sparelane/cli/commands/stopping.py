"""Handlers of the signals that stop a command: SIGINT from Ctrl-C, and SIGTERM from a batch system."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

# A call into a plugin counts as stuck if it still runs this many seconds after the first signal.
STUCK_AFTER_S = 1.0


@dataclass(slots=True)
class StopFlag:
    """A flag that the first signal sets."""

    is_set: bool = False


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Raises KeyboardInterrupt on SIGTERM, as Python does on SIGINT."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM,), interrupt):
        yield


@contextmanager
def stop_on_signal(call: Callable[[int], object | None] | None = None) -> Iterator[StopFlag]:
    """Sets the returned flag on the first SIGINT or SIGTERM, and raises KeyboardInterrupt on the second.

    Args:
        call: Returns the current call of a thread into a plugin, or `None`. If the thread is still in the same call
            `STUCK_AFTER_S` after the first signal, the call is interrupted.
    """
    flag = StopFlag()
    main, ended = threading.get_ident(), threading.Event()

    def interrupt_if_stuck(number: signal.Signals) -> None:
        now = call(main) if call is not None else None
        while call is not None and not ended.wait(STUCK_AFTER_S):
            before, now = now, call(main)
            if now is not None and now is before:
                # A signal interrupts a call even if it sleeps.
                signal.pthread_kill(main, number)
                return

    def note(number: int, frame: FrameType | None) -> None:
        if flag.is_set:
            raise KeyboardInterrupt
        flag.is_set = True
        threading.Thread(target=interrupt_if_stuck, args=(signal.Signals(number),), daemon=True).start()

    # Shells start background jobs with SIGINT ignored, which stays so.
    numbers = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    with _handled(numbers, note):
        try:
            yield flag
        finally:
            ended.set()


@contextmanager
def _handled(numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    # Python allows signal handlers in the main thread only, and raises ValueError in others.
    with suppress(ValueError):
        for one in numbers:
            before[one] = signal.signal(one, handler)
    try:
        yield
    finally:
        for one, handled in before.items():
            signal.signal(one, handled)
