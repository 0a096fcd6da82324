"""Handlers of the signals that stop a command: Ctrl-C, and SIGTERM of a batch system."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

# A call is stuck if it still lasts this long after a first Ctrl-C, seconds.
PATIENCE_S = 1.0


@dataclass(slots=True)
class Wish:
    """A stop flag, set by the first signal."""

    is_to_stop: bool = False


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Hears SIGTERM as if it were Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM,), interrupt):
        yield


@contextmanager
def heard(call: Callable[[int], object | None] | None = None) -> Iterator[Wish]:
    """Hears the first Ctrl-C or SIGTERM as a wish to stop, and the second as an interruption.

    Args:
        call: Returns the call into a plugin that a thread is in, or `None`. If the thread is still in the same call
            `PATIENCE_S` after the first signal, the call is interrupted.
    """
    wish = Wish()
    main, ended = threading.get_ident(), threading.Event()

    def interrupt_if_stuck(number: signal.Signals) -> None:
        now = call(main) if call is not None else None
        while call is not None and not ended.wait(PATIENCE_S):
            before, now = now, call(main)
            if now is not None and now is before:
                # Only a signal ends a call that sleeps.
                signal.pthread_kill(main, number)
                return

    def note(number: int, frame: FrameType | None) -> None:
        if wish.is_to_stop:
            raise KeyboardInterrupt
        wish.is_to_stop = True
        threading.Thread(target=interrupt_if_stuck, args=(signal.Signals(number),), daemon=True).start()

    # A shell that starts this in the background may have it ignore Ctrl-C.
    numbers = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    with _handled(numbers, note):
        try:
            yield wish
        finally:
            ended.set()


@contextmanager
def _handled(numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    # Only in the main thread are signals heard.
    with suppress(ValueError):
        for one in numbers:
            before[one] = signal.signal(one, handler)
    try:
        yield
    finally:
        for one, handled in before.items():
            signal.signal(one, handled)
