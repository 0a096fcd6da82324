"""How commands hear that they are to stop: Ctrl-C, and SIGTERM of a batch system."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(slots=True)
class Wish:
    """Whether the user wants it to stop."""

    is_to_stop: bool = False


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Hears SIGTERM as if it were Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM,), interrupt):
        yield


@contextmanager
def heard(*, at_once: bool) -> Iterator[Wish]:
    """Hears the first Ctrl-C or SIGTERM as a wish, and the second as an interruption; `at_once` the first as well."""
    wish = Wish()

    def note(number: int, frame: FrameType | None) -> None:
        if wish.is_to_stop or at_once:
            raise KeyboardInterrupt
        wish.is_to_stop = True

    # Whoever runs this in the background may have it ignore Ctrl-C: so it stays.
    numbers = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    with _handled(numbers, note):
        yield wish


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
