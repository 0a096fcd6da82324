"""Compares the analytic model of RC3's gain with the authors' numbers."""

import math
from pathlib import Path as FilePath

import pytest

from sparelane.papers.engine import declared
from sparelane.papers.rc3 import analytic, fig7_sizes
from sparelane.papers.rc3.analytic import FLOW_SIZES, MSS_BYTES, Path, rc3_rounds, reduction, tcp_rounds
from sparelane.papers.rc3.fig7_sizes import MODEL, PATH
from sparelane.papers.rc3.internet2 import of_size
from sparelane.papers.rc3.model import rc3_gain, window_gain

FOLDER = FilePath(analytic.__file__).parent
# The authors' numbers by row.
AUTHORS = declared.read(FOLDER / "fig7-sizes.toml", fig7_sizes.METRICS).printed

# In the simulated topology, 16, 17, 9 and 3 of 45 pairs of routers have 24, 44, 64 and 84 ms.
MEAN_RTT_S = (16 * 0.024 + 17 * 0.044 + 9 * 0.064 + 3 * 0.084) / 45


def test_shares_of_flow_sizes_add_up() -> None:
    assert math.fsum(FLOW_SIZES.values()) == pytest.approx(1.0)
    assert math.fsum(size * share for size, share in FLOW_SIZES.items()) == pytest.approx(184.475)


@pytest.mark.parametrize("segments", FLOW_SIZES)
def test_reductions_are_within_0_02_points_of_the_authors_model(segments: int) -> None:
    ours = reduction(tcp_rounds(segments, PATH), rc3_rounds(segments, PATH))
    assert ours == pytest.approx(AUTHORS[of_size(segments * MSS_BYTES, MODEL)], abs=0.02)


def mean_over_flows(time_s: dict[int, float]) -> float:
    """Returns the workload's mean of a time per size, over flows."""
    return math.fsum(share * time_s[size] for size, share in FLOW_SIZES.items())


def mean_over_bytes(time_s: dict[int, float]) -> float:
    """Returns the workload's mean of a time per size, over bytes."""
    volume = math.fsum(share * size for size, share in FLOW_SIZES.items())
    return math.fsum(share * size * time_s[size] for size, share in FLOW_SIZES.items()) / volume


def test_means_at_ten_percent_load_match_the_authors() -> None:
    path = Path(MEAN_RTT_S, 0.9e9)
    tcp = {size: tcp_rounds(size, path) for size in FLOW_SIZES}
    rc3 = {size: rc3_rounds(size, path) for size in FLOW_SIZES}
    assert mean_over_flows(tcp) == pytest.approx(0.129, abs=5e-4)
    assert mean_over_bytes(tcp) == pytest.approx(0.427, abs=5e-4)
    assert mean_over_flows(rc3) == pytest.approx(0.0678, abs=5e-5)
    assert mean_over_bytes(rc3) == pytest.approx(0.0868, abs=5e-5)


def test_a_flow_within_the_initial_window_gains_nothing() -> None:
    assert rc3_gain(4) == 0.0
    assert tcp_rounds(4, PATH) == rc3_rounds(4, PATH)


def test_no_initial_window_gains_more_than_rc3() -> None:
    for step in range(200):
        segments = 2 ** (step / 12)
        assert window_gain(segments, 10) <= window_gain(segments, 50) <= rc3_gain(segments)


def test_a_full_path_needs_no_further_round_trips() -> None:
    short = Path(rtt_s=0.001, available_bps=48e6)  # a pipe of 4 segments
    assert tcp_rounds(1000, short) == rc3_rounds(1000, short)
