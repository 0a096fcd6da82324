"""Tests of the load with RC3 at which completion times equal TCP's."""

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from sparelane.papers.rc3 import utilisation
from sparelane.papers.rc3.internet2 import BYTES, FLOWS


@pytest.mark.parametrize(
    ("time_s", "load"),
    [(0.5, 0.1), (1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (3.5, 0.4), (4.0, 0.5), (9.0, 0.5)],
)
def test_the_load_at_a_time_is_interpolated_within_the_loads(time_s: float, load: float) -> None:
    assert utilisation.equal_load([0.1, 0.3, 0.5], [1.0, 3.0, 4.0], time_s) == pytest.approx(load)


def test_the_largest_load_counts_if_times_fall_in_between() -> None:
    assert utilisation.equal_load([0.1, 0.3, 0.5, 0.7], [1.0, 3.0, 2.0, 4.0], 2.5) == pytest.approx(0.55)


def test_flows_in_the_middle_of_a_run_count_and_unfinished_ones_are_reported() -> None:
    flows = pl.DataFrame(
        {
            "start_s": [3.9, 4.0, 5.0, 6.0, 6.1],
            "finish_s": [4.0, 5.0, 8.0, None, 7.0],
            "completion_s": [0.1, 1.0, 3.0, None, 0.9],
            "size_bytes": [1460, 1460, 14600, 1460, 1460],
        }
    )
    outcome: Any = SimpleNamespace(flows=flows)
    found = utilisation.times(outcome, 10.0)
    assert found.mean_s[FLOWS] == 2.0
    assert found.mean_s[BYTES] == pytest.approx((1.0 + 10 * 3.0) / 11)
    assert found.mean_s[utilisation.SHORT] == 1.0
    assert found.unfinished == pytest.approx(100 / 3)
