"""Percentiles of samples, and the smallest sample for each percentile.

With fewer than `1 / (1 - p)` values, the percentile of a share `p` is the largest value or lies between the two
largest, which says nothing about the tail. Such percentiles are left out of summaries, sweeps, comparisons and reports.
Percentiles use the nearest rank, so they are always measured values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# The tail percentiles in reports, as fractions.
TAILS = (0.95, 0.99, 0.999)


def fewest(share: float) -> int:
    """The smallest sample that has this percentile: 20 values for p95, 100 for p99, 1,000 for p99.9."""
    return math.ceil(1 / (1 - share) - 1e-6)


def percentile(values: Numbers | Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed.

    Args:
        values: the sample, without missing values.
        share: 0.99 for the 99th percentile; between 0 and 1, both excluded.

    Returns:
        `None` if there are fewer values than `fewest(share)`.
    """
    # Imported here, so that helper processes that only need `fewest` start faster.
    import numpy as np

    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < fewest(share):
        return None
    return float(np.quantile(sample, share, method="inverted_cdf"))


def weighted(values: Numbers, counts: Numbers, share: float) -> float | None:
    """Returns the percentile of a sample in which each value occurs `counts` times."""
    if counts.sum() < fewest(share):
        return None
    import numpy as np

    order = np.argsort(values)
    up_to = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(up_to, share * up_to[-1])])


def if_enough(value: float | None, share: float, count: int) -> float | None:
    """Returns a percentile that was computed elsewhere, or `None` if its sample of `count` values is too small."""
    return value if count >= fewest(share) else None


def short(share: float) -> str:
    """The usual short name, such as "p99.9"."""
    return f"p{100 * share:g}"


def long(share: float) -> str:
    """The name in words, such as "99.9th percentile"."""
    return f"{100 * share:g}th percentile"


def remark(share: float, what: str, counts: Sequence[tuple[str, int]]) -> str | None:
    """A sentence about samples that are too small for a percentile; `None` if all are large enough.

    Args:
        share: the percentile as a fraction.
        what: the kind of values, such as "finished flows".
        counts: the name of each sample, which may be empty, and its number of values.
    """
    few = [(name, count) for name, count in counts if count < fewest(share)]
    if not few:
        return None
    found = ", ".join(f"{name} has {count}" if name else f"there are {count}" for name, count in few)
    return f"{short(share)} needs at least {fewest(share):,} {what}: {found}"
