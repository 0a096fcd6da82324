"""How commands hear that they are to stop: Ctrl-C, and SIGTERM of a batch system."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Hears SIGTERM as if it were Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Not in the main thread, where signals are heard.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(slots=True)
class Wish:
    """Whether the user wants it to stop."""

    is_to_stop: bool = False


@contextmanager
def heard(*, at_once: bool) -> Iterator[Wish]:
    """Hears the first Ctrl-C or SIGTERM as a wish, and the second as an interruption; `at_once` the first as well."""
    wish = Wish()
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        if wish.is_to_stop or at_once:
            raise KeyboardInterrupt
        wish.is_to_stop = True

    try:
        for one in (signal.SIGINT, signal.SIGTERM):
            before[one] = signal.signal(one, note)
    except ValueError:
        # Not in the main thread, where signals are heard.
        yield wish
        return
    try:
        yield wish
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
