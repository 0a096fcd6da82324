"""Tests of the line that shows the progress of a transfer."""

import io
import sys
import time

import pytest
from rich.cells import cell_len

from sparelane.terminal import console
from sparelane.terminal.transfer_line import State, TransferLine, size, text

STATE = State(12_300_000, 200_000_000, 3, 2000, 58e6, "photos/2024/summer/beach.jpg")


def test_the_line_has_bytes_rate_time_files_and_name() -> None:
    assert text(STATE, 200) == (
        "12.3 MB of 200 MB (6 %), 58 Mb/s, 26 s left, 3 of 2000 files: photos/2024/summer/beach.jpg"
    )
    unknown = State(0, 0, 0, 1, None, None)
    assert text(unknown, 200) == "0 B of 0 B (0 %), 0 of 1 files"
    # The size of standard input is unknown.
    assert text(State(5_000_000, None, 0, 1, 58e6, "stdin"), 200) == "5 MB, 58 Mb/s, 0 of 1 files: stdin"
    # A rate of zero has no time left.
    assert text(State(5, 10, 0, 1, 0.0, None), 200) == "5 B of 10 B (50 %), 0 Mb/s, 0 of 1 files"


@pytest.mark.parametrize("name", ["photos/2024/summer/beach.jpg", "写真/二〇二四年/夏/" * 5 + "浜.jpg"])
def test_the_line_fits_any_width_and_keeps_the_end_of_the_name(name: str) -> None:
    state = State(12_300_000, 200_000_000, 3, 2000, 58e6, name)
    for width in range(1, 150):
        line = text(state, width)
        assert cell_len(line) <= width
        assert width < 80 or line.endswith(name[-6:]), line


def test_sizes_have_three_digits_and_a_decimal_unit() -> None:
    sizes = {0: "0 B", 999: "999 B", 1000: "1 kB", 123_456: "123 kB", 999_999: "1000 kB", 5_000_000_000: "5 GB"}
    assert {count: size(count) for count in sizes} == sizes


def test_the_rate_is_that_of_the_last_seconds_without_bytes_that_were_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, now_s = Terminal(), 100.0
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    line = TransferLine()
    sent = resumed = 0
    for _ in range(100):
        now_s += 0.1
        sent += 100_000
        # The receiver has a large file already.
        resumed += 1_000_000
        line(State(sent + resumed, 10**9, 1, 2, None, "name"), resumed)
    written = terminal.getvalue().split("\r\x1b[K")
    # Nothing appears at first, then five lines a second.
    assert (10.0 - console.SHOWN_AFTER_S) / 0.3 <= len(written) <= (10.0 - console.SHOWN_AFTER_S) / 0.2 + 2
    assert ", 8 Mb/s, " in written[-1], written[-1]
    line.clear()
    assert terminal.getvalue().endswith("\x1b[K")
