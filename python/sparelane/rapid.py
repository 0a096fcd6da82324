"""Inside TCP RAPID: the gaps of its p-streams, how BASS smooths noisy ones, and what they say of the bandwidth.

These are the simulator's own functions, apart from a connection. Gaps are in seconds, rates in bits per second. The
defaults are those of the controller `rapid`.

    >>> from sparelane import rapid
    >>> stream = rapid.p_stream(5e9)
    >>> rapid.estimate(stream.gap_s, stream.gap_s, stream.rate_bps) == max(stream.rate_bps)
    True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparelane import _native

# A jumbo frame of 9000 bytes less the headers of IP and TCP with time stamps, and with the simulator's headers again.
WIRE_BYTES = 8988

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PStream:
    """The packets of one p-stream, in order.

    Attributes:
        gap_s: the time before each packet.
        rate_bps: the rate that each packet probes, on the wire.
    """

    gap_s: Numbers
    rate_bps: Numbers


@dataclass(frozen=True, slots=True)
class Bass:
    """Thresholds of Buffering-Aware Spike Smoothing (section IV-D of the paper).

    Attributes:
        passes: at most so many; zero leaves all gaps as they are.
        factor: a spike exceeds the receive gap before it by so many medians of the receive gaps,
        floor_s: and by this at least.
    """

    passes: int = 3
    factor: float = 0.5
    floor_s: float = 5e-6


@dataclass(frozen=True, slots=True)
class Excursion:
    """What counts as packets that wait at the bottleneck, consistently.

    Attributes:
        share: a packet waited if its receive gap exceeds its send gap by more than this share; so must an excursion.
        persistence: the least share of an excursion's packets that waited.
        samples: of the shortest excursion.
    """

    share: float = 0.03
    persistence: float = 0.45
    samples: int = 8


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Gaps after BASS.

    Attributes:
        send_s: send gaps, each that of its event on average.
        receive_s: receive gaps, likewise.
        end: from here on, the last event is incomplete and left as it was: it belongs to the next p-stream.
    """

    send_s: Numbers
    receive_s: Numbers
    end: int


DEFAULT_BASS = Bass()
DEFAULT_EXCURSION = Excursion()


def p_stream(
    average_bps: float,
    *,
    rates: int = 4,
    packets_per_rate: int = 16,
    spread: float = 1.1487,
    wire_bytes: int = WIRE_BYTES,
) -> PStream:
    """The p-stream of an average rate: `rates` rates, each `spread` times the one before (section II).

    Args:
        average_bps: R_avg: the p-stream lasts as long as its packets take at this rate.
        rates: N_r.
        packets_per_rate: N_p.
        spread: s.
        wire_bytes: P, the size of a packet.

    Raises:
        ValueError: a number is not above 0.
    """
    return PStream(*_native.rapid_gaps(rates, packets_per_rate, spread, round(average_bps), wire_bytes))


def smooth(send_s: ArrayLike, receive_s: ArrayLike, bass: Bass = DEFAULT_BASS, *, in_event: bool = False) -> Smoothed:
    """BASS: events of buffering are found by their spikes, and their gaps replaced by their averages.

    Args:
        send_s: the gaps with which packets were sent.
        receive_s: the gaps with which they arrived.
        bass: thresholds.
        in_event: the first gap is a spike in any case: it was left over from the p-stream before.

    Raises:
        ValueError: there are not as many of one kind as of the other, or one is not a time.
    """
    return Smoothed(
        *_native.bass(_numbers(send_s), _numbers(receive_s), bass.passes, bass.factor, bass.floor_s, in_event)
    )


def estimate(
    send_s: ArrayLike,
    receive_s: ArrayLike,
    rate_bps: ArrayLike,
    bass: Bass = DEFAULT_BASS,
    excursion: Excursion = DEFAULT_EXCURSION,
) -> float | None:
    """The available bandwidth (ABest) that one p-stream tells of, b/s; none if it has a single gap."""
    return estimates(send_s, receive_s, rate_bps, [len(_numbers(rate_bps))], bass, excursion)[0]


def estimates(
    send_s: ArrayLike,
    receive_s: ArrayLike,
    rate_bps: ArrayLike,
    lengths: Sequence[int],
    bass: Bass = DEFAULT_BASS,
    excursion: Excursion = DEFAULT_EXCURSION,
) -> list[float | None]:
    """The available bandwidth by each of the p-streams that follow one another, b/s.

    What one leaves over, an event that was not complete, goes before the gaps of the next.

    Args:
        send_s: the gaps with which all their packets were sent.
        receive_s: the gaps with which they arrived.
        rate_bps: the rates that they probe.
        lengths: how many gaps each p-stream has.
        bass: how gaps are smoothed.
        excursion: what counts as waiting.

    Raises:
        ValueError: the numbers of gaps, rates and lengths do not fit, or one is not a time.
    """
    return _native.rapid_estimates(
        _numbers(send_s),
        _numbers(receive_s),
        _numbers(rate_bps),
        list(lengths),
        bass.passes,
        bass.factor,
        bass.floor_s,
        excursion.share,
        excursion.persistence,
        excursion.samples,
    )


def _numbers(values: ArrayLike) -> Numbers:
    return np.ascontiguousarray(values, dtype=np.float64)
