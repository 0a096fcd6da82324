"""Reports of controllers on the wire: the accuracy of gaps, and remarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparelane.common import percentiles

__all__ = ["Gaps", "Remarks"]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The accuracy of the gaps that a controller set between segments, measured with the sender's clock.

    Attributes:
        count: the number of measured gaps.
        median_gap_s: the median of the gaps that were set, seconds.
        median_error_s, p99_error_s: the median and the 99th percentile of the absolute error, seconds. The percentile
            is `None` for fewer than 100 gaps.
    """

    count: int
    median_gap_s: float
    median_error_s: float
    p99_error_s: float | None

    @classmethod
    def of(cls, native: dict[str, Any] | None) -> Gaps | None:
        """Converts the native form; `None` if no controller sets gaps."""
        if native is None:
            return None
        return cls(**{**native, "p99_error_s": percentiles.if_enough(native["p99_error_s"], 0.99, native["count"])})

    def __str__(self) -> str:
        return (
            f"{self.count:,} gaps, half of them below {self.median_gap_s * 1e6:.0f} us: "
            f"off by {self.median_error_s * 1e6:.1f} us in the median"
            + ("" if self.p99_error_s is None else f", {self.p99_error_s * 1e6:.1f} us at the 99th percentile")
        )


class Remarks:
    """Reports each remark once."""

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._reported: set[str] = set()

    def __call__(self, remarks: Sequence[str]) -> None:
        """Reports new remarks. The first 30 characters identify a remark, since numbers in it may change."""
        for remark in remarks:
            if remark[:30] not in self._reported:
                self._reported.add(remark[:30])
                self._report(remark)
