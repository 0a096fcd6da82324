"""Tests of the parts of RAPID: p-streams, smoothing and estimates."""

import numpy as np
import pytest

from sparelane import _native, rapid


def defaults() -> dict[str, str]:
    [entry] = [entry for entry in _native.catalogue() if (entry["kind"], entry["name"]) == ("controller", "rapid")]
    return {param["name"]: param["default"] for param in entry["params"]}


def test_defaults_are_those_of_the_controller() -> None:
    known, bass, excursion = defaults(), rapid.DEFAULT_BASS, rapid.DEFAULT_EXCURSION
    assert (known["bass_passes"], float(known["spike_factor"])) == (f"{bass.passes}", bass.factor)
    assert known["spike_floor"] == f"{bass.floor_s * 1e6:g}us"
    assert float(known["excursion_share"]) == excursion.share
    assert float(known["excursion_persistence"]) == excursion.persistence
    assert int(known["excursion_samples"]) == excursion.samples
    stream = rapid.p_stream(1e9)
    rates = np.unique(stream.rate_bps)
    assert (len(stream.gap_s), len(rates)) == (int(known["rates"]) * int(known["packets_per_rate"]), 4)
    assert rates[1] / rates[0] == pytest.approx(float(known["spread"]), rel=1e-6)


def test_a_p_stream_lasts_as_long_as_at_its_average_rate() -> None:
    stream = rapid.p_stream(10e9)
    assert stream.gap_s.sum() == pytest.approx(64 * rapid.WIRE_BYTES * 8 / 10e9, rel=1e-6)
    assert np.allclose(stream.gap_s * stream.rate_bps, rapid.WIRE_BYTES * 8, rtol=1e-6)


def test_an_estimate_is_the_highest_rate_without_queueing() -> None:
    stream = rapid.p_stream(5e9)
    available = np.unique(stream.rate_bps)[2] * 1.001
    received = np.maximum(stream.gap_s, rapid.WIRE_BYTES * 8 / available)
    assert rapid.estimate(stream.gap_s, received, stream.rate_bps) == np.unique(stream.rate_bps)[2]
    assert rapid.estimate(stream.gap_s, stream.gap_s, stream.rate_bps) == stream.rate_bps.max()


def test_bass_smooths_gaps_of_packets_that_arrive_in_batches() -> None:
    send = np.full(17, 10e-6)
    receive = np.tile([37e-6, 1e-6, 1e-6, 1e-6], 5)[:17]
    smoothed = rapid.smooth(send, receive, in_event=True)
    assert smoothed.end == 16
    assert np.allclose(smoothed.receive_s[:16], 10e-6)
    assert smoothed.receive_s[16] == 37e-6


def test_a_p_stream_continues_the_buffering_event_of_the_previous_one() -> None:
    stream = rapid.p_stream(5e9)
    arrivals = np.ceil(np.cumsum(np.tile(stream.gap_s, 3)) / 60e-6) * 60e-6
    receive = np.diff(arrivals, prepend=0.0)
    found = rapid.estimates(np.tile(stream.gap_s, 3), receive, np.tile(stream.rate_bps, 3), [64, 64, 64])
    assert all(estimate is not None and estimate >= 5e9 for estimate in found), found


@pytest.mark.parametrize(
    ("send", "receive", "message"),
    [
        ([1e-6], [1e-6, 2e-6], "numbers of send gaps and receive gaps differ"),
        ([-1e-6], [1e-6], "a time from 0 s"),
        ([np.nan], [1e-6], "a time"),
    ],
)
def test_invalid_gaps_are_refused(send: list[float], receive: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rapid.smooth(send, receive)


def test_a_stream_at_zero_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        rapid.p_stream(0)
