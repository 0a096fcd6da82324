"""What a controller on the wire tells of itself: how exact its gaps were, and what is remarkable about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparelane.common import percentiles

__all__ = ["Gaps", "Remarks"]


@dataclass(frozen=True, slots=True)
class Gaps:
    """How exact the gaps were that a controller set between segments, as the sender's own clock has it.

    Attributes:
        count: gaps that were measured.
        median_gap_s: the median of those that were set.
        median_error_s, p99_error_s: by how much gaps were longer or shorter: the median, and the 99th percentile, which
            is `None` for fewer than 100 gaps.
    """

    count: int
    median_gap_s: float
    median_error_s: float
    p99_error_s: float | None

    @classmethod
    def of(cls, told: dict[str, Any] | None) -> Gaps | None:
        """As Rust tells them; none where no controller sets any."""
        if told is None:
            return None
        return cls(**{**told, "p99_error_s": percentiles.if_enough(told["p99_error_s"], 0.99, told["count"])})

    def __str__(self) -> str:
        return (
            f"{self.count:,} gaps, half of them below {self.median_gap_s * 1e6:.0f} us: "
            f"off by {self.median_error_s * 1e6:.1f} us in the median"
            + ("" if self.p99_error_s is None else f", {self.p99_error_s * 1e6:.1f} us at the 99th percentile")
        )


class Remarks:
    """Says each remark once."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._said: set[str] = set()

    def __call__(self, remarks: Sequence[str]) -> None:
        """Says those that were not said yet. What a remark is of is in its first words; numbers in it may change."""
        for remark in remarks:
            if remark[:30] not in self._said:
                self._said.add(remark[:30])
                self._say(remark)
